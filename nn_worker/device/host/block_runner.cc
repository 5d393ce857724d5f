#include "nn_worker/device/host/block_runner.h"

#include <algorithm>
#include <bit>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "common/base/check.h"

namespace satrap::host {
namespace {

constexpr int kWarpLanes = 32;

std::string Text(const Dim3& at) { return absl::StrCat("(", at.x, ", ", at.y, ", ", at.z, ")"); }

// Fails like a CHECK, at line `where` of the kernel's source.
[[noreturn]] void Fail(const KernelThread& thread, Site where, const char* rule,
                       const std::string& text) {
  satrap::internal::CheckFailure(rule, where.file, where.line).stream()
      << DescribeThread(thread) << ": " << text;
  __builtin_unreachable();
}

const char* NameOf(WarpOperation operation) {
  switch (operation) {
    case WarpOperation::kSync:
      return "SyncWarp";
    case WarpOperation::kShuffle:
      return "Shuffle";
    case WarpOperation::kShuffleDown:
      return "ShuffleDown";
    case WarpOperation::kShuffleXor:
      return "ShuffleXor";
    case WarpOperation::kVote:
      return "a vote";
  }
  return "";
}

std::string Place(Site where) { return absl::StrCat(where.file, ":", where.line); }

// Not inlined: a different host thread may resume a fiber for the next block, but within one
// function the compiler may keep the address of the old thread's variable.
__attribute__((noinline)) void SetCurrentThread(KernelThread* thread) { current_thread = thread; }

bool SamePlace(Site a, Site b) { return a.line == b.line && absl::string_view(a.file) == b.file; }

}  // namespace

std::string KernelName(const char* signature) {
  absl::string_view name = signature;
  constexpr absl::string_view kBefore = "kKernel = ";
  const size_t begin = name.find(kBefore);
  if (begin == absl::string_view::npos) return std::string(name);
  name.remove_prefix(begin + kBefore.size());
  name = name.substr(0, name.rfind(']'));
  // Strips the parts that all kernel names have in common.
  return absl::StrReplaceAll(name, {{"satrap::", ""},
                                    {"{anonymous}::", ""},
                                    {"<unnamed>::", ""},
                                    {"(anonymous namespace)::", ""},
                                    {"&", ""}});
}

std::string DescribeThread(const KernelThread& thread) {
  return absl::StrCat("kernel ", KernelName(thread.block->signature), ", block ",
                      Text(thread.block->index), ", thread ", Text(thread.index));
}

BlockRunner::BlockRunner(ExecutionOrder order, GuardedMemory* memory) : order_(order) {
  block_.runner = this;
  block_.memory = memory;
}
BlockRunner::~BlockRunner() = default;

void BlockRunner::Run(const KernelLaunch& launch, Dim3 block_index) {
  launch_ = &launch;
  block_.signature = launch.signature;
  block_.index = block_index;
  block_.size = launch.block;
  block_.grid = launch.grid;
  block_number_ =
      block_index.x + static_cast<uint64_t>(launch.grid.x) *
                          (block_index.y + static_cast<uint64_t>(launch.grid.y) * block_index.z);
  num_threads_ = not_left_ = static_cast<int>(launch.block.volume());
  if (static_cast<int>(threads_.size()) < num_threads_) threads_.resize(num_threads_);
  Dim3 index{0, 0, 0};
  for (int i = 0; i < num_threads_; ++i) {
    Thread& thread = threads_[i];
    thread.block = &block_;
    thread.index = index;
    thread.number = i;
    thread.lane = i % kWarpLanes;
    thread.state = State::kNotStarted;
    if (++index.x < launch.block.x) continue;
    index.x = 0;
    if (++index.y < launch.block.y) continue;
    index.y = 0;
    ++index.z;
  }
  shared_.Begin(launch.shared_bytes);
  const int warps = (num_threads_ + kWarpLanes - 1) / kWarpLanes;
  for (uint64_t pass = 0;; ++pass) {
    const Permutation order(order_, warps, RandomBits(block_number_, pass));
    for (int w = 0; w < warps; ++w) RunWarp(static_cast<int>(order.At(w)), pass);
    if (not_left_ == 0) break;
    PassBarrier();
  }
  const char* const overrun = shared_.FindOverrun();
  CHECK(overrun == nullptr) << DescribeThread(threads_[0])
                            << " or another of the block: wrote past "
                            << "the end of the shared array " << overrun;
}

int BlockRunner::LanesOf(int warp) const {
  return std::min(kWarpLanes, num_threads_ - warp * kWarpLanes);
}

// Runs the warp's lanes until each has left the kernel or waits at a barrier.
void BlockRunner::RunWarp(int warp, uint64_t pass) {
  warp_ = warp;
  const int count = LanesOf(warp);
  lanes_ = Permutation(order_, count, RandomBits(block_number_, pass, warp + 1));
  next_to_start_ = pass == 0 ? 0 : count;
  if (pass == 0) {
    // One fiber starts one lane after another until a lane waits. So a kernel whose threads never
    // wait needs only one fiber, and two switches for each warp.
    while (next_to_start_ < count) {
      if (idle_.empty()) {
        fibers_.push_back(std::make_unique<Fiber>(&BlockRunner::FiberBody, this));
        idle_.push_back(fibers_.back().get());
      }
      running_ = idle_.back();
      idle_.pop_back();
      running_->Resume();
    }
    current_thread = nullptr;
  }
  do {
    for (int i = 0; i < count; ++i) {
      Thread* const thread = &threads_[warp * kWarpLanes + lanes_.At(i)];
      if (thread->state == State::kReady) Resume(thread);
    }
  } while (CompleteWarpOperations(warp));
}

BlockRunner::Thread* BlockRunner::NextNotStarted() {
  if (next_to_start_ >= LanesOf(warp_)) return nullptr;
  return &threads_[warp_ * kWarpLanes + lanes_.At(next_to_start_++)];
}

void BlockRunner::FiberBody(void* runner) {
  BlockRunner* const self = static_cast<BlockRunner*>(runner);
  Fiber* const fiber = self->running_;
  for (;;) {
    while (Thread* const thread = self->NextNotStarted()) {
      thread->fiber = fiber;
      SetCurrentThread(thread);
      reinterpret_cast<void (*)(const void* const*)>(self->launch_->entry)(self->launch_->args);
      thread->state = State::kLeft;
      --self->not_left_;
    }
    self->idle_.push_back(fiber);
    fiber->Suspend();
  }
}

void BlockRunner::Resume(Thread* thread) {
  current_thread = thread;
  thread->fiber->Resume();
  current_thread = nullptr;
}

void BlockRunner::Wait(Thread* thread, State state, Site where) {
  thread->state = state;
  thread->where = where;
  thread->fiber->Suspend();
}

void BlockRunner::Barrier(Site where) {
  Wait(static_cast<Thread*>(current_thread), State::kAtBarrier, where);
}

uint64_t BlockRunner::WarpExchange(WarpOperation operation, uint32_t mask, uint64_t value, int from,
                                   Site where) {
  Thread* const thread = static_cast<Thread*>(current_thread);
  if ((mask >> thread->lane & 1) == 0) {
    Fail(*thread, where, "a mask names the lane that passes it",
         absl::StrCat(NameOf(operation), " with mask 0x", absl::Hex(mask), " in lane ",
                      thread->lane));
  }
  thread->operation = operation;
  thread->mask = mask;
  thread->value = value;
  thread->from = from;
  Wait(thread, State::kInWarp, where);
  return thread->value;
}

// Resumes the lanes whose operation has been reached by all lanes of their mask. Returns false if
// no lane waits. It is an error if lanes wait but none can be resumed, because nothing could ever
// wake them.
bool BlockRunner::CompleteWarpOperations(int warp) {
  const int count = LanesOf(warp);
  Thread* const lanes = &threads_[warp * kWarpLanes];
  const Thread* waits = nullptr;
  const Thread* absent = nullptr;
  int absent_lane = 0;
  bool completed = false;
  for (int i = 0; i < count; ++i) {
    if (lanes[i].state != State::kInWarp) continue;
    const Thread& first = lanes[i];
    int missing = -1;
    for (uint32_t rest = first.mask; rest != 0 && missing < 0; rest &= rest - 1) {
      const int lane = std::countr_zero(rest);
      if (lane >= count || lanes[lane].state != State::kInWarp || lanes[lane].mask != first.mask ||
          lanes[lane].operation != first.operation ||
          // Only SyncWarp may be called from different branches of a condition.
          (first.operation != WarpOperation::kSync && !SamePlace(lanes[lane].where, first.where))) {
        missing = lane;
      }
    }
    if (missing < 0) {
      Exchange(warp, first.mask, first.operation);
      completed = true;
    } else if (waits == nullptr) {
      waits = &first;
      absent = missing < count ? &lanes[missing] : nullptr;
      absent_lane = missing;
    }
  }
  if (!completed && waits != nullptr) FailWarp(*waits, absent, absent_lane);
  return completed;
}

void BlockRunner::Exchange(int warp, uint32_t mask, WarpOperation operation) {
  Thread* const lanes = &threads_[warp * kWarpLanes];
  uint64_t values[kWarpLanes];
  uint64_t votes = 0;
  for (uint32_t rest = mask; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    values[lane] = lanes[lane].value;
    if (values[lane] != 0) votes |= uint64_t{1} << lane;
  }
  for (uint32_t rest = mask; rest != 0; rest &= rest - 1) {
    Thread& thread = lanes[std::countr_zero(rest)];
    if (operation == WarpOperation::kVote) {
      thread.value = votes;
    } else {
      thread.value = (mask >> thread.from & 1) != 0 ? values[thread.from] : ~uint64_t{0};
    }
    thread.state = State::kReady;
  }
}

void BlockRunner::FailWarp(const Thread& waits, const Thread* absent, int lane) const {
  std::string what;
  if (absent == nullptr) {
    what = absl::StrCat("which does not exist: the block has ", num_threads_, " threads");
  } else if (absent->state == State::kLeft) {
    what = "which has left the kernel";
  } else if (absent->state == State::kAtBarrier) {
    what = absl::StrCat("which waits at the barrier at ", Place(absent->where));
  } else {
    what = absl::StrCat("which waits in ", NameOf(absent->operation), " with mask 0x",
                        absl::Hex(absent->mask), " at ", Place(absent->where));
  }
  Fail(waits, waits.where, "every lane that a mask names takes part",
       absl::StrCat(NameOf(waits.operation), " with mask 0x", absl::Hex(waits.mask),
                    " waits for lane ", lane, " of its warp, ", what));
}

// All threads that have not left the kernel now wait at a barrier.
void BlockRunner::PassBarrier() {
  const Thread* first = nullptr;
  const Thread* left = nullptr;
  for (int i = 0; i < num_threads_; ++i) {
    Thread& thread = threads_[i];
    if (thread.state == State::kLeft) {
      left = &thread;
      continue;
    }
    if (first == nullptr) first = &thread;
    if (!SamePlace(thread.where, first->where)) {
      Fail(thread, thread.where, "all threads of a block reach the same barrier",
           absl::StrCat("waits here, while thread ", Text(first->index), " waits at ",
                        Place(first->where)));
    }
  }
  if (left != nullptr && first != nullptr) {
    Fail(*first, first->where, "all threads of a block reach a barrier",
         absl::StrCat("waits here, but thread ", Text(left->index), " has left the kernel"));
  }
  for (int i = 0; i < num_threads_; ++i) threads_[i].state = State::kReady;
}

void* BlockRunner::SharedArray(const void* site, const char* name, int64_t bytes) {
  void* const array = shared_.Array(site, name, bytes);
  CHECK(array != nullptr) << DescribeThread(*current_thread) << ": the shared array " << name
                          << " of " << bytes << " bytes does not fit into the " << kSharedBytes
                          << " bytes of a block";
  return array;
}

void* BlockRunner::DynamicShared() {
  CHECK(launch_->shared_bytes > 0)
      << DescribeThread(*current_thread) << ": DynamicShared in a launch with shared_bytes 0";
  return shared_.dynamic();
}

void Barrier(Site where) { current_thread->block->runner->Barrier(where); }

uint64_t WarpExchange(WarpOperation operation, uint32_t mask, uint64_t value, int from,
                      Site where) {
  return current_thread->block->runner->WarpExchange(operation, mask, value, from, where);
}

void* SharedArray(const void* site, const char* name, int64_t bytes) {
  return current_thread->block->runner->SharedArray(site, name, bytes);
}

void* DynamicShared() { return current_thread->block->runner->DynamicShared(); }

void FailAlignment(const void* p, int64_t bytes, Site where) {
  Fail(*current_thread, where, "an access of a Vec is aligned to its size",
       absl::StrCat(bytes, " bytes at 0x", absl::Hex(reinterpret_cast<uintptr_t>(p))));
}

void FailDelta(int delta, Site where) {
  Fail(*current_thread, where, "the delta of ShuffleDown is from 0 to 31",
       absl::StrCat("got ", delta));
}

}  // namespace satrap::host

#include "nn_worker/device/host/host_device.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <functional>
#include <iterator>
#include <map>
#include <new>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/thread/fork_join_pool.h"
#include "common/thread/mutex.h"
#include "nn_worker/device/host/block_runner.h"
#include "nn_worker/device/host/guarded_memory.h"

namespace satrap {
namespace {

// Operations open the device memory, and a poll closes it again. This costs system calls, so a poll
// runs several operations.
constexpr int kOperationsPerPoll = 64;
// A card's queue is bounded, too: when it is full, a call waits for room.
constexpr size_t kMaxEnqueued = 4096;
constexpr int64_t kMaxBlocks = int64_t{1} << 31;
// The limits of all cards that exist so far.
constexpr int64_t kMaxThreadsInBlock = 1024;
constexpr uint32_t kMaxGridY = 65535;  // and z
constexpr uint32_t kMaxBlockZ = 64;
constexpr std::align_val_t kPinnedAlignment{64};

// A point in a stream. An event gets a new point each time that it is recorded. If it kept its
// point, a later recording, which may be reached first on another stream, could end a wait for an
// earlier recording. Points are shared, because an event may be destroyed before the operations
// that use it run.
struct Point {
  bool reached = false;
};
struct EventState {
  std::shared_ptr<Point> last;  // the last one recorded; null if none was
};

struct Operation {
  int64_t number = 0;  // in the order of the calls
  std::function<void()> run;
  std::shared_ptr<const Point> after;  // runs when it is reached; null: at once

  bool Runnable() const { return after == nullptr || after->reached; }
};

using Queue = std::deque<Operation>;

// A launch runs after its call has returned, so it keeps a copy of the arguments.
struct StoredLaunch {
  explicit StoredLaunch(const KernelLaunch& given) : launch(given) {
    // Each argument begins at a multiple of 16, which is enough alignment for all types.
    for (int i = 0; i < given.num_args; ++i) {
      offsets.push_back(bytes.size() * sizeof(Chunk));
      bytes.resize(bytes.size() + (given.arg_bytes[i] + sizeof(Chunk) - 1) / sizeof(Chunk));
      std::memcpy(reinterpret_cast<char*>(bytes.data()) + offsets.back(), given.args[i],
                  given.arg_bytes[i]);
    }
  }
  struct alignas(16) Chunk {
    char byte[16];
  };
  KernelLaunch launch;
  std::vector<Chunk> bytes;
  std::vector<size_t> offsets;
};

class HostDevice final : public Device {
 public:
  explicit HostDevice(const HostDeviceOptions& options)
      : options_(options), memory_(options.memory_bytes), pool_(options.threads) {
    for (int i = 0; i < options.threads; ++i) {
      runners_.push_back(std::make_unique<host::BlockRunner>(options.order, &memory_));
    }
  }
  ~HostDevice() override {
    CHECK(queues_.empty()) << queues_.size() << " streams outlive their device";
    CHECK(pinned_.empty() && num_allocations_ == 0) << "memory outlives its device";
  }

  absl::StatusOr<DeviceRoom> Room() override;
  absl::StatusOr<std::unique_ptr<Memory>> Allocate(int64_t bytes) override;
  absl::StatusOr<std::unique_ptr<Memory>> AllocatePinned(int64_t bytes) override;
  absl::StatusOr<std::unique_ptr<DeviceStream>> NewStream() override;
  absl::StatusOr<std::unique_ptr<Event>> NewEvent() override;
  absl::StatusOr<std::unique_ptr<StreamGraph>> Capture(DeviceStream* stream,
                                                       absl::FunctionRef<void()> enqueue) override;

  void LaunchGraph(Queue* queue, const std::vector<Operation>& operations);
  void Free(void* data, int64_t bytes);
  void FreePinned(void* data);
  void CloseStream(Queue* queue);
  void CopyIn(Queue* queue, const void* pinned, void* device, int64_t bytes);
  void CopyOut(Queue* queue, const void* device, void* pinned, int64_t bytes);
  void CopyWithin(Queue* queue, const void* from, void* to, int64_t bytes);
  void Launch(Queue* queue, const KernelLaunch& launch);
  void Record(Queue* queue, const std::shared_ptr<EventState>& event);
  void WaitFor(Queue* queue, const std::shared_ptr<EventState>& event);
  bool Poll(const EventState& event);

 private:
  void Enqueue(Queue* queue, std::function<void()> run) REQUIRES(mutex_);
  // Runs operations while `wanted` returns true, but at most `limit`. Device memory that they open
  // stays open until the last of them has run.
  void RunWhile(int64_t limit, const std::function<bool()>& wanted) REQUIRES(mutex_);
  Queue* ChooseQueue() REQUIRES(mutex_);
  void RunKernel(const StoredLaunch& stored) REQUIRES(mutex_);
  void CheckPinned(const void* p, int64_t bytes) const REQUIRES(mutex_);
  void CheckDevice(const void* p, int64_t bytes) const REQUIRES(mutex_);
  void CheckNotCaptured(const Queue* queue, const char* call) const REQUIRES(mutex_);
  void CheckNotCapturing(const char* call) const REQUIRES(mutex_);

  const HostDeviceOptions options_;
  Mutex mutex_;
  host::GuardedMemory memory_ GUARDED_BY(mutex_);
  ForkJoinPool pool_ GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<host::BlockRunner>> runners_;   // one a thread of the pool
  std::map<const char*, int64_t> pinned_ GUARDED_BY(mutex_);  // bytes by address
  std::vector<std::unique_ptr<Queue>> queues_ GUARDED_BY(mutex_);
  // The captured stream and the operations captured so far. Null if no stream is being captured.
  Queue* capturing_ GUARDED_BY(mutex_) = nullptr;
  std::thread::id capturing_thread_ GUARDED_BY(mutex_);
  std::vector<Operation> captured_ GUARDED_BY(mutex_);
  int64_t num_allocations_ GUARDED_BY(mutex_) = 0;
  int64_t used_bytes_ GUARDED_BY(mutex_) = 0;  // device and pinned
  int64_t enqueued_ GUARDED_BY(mutex_) = 0;
  int64_t next_number_ GUARDED_BY(mutex_) = 0;
};

class HostMemory final : public Memory {
 public:
  HostMemory(void* data, int64_t bytes, std::function<void()> free)
      : data_(data), bytes_(bytes), free_(std::move(free)) {}
  ~HostMemory() override { free_(); }
  void* data() const override { return data_; }
  int64_t bytes() const override { return bytes_; }

 private:
  void* const data_;
  const int64_t bytes_;
  const std::function<void()> free_;
};

class HostEvent final : public Event {
 public:
  explicit HostEvent(HostDevice* device) : device_(device) {}
  absl::StatusOr<bool> Poll() override { return device_->Poll(*state_); }
  const std::shared_ptr<EventState>& state() const { return state_; }

 private:
  HostDevice* const device_;
  const std::shared_ptr<EventState> state_ = std::make_shared<EventState>();
};

class HostStream final : public DeviceStream {
 public:
  HostStream(HostDevice* device, Queue* queue) : device_(device), queue_(queue) {}
  ~HostStream() override { device_->CloseStream(queue_); }
  void CopyIn(const void* pinned, void* device, int64_t bytes) override {
    device_->CopyIn(queue_, pinned, device, bytes);
  }
  void CopyOut(const void* device, void* pinned, int64_t bytes) override {
    device_->CopyOut(queue_, device, pinned, bytes);
  }
  void CopyWithin(const void* from, void* to, int64_t bytes) override {
    device_->CopyWithin(queue_, from, to, bytes);
  }
  void Launch(const KernelLaunch& launch) override { device_->Launch(queue_, launch); }
  void Record(Event* event) override {
    device_->Record(queue_, static_cast<HostEvent*>(event)->state());
  }
  void WaitFor(Event* event) override {
    device_->WaitFor(queue_, static_cast<HostEvent*>(event)->state());
  }

  Queue* queue() const { return queue_; }

 private:
  HostDevice* const device_;
  Queue* const queue_;
};

class HostGraph final : public StreamGraph {
 public:
  HostGraph(HostDevice* device, std::vector<Operation> operations)
      : device_(device), operations_(std::move(operations)) {}
  void Launch(DeviceStream* stream) override {
    device_->LaunchGraph(static_cast<HostStream*>(stream)->queue(), operations_);
  }

 private:
  HostDevice* const device_;
  const std::vector<Operation> operations_;
};

absl::StatusOr<DeviceRoom> HostDevice::Room() {
  MutexLock lock(&mutex_);
  return DeviceRoom{"the host's device", options_.memory_bytes,
                    options_.memory_bytes - used_bytes_};
}

absl::StatusOr<std::unique_ptr<Memory>> HostDevice::Allocate(int64_t bytes) {
  MutexLock lock(&mutex_);
  CheckNotCapturing("device memory is taken");
  // Pinned and device memory share the limit.
  void* const data =
      used_bytes_ + bytes <= options_.memory_bytes ? memory_.Allocate(bytes) : nullptr;
  if (data == nullptr) {
    return absl::ResourceExhaustedError(absl::StrCat("no room for ", bytes, " bytes: ", used_bytes_,
                                                     " of ", options_.memory_bytes,
                                                     " bytes are in use"));
  }
  ++num_allocations_;
  used_bytes_ += bytes;
  return std::make_unique<HostMemory>(data, bytes, [this, data, bytes] { Free(data, bytes); });
}

void HostDevice::Free(void* data, int64_t bytes) {
  MutexLock lock(&mutex_);
  CHECK(enqueued_ == 0) << "device memory is freed while " << enqueued_
                        << " operations are enqueued";
  memory_.Free(data);
  --num_allocations_;
  used_bytes_ -= bytes;
}

absl::StatusOr<std::unique_ptr<Memory>> HostDevice::AllocatePinned(int64_t bytes) {
  MutexLock lock(&mutex_);
  CheckNotCapturing("pinned memory is taken");
  if (used_bytes_ + bytes > options_.memory_bytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat("no room for ", bytes, " bytes of pinned memory: ", used_bytes_, " of ",
                     options_.memory_bytes, " bytes are in use"));
  }
  // The allocator's own block ends where `bytes` end, so AddressSanitizer detects an overrun by the
  // host.
  void* const data = ::operator new(std::max<int64_t>(bytes, 1), kPinnedAlignment);
  std::memset(data, 0xff, bytes);
  used_bytes_ += bytes;
  pinned_[static_cast<char*>(data)] = bytes;
  return std::make_unique<HostMemory>(data, bytes, [this, data] { FreePinned(data); });
}

void HostDevice::FreePinned(void* data) {
  MutexLock lock(&mutex_);
  CHECK(enqueued_ == 0) << "pinned memory is freed while " << enqueued_
                        << " operations are enqueued";
  const auto found = pinned_.find(static_cast<char*>(data));
  used_bytes_ -= found->second;
  pinned_.erase(found);
  ::operator delete(data, kPinnedAlignment);
}

absl::StatusOr<std::unique_ptr<DeviceStream>> HostDevice::NewStream() {
  MutexLock lock(&mutex_);
  queues_.push_back(std::make_unique<Queue>());
  return std::make_unique<HostStream>(this, queues_.back().get());
}

absl::StatusOr<std::unique_ptr<Event>> HostDevice::NewEvent() {
  return std::make_unique<HostEvent>(this);
}

absl::StatusOr<std::unique_ptr<StreamGraph>> HostDevice::Capture(
    DeviceStream* stream, absl::FunctionRef<void()> enqueue) {
  {
    MutexLock lock(&mutex_);
    CHECK(capturing_ == nullptr) << "a stream is captured already";
    capturing_ = static_cast<HostStream*>(stream)->queue();
    capturing_thread_ = std::this_thread::get_id();
  }
  enqueue();
  MutexLock lock(&mutex_);
  capturing_ = nullptr;
  return std::make_unique<HostGraph>(this, std::exchange(captured_, {}));
}

void HostDevice::LaunchGraph(Queue* queue, const std::vector<Operation>& operations) {
  MutexLock lock(&mutex_);
  CheckNotCaptured(queue, "a launch of a graph");
  for (const Operation& operation : operations) Enqueue(queue, operation.run);
}

// During a capture a card refuses these calls, or would repeat them with the values that the host's
// memory holds at each launch.
void HostDevice::CheckNotCaptured(const Queue* queue, const char* call) const {
  CHECK(queue != capturing_) << call << " cannot be captured";
}

// The capturing thread must not make these calls; other threads may.
void HostDevice::CheckNotCapturing(const char* call) const {
  CHECK(capturing_ == nullptr || capturing_thread_ != std::this_thread::get_id())
      << call << " while the same thread captures a stream: a card would refuse this call";
}

void HostDevice::CloseStream(Queue* queue) {
  MutexLock lock(&mutex_);
  RunWhile(INT64_MAX, [queue] { return !queue->empty(); });
  queues_.erase(std::find_if(queues_.begin(), queues_.end(),
                             [queue](const auto& mine) { return mine.get() == queue; }));
}

void HostDevice::CheckPinned(const void* p, int64_t bytes) const {
  const char* const begin = static_cast<const char*>(p);
  auto next = pinned_.upper_bound(begin);
  const bool within_pinned_memory =
      next != pinned_.begin() && begin + bytes <= std::prev(next)->first + std::prev(next)->second;
  CHECK(within_pinned_memory) << "a copy of " << bytes
                              << " bytes uses host memory that is not pinned";
}

void HostDevice::CheckDevice(const void* p, int64_t bytes) const {
  const bool within_device_memory = memory_.Holds(p, bytes);
  CHECK(within_device_memory) << "a copy of " << bytes << " bytes uses "
                              << (memory_.Reserves(p) ? memory_.Describe(p)
                                                      : "an address of the host")
                              << " as its device address";
}

void HostDevice::CopyIn(Queue* queue, const void* pinned, void* device, int64_t bytes) {
  if (bytes == 0) return;
  MutexLock lock(&mutex_);
  CheckNotCaptured(queue, "a copy from the host");
  CheckPinned(pinned, bytes);
  CheckDevice(device, bytes);
  Enqueue(queue, [this, device, pinned, bytes]() NO_THREAD_SAFETY_ANALYSIS {
    memory_.Open(device);
    std::memcpy(device, pinned, bytes);
  });
}

void HostDevice::CopyOut(Queue* queue, const void* device, void* pinned, int64_t bytes) {
  if (bytes == 0) return;
  MutexLock lock(&mutex_);
  CheckNotCaptured(queue, "a copy to the host");
  CheckPinned(pinned, bytes);
  CheckDevice(device, bytes);
  Enqueue(queue, [this, device, pinned, bytes]() NO_THREAD_SAFETY_ANALYSIS {
    memory_.Open(device);
    std::memcpy(pinned, device, bytes);
  });
}

void HostDevice::CopyWithin(Queue* queue, const void* from, void* to, int64_t bytes) {
  if (bytes == 0) return;
  MutexLock lock(&mutex_);
  CheckDevice(from, bytes);
  CheckDevice(to, bytes);
  Enqueue(queue, [this, from, to, bytes]() NO_THREAD_SAFETY_ANALYSIS {
    memory_.Open(from);
    memory_.Open(to);
    std::memcpy(to, from, bytes);
  });
}

void HostDevice::Launch(Queue* queue, const KernelLaunch& launch) {
  const Dim3 &grid = launch.grid, &block = launch.block;
  const bool a_card_can_launch = grid.volume() > 0 && grid.volume() < kMaxBlocks &&
                                 grid.y <= kMaxGridY && grid.z <= kMaxGridY && block.volume() > 0 &&
                                 block.volume() <= kMaxThreadsInBlock && block.z <= kMaxBlockZ &&
                                 launch.shared_bytes >= 0 &&
                                 launch.shared_bytes <= host::kSharedBytes;
  CHECK(a_card_can_launch) << "kernel " << host::KernelName(launch.signature)
                           << ": no card launches " << grid.volume() << " blocks (" << grid.x
                           << ", " << grid.y << ", " << grid.z << ") of " << block.volume()
                           << " threads (" << block.x << ", " << block.y << ", " << block.z
                           << ") with " << launch.shared_bytes << " bytes of shared memory";
  MutexLock lock(&mutex_);
  Enqueue(queue,
          [this, stored = StoredLaunch(launch)]() NO_THREAD_SAFETY_ANALYSIS { RunKernel(stored); });
}

void HostDevice::Record(Queue* queue, const std::shared_ptr<EventState>& event) {
  MutexLock lock(&mutex_);
  CheckNotCaptured(queue, "an event");
  event->last = std::make_shared<Point>();
  Enqueue(queue, [point = event->last] { point->reached = true; });
}

void HostDevice::WaitFor(Queue* queue, const std::shared_ptr<EventState>& event) {
  MutexLock lock(&mutex_);
  CheckNotCaptured(queue, "a wait for an event");
  Enqueue(queue, [] {});
  queue->back().after = event->last;
}

bool HostDevice::Poll(const EventState& event) {
  MutexLock lock(&mutex_);
  const std::shared_ptr<const Point> last = event.last;
  if (last == nullptr) return true;
  RunWhile(kOperationsPerPoll, [&last] { return !last->reached; });
  return last->reached;
}

void HostDevice::Enqueue(Queue* queue, std::function<void()> run) {
  if (queue == capturing_) {
    Operation operation;
    operation.run = std::move(run);
    captured_.push_back(std::move(operation));
    return;
  }
  if (enqueued_ >= static_cast<int64_t>(kMaxEnqueued)) {
    RunWhile(kOperationsPerPoll, [] { return true; });
  }
  Operation operation;
  operation.number = next_number_++;
  operation.run = std::move(run);
  queue->push_back(std::move(operation));
  ++enqueued_;
}

// An operation waits only for operations enqueued before it. So while any are left, the oldest of
// all can run.
Queue* HostDevice::ChooseQueue() {
  std::vector<Queue*> ready;
  for (const std::unique_ptr<Queue>& queue : queues_) {
    if (!queue->empty() && queue->front().Runnable()) ready.push_back(queue.get());
  }
  if (ready.empty()) return nullptr;
  std::sort(ready.begin(), ready.end(),
            [](Queue* a, Queue* b) { return a->front().number < b->front().number; });
  const auto count = static_cast<int64_t>(ready.size());
  return ready[host::Permutation(options_.order, count, next_number_ * 8191 + enqueued_).At(0)];
}

void HostDevice::RunWhile(int64_t limit, const std::function<bool()>& wanted) {
  for (int64_t i = 0; i < limit && wanted(); ++i) {
    Queue* const queue = ChooseQueue();
    if (queue == nullptr) break;
    queue->front().run();
    queue->pop_front();
    --enqueued_;
  }
  memory_.CloseAll();
}

void HostDevice::RunKernel(const StoredLaunch& stored) {
  KernelLaunch launch = stored.launch;
  std::vector<const void*> args;
  for (const size_t offset : stored.offsets) {
    args.push_back(reinterpret_cast<const char*>(stored.bytes.data()) + offset);
  }
  launch.args = args.data();
  const int64_t blocks = launch.grid.volume();
  const host::Permutation order(options_.order, blocks, next_number_);
  pool_.Run(blocks, [&](int64_t part, int thread) {
    const auto block = static_cast<uint64_t>(order.At(part));
    const uint64_t row = block / launch.grid.x;
    runners_[thread]->Run(launch, {static_cast<uint32_t>(block % launch.grid.x),
                                   static_cast<uint32_t>(row % launch.grid.y),
                                   static_cast<uint32_t>(row / launch.grid.y)});
  });
  const std::string overrun = memory_.FindOverrun();
  CHECK(overrun.empty()) << "kernel " << host::KernelName(launch.signature) << " " << overrun;
}

}  // namespace

std::unique_ptr<Device> NewHostDevice(const HostDeviceOptions& options) {
  return std::make_unique<HostDevice>(options);
}

}  // namespace satrap

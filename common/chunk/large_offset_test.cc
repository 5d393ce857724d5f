// A message whose offsets need more than 32 bits. It takes more than 4 GiB of address space, but
// little memory. A sanitizer would need several times as much memory for these addresses, so this
// is not tested under any sanitizer.

#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <memory>
#include <utility>

#include "common/base/check.h"
#include "common/chunk/chunked_channel.h"
#include "common/chunk/chunked_handler.h"
#include "common/numeric/random.h"
#include "common/testing/manual_executor.h"
#include "gtest/gtest.h"

namespace satrap::rpc {
namespace {

constexpr Method kChange{"/satrap.Test/Change", true};
constexpr Method kMethods[] = {kChange};
constexpr int64_t kSecondUs = 1000000;

// Allocates address space in which the same 257 pages of memory repeat again and again. 2^32 is not
// a multiple of their total size, so an address that is wrong by 2^32 bytes holds other bytes.
class RepeatedPages final : public BufferAllocator {
 public:
  RepeatedPages()
      : period_bytes_(257 * static_cast<size_t>(sysconf(_SC_PAGESIZE))),
        file_(memfd_create("pages", 0)) {
    CHECK(file_ >= 0 && ftruncate(file_, static_cast<off_t>(period_bytes_)) == 0);
  }
  ~RepeatedPages() override { close(file_); }

  uint8_t* Allocate(size_t size_bytes) override {
    const size_t bytes = RoundedUp(size_bytes);
    void* const all =
        mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    CHECK(all != MAP_FAILED);
    for (size_t at = 0; at < bytes; at += period_bytes_) {
      void* const place = static_cast<uint8_t*>(all) + at;
      CHECK(mmap(place, period_bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file_, 0) ==
            place);
    }
    return static_cast<uint8_t*>(all);
  }
  void Free(uint8_t* data, size_t size_bytes) override { munmap(data, RoundedUp(size_bytes)); }

  size_t period_bytes() const { return period_bytes_; }

 private:
  size_t RoundedUp(size_t bytes) const {
    return (bytes + period_bytes_ - 1) / period_bytes_ * period_bytes_;
  }

  const size_t period_bytes_;
  const int file_;
};

// Delivers each call in a task of its own, so that thousands of chunks do not deepen the stack.
class TaskChannel final : public Channel {
 public:
  TaskChannel(ManualExecutor* executor, Handler* handler)
      : executor_(executor), handler_(handler) {}

  void Call(const Method& method, Message request, int64_t, Callback done) override {
    executor_->Post([this, method, request = std::move(request), done = std::move(done)]() mutable {
      handler_->Handle(method, std::move(request), std::move(done));
    });
  }

 private:
  ManualExecutor* const executor_;
  Handler* const handler_;
};

class TakesOne final : public Handler {
 public:
  void Handle(const Method&, Message request, Callback respond) override {
    taken = std::move(request);
    respond(Message{"taken", Buffer()});
  }
  Message taken;
};

TEST(LargeOffsetTest, ARequestBeyond4GiBComesWhole) {
  constexpr size_t kBytes = (size_t{1} << 32) + (size_t{3} << 20) + 12345;
  const auto pages = std::make_shared<RepeatedPages>();
  const auto pages_of_receiver = std::make_shared<RepeatedPages>();
  ManualExecutor executor;
  TakesOne receiver;
  ChunkedHandler::Options served;
  served.limits.max_message_bytes = (int64_t{1} << 16) + kChunkOverheadBytes;
  served.memory = std::make_shared<ChunkMemory>(kLargestMessageBytes, kSecondUs);
  served.deadline_us = kSecondUs;
  served.payload_allocator = pages_of_receiver;
  ChunkedHandler handler(&receiver, kMethods, &executor, served);
  ChunkedChannel::Options options;
  options.limits = served.limits;
  options.memory = served.memory;
  options.clock = &executor;
  ChunkedChannel channel(std::make_unique<TaskChannel>(&executor, &handler), options);

  // Writes the 257 pages only once. The last bytes of the message share pages with its first bytes,
  // so the content of a page must stay the same.
  Message request{"header", Buffer(kBytes, pages)};
  SplitMix64 random(1);
  for (size_t i = 0; i + 8 <= pages->period_bytes(); i += 8) {
    const uint64_t bits = random.Next();
    std::memcpy(request.payload.mutable_data() + i, &bits, sizeof(bits));
  }
  const Buffer sent = request.payload;
  absl::StatusOr<Message> answer = absl::UnknownError("not answered");
  channel.Call(kChange, std::move(request), 1000,
               [&answer](absl::StatusOr<Message> result) { answer = std::move(result); });
  executor.RunReady();
  ASSERT_TRUE(answer.ok()) << answer.status();
  ASSERT_EQ(receiver.taken.payload.size(), kBytes);
  EXPECT_EQ(std::memcmp(receiver.taken.payload.data(), sent.data(), pages->period_bytes()), 0);
}

}  // namespace
}  // namespace satrap::rpc

// The part of BackendConformance that tests queues: copies that run at the same time as operations,
// events, and waits.

#include <cstdint>
#include <limits>
#include <memory>
#include <thread>
#include <vector>

#include "common/base/check.h"
#include "nn_worker/backend/tensor_copy.h"
#include "nn_worker/backend/testing/backend_conformance.h"

namespace satrap {
namespace {

constexpr int64_t kNoTimeout = std::numeric_limits<int64_t>::max();
constexpr auto kNotAborted = [] { return false; };

std::unique_ptr<BackendEvent> NewEvent(DeviceMemory* device) {
  auto event = device->NewEvent();
  CHECK_OK(event.status());
  return *std::move(event);
}

// Allocates pinned memory, which is zeroed.
absl::Span<uint8_t> Pinned(DeviceMemory* device, size_t bytes) {
  const auto memory = device->AllocatePinned(static_cast<int64_t>(bytes));
  CHECK_OK(memory.status());
  return {static_cast<uint8_t*>(*memory), bytes};
}
absl::Span<float> Floats(absl::Span<uint8_t> bytes) {
  return {reinterpret_cast<float*>(bytes.data()), bytes.size() / sizeof(float)};
}

TEST_P(BackendConformance, PinnedMemoryIsZeroedAndTheHosts) {
  for (const size_t bytes : {0u, 1u, 100u, 5000u}) {
    const absl::Span<uint8_t> memory = Pinned(backend_.get(), bytes);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(memory.data()) % kAlignmentBytes, 0u);
    EXPECT_TRUE(backend_->IsPinned(memory.data(), static_cast<int64_t>(bytes)));
    for (uint8_t& byte : memory) EXPECT_EQ(byte++, 0);
  }
}

// One thread copies the next part in while another thread computes.
TEST_P(BackendConformance, AThreadAllocatesAndCopiesInWhileAnotherComputes) {
  const Tensor y = New(1, 1), one = Of({{1}});
  Tensor last;
  std::thread copying([&] {
    for (int i = 1; i <= 100; ++i) {
      last = TensorF32(*backend_->Allocate(4), 1, 1);
      const absl::Span<uint8_t> pinned = Pinned(backend_.get(), 4);
      Floats(pinned)[0] = static_cast<float>(i);
      backend_->StartCopyIn(pinned, last);
      const auto event = NewEvent(backend_.get());
      backend_->Record(DeviceQueue::kCopiesIn, event.get());
      ASSERT_TRUE(AwaitEvent(backend_.get(), event.get(), kNoTimeout, kNotAborted).ok());
    }
  });
  for (int i = 0; i < 100; ++i) {
    backend_->Copy(one, y, /*add=*/true);
    ASSERT_TRUE(backend_->Allocate(4).ok());
  }
  copying.join();
  EXPECT_EQ(Values(y)[0], 100);
  EXPECT_EQ(Values(last)[0], 100);
}

TEST_P(BackendConformance, BuffersCanLieInPinnedMemory) {
  // PinnedBuffers() may also return null; then any memory counts as pinned.
  Buffer buffer(64, backend_->PinnedBuffers());
  EXPECT_TRUE(backend_->IsPinned(buffer.data(), 64));
  const Tensor x = New(1, 16);
  buffer.MutableView<float>(0, 16)[15] = 8;
  backend_->StartCopyIn({buffer.data(), 64}, x);
  backend_->Sync();
  EXPECT_EQ(Values(x)[15], 8);
}

// Copies values in, computes with them and copies them out without a Sync: each queue waits for the
// previous one by an event.
TEST_P(BackendConformance, QueuesRunInTheOrderThatEventsGiveThem) {
  const Tensor x = New(2, 3), y = New(2, 3);
  const absl::Span<uint8_t> in = Pinned(backend_.get(), 24), out = Pinned(backend_.get(), 24);
  const auto copied = NewEvent(backend_.get()), computed = NewEvent(backend_.get()),
             done = NewEvent(backend_.get());
  for (int round = 1; round <= 3; ++round) {
    for (size_t i = 0; i < 6; ++i) Floats(in)[i] = static_cast<float>(i * round);
    backend_->StartCopyIn(in, x);
    backend_->Record(DeviceQueue::kCopiesIn, copied.get());
    backend_->WaitFor(DeviceQueue::kOperations, copied.get());
    backend_->Copy(x, y, /*add=*/false);
    backend_->Copy(x, y, /*add=*/true);
    backend_->Record(DeviceQueue::kOperations, computed.get());
    backend_->WaitFor(DeviceQueue::kCopiesOut, computed.get());
    backend_->StartCopyOut(y, out);
    backend_->Record(DeviceQueue::kCopiesOut, done.get());
    ASSERT_TRUE(AwaitEvent(backend_.get(), done.get(), kNoTimeout, kNotAborted).ok());
    for (size_t i = 0; i < 6; ++i) EXPECT_EQ(Floats(out)[i], static_cast<float>(2 * i * round));
    // The events that the last event depends on have happened, too.
    EXPECT_TRUE(*backend_->Poll(copied.get()));
    EXPECT_TRUE(*backend_->Poll(computed.get()));
  }
}

TEST_P(BackendConformance, ACopyOutIsThereWhenAnEventAfterItHasHappened) {
  const Tensor x = Of({{1, 2}});
  std::vector<float> out(2);
  CopyOut(backend_.get(), x, absl::MakeSpan(out));
  const auto event = NewEvent(backend_.get());
  backend_->Record(DeviceQueue::kOperations, event.get());
  ASSERT_TRUE(AwaitEvent(backend_.get(), event.get(), kNoTimeout, kNotAborted).ok());
  EXPECT_EQ(out, (std::vector<float>{1, 2}));
}

TEST_P(BackendConformance, AnEventThatWasNeverRecordedHasHappened) {
  const auto event = NewEvent(backend_.get());
  EXPECT_TRUE(*backend_->Poll(event.get()));
  for (const DeviceQueue queue :
       {DeviceQueue::kOperations, DeviceQueue::kCopiesIn, DeviceQueue::kCopiesOut}) {
    backend_->WaitFor(queue, event.get());
  }
  backend_->Sync();
}

// An event is recorded again after a wait for it was enqueued. The operations after the wait still
// wait for the earlier point.
TEST_P(BackendConformance, AWaitKeepsThePointThatItWasMadeFor) {
  const Tensor x = New(1, 1), y = New(1, 1);
  const absl::Span<uint8_t> one = Pinned(backend_.get(), 4), two = Pinned(backend_.get(), 4);
  Floats(one)[0] = 1;
  Floats(two)[0] = 2;
  const auto event = NewEvent(backend_.get());
  backend_->StartCopyIn(one, x);
  backend_->Record(DeviceQueue::kCopiesIn, event.get());
  backend_->WaitFor(DeviceQueue::kOperations, event.get());
  backend_->Copy(x, y, /*add=*/true);
  const auto added = NewEvent(backend_.get());
  backend_->Record(DeviceQueue::kOperations, added.get());
  // The copy must wait for the operation, or it might overwrite x too early.
  backend_->WaitFor(DeviceQueue::kCopiesIn, added.get());
  backend_->StartCopyIn(two, x);
  backend_->Record(DeviceQueue::kCopiesIn, event.get());
  backend_->Sync();
  EXPECT_EQ(Values(y), std::vector<float>{1});
  EXPECT_EQ(Values(x), std::vector<float>{2});
}

}  // namespace
}  // namespace satrap

#include <atomic>
#include <cmath>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "nn_worker/device/kernel.h"
#include "nn_worker/device/testing/device_testing.h"

namespace satrap {
namespace {

SATRAP_KERNEL void AddOneKernel(const float* x, float* y, int64_t count) {
  for (int64_t i = ThreadInGrid(); i < count; i += ThreadsInGrid()) y[i] = x[i] + 1;
}

SATRAP_KERNEL void DoubleKernel(float* x) { x[0] *= 2; }

bool Never() { return false; }

TEST(HostDeviceTest, AStreamRunsItsOperationsInOrder) {
  TestDevice device;
  float* const x = device.Put(std::vector<float>(1000, 1));
  float* const y = device.Room<float>(1000);
  Launch<AddOneKernel>(device.stream(), {3}, {64}, 0, x, y, 1000);
  Launch<AddOneKernel>(device.stream(), {3}, {64}, 0, y, x, 1000);
  device.stream()->CopyWithin(x, y, 2000);
  const auto got = device.Get(y, 1000);
  EXPECT_EQ(got[499], 3);
  EXPECT_EQ(got[500], 2);
}

TEST(HostDeviceTest, NothingRunsBeforeAnEventIsPolled) {
  TestDevice device;
  float* const x = device.Room<float>(1);
  float* const pinned = device.Pinned<float>(1);
  *pinned = 1;
  device.stream()->CopyIn(pinned, x, 4);
  *pinned = 2;  // changed too early, so the copy reads it
  EXPECT_EQ(device.Get(x, 1)[0], 2);
}

TEST(HostDeviceTest, MemoryIsNanAtFirst) {
  TestDevice device;
  for (const float value : device.Get(device.Room<float>(100), 100)) {
    EXPECT_TRUE(std::isnan(value));
  }
}

TEST(HostDeviceTest, TooMuchMemoryIsRefused) {
  HostDeviceOptions options;
  options.memory_bytes = 1 << 20;
  const auto device = NewHostDevice(options);
  EXPECT_EQ(device->Allocate(2 << 20).status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(device->AllocatePinned(2 << 20).status().code(), absl::StatusCode::kResourceExhausted);
  // Device and pinned memory share the limit.
  {
    const auto first = device->Allocate(600 << 10);
    EXPECT_EQ(device->AllocatePinned(600 << 10).status().code(),
              absl::StatusCode::kResourceExhausted);
    const auto second = device->AllocatePinned(400 << 10);
    EXPECT_TRUE(first.ok() && second.ok());
    EXPECT_EQ(device->Allocate(100 << 10).status().code(), absl::StatusCode::kResourceExhausted);
  }
  // Freed memory may be allocated again.
  for (int i = 0; i < 3; ++i) {
    const auto memory = device->Allocate(1 << 20);
    ASSERT_TRUE(memory.ok());
    EXPECT_EQ(reinterpret_cast<uintptr_t>((*memory)->data()) % 64, 0u);
    EXPECT_EQ((*memory)->bytes(), 1 << 20);
  }
}

TEST(HostDeviceTest, AWaitEndsAtItsDeadlineAndWhenItIsAborted) {
  TestDevice device;
  float* const x = device.Room<float>(1);
  const auto event = device.device()->NewEvent().value();
  EXPECT_TRUE(WaitForEvent(event.get(), 0, Never).ok()) << "never recorded";
  for (int i = 0; i < 1000; ++i) {
    Launch<AddOneKernel>(device.stream(), {1}, {1}, 0, x, x, 1);
  }
  device.stream()->Record(event.get());
  EXPECT_EQ(WaitForEvent(event.get(), 0, Never).code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(WaitForEvent(event.get(), kTestTimeoutMs, [] { return true; }).code(),
            absl::StatusCode::kCancelled);
  EXPECT_TRUE(WaitForEvent(event.get(), kTestTimeoutMs, Never).ok()) << "may be waited for again";
  EXPECT_TRUE(event->Poll().value());
}

// A stream copies a 1 in, a second stream adds 1 to it, and the first stream copies the result out.
// `wait_there` and `wait_back` say whether the streams wait for each other.
float ThroughTwoStreams(const HostDeviceOptions& options, bool wait_there, bool wait_back) {
  TestDevice device(options);
  float* const x = device.Put(std::vector<float>{1});
  const auto second = device.device()->NewStream().value();
  const auto there = device.device()->NewEvent().value();
  const auto back = device.device()->NewEvent().value();
  device.stream()->Record(there.get());
  if (wait_there) second->WaitFor(there.get());
  Launch<AddOneKernel>(second.get(), {1}, {1}, 0, x, x, 1);
  second->Record(back.get());
  if (wait_back) device.stream()->WaitFor(back.get());
  return device.Get(x, 1)[0];
}

TEST(HostDeviceTest, EventsOrderStreams) {
  for (const HostDeviceOptions& options : EveryOrder()) {
    EXPECT_EQ(ThroughTwoStreams(options, true, true), 2);
  }
}

TEST(HostDeviceTest, AMissingEventIsFoundByOneOfTheOrders) {
  int wrong_there = 0, wrong_back = 0;
  for (const HostDeviceOptions& options : EveryOrder()) {
    wrong_there += ThroughTwoStreams(options, false, true) == 2 ? 0 : 1;
    wrong_back += ThroughTwoStreams(options, true, false) == 2 ? 0 : 1;
  }
  EXPECT_GT(wrong_there, 0);
  EXPECT_GT(wrong_back, 0);
}

// WaitFor waits for the last recording of the event before the call. That recording must end the
// wait, even if a later recording of the same event is reached first.
TEST(HostDeviceTest, AWaitIsForTheRecordThatWasLastWhenItBegan) {
  for (const HostDeviceOptions& options : EveryOrder()) {
    TestDevice device(options);
    float* const x = device.Put(std::vector<float>{1});
    device.Finish();
    const auto waiting = device.device()->NewStream().value();
    const auto other = device.device()->NewStream().value();
    const auto event = device.device()->NewEvent().value();
    Launch<AddOneKernel>(device.stream(), {1}, {1}, 0, x, x, 1);
    device.stream()->Record(event.get());
    waiting->WaitFor(event.get());
    other->Record(event.get());
    // The value must become (1 + 1) * 2. In the other order the result would be 3.
    Launch<DoubleKernel>(waiting.get(), {1}, {1}, 0, x);
    const auto doubled = device.device()->NewEvent().value();
    waiting->Record(doubled.get());
    device.stream()->WaitFor(doubled.get());
    EXPECT_EQ(device.Get(x, 1)[0], 4);
  }
}

TEST(HostDeviceTest, AStreamThatIsDestroyedRunsWhatIsEnqueued) {
  TestDevice device;
  float* const x = device.Put(std::vector<float>{1});
  device.Finish();
  auto second = device.device()->NewStream().value();
  Launch<AddOneKernel>(second.get(), {1}, {1}, 0, x, x, 1);
  second.reset();
  EXPECT_EQ(device.Get(x, 1)[0], 2);
}

TEST(HostDeviceTest, AFullQueueRunsItsOldestOperations) {
  TestDevice device;
  float* const x = device.Put(std::vector<float>{0});
  float* const early = device.Pinned<float>(1);
  *early = 7;
  device.stream()->CopyOut(x, early, 4);
  EXPECT_EQ(*early, 7);
  for (int i = 0; i < 10000; ++i) Launch<AddOneKernel>(device.stream(), {1}, {1}, 0, x, x, 1);
  EXPECT_EQ(*early, 0) << "ran before anybody waited";
  EXPECT_EQ(device.Get(x, 1)[0], 10000);
}

TEST(HostDeviceTest, ThreadsOfTheHostShareADevice) {
  const auto device = NewHostDevice({});
  std::vector<std::thread> threads;
  std::atomic<int> right{0}, waited{0};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      const auto x = device->Allocate(4000).value();
      const auto pinned = device->AllocatePinned(4000).value();
      const auto event = device->NewEvent().value();
      const auto stream = device->NewStream().value();
      float* const values = static_cast<float*>(pinned->data());
      for (int i = 0; i < 1000; ++i) values[i] = static_cast<float>(i);
      stream->CopyIn(values, x->data(), 4000);
      Launch<AddOneKernel>(stream.get(), {2}, {32}, 0, static_cast<float*>(x->data()),
                           static_cast<float*>(x->data()), 1000);
      stream->CopyOut(x->data(), values, 4000);
      stream->Record(event.get());
      if (WaitForEvent(event.get(), kTestTimeoutMs, Never).ok() && values[999] == 1000) ++right;
      // Memory may be freed only when nothing is enqueued on the device, so the threads wait for
      // one another here.
      ++waited;
      while (waited.load() < 4) std::this_thread::yield();
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(right.load(), 4);
}

}  // namespace
}  // namespace satrap

// Tests graphs of a stream on the host's device.

#include <functional>
#include <memory>
#include <thread>

#include "common/base/check.h"
#include "gtest/gtest.h"
#include "nn_worker/device/host/host_device.h"
#include "nn_worker/device/kernel.h"
#include "nn_worker/device/testing/device_testing.h"

namespace satrap {
namespace {

SATRAP_KERNEL void AddKernel(float* x, float value) { x[0] += value; }

class StreamGraphTest : public testing::TestWithParam<HostDeviceOptions> {
 protected:
  StreamGraphTest() {
    *host() = 0;
    stream_->CopyIn(host(), x(), 4);
  }
  float* host() { return static_cast<float*>(pinned_->data()); }
  float* x() { return static_cast<float*>(memory_->data()); }
  float Read() {
    stream_->CopyOut(x(), host(), 4);
    stream_->Record(event_.get());
    CHECK_OK(WaitForEvent(event_.get(), 60000, [] { return false; }));
    return *host();
  }

  const std::unique_ptr<Device> device_ = NewHostDevice(GetParam());
  const std::unique_ptr<Memory> memory_ = device_->Allocate(8).value();
  const std::unique_ptr<Memory> pinned_ = device_->AllocatePinned(4).value();
  const std::unique_ptr<Event> event_ = device_->NewEvent().value();
  const std::unique_ptr<DeviceStream> stream_ = device_->NewStream().value();
};

IN_EVERY_ORDER(StreamGraphTest);

TEST_P(StreamGraphTest, RepeatsItsOperationsWithTheArgumentsThatTheyHad) {
  float value = 1;
  const auto graph = device_->Capture(stream_.get(), [&] {
    Launch<AddKernel>(stream_.get(), {1}, {1}, 0, x(), value);
    stream_->CopyWithin(x(), x() + 1, 4);
    Launch<AddKernel>(stream_.get(), {1}, {1}, 0, x(), 10.0f);
  });
  ASSERT_TRUE(graph.ok()) << graph.status();
  value = 1000;
  EXPECT_EQ(Read(), 0) << "what is captured does not run";
  (*graph)->Launch(stream_.get());
  EXPECT_EQ(Read(), 11);
  (*graph)->Launch(stream_.get());
  (*graph)->Launch(stream_.get());
  EXPECT_EQ(Read(), 33);
  stream_->CopyWithin(x() + 1, x(), 4);
  EXPECT_EQ(Read(), 23) << "before the last addition";
}

TEST_P(StreamGraphTest, RunsInItsPlaceAmongOtherOperationsAndStreams) {
  const auto other = device_->NewStream().value();
  const auto added = device_->NewEvent().value();
  const auto graph =
      device_
          ->Capture(stream_.get(),
                    [&] { Launch<AddKernel>(stream_.get(), {1}, {1}, 0, x(), 1.0f); })
          .value();
  *host() = 5;
  stream_->CopyIn(host(), x(), 4);
  graph->Launch(stream_.get());
  stream_->Record(added.get());
  other->WaitFor(added.get());
  other->CopyWithin(x(), x() + 1, 4);
  other->Record(event_.get());
  stream_->WaitFor(event_.get());
  stream_->CopyWithin(x() + 1, x(), 4);
  EXPECT_EQ(Read(), 6);
}

TEST_P(StreamGraphTest, OtherThreadsTakeMemoryMeanwhile) {
  Read();  // memory is freed only when nothing is enqueued
  const auto graph = device_->Capture(
      stream_.get(), [&] { std::thread([&] { EXPECT_TRUE(device_->Allocate(8).ok()); }).join(); });
  EXPECT_TRUE(graph.ok());
  EXPECT_TRUE(device_->Allocate(8).ok()) << "the capture has ended";
}

using StreamGraphDeathTest = StreamGraphTest;
INSTANTIATE_TEST_SUITE_P(, StreamGraphDeathTest, testing::Values(HostDeviceOptions()));

TEST_P(StreamGraphDeathTest, WhatACardCannotCaptureIsRefused) {
  const auto capture = [&](const std::function<void()>& enqueue) {
    (void)device_->Capture(stream_.get(), enqueue).ok();
  };
  EXPECT_DEATH(capture([&] { stream_->CopyIn(host(), x(), 4); }),
               "a copy from the host cannot be captured");
  EXPECT_DEATH(capture([&] { stream_->CopyOut(x(), host(), 4); }),
               "a copy to the host cannot be captured");
  EXPECT_DEATH(capture([&] { stream_->Record(event_.get()); }), "an event cannot be captured");
  EXPECT_DEATH(capture([&] { stream_->WaitFor(event_.get()); }),
               "a wait for an event cannot be captured");
}

TEST_P(StreamGraphDeathTest, TheThreadThatCapturesTakesNoMemory) {
  const auto capture = [&](const std::function<void()>& enqueue) {
    (void)device_->Capture(stream_.get(), enqueue).ok();
  };
  EXPECT_DEATH(capture([&] { (void)device_->Allocate(8).ok(); }),
               "device memory is taken while the same thread captures a stream");
  EXPECT_DEATH(capture([&] { (void)device_->AllocatePinned(8).ok(); }),
               "pinned memory is taken while the same thread captures a stream");
}

}  // namespace
}  // namespace satrap

#include "nn_worker/device/metered_device.h"

#include "gmock/gmock.h"
#include "nn_worker/device/host/host_device.h"

namespace satrap {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(MeteredDeviceTest, CountsWhatIsInUseAndTheMostThatEverWas) {
  const auto meter = std::make_shared<DeviceMeter>();
  const std::unique_ptr<Device> device = NewMeteredDevice(NewHostDevice({}), meter);
  auto first = device->Allocate(1000);
  ASSERT_TRUE(first.ok()) << first.status();
  auto second = device->Allocate(24);
  auto pinned = device->AllocatePinned(500);
  ASSERT_TRUE(second.ok() && pinned.ok());
  first->reset();
  const DeviceMeter::Reading reading = meter->Read();
  EXPECT_EQ(reading.bytes, 24);
  EXPECT_EQ(reading.peak_bytes, 1024);
  EXPECT_EQ(reading.pinned_bytes, 500);
  second->reset();
  pinned->reset();
  EXPECT_EQ(meter->Read().bytes, 0);
  EXPECT_EQ(meter->Read().pinned_bytes, 0);
}

TEST(MeteredDeviceTest, TakesNoMoreThanTheLimit) {
  const auto meter = std::make_shared<DeviceMeter>(1000);
  const std::unique_ptr<Device> device = NewMeteredDevice(NewHostDevice({}), meter);
  auto first = device->Allocate(600);
  ASSERT_TRUE(first.ok()) << first.status();
  const auto refused = device->Allocate(401);
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(refused.status().message(),
              AllOf(HasSubstr("nn_worker.device_memory_bytes is 1000, of which 600 are in use, and "
                              "401 more are needed"),
                    HasSubstr("smaller global_batch_size")));
  EXPECT_TRUE(device->Allocate(400).ok());
  EXPECT_TRUE(device->AllocatePinned(5000).ok()) << "the host's memory has no limit here";
}

// A failed allocation must not be counted, because it would never be subtracted again.
TEST(MeteredDeviceTest, WhatTheDeviceRefusesIsNotCounted) {
  const auto meter = std::make_shared<DeviceMeter>();
  HostDeviceOptions options;
  options.memory_bytes = 4096;
  const std::unique_ptr<Device> device = NewMeteredDevice(NewHostDevice(options), meter);
  EXPECT_EQ(device->Allocate(1 << 20).status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(meter->Read().bytes, 0);
  EXPECT_EQ(meter->Read().peak_bytes, 0);
}

// The limit belongs to the job, so Room() must not report it as the device's memory.
TEST(MeteredDeviceTest, TheRoomIsThatOfTheDeviceWhateverTheLimit) {
  HostDeviceOptions options;
  options.memory_bytes = 4096;
  const std::unique_ptr<Device> device =
      NewMeteredDevice(NewHostDevice(options), std::make_shared<DeviceMeter>(1000));
  const auto memory = device->Allocate(600);
  const auto pinned = device->AllocatePinned(100);
  const auto room = device->Room();
  ASSERT_TRUE(memory.ok() && pinned.ok() && room.ok());
  EXPECT_EQ(room->device, "the host's device");
  EXPECT_EQ(room->total_bytes, 4096);
  EXPECT_EQ(room->free_bytes, 4096 - 600 - 100) << "pinned memory shares it";
}

TEST(MeteredDeviceTest, GraphsAreThoseOfTheDevice) {
  const std::unique_ptr<Device> device =
      NewMeteredDevice(NewHostDevice({}), std::make_shared<DeviceMeter>());
  const auto memory = device->Allocate(8).value();
  const auto pinned = device->AllocatePinned(8).value();
  const auto event = device->NewEvent().value();
  const auto stream = device->NewStream().value();
  auto* const host = static_cast<int32_t*>(pinned->data());
  auto* const x = static_cast<int32_t*>(memory->data());
  host[0] = 7;
  stream->CopyIn(host, x, 4);
  const auto graph = device->Capture(stream.get(), [&] { stream->CopyWithin(x, x + 1, 4); });
  ASSERT_TRUE(graph.ok()) << graph.status();
  (*graph)->Launch(stream.get());
  stream->CopyOut(x + 1, host + 1, 4);
  stream->Record(event.get());
  ASSERT_TRUE(WaitForEvent(event.get(), 60000, [] { return false; }).ok());
  EXPECT_EQ(host[1], 7);
}

}  // namespace
}  // namespace satrap

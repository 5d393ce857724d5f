#include "nn_worker/device/dry_device.h"

#include <limits>

#include "gtest/gtest.h"

namespace satrap {
namespace {

TEST(DryDeviceTest, AllocationsHaveAddressesOfTheirOwnAndNoMemory) {
  const std::unique_ptr<Device> device = NewDryDevice();
  // More memory than any machine has.
  const int64_t huge = int64_t{1} << 45;
  const auto first = device->Allocate(huge);
  const auto second = device->Allocate(0);
  const auto third = device->Allocate(1);
  ASSERT_TRUE(first.ok() && second.ok() && third.ok());
  EXPECT_EQ((*first)->bytes(), huge);
  const auto address = [](const auto& memory) {
    return reinterpret_cast<uintptr_t>((*memory)->data());
  };
  EXPECT_EQ(address(first) % 64, 0u);
  EXPECT_GE(address(second), address(first) + static_cast<uintptr_t>(huge));
  EXPECT_GT(address(third), address(second));
}

TEST(DryDeviceTest, HasRoomForEverything) {
  const auto room = NewDryDevice()->Room();
  ASSERT_TRUE(room.ok());
  EXPECT_EQ(room->total_bytes, std::numeric_limits<int64_t>::max());
  EXPECT_EQ(room->free_bytes, std::numeric_limits<int64_t>::max());
}

TEST(DryDeviceTest, OperationsDoNothingAndHaveHappened) {
  const std::unique_ptr<Device> device = NewDryDevice();
  const auto memory = device->Allocate(8);
  const auto pinned = device->AllocatePinned(8);
  const auto stream = device->NewStream();
  const auto event = device->NewEvent();
  ASSERT_TRUE(memory.ok() && pinned.ok() && stream.ok() && event.ok());
  auto* const host = static_cast<uint64_t*>((*pinned)->data());
  *host = 7;
  (*stream)->CopyIn(host, (*memory)->data(), 8);
  (*stream)->CopyWithin((*memory)->data(), (*memory)->data(), 0);
  (*stream)->Record(event->get());
  EXPECT_TRUE((*event)->Poll().value());
  EXPECT_EQ(*host, 7u);
  (*stream)->CopyOut((*memory)->data(), host, 8);
  EXPECT_EQ(*host, 0u) << "what comes out is zeros";
}

TEST(DryDeviceTest, AGraphDoesNothingEither) {
  const std::unique_ptr<Device> device = NewDryDevice();
  const auto stream = device->NewStream().value();
  bool enqueued = false;
  const auto graph = device->Capture(stream.get(), [&] { enqueued = true; });
  ASSERT_TRUE(graph.ok());
  EXPECT_TRUE(enqueued) << "whatever it would allocate is counted";
  (*graph)->Launch(stream.get());
}

}  // namespace
}  // namespace satrap

#include "nn_worker/backend/device/device_room.h"

#include "gtest/gtest.h"

namespace satrap {
namespace {

constexpr char kCard[] = "card 1 (NVIDIA H100)";

DeviceNeed OneThousand() {
  DeviceNeed need;
  need.bytes = 1000;
  need.text = "1000 bytes of device memory (network 900, ...)";
  return need;
}

TEST(DeviceRoomTest, WhatFitsIsTaken) {
  EXPECT_TRUE(CheckDeviceRoom(OneThousand(), {kCard, 2000, 1000}).ok());
  EXPECT_TRUE(CheckDeviceRoom(OneThousand(), {kCard, 1000, 1000}).ok());
}

// After FAILED_PRECONDITION the coordinator does not restart the run.
TEST(DeviceRoomTest, ADeviceThatIsTooSmallEndsTheRunForGood) {
  const absl::Status status = CheckDeviceRoom(OneThousand(), {kCard, 999, 400});
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(status.message(),
            "card 1 (NVIDIA H100) has 999 bytes of memory in all, but each NN worker needs 1000 "
            "bytes of device memory (network 900, ...): use a device with more memory, a smaller "
            "global_batch_size, more NN workers or a smaller model");
}

// After RESOURCE_EXHAUSTED the coordinator restarts the run, because the program that holds the
// memory may end.
TEST(DeviceRoomTest, WhatIsTakenByOthersMayBecomeFree) {
  const absl::Status status = CheckDeviceRoom(OneThousand(), {kCard, 2000, 999});
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(status.message(),
            "only 999 of the 2000 bytes of card 1 (NVIDIA H100) are free, but each NN worker needs "
            "1000 bytes of device memory (network 900, ...): end other programs on it, or use a "
            "smaller global_batch_size, more NN workers or a smaller model; the driver and CUDA's "
            "libraries take some hundred MB of a card");
}

}  // namespace
}  // namespace satrap

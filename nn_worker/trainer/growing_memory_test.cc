#include "nn_worker/trainer/growing_memory.h"

#include <vector>

#include "gtest/gtest.h"
#include "nn_worker/backend/tensor_copy.h"
#include "nn_worker/backend/testing/fake_device_memory.h"
#include "nn_worker/backend/testing/host_device_backend.h"
#include "nn_worker/backend/testing/reference_backend.h"

namespace satrap {
namespace {

TEST(GrowingMemoryTest, GrowsAtLeastTwofoldAndNeverShrinks) {
  const auto backend = NewReferenceBackend();
  GrowingMemory memory;
  void* const first = memory.Get(backend.get(), 100).value();
  EXPECT_EQ(memory.Get(backend.get(), 0).value(), first);
  EXPECT_EQ(memory.Get(backend.get(), 100).value(), first);
  void* const second = memory.Get(backend.get(), 101).value();
  EXPECT_NE(second, first);
  EXPECT_EQ(memory.Get(backend.get(), 200).value(), second);
}

// Returns addresses of memory that is never touched, up to a limit on its total size.
class LimitedMemory final : public FakeDeviceMemory {
 public:
  absl::StatusOr<void*> Allocate(int64_t bytes) override {
    if (taken_ + bytes > 1000) return absl::ResourceExhaustedError("no room");
    taken_ += bytes;
    return block_ + taken_ - bytes;
  }

 private:
  char block_[1000];
  int64_t taken_ = 0;
};

TEST(GrowingMemoryTest, TakesWhatIsAskedForWhereTwofoldHasNoRoom) {
  LimitedMemory device;
  GrowingMemory memory;
  void* const first = memory.Get(&device, 400).value();
  EXPECT_NE(memory.Get(&device, 500).value(), first) << "800 do not fit, 500 do";
  EXPECT_TRUE(absl::IsResourceExhausted(memory.Get(&device, 501).status()));
}

TEST(GrowingMemoryTest, IsTheHostsIfPinned) {
  const auto device = NewHostDeviceBackend({});
  GrowingMemory memory(GrowingMemory::Kind::kPinned);
  void* const data = memory.Get(device.get(), 100).value();
  EXPECT_TRUE(device->IsPinned(data, 100));
  static_cast<uint8_t*>(data)[99] = 1;
}

TEST(ValuesOnDeviceTest, AreTheHostsMemoryItselfOrACopy) {
  const std::vector<uint8_t> host = {1, 2, 3};
  const auto shared = NewReferenceBackend();
  ValuesOnDevice memory;
  EXPECT_EQ(memory.Put(shared.get(), host).value(), host.data());

  const auto device = NewHostDeviceBackend({});
  ValuesOnDevice on_device;
  void* const copy = on_device.Put(device.get(), host).value();
  EXPECT_NE(copy, host.data());
  const auto copied = device->NewEvent().value();
  device->Record(DeviceQueue::kCopiesIn, copied.get());
  device->WaitFor(DeviceQueue::kOperations, copied.get());
  std::vector<uint8_t> out(3);
  CopyOut(device.get(), {DType::kU8, copy, 1, 3, 3}, absl::MakeSpan(out));
  device->Sync();
  EXPECT_EQ(out, host);
  EXPECT_TRUE(on_device.Put(device.get(), {}).ok()) << "nothing is held, too";

  // Pinned memory needs no second copy, so the device gets the values that the pinned memory holds
  // when the copy runs.
  Buffer pinned(3, device->PinnedBuffers());
  pinned.mutable_data()[0] = 4;
  ValuesOnDevice of_pinned;
  void* const direct = of_pinned.Put(device.get(), {pinned.data(), 3}).value();
  pinned.mutable_data()[0] = 5;
  device->Sync();
  CopyOut(device.get(), {DType::kU8, direct, 1, 1, 1}, absl::MakeSpan(out).first(1));
  device->Sync();
  EXPECT_EQ(out[0], 5);
}

}  // namespace
}  // namespace satrap

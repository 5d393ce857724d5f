#include "nn_worker/trainer/growing_memory.h"

#include <vector>

#include "gtest/gtest.h"
#include "nn_worker/backend/deferred_backend.h"
#include "nn_worker/backend/reference_backend.h"
#include "nn_worker/backend/tensor_copy.h"

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

TEST(GrowingMemoryTest, HoldsTheHostsMemoryItselfOrACopy) {
  const std::vector<uint8_t> host = {1, 2, 3};
  const auto shared = NewReferenceBackend();
  GrowingMemory memory;
  EXPECT_EQ(memory.Hold(shared.get(), host).value(), host.data());

  const auto device = NewDeferredBackend(NewReferenceBackend(), HostAccess::kNone);
  GrowingMemory on_device;
  void* const copy = on_device.Hold(device.get(), host).value();
  EXPECT_NE(copy, host.data());
  std::vector<uint8_t> out(3);
  CopyOut(device.get(), {DType::kU8, copy, 1, 3, 3}, absl::MakeSpan(out));
  device->Sync();
  EXPECT_EQ(out, host);
  EXPECT_TRUE(on_device.Hold(device.get(), {}).ok()) << "nothing is held, too";
}

}  // namespace
}  // namespace satrap

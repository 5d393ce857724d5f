#include "gtest/gtest.h"
#include "nn_worker/collective/nccl_collective.h"
#include "nn_worker/collective/testing/in_memory_rendezvous_store.h"

namespace satrap {
namespace {

TEST(NoNcclCollectiveTest, ABuildWithoutCudaSaysHowToGetIt) {
  const auto store = NewInMemoryRendezvousStore();
  const absl::Status status = NewNcclReduction({}, store.get(), [] { return false; }).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(CheckNccl(), status);
  EXPECT_EQ(
      status.message(),
      "cannot train on a GPU: this program was built without CUDA; run ./setup cuda, and build "
      "it again");
}

}  // namespace
}  // namespace satrap

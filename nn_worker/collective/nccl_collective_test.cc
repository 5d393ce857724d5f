// Tests sums by NCCL, on a card. Without a card only NoNcclTest runs.

#include "nn_worker/collective/nccl_collective.h"

#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nn_worker/collective/testing/device_reduction_conformance.h"
#include "nn_worker/collective/testing/in_memory_rendezvous_store.h"
#include "nn_worker/device/cuda/cuda_device.h"

namespace satrap {
namespace {

using testing::HasSubstr;

constexpr int64_t kTimeoutMs = 60000;

bool Never() { return false; }

absl::Status Refusal(const NcclOptions& options) {
  const auto store = NewInMemoryRendezvousStore();
  return NewNcclReduction(options, store.get(), Never).status();
}

TEST(NoNcclTest, AMissingLibraryIsNamed) {
  NcclOptions options;
  options.library = "libnccl.so.1";
  const absl::Status status = Refusal(options);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("cannot load libnccl.so.1"));
  EXPECT_EQ(CheckNccl(options.library), status);
  EXPECT_TRUE(CheckNccl().ok());
}

TEST(NoNcclTest, WithoutACardTheLibraryIsLoadedAndRefuses) {
  if (NewCudaDevice(0).ok()) GTEST_SKIP() << "this machine has a card";
  const absl::Status status = Refusal({});
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("NCCL: card 0: "));
}

int NumCards() {
  int cards = 0;
  while (cards < 8 && NewCudaDevice(cards).ok()) ++cards;
  return cards;
}

std::vector<std::unique_ptr<DeviceReduction>> Connect(int size) {
  const auto store = NewInMemoryRendezvousStore();
  std::vector<std::unique_ptr<DeviceReduction>> ranks(size);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      NcclOptions options;
      options.rank = options.card = rank;
      options.size = size;
      ranks[rank] = NewNcclReduction(options, store.get(), Never).value();
    });
  }
  for (std::thread& thread : threads) thread.join();
  return ranks;
}

INSTANTIATE_TEST_SUITE_P(Nccl, DeviceReductionConformance,
                         testing::Values(ReductionRanks{
                             &NumCards, /*notices_lost_peers=*/false,
                             /*same_bits_on_every_run=*/false,
                             [](int rank) { return NewCudaDevice(rank).value(); }, &Connect}));

class NcclReductionTest : public testing::Test {
 protected:
  void SetUp() override {
    auto device = NewCudaDevice(0);
    if (!device.ok()) GTEST_SKIP() << device.status().message();
    device_ = std::move(*device);
  }

  const std::unique_ptr<RendezvousStore> store_ = NewInMemoryRendezvousStore();
  std::unique_ptr<Device> device_;
};

TEST_F(NcclReductionTest, TheSumOfOneRankIsItsValues) {
  auto reduction = NewNcclReduction({}, store_.get(), Never);
  ASSERT_TRUE(reduction.ok()) << reduction.status();
  const auto stream = device_->NewStream().value();
  const auto event = device_->NewEvent().value();
  const auto values = device_->Allocate(4000).value();
  const auto pinned = device_->AllocatePinned(4000).value();
  auto* const host = static_cast<float*>(pinned->data());
  for (int i = 0; i < 1000; ++i) host[i] = static_cast<float>(i);
  stream->CopyIn(host, values->data(), 4000);
  ASSERT_TRUE(
      (*reduction)->AllReduceSum(stream.get(), static_cast<float*>(values->data()), 1000).ok());
  stream->CopyOut(values->data(), host, 4000);
  stream->Record(event.get());
  ASSERT_TRUE(
      WaitForEvent(event.get(), kTimeoutMs, [&] { return !(*reduction)->Poll().ok(); }).ok());
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(host[i], static_cast<float>(i));
  (*reduction)->Abort(absl::UnavailableError("rank 1 is lost"));
  (*reduction)->Abort(absl::UnavailableError("rank 2 is lost"));
  EXPECT_EQ((*reduction)->Poll().message(), "rank 1 is lost");
  EXPECT_EQ((*reduction)->AllReduceSum(stream.get(), host, 1).message(), "rank 1 is lost");
}

TEST_F(NcclReductionTest, ConnectingEndsWhenItIsAbortedAndAtItsDeadline) {
  NcclOptions options;
  options.size = 2;  // the other one never comes
  options.prefix = "aborted";
  EXPECT_EQ(NewNcclReduction(options, store_.get(), [] { return true; }).status().code(),
            absl::StatusCode::kCancelled);
  options.prefix = "late";
  options.connect_timeout_ms = 1000;
  EXPECT_EQ(NewNcclReduction(options, store_.get(), Never).status().code(),
            absl::StatusCode::kDeadlineExceeded);
  // The same must hold if rank 0 never connects.
  options.prefix = "alone";
  options.rank = 1;
  const absl::Status late = NewNcclReduction(options, store_.get(), Never).status();
  EXPECT_EQ(late.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(
      std::string(late.message()),
      HasSubstr("NCCL, rank 1: rank 0 has not published the id for connecting within 1000 ms"));
}

}  // namespace
}  // namespace satrap

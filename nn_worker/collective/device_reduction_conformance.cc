#include "nn_worker/collective/device_reduction_conformance.h"

#include <algorithm>
#include <cstring>
#include <latch>
#include <thread>
#include <utility>

#include "common/base/status_macros.h"
#include "common/numeric/random.h"

namespace satrap {
namespace {

constexpr int64_t kTimeoutMs = 60000;

std::vector<float> Values(int rank, int64_t count) {
  std::vector<float> values(count);
  for (int64_t i = 0; i < count; ++i) {
    values[i] = static_cast<float>(2 * UniformDouble(RandomBits(rank, count, i)) - 1);
  }
  return values;
}

bool SameBits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0);
}

}  // namespace

DeviceReductionConformance::Rank::Rank(int number, std::unique_ptr<Device> device,
                                       std::unique_ptr<DeviceReduction> reduction)
    : number_(number),
      device_(std::move(device)),
      reduction_(std::move(reduction)),
      done_(device_->NewEvent().value()),
      stream_(device_->NewStream().value()) {}

absl::Status DeviceReductionConformance::Rank::Start(const std::vector<float>& values) {
  // After an error the last sum may still use the memory that is replaced below.
  RETURN_IF_ERROR(reduction_->Poll());
  count_ = static_cast<int64_t>(values.size());
  const int64_t bytes = count_ * static_cast<int64_t>(sizeof(float));
  values_ = device_->Allocate(bytes).value();
  pinned_ = device_->AllocatePinned(bytes).value();
  std::copy(values.begin(), values.end(), static_cast<float*>(pinned_->data()));
  stream_->CopyIn(pinned_->data(), values_->data(), bytes);
  RETURN_IF_ERROR(
      reduction_->AllReduceSum(stream_.get(), static_cast<float*>(values_->data()), count_));
  stream_->CopyOut(values_->data(), pinned_->data(), bytes);
  stream_->Record(done_.get());
  return absl::OkStatus();
}

absl::StatusOr<std::vector<float>> DeviceReductionConformance::Rank::Finish() {
  absl::Status failure;
  const absl::Status waited = WaitForEvent(done_.get(), kTimeoutMs, [&] {
    failure = reduction_->Poll();
    return !failure.ok();
  });
  // The sum may have ended because a peer is lost.
  if (failure.ok()) failure = reduction_->Poll();
  if (!failure.ok()) {
    reduction_->Abort(failure);
    return failure;
  }
  RETURN_IF_ERROR(waited);
  const auto* const sums = static_cast<const float*>(pinned_->data());
  return std::vector<float>(sums, sums + count_);
}

absl::StatusOr<std::vector<float>> DeviceReductionConformance::Rank::Sum(
    const std::vector<float>& values) {
  RETURN_IF_ERROR(Start(values));
  return Finish();
}

void DeviceReductionConformance::SetUp() {
  if (GetParam().max_size() == 0) GTEST_SKIP() << "this machine has no device";
}

void DeviceReductionConformance::Spawn(int size, const std::function<void(Rank*)>& body) {
  std::vector<std::unique_ptr<DeviceReduction>> reductions = GetParam().connect(size);
  // All ranks are destroyed together at the end: if one were destroyed earlier, the others would
  // see a lost peer.
  std::vector<std::unique_ptr<Rank>> ranks;
  for (int r = 0; r < size; ++r) {
    ranks.push_back(std::make_unique<Rank>(r, GetParam().device(r), std::move(reductions[r])));
  }
  std::vector<std::thread> threads;
  for (int r = 0; r < size; ++r) threads.emplace_back([&, r] { body(ranks[r].get()); });
  for (std::thread& thread : threads) thread.join();
}

TEST_P(DeviceReductionConformance, ASumIsNearThatOfF64AndHasTheSameBitsOnEveryRank) {
  const int max_size = GetParam().max_size();
  for (int size = 1; size <= max_size; ++size) {
    for (const int64_t count : {0, 1, 3, 1000, 70001}) {
      std::vector<std::vector<float>> sums(size);
      for (int run = 0; run < 2; ++run) {
        std::vector<std::vector<float>> again(size);
        Spawn(size, [&](Rank* rank) {
          again[rank->number()] = rank->Sum(Values(rank->number(), count)).value();
        });
        for (int r = 0; r < size; ++r) {
          ASSERT_TRUE(SameBits(again[r], again[0])) << count << " values, rank " << r;
          if (run == 0 || !GetParam().same_bits_on_every_run) continue;
          ASSERT_TRUE(SameBits(again[r], sums[r])) << count << " values, rank " << r;
        }
        sums = again;
      }
      std::vector<double> expected(count);
      for (int r = 0; r < size; ++r) {
        const std::vector<float> given = Values(r, count);
        for (int64_t i = 0; i < count; ++i) expected[i] += given[i];
      }
      for (int64_t i = 0; i < count; ++i) {
        ASSERT_NEAR(sums[0][i], expected[i], 1e-6 * size) << count << " values, value " << i;
      }
    }
  }
}

TEST_P(DeviceReductionConformance, SumsFollowOneAnother) {
  const int size = GetParam().max_size();
  Spawn(size, [&](Rank* rank) {
    std::vector<float> values(100, 1.0f);
    for (int round = 0; round < 3; ++round) values = rank->Sum(values).value();
    EXPECT_EQ(values[99], static_cast<float>(size * size * size));
  });
}

TEST_P(DeviceReductionConformance, AnAbortEndsASumUnderWayAndItsStatusStays) {
  if (GetParam().max_size() < 2) GTEST_SKIP() << "needs two ranks";
  // Once a peer is known to have aborted, even a sum that has ended is an error. So rank 0 aborts
  // only when rank 1 has received its first sum.
  std::latch first_sum(2);
  Spawn(2, [&](Rank* rank) {
    // Rank 1 never joins the second sum.
    const bool has_sum = rank->Sum({1}).ok();
    first_sum.arrive_and_wait();
    ASSERT_TRUE(has_sum);
    if (rank->number() == 1) return;
    ASSERT_TRUE(rank->Start({1}).ok());
    std::latch finishes(1);
    std::thread aborter([&] {
      finishes.wait();
      rank->reduction()->Abort(absl::UnavailableError("the first reason"));
      rank->reduction()->Abort(absl::UnavailableError("the second reason"));
    });
    finishes.count_down();
    EXPECT_EQ(rank->Finish().status().message(), "the first reason");
    aborter.join();
    EXPECT_EQ(rank->Sum({1}).status().message(), "the first reason");
    EXPECT_EQ(rank->reduction()->Poll().message(), "the first reason");
  });
}

TEST_P(DeviceReductionConformance, ALostPeerIsAnError) {
  if (GetParam().max_size() < 2) GTEST_SKIP() << "needs two ranks";
  if (!GetParam().notices_lost_peers) GTEST_SKIP() << "does not notice it";
  // Once a peer is known to be lost, even a sum that has ended is an error. So rank 1 leaves only
  // when rank 0 has received its first sum.
  std::latch first_sum(2);
  Spawn(2, [&](Rank* rank) {
    EXPECT_TRUE(rank->Sum({1}).ok());
    first_sum.arrive_and_wait();
    if (rank->number() == 1) return rank->Leave();
    EXPECT_EQ(rank->Sum({1}).status().code(), absl::StatusCode::kUnavailable);
    EXPECT_EQ(rank->Sum({1}).status().code(), absl::StatusCode::kUnavailable);
  });
}

}  // namespace satrap

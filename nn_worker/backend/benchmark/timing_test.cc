#include "nn_worker/backend/benchmark/timing.h"

#include "gtest/gtest.h"

namespace satrap {
namespace {

// How often an operation is enqueued, and how often the device is waited for.
struct Counts {
  int enqueued = 0, awaited = 0;
};

Counts CountsOf(const TimingOptions& options) {
  Counts counts;
  const auto timing = TimeOperation(
      options, [&] { ++counts.enqueued; },
      [&] {
        ++counts.awaited;
        return absl::OkStatus();
      });
  EXPECT_TRUE(timing.ok());
  EXPECT_LE(timing->host_seconds, timing->seconds);
  return counts;
}

TEST(TimeOperationTest, RepeatsAnOperationAndWaitsOnceARound) {
  // One run warms up, one shows how long a run takes, and the others are three rounds.
  const Counts counts = CountsOf({/*least_seconds=*/1000, /*most_repeats=*/50, /*rounds=*/3});
  EXPECT_EQ(counts.enqueued, 2 + 3 * 50);
  EXPECT_EQ(counts.awaited, 2 + 3);
}

TEST(TimeOperationTest, RepeatsNothingWhereOneTakesLongEnough) {
  const Counts counts = CountsOf({/*least_seconds=*/0, /*most_repeats=*/50, /*rounds=*/2});
  EXPECT_EQ(counts.enqueued, 2 + 2);
}

TEST(TimeOperationTest, ReturnsTheErrorOfTheDevice) {
  const auto timing = TimeOperation(
      TimingOptions(), [] {}, [] { return absl::InternalError("the device has failed"); });
  EXPECT_EQ(timing.status().message(), "the device has failed");
}

}  // namespace
}  // namespace satrap

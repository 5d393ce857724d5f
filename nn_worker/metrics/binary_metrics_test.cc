#include "nn_worker/metrics/binary_metrics.h"

#include <cmath>
#include <thread>
#include <vector>

#include "common/numeric/random.h"
#include "gtest/gtest.h"
#include "nn_worker/collective/local_collective.h"

namespace satrap {
namespace {

constexpr int kSamples = 50000;

// The reports of `ranks` ranks over the same samples, the first of them without any if there are
// three or more.
std::vector<MetricReport> Score(int ranks, bool weighted) {
  const auto collectives = NewLocalCollectives(ranks);
  std::vector<MetricReport> reports(ranks);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      const int first = ranks >= 3 ? 1 : 0;
      BinaryMetrics metrics;
      for (int i = 0; i < kSamples; ++i) {
        if (first + i / 7 % (ranks - first) != rank) continue;
        const float label = RandomBits(1, i) % 4 == 0 ? 1.0f : 0.0f;
        const float logit =
            std::round(static_cast<float>(NormalDouble(2, i)) * 50) / 50 + label - 1;
        const float weight = weighted ? UniformFloat(RandomBits(3, i)) : 1.0f;
        const float mask = i % 10 == 9 ? 0.0f : 1.0f;
        metrics.Add({logit}, {label}, {weight}, {mask});
      }
      const auto values = metrics.Merge(collectives[rank].get());
      ASSERT_TRUE(values.ok()) << values.status();
      reports[rank] = metrics.Report();
      EXPECT_EQ(values->auc(), reports[rank].auc.value);
      EXPECT_EQ(values->logloss(), reports[rank].logloss.value);
      EXPECT_EQ(values->samples(), reports[rank].samples);
    });
  }
  for (std::thread& thread : threads) thread.join();
  return reports;
}

TEST(BinaryMetricsTest, AnyNumberOfRanksGivesTheSame) {
  for (const bool weighted : {false, true}) {
    const MetricReport one = Score(1, weighted)[0];
    EXPECT_EQ(one.samples, kSamples * 0.9);
    EXPECT_GT(one.auc.value, 0.7);
    for (const int ranks : {2, 4}) {
      for (const MetricReport& report : Score(ranks, weighted)) {
        EXPECT_NEAR(report.auc.value, one.auc.value, 1e-12);
        EXPECT_NEAR(report.logloss.value, one.logloss.value, 1e-12);
        EXPECT_NEAR(report.normalised_entropy.value, one.normalised_entropy.value, 1e-12);
        EXPECT_NEAR(report.calibration.value, one.calibration.value, 1e-12);
        EXPECT_EQ(report.samples, one.samples);
      }
    }
  }
}

}  // namespace
}  // namespace satrap

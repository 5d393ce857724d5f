#include "nn_worker/metrics/task_metrics.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "common/numeric/random.h"
#include "gtest/gtest.h"
#include "nn_worker/collective/local_collective.h"

namespace satrap {
namespace {

struct Sample {
  std::vector<float> scores;
  float label = 0;
  float weight = 1;
  float mask = 1;
  uint64_t group = 0;
};

// The weighted mean of value(sample) over the samples that count: the definition of a metric.
double Weighted(const std::vector<Sample>& samples, double (*value)(const Sample&)) {
  double sum = 0, weight = 0;
  for (const Sample& s : samples) {
    if (s.mask == 0) continue;
    sum += s.weight * value(s);
    weight += s.weight;
  }
  return sum / weight;
}

double ProbabilityOf(const Sample& s) { return 1 / (1 + std::exp(-double{s.scores[0]})); }

// The AUC over pairs of a positive and a negative; if `group` is given, only over pairs within this
// group. NaN if there are no pairs.
double AucByPairs(const std::vector<Sample>& samples, const uint64_t* group = nullptr) {
  double won = 0, pairs = 0;
  for (const Sample& p : samples) {
    for (const Sample& n : samples) {
      if (p.mask == 0 || n.mask == 0 || p.label < .5f || n.label > .5f) continue;
      if (group != nullptr && (p.group != *group || n.group != *group)) continue;
      const double weight = double{p.weight} * n.weight;
      won += weight * (p.scores[0] > n.scores[0] ? 1 : p.scores[0] == n.scores[0] ? .5 : 0);
      pairs += weight;
    }
  }
  return won / pairs;
}

double GaucByPairs(const std::vector<Sample>& samples) {
  std::map<uint64_t, double> weights;
  for (const Sample& s : samples) weights[s.group] += s.mask * s.weight;
  double sum = 0, weight = 0;
  for (const auto& [group, n] : weights) {
    const double auc = AucByPairs(samples, &group);
    if (std::isnan(auc)) continue;
    sum += n * auc;
    weight += n;
  }
  return sum / weight;
}

// Many scores are tied, and some groups have only one class.
std::vector<Sample> Samples(int count, int outputs, bool numeric) {
  std::vector<Sample> samples;
  SplitMix64 random(5);
  for (int i = 0; i < count; ++i) {
    Sample s;
    for (int o = 0; o < outputs; ++o) {
      s.scores.push_back(static_cast<float>(static_cast<int>(random.Below(30)) - 15) / 8);
    }
    s.label = numeric        ? static_cast<float>(random.NextDouble() * 5)
              : outputs == 1 ? static_cast<float>(random.Below(2))
                             : static_cast<float>(random.Below(outputs));
    s.weight = static_cast<float>(random.NextDouble() * 3);
    s.mask = random.Below(5) == 0 ? 0.0f : 1.0f;
    // A masked sample must not matter, whatever its label is.
    if (s.mask == 0) s.label = std::numeric_limits<float>::quiet_NaN();
    s.group = random.Below(60) * 0x9e3779b97f4a7c15u;
    samples.push_back(std::move(s));
  }
  return samples;
}

// Deals the samples, in pieces of seven, to all ranks except the last. A single rank gets all.
std::vector<MetricValues> Merged(const std::vector<Sample>& samples, TaskConfig::Loss loss,
                                 bool groups, int ranks) {
  const auto collectives = NewLocalCollectives(ranks);
  std::vector<MetricValues> values(ranks);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      TaskMetrics metrics(loss, groups);
      const int with_samples = std::max(1, ranks - 1);
      for (size_t i = 0; i < samples.size(); ++i) {
        if (static_cast<int>(i / 7) % with_samples != rank) continue;
        const Sample& s = samples[i];
        ScoredSamples one;
        one.scores = s.scores;
        one.outputs = s.scores.size();
        one.labels = {&s.label, 1};
        one.weights = {&s.weight, 1};
        one.mask = {&s.mask, 1};
        if (groups) one.groups = {&s.group, 1};
        metrics.Add(one);
      }
      auto merged = metrics.Merge(collectives[rank].get());
      ASSERT_TRUE(merged.ok()) << merged.status();
      values[rank] = *merged;
      // The next pass must begin without the samples of this pass.
      merged = metrics.Merge(collectives[rank].get());
      ASSERT_TRUE(merged.ok()) << merged.status();
      EXPECT_EQ(merged->samples(), 0u);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const MetricValues& other : values) {
    EXPECT_EQ(other.SerializeAsString(), values[0].SerializeAsString()) << "the same bits";
  }
  return values;
}

uint64_t Counted(const std::vector<Sample>& samples) {
  return static_cast<uint64_t>(
      std::count_if(samples.begin(), samples.end(), [](const Sample& s) { return s.mask != 0; }));
}

class TaskMetricsTest : public testing::TestWithParam<int> {};

TEST_P(TaskMetricsTest, ABinaryLabelHasAucLogLossEntropyAndCalibration) {
  const std::vector<Sample> samples = Samples(900, 1, false);
  const MetricValues values = Merged(samples, TaskConfig::BCE, false, GetParam())[0];
  EXPECT_EQ(values.samples(), Counted(samples));
  EXPECT_NEAR(values.auc(), AucByPairs(samples), 1e-12);
  const double logloss = Weighted(samples, [](const Sample& s) {
    return -std::log(s.label > 0 ? ProbabilityOf(s) : 1 - ProbabilityOf(s));
  });
  EXPECT_NEAR(values.logloss(), logloss, 1e-12);
  const double rate = Weighted(samples, [](const Sample& s) { return double{s.label}; });
  const double entropy = -(rate * std::log(rate) + (1 - rate) * std::log(1 - rate));
  EXPECT_NEAR(values.normalised_entropy(), logloss / entropy, 1e-12);
  EXPECT_NEAR(values.calibration(), Weighted(samples, ProbabilityOf) / rate, 1e-12);
  EXPECT_FALSE(values.has_gauc_by_samples() || values.has_mse());
}

TEST_P(TaskMetricsTest, GaucWeighsTheAucOfEachGroupByItsSamples) {
  const std::vector<Sample> samples = Samples(400, 1, false);
  for (const auto loss : {TaskConfig::BCE, TaskConfig::BPR}) {
    const MetricValues values = Merged(samples, loss, true, GetParam())[0];
    EXPECT_NEAR(values.gauc_by_samples(), GaucByPairs(samples), 1e-12);
    EXPECT_NEAR(values.auc(), AucByPairs(samples), 1e-12);
    EXPECT_GT(values.gauc_groups_left_out(), 0u);
    EXPECT_GT(values.gauc_groups(), 30u);
    EXPECT_EQ(values.has_logloss(), loss == TaskConfig::BCE);
  }
}

TEST_P(TaskMetricsTest, ANumberHasMeanErrors) {
  const std::vector<Sample> samples = Samples(900, 1, true);
  const MetricValues values = Merged(samples, TaskConfig::MSE, false, GetParam())[0];
  const double mse = Weighted(samples, [](const Sample& s) {
    const double e = double{s.scores[0]} - s.label;
    return e * e;
  });
  EXPECT_NEAR(values.mse(), mse, 1e-12);
  EXPECT_NEAR(values.rmse(), std::sqrt(mse), 1e-12);
  EXPECT_NEAR(
      values.mae(),
      Weighted(samples, [](const Sample& s) { return std::abs(double{s.scores[0]} - s.label); }),
      1e-12);
  EXPECT_FALSE(values.has_auc() || values.has_logloss());
}

TEST_P(TaskMetricsTest, AClassHasALogLoss) {
  const std::vector<Sample> samples = Samples(900, 4, false);
  const MetricValues values =
      Merged(samples, TaskConfig::SOFTMAX_CROSS_ENTROPY, false, GetParam())[0];
  EXPECT_NEAR(
      values.logloss(),
      Weighted(samples,
               [](const Sample& s) {
                 double sum = 0;
                 for (const float z : s.scores) sum += std::exp(double{z});
                 return -std::log(std::exp(double{s.scores[static_cast<size_t>(s.label)]}) / sum);
               }),
      1e-12);
  EXPECT_FALSE(values.has_auc() || values.has_calibration());
}

// The last of several ranks has no samples.
INSTANTIATE_TEST_SUITE_P(Ranks, TaskMetricsTest, testing::Values(1, 2, 5));

TEST(TaskMetricsOfNothingTest, IsNotANumber) {
  const MetricValues binary = Merged({}, TaskConfig::BCE, true, 2)[0];
  EXPECT_EQ(binary.samples(), 0u);
  EXPECT_TRUE(std::isnan(binary.auc()));
  EXPECT_TRUE(std::isnan(binary.normalised_entropy()));
  EXPECT_TRUE(std::isnan(binary.gauc_by_samples()));
  EXPECT_TRUE(std::isnan(Merged({}, TaskConfig::MSE, false, 2)[0].rmse()));
  EXPECT_TRUE(std::isnan(Merged({}, TaskConfig::SOFTMAX_CROSS_ENTROPY, false, 2)[0].logloss()));
}

TEST(TaskMetricsOfNothingTest, GroupsOfOneClassHaveNoGauc) {
  const MetricValues values = Merged({{{1}, 1, 1, 1, 7}, {{0}, 1, 1, 1, 7}, {{0}, 0, 1, 1, 8}},
                                     TaskConfig::BCE, true, 1)[0];
  EXPECT_TRUE(std::isnan(values.gauc_by_samples()));
  EXPECT_EQ(values.gauc_groups_left_out(), 2u);
  EXPECT_EQ(values.auc(), .75);
}

TEST(TaskMetricsOfNothingTest, AScoreThatIsNoNumberHasNoGauc) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const MetricValues values = Merged({{{1}, 1, 1, 1, 7}, {{0}, 0, 1, 1, 7}, {{nan}, 0, 1, 1, 7}},
                                     TaskConfig::BPR, true, 2)[0];
  EXPECT_TRUE(std::isnan(values.gauc_by_samples()));
}

}  // namespace
}  // namespace satrap

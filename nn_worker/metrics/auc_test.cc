#include "nn_worker/metrics/auc.h"

#include <cmath>
#include <functional>
#include <limits>
#include <thread>
#include <vector>

#include "common/numeric/random.h"
#include "gtest/gtest.h"
#include "nn_worker/collective/local_collective.h"

namespace satrap {
namespace {

struct Sample {
  float score, label, weight;
};

// Random samples with many equal scores.
std::vector<Sample> Samples(int count, bool weighted) {
  std::vector<Sample> samples;
  SplitMix64 random(11);
  for (int i = 0; i < count; ++i) {
    const float label = random.Below(3) == 0 ? 1.0f : 0.0f;
    const float score = static_cast<float>(static_cast<int>(random.Below(40)) - 20) / 7 + label / 2;
    samples.push_back({score, label, weighted ? static_cast<float>(random.NextDouble()) : 1.0f});
  }
  return samples;
}

double ByPairs(const std::vector<Sample>& samples) {
  double won = 0, pairs = 0;
  for (const Sample& p : samples) {
    for (const Sample& n : samples) {
      if (p.label < 0.5f || n.label > 0.5f) continue;
      const double weight = double{p.weight} * n.weight;
      won += weight * (p.score > n.score ? 1 : p.score == n.score ? 0.5 : 0);
      pairs += weight;
    }
  }
  return won / pairs;
}

TEST(AucTest, CountsPairsWithTiesOneHalf) {
  for (const bool weighted : {false, true}) {
    const std::vector<Sample> samples = Samples(700, weighted);
    Auc auc;
    for (const Sample& s : samples) auc.Add(s.score, s.label, s.weight);
    EXPECT_NEAR(auc.Compute().value, ByPairs(samples), 1e-13);
    EXPECT_EQ(auc.Compute().reason, "");
  }
}

// The AUC of the samples of all ranks, where rank rank_of(i) has sample i.
MetricValue Merged(const std::vector<Sample>& samples, int ranks,
                   const std::function<size_t(size_t i)>& rank_of) {
  const auto collectives = NewLocalCollectives(ranks);
  std::vector<Auc> aucs(ranks);
  for (size_t i = 0; i < samples.size(); ++i) {
    aucs[rank_of(i)].Add(samples[i].score, samples[i].label, samples[i].weight);
  }
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      const absl::Status merged = aucs[rank].Merge(collectives[rank].get());
      EXPECT_TRUE(merged.ok()) << merged;
    });
  }
  for (std::thread& thread : threads) thread.join();
  const MetricValue value = aucs[0].Compute();
  for (Auc& other : aucs) {
    if (std::isnan(value.value)) {
      EXPECT_EQ(other.Compute().reason, value.reason);
    } else {
      EXPECT_EQ(other.Compute().value, value.value) << "the same bits on every rank";
    }
  }
  return value;
}

double OfOne(const std::vector<Sample>& samples) {
  return Merged(samples, 1, [](size_t) { return 0; }).value;
}

TEST(AucTest, AnyDivisionAmongRanksGivesTheSame) {
  for (const bool weighted : {false, true}) {
    const std::vector<Sample> samples = Samples(200000, weighted);
    const double whole = OfOne(samples);
    for (const size_t ranks : {2u, 4u, 5u}) {
      // The last rank has no samples.
      const double merged =
          Merged(samples, ranks, [ranks](size_t i) { return i * i % (ranks - 1); }).value;
      if (weighted) {
        EXPECT_NEAR(merged, whole, 1e-12);
      } else {
        EXPECT_EQ(merged, whole) << "with weights of 1, to the last bit";
      }
      EXPECT_NEAR(Merged(samples, ranks, [](size_t) { return 0; }).value, merged, 1e-12);
    }
  }
}

// With equal ranges of scores one rank could get all samples, or equal scores could be divided
// between two ranks.
TEST(AucTest, ScoresThatAreHardToDivideMakeNoDifference) {
  SplitMix64 random(3);
  const std::vector<std::function<float(size_t)>> scores = {
      [](size_t) { return -2.5f; },
      [](size_t i) { return i % 10 == 0 ? std::nextafter(1.0f, 2.0f) : 1.0f; },
      // 997 neighbouring floats
      [&](size_t) { return 1 + static_cast<float>(random.Below(997)) * 0x1p-23f; },
      [&](size_t i) { return i % 3 == 0 ? static_cast<float>(random.NextDouble()) : 0.0f; },
      [&](size_t i) {
        return static_cast<float>(i % 2 == 0 ? 1 : -1) * std::numeric_limits<float>::infinity();
      },
      [&](size_t) { return static_cast<float>(random.NextDouble() - .5) * 1e-38f; },
  };
  for (size_t kind = 0; kind < scores.size(); ++kind) {
    std::vector<Sample> samples;
    for (size_t i = 0; i < 50000; ++i) {
      samples.push_back({scores[kind](i), random.Below(3) == 0 ? 1.0f : 0.0f, 1});
    }
    const double whole = OfOne(samples);
    for (const size_t ranks : {2u, 3u, 7u}) {
      EXPECT_EQ(Merged(samples, ranks, [ranks](size_t i) { return i % ranks; }).value, whole)
          << "kind " << kind << ", " << ranks << " ranks";
    }
  }
}

// Odd numbers above 2^24 are not exact as floats, but joined samples must still be counted exactly.
TEST(AucTest, CountsMoreEqualSamplesThanAFloatCounts) {
  Auc auc;
  constexpr int kEqual = (1 << 24) + 100001;
  for (int i = 0; i < kEqual; ++i) auc.Add(.5f, 1, 1);
  auc.Add(.25f, 1, 1);
  auc.Add(.375f, 0, 1);
  EXPECT_EQ(auc.Compute().value, static_cast<double>(kEqual) / (kEqual + 1));
}

TEST(AucTest, RanksWithoutSamplesAgreeThatThereIsNone) {
  EXPECT_EQ(Merged({}, 3, nullptr).reason, "no positive sample");
  const Sample nan = {std::numeric_limits<float>::quiet_NaN(), 1, 1};
  EXPECT_EQ(Merged({nan, {1, 0, 1}, {1, 1, 1}}, 2, [](size_t i) { return i % 2; }).reason,
            "a score is not a number");
}

TEST(AucTest, KnowsScoresAFloatApart) {
  Auc auc;
  auc.Add(1.0f, 0, 1);
  auc.Add(std::nextafter(1.0f, 2.0f), 1, 1);
  EXPECT_EQ(auc.Compute().value, 1);
  auc = Auc();
  auc.Add(-0.0f, 0, 1);
  auc.Add(0.0f, 1, 1);
  EXPECT_EQ(auc.Compute().value, 0.5);
  auc = Auc();
  auc.Add(-std::numeric_limits<float>::infinity(), 0, 1);
  auc.Add(-3.0f, 1, 1);
  auc.Add(2.0f, 0, 1);
  EXPECT_EQ(auc.Compute().value, 0.5);
}

TEST(AucTest, OneClassIsUndefinedAndSaysWhy) {
  Auc auc;
  EXPECT_EQ(auc.Compute().reason, "no positive sample");
  auc.Add(1, 1, 1);
  EXPECT_TRUE(std::isnan(auc.Compute().value));
  EXPECT_EQ(auc.Compute().reason, "no negative sample");
  auc.Add(0, 0, 0);  // a weight of 0 is no sample
  EXPECT_EQ(auc.Compute().reason, "no negative sample");
  auc.Add(0, 0, 1);
  EXPECT_EQ(auc.Compute().value, 1);
  auc.Add(std::numeric_limits<float>::quiet_NaN(), 0, 1);
  EXPECT_EQ(auc.Compute().reason, "a score is not a number");
}

}  // namespace
}  // namespace satrap

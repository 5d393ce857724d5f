#include "nn_worker/metrics/auc.h"

#include <cmath>
#include <limits>
#include <vector>

#include "common/numeric/random.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

struct Sample {
  float score, label;
  double weight;
};

// Random samples with many equal scores.
std::vector<Sample> Samples(int count, bool weighted) {
  std::vector<Sample> samples;
  SplitMix64 random(11);
  for (int i = 0; i < count; ++i) {
    const float label = random.Below(3) == 0 ? 1.0f : 0.0f;
    const float score = static_cast<float>(static_cast<int>(random.Below(40)) - 20) / 7 + label / 2;
    samples.push_back({score, label, weighted ? random.NextDouble() : 1.0});
  }
  return samples;
}

double ByPairs(const std::vector<Sample>& samples) {
  double won = 0, pairs = 0;
  for (const Sample& p : samples) {
    for (const Sample& n : samples) {
      if (p.label < 0.5f || n.label > 0.5f) continue;
      const double weight = p.weight * n.weight;
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

TEST(AucTest, AnyDivisionAmongRanksGivesTheSame) {
  const std::vector<Sample> samples = Samples(200000, true);
  Auc whole;
  for (const Sample& s : samples) whole.Add(s.score, s.label, s.weight);
  for (const size_t ranks : {2u, 4u, 5u}) {
    std::vector<Auc> parts(ranks);
    // The last has none.
    for (size_t i = 0; i < samples.size(); ++i) {
      parts[i * i % (ranks - 1)].Add(samples[i].score, samples[i].label, samples[i].weight);
    }
    Auc merged, decoded;
    for (Auc& part : parts) {
      merged.Merge(part);
      ASSERT_TRUE(decoded.MergeEncoded(part.Encode()).ok());
    }
    EXPECT_NEAR(merged.Compute().value, whole.Compute().value, 1e-12);
    EXPECT_NEAR(decoded.Compute().value, whole.Compute().value, 1e-12);
  }
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

TEST(AucTest, RefusesAStateOfAnotherSize) {
  Auc auc;
  auc.Add(1, 1, 1);
  const std::string state = auc.Encode();
  EXPECT_FALSE(auc.MergeEncoded(state.substr(0, state.size() - 1)).ok());
  EXPECT_FALSE(auc.MergeEncoded("").ok());
}

}  // namespace
}  // namespace satrap

#include "embedding_worker/candidates/candidate_sampler.h"

#include <cmath>
#include <limits>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/numeric/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

using ::testing::HasSubstr;

struct NamedSampler {
  std::string name;
  std::unique_ptr<const CandidateSampler> sampler;
};

// Counts proportional to 1 / rank, except that one class in the middle has count 0.
std::vector<double> SomeCounts(int64_t n) {
  std::vector<double> counts(n);
  for (int64_t c = 0; c < n; ++c) counts[c] = c == n / 2 ? 0 : 1000.0 / static_cast<double>(c + 1);
  return counts;
}

std::vector<NamedSampler> AllSamplers(int64_t n) {
  std::vector<NamedSampler> samplers;
  samplers.push_back({"uniform", NewUniformSampler(n)});
  samplers.push_back({"log-uniform", NewLogUniformSampler(n)});
  for (double distortion : {0.0, 0.75, 1.0}) {
    samplers.push_back({"unigram^" + std::to_string(distortion),
                        std::move(NewUnigramSampler(SomeCounts(n), distortion)).value()});
  }
  return samplers;
}

TEST(CandidateSamplerTest, ProbabilitiesSumToOne) {
  for (int64_t n : {int64_t{1}, int64_t{3}, int64_t{1000}}) {
    for (const NamedSampler& s : AllSamplers(n == 1 ? 2 : n)) {
      double sum = 0;
      for (int64_t c = 0; c < s.sampler->num_classes(); ++c) sum += s.sampler->Probability(c);
      EXPECT_NEAR(sum, 1, 1e-5) << s.name << " of " << n;
    }
  }
}

// Uses Pearson's statistic. Each class that can be drawn is expected in at least 20 draws.
TEST(CandidateSamplerTest, DrawsEachClassAsOftenAsItsProbabilitySays) {
  constexpr int64_t kClasses = 50;
  constexpr int64_t kDraws = 200000;
  for (const NamedSampler& s : AllSamplers(kClasses)) {
    std::vector<int64_t> drawn(kClasses);
    for (int64_t i = 0; i < kDraws; ++i) ++drawn[s.sampler->Draw(RandomBits(7, 1, i))];
    double chi2 = 0;
    for (int64_t c = 0; c < kClasses; ++c) {
      const double expected = s.sampler->Probability(c) * kDraws;
      if (expected == 0) {
        EXPECT_EQ(drawn[c], 0) << s.name << " class " << c;
        continue;
      }
      chi2 += (drawn[c] - expected) * (drawn[c] - expected) / expected;
    }
    // With 49 degrees of freedom, chance exceeds 85.4 only once in 1,000 tests.
    EXPECT_LT(chi2, 85.4) << s.name;
  }
}

TEST(CandidateSamplerTest, DrawsClassesWithinTheRangeFromTheLeastAndTheLargestBits) {
  for (const NamedSampler& s : AllSamplers(1000)) {
    for (uint64_t bits : {uint64_t{0}, ~uint64_t{0}}) {
      const int64_t c = s.sampler->Draw(bits);
      EXPECT_GE(c, 0) << s.name;
      EXPECT_LT(c, 1000) << s.name;
      EXPECT_GT(s.sampler->Probability(c), 0) << s.name;
    }
  }
  EXPECT_EQ(NewUniformSampler(1000)->Draw(~uint64_t{0}), 999);
  EXPECT_EQ(NewLogUniformSampler(1000)->Draw(~uint64_t{0}), 999);
  EXPECT_EQ(NewLogUniformSampler(1000)->Draw(0), 0);
}

TEST(CandidateSamplerTest, ALogUniformClassHasTheProbabilityOfItsFormula) {
  const auto sampler = NewLogUniformSampler(99);
  EXPECT_NEAR(sampler->Probability(0), std::log(2.0) / std::log(100.0), 1e-12);
  EXPECT_NEAR(sampler->Probability(98), std::log(100.0 / 99) / std::log(100.0), 1e-12);
}

TEST(CandidateSamplerTest, DistortionIsThePowerOfTheCounts) {
  const auto sampler = std::move(NewUnigramSampler({16.0, 1.0}, 0.75)).value();
  EXPECT_NEAR(sampler->Probability(0), 8.0 / 9, 1e-6);
}

TEST(CandidateSamplerTest, RefusesCountsThatGiveNoDistribution) {
  EXPECT_THAT(std::string(NewUnigramSampler({1.0, -1.0}, 1).status().message()),
              HasSubstr("the count of candidate 1 is -1"));
  EXPECT_FALSE(NewUnigramSampler({std::numeric_limits<double>::infinity()}, 1).ok());
  EXPECT_FALSE(NewUnigramSampler({std::nan("")}, 1).ok());
  EXPECT_THAT(std::string(NewUnigramSampler({0.0, 0.0}, 0).status().message()),
              HasSubstr("all 2 candidates have a count of 0"));
  EXPECT_FALSE(NewUnigramSampler({}, 1).ok());
  EXPECT_THAT(std::string(NewUnigramSampler({1e300}, 2).status().message()),
              HasSubstr("too large"));
}

TEST(DrawCandidatesTest, GivesTheSameCandidatesForTheSameCountersAndOthersForOthers) {
  const auto sampler = NewLogUniformSampler(10000);
  const std::vector<int64_t> first = DrawCandidates(*sampler, 100, true, 1, 2).classes;
  EXPECT_EQ(first, DrawCandidates(*sampler, 100, true, 1, 2).classes);
  EXPECT_NE(first, DrawCandidates(*sampler, 100, true, 1, 3).classes);
  EXPECT_NE(first, DrawCandidates(*sampler, 100, true, 2, 2).classes);
}

TEST(DrawCandidatesTest, UniqueCandidatesAreDistinct) {
  const auto sampler = NewLogUniformSampler(200);
  const Candidates candidates = DrawCandidates(*sampler, 100, true, 1, 2);
  const std::set<int64_t> distinct(candidates.classes.begin(), candidates.classes.end());
  EXPECT_EQ(distinct.size(), 100u);
  EXPECT_EQ(candidates.classes.size(), 100u);
  EXPECT_GT(candidates.draws, 100);
}

TEST(DrawCandidatesTest, WithRepeatsDrawsExactlyAsManyAsAskedFor) {
  const auto sampler = NewUniformSampler(3);
  const Candidates candidates = DrawCandidates(*sampler, 100, false, 1, 2);
  EXPECT_EQ(candidates.classes.size(), 100u);
  EXPECT_EQ(candidates.draws, 100);
  EXPECT_TRUE(DrawCandidates(*sampler, 0, true, 1, 2).classes.empty());
}

TEST(DrawCandidatesTest, GivesFewerUniqueCandidatesWhereTheSamplerHasNoMore) {
  const auto sampler = NewUniformSampler(3);
  const Candidates candidates = DrawCandidates(*sampler, 10, true, 1, 2);
  EXPECT_EQ(candidates.classes.size(), 3u);
  EXPECT_EQ(candidates.draws, 160);
}

// How often a class is a candidate, as a mean over many parts, must be what the formula gives for
// each part's number of draws.
TEST(ExpectedCountTest, IsTheMeanNumberOfTimesThatAClassIsACandidate) {
  constexpr int kParts = 4000;
  for (bool unique : {false, true}) {
    for (const NamedSampler& s : AllSamplers(60)) {
      std::vector<double> found(60), expected(60);
      double candidates_expected = 0;
      for (int part = 0; part < kParts; ++part) {
        const Candidates candidates = DrawCandidates(*s.sampler, 20, unique, 3, part);
        for (int64_t c : candidates.classes) found[c] += 1.0 / kParts;
        for (int64_t c = 0; c < 60; ++c) {
          const double count = std::exp(LogExpectedCount(*s.sampler, candidates, c));
          expected[c] += count / kParts;
          candidates_expected += count / kParts;
        }
      }
      // The tolerance is for unique samples. Their number of draws depends on which classes were
      // drawn, which the formula ignores. If a third of all classes are drawn, the error is one
      // percent.
      EXPECT_NEAR(candidates_expected, 20, 0.4) << s.name << (unique ? " unique" : "");
      for (int64_t c = 0; c < 60; ++c) {
        EXPECT_NEAR(found[c], expected[c], 0.05 * expected[c] + 0.02)
            << s.name << (unique ? " unique" : "") << " class " << c;
      }
    }
  }
}

TEST(ExpectedCountTest, SumsToTheNumberOfUniqueCandidates) {
  constexpr int kParts = 50;
  for (const NamedSampler& s : AllSamplers(40000)) {
    double sum = 0;
    for (int part = 0; part < kParts; ++part) {
      const Candidates candidates = DrawCandidates(*s.sampler, 1000, true, 5, part);
      ASSERT_EQ(candidates.classes.size(), 1000u) << s.name;
      for (int64_t c = 0; c < 40000; ++c) {
        sum += std::exp(LogExpectedCount(*s.sampler, candidates, c));
      }
    }
    EXPECT_NEAR(sum / kParts, 1000, 10) << s.name;
  }
}

TEST(ExpectedCountTest, IsThatOfRepeatsIfNoUniqueDrawWasRepeated) {
  const auto sampler = NewUniformSampler(1000000);
  const Candidates candidates = DrawCandidates(*sampler, 10, true, 1, 2);
  ASSERT_EQ(candidates.draws, 10);
  EXPECT_NEAR(LogExpectedCount(*sampler, candidates, 5), std::log(1e-5), 1e-12);
}

TEST(ExpectedCountTest, HoldsForProbabilitiesBelowTheRoundingErrorOfOne) {
  std::vector<double> counts = {1, 1e-20};
  const auto sampler = std::move(NewUnigramSampler(counts, 1)).value();
  const Candidates candidates = DrawCandidates(*sampler, 2, true, 1, 2);
  ASSERT_EQ(candidates.classes.size(), 1u);
  EXPECT_NEAR(LogExpectedCount(*sampler, candidates, 1), std::log(1e-20 * 32), 1e-5);
}

TEST(ExpectedCountTest, OfAClassThatIsNeverDrawnIsZero) {
  const auto sampler = std::move(NewUnigramSampler({1.0, 0.0}, 1)).value();
  for (bool unique : {false, true}) {
    const Candidates candidates = DrawCandidates(*sampler, 4, unique, 1, 2);
    EXPECT_EQ(LogExpectedCount(*sampler, candidates, 1), -std::numeric_limits<double>::infinity());
  }
}

}  // namespace
}  // namespace satrap

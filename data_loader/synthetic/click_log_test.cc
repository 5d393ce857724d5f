#include "data_loader/synthetic/click_log.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace satrap {
namespace {

SyntheticFormat SmallFormat() {
  SyntheticFormat format;
  format.set_numeric_features(2);
  for (int i = 0; i < 4; ++i) format.add_vocabulary_sizes(i < 3 ? 10 : 1000);
  format.set_interacting_features(3);
  return format;
}

RecordBlock BlockOf(const SyntheticFormat& format) {
  DataConfig data;
  *data.mutable_synthetic() = format;
  return RecordBlock(SchemaOf(data));
}

TEST(ZipfIdsTest, TheSecondRankIsAsRareAsTheLawSays) {
  const ZipfIds zipf(1000, 1.05);
  const uint64_t first = zipf.Id(0);
  const uint64_t second = 2654435761 % 1000;
  int counts[2] = {0, 0};
  const int draws = 100000;
  for (int i = 0; i < draws; ++i) {
    const uint64_t id = zipf.Id((i + 0.5) / draws);
    ASSERT_LT(id, 1000u);
    counts[0] += id == first;
    counts[1] += id == second;
  }
  // The probability of [r, r + 1) under a density proportional to x^-1.05 on [1, 1000).
  const auto mass = [](double from, double to) {
    const auto integral = [](double x) { return std::pow(x, -0.05); };
    return (integral(from) - integral(to)) / (1 - integral(1000));
  };
  EXPECT_NEAR(counts[0], draws * mass(1, 2), 2);
  EXPECT_NEAR(counts[1], draws * mass(2, 3), 2);
}

TEST(ZipfIdsTest, ReachesEveryIdAtExponentZeroAndOne) {
  for (const double exponent : {0.0, 1.0, 1.05}) {
    const ZipfIds zipf(7, exponent);
    std::vector<bool> seen(7);
    for (int i = 0; i < 100000; ++i) seen[zipf.Id(i / 100000.0)] = true;
    // The law is continuous on [1, 7), so the last rank is never drawn.
    EXPECT_EQ(std::count(seen.begin(), seen.end(), true), 6) << exponent;
  }
  EXPECT_EQ(ZipfIds(1, 1.05).Id(0.999), 0u);
}

TEST(ClickLogTest, NumbersItsRecordsIfAskedToAndChangesNothingElse) {
  SyntheticFormat format = SmallFormat();
  RecordBlock plain = BlockOf(format);
  ClickLog(format).Append(TRAIN_STREAM, 41, &plain);
  format.set_record_numbers(true);
  RecordBlock numbered = BlockOf(format);
  ClickLog(format).Append(TRAIN_STREAM, 41, &numbered);
  EXPECT_EQ(numbered.ids(0)[4], 41u);
  for (int f = 0; f < 4; ++f) EXPECT_EQ(numbered.ids(0)[f], plain.ids(0)[f]);
  EXPECT_EQ(numbered.label(0), plain.label(0));
}

TEST(ClickLogTest, ARecordIsAFunctionOfSeedStreamAndIndex) {
  const SyntheticFormat format = SmallFormat();
  const ClickLog log(format), again(format);
  RecordBlock a = BlockOf(format), b = BlockOf(format);
  log.Append(TRAIN_STREAM, 17, &a);
  log.Append(TEST_STREAM, 17, &a);
  log.Append(TRAIN_STREAM, 18, &a);
  const double probability = again.Append(TRAIN_STREAM, 17, &b);
  EXPECT_EQ(probability, log.Append(TRAIN_STREAM, 17, &b));
  EXPECT_EQ(a.ids(0)[3], b.ids(0)[3]);
  EXPECT_EQ(a.numerics(0)[1], b.numerics(0)[1]);
  EXPECT_NE(a.numerics(0)[1], a.numerics(1)[1]);
  EXPECT_NE(a.numerics(0)[1], a.numerics(2)[1]);
}

TEST(ClickLogTest, TheFirstRecordsAreThoseOfTheDocs) {
  SyntheticFormat format;
  format.set_numeric_features(1);
  format.add_vocabulary_sizes(10);
  format.add_vocabulary_sizes(1000);
  format.set_interacting_features(2);
  const ClickLog log(format);
  RecordBlock block = BlockOf(format);
  const double probabilities[] = {0.408810, 0.061811, 0.138752};
  const uint64_t ids[3][2] = {{0, 761}, {8, 591}, {3, 522}};
  const float numerics[] = {0.525653124f, 0.986243427f, 0.92023474f};
  for (uint64_t i = 0; i < 3; ++i) {
    EXPECT_NEAR(log.Append(TRAIN_STREAM, i, &block), probabilities[i], 1e-6);
    EXPECT_EQ(block.ids(i)[0], ids[i][0]);
    EXPECT_EQ(block.ids(i)[1], ids[i][1]);
    EXPECT_EQ(block.numerics(i)[0], numerics[i]);
    EXPECT_EQ(block.label(i), i == 0 ? 1.0f : 0.0f);
  }
}

TEST(ClickLogTest, LabelsComeAsOftenAsTheirProbabilitiesSay) {
  const SyntheticFormat format = SmallFormat();
  const ClickLog log(format);
  RecordBlock block = BlockOf(format);
  double expected = 0, positives = 0;
  for (uint64_t i = 0; i < 20000; ++i) {
    expected += log.Append(TRAIN_STREAM, i, &block);
    positives += block.label(i);
  }
  EXPECT_NEAR(positives, expected, 4 * std::sqrt(20000 * 0.25));
}

TEST(ClickLogTest, ThePartsOfTheLogitHaveTheirStandardDeviations) {
  SyntheticFormat format = SmallFormat();
  format.set_linear_stddev(0);
  format.set_numeric_stddev(0);
  format.set_interaction_stddev(1.5);
  format.set_bias(-1);
  const ClickLog log(format);
  RecordBlock block = BlockOf(format);
  double sum = 0, squares = 0;
  const int n = 20000;
  for (int i = 0; i < n; ++i) {
    const double p = log.Append(TEST_STREAM, i, &block);
    const double logit = std::log(p / (1 - p));
    sum += logit;
    squares += logit * logit;
  }
  EXPECT_NEAR(sum / n, -1, 0.05);
  EXPECT_NEAR(std::sqrt(squares / n - sum / n * sum / n), 1.5, 0.05);
}

TEST(ClickLogTest, RandomLabelsKnowNothingOfTheIds) {
  SyntheticFormat format = SmallFormat();
  format.set_random_label_rate(0.25);
  const ClickLog log(format);
  RecordBlock block = BlockOf(format);
  double positives = 0;
  for (uint64_t i = 0; i < 20000; ++i) {
    EXPECT_EQ(log.Append(TRAIN_STREAM, i, &block), 0.25);
    positives += block.label(i);
  }
  EXPECT_NEAR(positives / 20000, 0.25, 0.015);
}

}  // namespace
}  // namespace satrap

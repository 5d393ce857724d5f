#include "data_loader/synthetic/bayes_auc.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "data_loader/parser/record_block.h"
#include "data_loader/synthetic/click_log.h"

namespace satrap {
namespace {

struct Scored {
  double score;
  double positive;  // weight as a positive; its weight as a negative is 1 minus this
};

// The fraction of the weight of all (positive, negative) pairs in which the positive has the higher
// score; ties count half. REQUIRES: `records` is sorted by score
double WeightedAuc(const std::vector<Scored>& records) {
  double below = 0;  // negative weight of lower scores
  double pairs_won = 0;
  double positives = 0;
  for (size_t from = 0; from < records.size();) {
    double tied_positive = 0, tied_negative = 0;
    size_t to = from;
    for (; to < records.size() && records[to].score == records[from].score; ++to) {
      tied_positive += records[to].positive;
      tied_negative += 1 - records[to].positive;
    }
    pairs_won += tied_positive * (below + tied_negative / 2);
    below += tied_negative;
    positives += tied_positive;
    from = to;
  }
  if (positives == 0 || below == 0) return std::numeric_limits<double>::quiet_NaN();
  return pairs_won / (positives * below);
}

}  // namespace

BayesAuc ComputeBayesAuc(const SyntheticFormat& format) {
  DataConfig data;
  *data.mutable_synthetic() = format;
  const ClickLog log(format);
  RecordBlock block(SchemaOf(data));
  // Generate one record at a time, and keep only its probability and label: 32 bytes per record.
  std::vector<Scored> with_labels, expected;
  for (int64_t i = 0; i < format.test_samples(); ++i) {
    block.Clear();
    const double probability = log.Append(TEST_STREAM, static_cast<uint64_t>(i), &block);
    with_labels.push_back({probability, static_cast<double>(block.label(0))});
    expected.push_back({probability, probability});
  }
  const auto by_score = [](const Scored& a, const Scored& b) { return a.score < b.score; };
  std::sort(with_labels.begin(), with_labels.end(), by_score);
  std::sort(expected.begin(), expected.end(), by_score);
  return {WeightedAuc(with_labels), WeightedAuc(expected)};
}

}  // namespace satrap

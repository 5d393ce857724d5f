#include "embedding_worker/candidates/candidate_sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/numeric/random.h"

namespace satrap {
namespace {

// A unique sample may make at most this many draws per requested candidate. A log-uniform sample of
// a tenth of all classes takes about three.
constexpr int64_t kMostDrawsPerCandidate = 16;

// A random number in [0, n): its integer part, which chooses a cell, and its fraction in units of
// 2^-64.
struct Cell {
  int64_t index;
  uint64_t remainder;
};
Cell CellOf(uint64_t bits, int64_t n) {
  const unsigned __int128 product = static_cast<unsigned __int128>(bits) * static_cast<uint64_t>(n);
  return {static_cast<int64_t>(product >> 64), static_cast<uint64_t>(product)};
}

class UniformSampler final : public CandidateSampler {
 public:
  explicit UniformSampler(int64_t n) : CandidateSampler(n) {}
  int64_t Draw(uint64_t bits) const override { return CellOf(bits, num_classes()).index; }
  double Probability(int64_t) const override { return 1.0 / static_cast<double>(num_classes()); }
};

class LogUniformSampler final : public CandidateSampler {
 public:
  explicit LogUniformSampler(int64_t n)
      : CandidateSampler(n), log_range_(std::log1p(static_cast<double>(n))) {}

  // Inverts the distribution function log(c + 1) / log(n + 1).
  int64_t Draw(uint64_t bits) const override {
    const double c = std::floor(std::expm1(UniformDouble(bits) * log_range_));
    // Rounding may give n + 1 as the exp of a number just below log(n + 1).
    return std::min(static_cast<int64_t>(c), num_classes() - 1);
  }
  double Probability(int64_t c) const override {
    return std::log1p(1.0 / static_cast<double>(c + 1)) / log_range_;
  }

 private:
  const double log_range_;
};

// Walker's alias method, set up as in Vose, "A linear algorithm for generating random numbers with
// a given distribution" (1991). All cells have equal size: a draw picks a cell, and then one of the
// two classes of that cell.
class UnigramSampler final : public CandidateSampler {
 public:
  explicit UnigramSampler(const std::vector<double>& weights, double sum)
      : CandidateSampler(static_cast<int64_t>(weights.size())), cells_(weights.size()) {
    const double n = static_cast<double>(weights.size());
    std::vector<int64_t> small, large;
    std::vector<double> share(weights.size());  // remaining share, in units of a cell
    for (size_t c = 0; c < weights.size(); ++c) {
      cells_[c].probability = static_cast<float>(weights[c] / sum);
      share[c] = weights[c] / sum * n;
      (share[c] < 1 ? small : large).push_back(static_cast<int64_t>(c));
    }
    while (!small.empty() && !large.empty()) {
      const int64_t under = small.back();
      small.pop_back();
      const int64_t over = large.back();
      SetCell(under, share[under], over);
      share[over] -= 1 - share[under];
      if (share[over] < 1) {
        large.pop_back();
        small.push_back(over);
      }
    }
    // Because of rounding, one of the lists has some classes left. Each of them gets its whole
    // cell, unless it must never be drawn: then its cell goes to the most frequent class.
    const int64_t most_frequent =
        std::max_element(weights.begin(), weights.end()) - weights.begin();
    for (const std::vector<int64_t>* left : {&small, &large}) {
      for (int64_t c : *left) SetCell(c, weights[c] > 0 ? 1 : 0, most_frequent);
    }
  }

  int64_t Draw(uint64_t bits) const override {
    const Cell drawn = CellOf(bits, num_classes());
    const AliasCell& cell = cells_[drawn.index];
    return UniformFloat(drawn.remainder) < cell.own_share ? drawn.index : cell.alias;
  }
  double Probability(int64_t c) const override { return cells_[c].probability; }

 private:
  struct AliasCell {
    int64_t alias;
    float own_share;
    float probability;
  };

  void SetCell(int64_t c, double own_share, int64_t alias) {
    cells_[c].own_share = static_cast<float>(own_share);
    cells_[c].alias = alias;
  }

  std::vector<AliasCell> cells_;
};

}  // namespace

std::unique_ptr<const CandidateSampler> NewUniformSampler(int64_t n) {
  CHECK(n > 0);
  return std::make_unique<UniformSampler>(n);
}

std::unique_ptr<const CandidateSampler> NewLogUniformSampler(int64_t n) {
  CHECK(n > 0);
  return std::make_unique<LogUniformSampler>(n);
}

absl::StatusOr<std::unique_ptr<const CandidateSampler>> NewUnigramSampler(
    absl::Span<const double> counts, double distortion) {
  std::vector<double> weights(counts.size());
  double sum = 0;
  for (size_t c = 0; c < counts.size(); ++c) {
    if (!(counts[c] >= 0) || !std::isfinite(counts[c])) {
      return absl::InvalidArgumentError(absl::StrCat("the count of candidate ", c, " is ",
                                                     counts[c], "; expected a finite number >= 0"));
    }
    // pow(0, 0) would be 1, but a class with count 0 must not be drawn.
    weights[c] = counts[c] > 0 ? std::pow(counts[c], distortion) : 0;
    sum += weights[c];
  }
  if (!(sum > 0)) {
    return absl::InvalidArgumentError(
        absl::StrCat("all ", counts.size(), " candidates have a count of 0; expected one above 0"));
  }
  if (!std::isfinite(sum)) {
    return absl::InvalidArgumentError(absl::StrCat("the counts of the candidates to the power of ",
                                                   distortion, " are too large to be added"));
  }
  return std::unique_ptr<const CandidateSampler>(std::make_unique<UnigramSampler>(weights, sum));
}

Candidates DrawCandidates(const CandidateSampler& sampler, int64_t count, bool unique,
                          uint64_t seed, uint64_t counter) {
  CHECK(count >= 0);
  Candidates candidates;
  candidates.unique = unique;
  candidates.classes.reserve(count);
  absl::flat_hash_set<int64_t> drawn;
  if (unique) drawn.reserve(count);
  const int64_t most_draws = unique ? count * kMostDrawsPerCandidate : count;
  while (static_cast<int64_t>(candidates.classes.size()) < count && candidates.draws < most_draws) {
    const int64_t c = sampler.Draw(RandomBits(seed, counter, candidates.draws));
    ++candidates.draws;
    if (!unique || drawn.insert(c).second) candidates.classes.push_back(c);
  }
  return candidates;
}

double LogExpectedCount(const CandidateSampler& sampler, const Candidates& candidates, int64_t c) {
  const double p = sampler.Probability(c);
  const double draws = static_cast<double>(candidates.draws);
  const bool repeated =
      candidates.unique && candidates.draws != static_cast<int64_t>(candidates.classes.size());
  if (!repeated) return std::log(p) + std::log(draws);
  // Uses log1p and expm1, because p is often below the rounding error of 1 - p.
  return std::log(-std::expm1(draws * std::log1p(-p)));
}

}  // namespace satrap

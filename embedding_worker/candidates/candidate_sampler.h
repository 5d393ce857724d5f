// Samplers of negative candidates for sampled softmax and NCE. Each has a fixed distribution over
// the classes 0 .. num_classes - 1, which a candidate list turns into ids.
//
// A draw is a function of 64 random bits, so the same seed and counters give the same candidates on
// every machine. Formulas: Jean, Cho, Memisevic, Bengio, "On Using Very Large Target Vocabulary for
// Neural Machine Translation" (2015), and the candidate sampling notes of TensorFlow (log-uniform
// distribution, expected counts of unique sampling).
//
// Thread-safe: const.

#ifndef SATRAP_EMBEDDING_WORKER_CANDIDATES_CANDIDATE_SAMPLER_H_
#define SATRAP_EMBEDDING_WORKER_CANDIDATES_CANDIDATE_SAMPLER_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace satrap {

class CandidateSampler {
 public:
  virtual ~CandidateSampler() = default;

  int64_t num_classes() const { return num_classes_; }
  // The class that is drawn with 64 random bits.
  virtual int64_t Draw(uint64_t bits) const = 0;
  // The probability of class `c` in one draw. REQUIRES: 0 <= c < num_classes()
  virtual double Probability(int64_t c) const = 0;

 protected:
  explicit CandidateSampler(int64_t num_classes) : num_classes_(num_classes) {}

 private:
  const int64_t num_classes_;
};

// P(c) = 1 / n. REQUIRES: n > 0; this holds for all samplers below
std::unique_ptr<const CandidateSampler> NewUniformSampler(int64_t n);

// P(c) = log((c + 2) / (c + 1)) / log(n + 1), which is close to Zipf's law. Classes should be
// sorted by descending frequency.
std::unique_ptr<const CandidateSampler> NewLogUniformSampler(int64_t n);

// P(c) = counts[c]^distortion / sum. A distortion of 1 gives the frequency itself, and 0 a uniform
// distribution; word2vec uses .75. A class with count 0 is never drawn, whatever the distortion.
// Needs 16 bytes per class. INVALID_ARGUMENT if a count is negative or not finite, or all are 0.
absl::StatusOr<std::unique_ptr<const CandidateSampler>> NewUnigramSampler(
    absl::Span<const double> counts, double distortion);

// The candidates of one part, and how they were drawn.
struct Candidates {
  std::vector<int64_t> classes;  // in the order of the draws
  int64_t draws = 0;             // number of draws, including repeats if `unique`
  bool unique = false;
};

// Draws `count` candidates with the random bits (seed, counter, 0), (seed, counter, 1), ...
//
// If `unique`, a draw that gives a class for the second time is repeated, but no more than
// 16 * count draws are made in all. So if a few classes are very frequent, there may be fewer
// candidates than `count`. REQUIRES: count >= 0
Candidates DrawCandidates(const CandidateSampler& sampler, int64_t count, bool unique,
                          uint64_t seed, uint64_t counter);

// The logarithm of how often `c` is expected among the candidates: draws * P(c) times or, if
// `unique` and some class was drawn twice, 1 - (1 - P(c))^draws times. `c` need not be one of the
// candidates: labels need this value, too. -infinity for a class that is never drawn.
double LogExpectedCount(const CandidateSampler& sampler, const Candidates& candidates, int64_t c);

}  // namespace satrap

#endif  // SATRAP_EMBEDDING_WORKER_CANDIDATES_CANDIDATE_SAMPLER_H_

// Samplers of negative candidates for sampled softmax and NCE: a fixed distribution over the
// classes 0 .. num_classes - 1, which a candidate list turns into ids.
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
  // The class that 64 random bits select.
  virtual int64_t Draw(uint64_t bits) const = 0;
  // The probability of a class in one draw. REQUIRES: 0 <= c < num_classes()
  virtual double Probability(int64_t c) const = 0;

 protected:
  explicit CandidateSampler(int64_t num_classes) : num_classes_(num_classes) {}

 private:
  const int64_t num_classes_;
};

// P(c) = 1 / n. REQUIRES, here and below: n > 0
std::unique_ptr<const CandidateSampler> NewUniformSampler(int64_t n);

// P(c) = log((c + 2) / (c + 1)) / log(n + 1), close to Zipf's law: classes must be sorted by
// descending frequency.
std::unique_ptr<const CandidateSampler> NewLogUniformSampler(int64_t n);

// P(c) = counts[c]^distortion / sum. A distortion of 1 gives the frequency itself, 0 a uniform
// distribution; word2vec takes .75. A class of count 0 is never drawn, whatever the distortion.
// Takes 16 bytes per class. INVALID_ARGUMENT if a count is negative or not finite, or if all are 0.
absl::StatusOr<std::unique_ptr<const CandidateSampler>> NewUnigramSampler(
    absl::Span<const double> counts, double distortion);

// The candidates of one part, and how they were drawn.
struct Candidates {
  std::vector<int64_t> classes;  // in the order of the draws
  int64_t draws = 0;             // if `unique`, repeats included
  bool unique = false;
};

// Draws `count` candidates with the random bits (seed, counter, 0), (seed, counter, 1), ...
//
// Unique: a draw of a class that was drawn before is made again, with at most 16 * count draws in
// all. A sampler whose few frequent classes use these up gives fewer candidates than asked for.
// REQUIRES: count >= 0
Candidates DrawCandidates(const CandidateSampler& sampler, int64_t count, bool unique,
                          uint64_t seed, uint64_t counter);

// log of the expected number of times that `c` is among the candidates. That number is draws P(c)
// or, if unique and some class was drawn twice, 1 - (1 - P(c))^draws. `c` need not be one of the
// candidates, because labels need this, too. -infinity for a class that is never drawn.
double LogExpectedCount(const CandidateSampler& sampler, const Candidates& candidates, int64_t c);

}  // namespace satrap

#endif  // SATRAP_EMBEDDING_WORKER_CANDIDATES_CANDIDATE_SAMPLER_H_

// What follows from a seed: the shape of a world, its job and its samples. Each sample is a
// function of (seed, stream, split, row), so trainer, files and oracle compute it independently.

#ifndef SATRAP_TESTS_SIMULATION_DATA_SIM_DATA_H_
#define SATRAP_TESTS_SIMULATION_DATA_SIM_DATA_H_

#include <cstdint>
#include <vector>

#include "common/candidates/candidate_list.h"
#include "proto/control.pb.h"
#include "proto/hot.pb.h"
#include "proto/job.pb.h"

namespace satrap::simulation {

// The properties of a world, all drawn from its seed.
struct WorldShape {
  uint64_t seed = 0;
  bool ordered = false;
  int loaders = 1, workers = 1, ps = 1, ranks = 1;
  int lanes = 1;
  int max_staleness = 1;
  int staleness_warmup_steps = 0;
  int epochs = 1;
  int global_batch_size = 4;
  int queue_capacity_parts = 1;
  size_t compact_after = 1000;  // entries of the run's log
  int evaluate_every_steps = 0;
  double evaluate_every_seconds = 0;
  // The number of rows in each split, by stream.
  std::vector<std::vector<int>> split_rows;
  FeatureConfig::Transfer transfer = FeatureConfig::AUTO;  // of the multi-valued feature
  bool has_non_finite_steps = false;
  int max_steps = 0;  // 0: no limit
  int shuffle_rows = 0;
  int parse_threads = 1, prefetch_parts = 1;
  bool has_valid = true;
  bool evaluate_at_epoch_end = true;
  Metric metric = AUC;
  int patience = 0;          // 0: no early stop
  int plateau_patience = 0;  // 0: no reductions of the rates; else they halve, down to a quarter
  // The rank that asks for a stop (-1: none), and the number of counted steps after which it asks.
  int stop_rank = -1;
  int stop_after_steps = 0;
  // For table "rows": the optimizers of its two segments, and L2, clipping and bound as in
  // TableConfig (0: none).
  SparseOptimizerConfig::KindCase optimizers[2] = {SparseOptimizerConfig::kSgd,
                                                   SparseOptimizerConfig::kSgd};
  double l2 = 0;
  double gradient_clip_norm = 0;
  double weight_bound = 0;
  // Whether table "rows" is GLOBAL (ordered worlds only), and has l2 of mode DENSE (GLOBAL only).
  bool global = false;
  bool dense_l2 = false;
  bool frozen = false;
  int candidates = 0;         // of a part, of feature "single"; 0: none
  double step_clip_norm = 0;  // JobConfig.gradient_clip_norm; 0: none
  // The largest frame of a hot call; larger messages are split into chunks. 0: no limit.
  int64_t max_message_bytes = 0;

  // Draws a world, including `ordered`.
  static WorldShape Draw(uint64_t seed);
  // The same world, with other numbers of replicas that are drawn for life `life`.
  WorldShape WithOtherReplicas(int life) const;
};

struct SimSample {
  uint64_t id = 0;  // unique over all streams, below 2^24: it travels as a numeric value
  float weight = 1;
  uint64_t single = 0;
  std::vector<uint64_t> several;
};

// Whether the line before this sample in its file is empty or not a record.
inline bool IsAfterBadRecord(uint64_t id) { return id % 5 == 0; }
inline bool IsAfterEmptyLine(uint64_t id) { return id % 7 == 0; }

// Whether the gradients of counted step `step` (from 0) are finite. A step whose gradients are not
// finite counts and changes no value.
bool IsFiniteStep(const WorldShape& shape, uint64_t step);

// The sum of the squares of the dense gradient of counted step `step`.
double DenseSquares(const WorldShape& shape, uint64_t step);

// REQUIRES: row < shape.split_rows[stream][split]
SimSample MakeSample(const WorldShape& shape, Stream stream, int split, int row);
// The sample whose id this is.
SimSample SampleOfId(const WorldShape& shape, uint64_t id);
// The keys of the candidates of a part of the train stream, in the order of the draws.
std::vector<uint64_t> CandidateKeys(const WorldShape& shape, const PartId& part);
// The list of items that candidates are drawn from, in the form that the engines get.
CandidateList ItemsOf(const WorldShape& shape);
// The log of each item's expected count.
double LogQOfItems(const WorldShape& shape);

// The rows of a split in the order in which an epoch takes them (sim_formats.h).
std::vector<int> RowOrder(const WorldShape& shape, Stream stream, int split, uint32_t epoch);

// The result of a validation. The metrics are drawn, by the seed and `merge`, from a few values, so
// that ties and NaN are frequent. `samples` is the number of samples scored.
MetricValues DrawMetrics(const WorldShape& shape, uint64_t merge, uint64_t samples);

// The job of a world, without files. Table 0, "counters", has one segment of 2 x kMaxRanks values,
// all zero at first. Table 1, "rows", has segments of 2 and 1 values. Features, in order: "counter"
// (one id, always 0), "single", "several" (both of table "rows"). Counters have SGD with learning
// rate 1, and no normalisation if steps are clipped. The settings of rows are those of the shape.
JobConfig MakeJob(const WorldShape& shape);

inline constexpr int kMaxRanks = 3;  // of any world; a world's lives may have different numbers
inline constexpr int kCounterValues = 2 * kMaxRanks;
inline constexpr int kEmbeddingDim = 2;  // of the first segment of table "rows"
inline constexpr int kRowValues = 3;
// Not 0, so that it differs from the zeros that evaluations give for absent rows.
inline constexpr double kInitialRowValue = 1;
// A large value, so that a rounding error in a gradient near zero changes the step only a little.
inline constexpr double kEpsilon = 0.5;
inline constexpr double kInitialAccumulator = 0.25;
// Powers of two, like all other factors of the rates.
inline constexpr double kPlateauFactor = 0.5;
inline constexpr double kLeastPlateauFactor = 0.25;
inline double LearningRateOf(SparseOptimizerConfig::KindCase optimizer) {
  return optimizer == SparseOptimizerConfig::kSgd ? 0.5 : 0.125;
}

// The divisor of a step's gradient sums: the step's weight, enlarged in proportion if the step has
// fewer samples than a full batch. `weight` and `samples` are the step's, over all ranks.
double NormalizerOf(const WorldShape& shape, double weight, uint64_t samples);

// The keys of ids by docs/formats.md (sim_formats.h). The last one is for table "counters".
uint64_t SingleKey(uint64_t id);
uint64_t SeveralKey(uint64_t id);
uint64_t CounterKey();

// The gradient of one sample's pooled vector of a feature: weight * (a small integer + pull *
// pooled). The factors are small integers and powers of two. So, while values stay small, sums do
// not depend on the order of their terms.
float SampleGradient(const SimSample& sample, int feature, int d, double pull, double pooled);
// A sample's gradient for candidate number `candidate` of the part. `value` is what the candidate's
// row has. The sample also has the gradients of its two features.
inline float CandidateGradient(const SimSample& sample, size_t candidate, int d, double pull,
                               double value) {
  return SampleGradient(sample, 2 + static_cast<int>(candidate), d, pull, value);
}

// How strongly a gradient depends on the value that it was computed from. It depends on the value
// only in ordered worlds, where the oracle knows that value.
inline double PullOf(const WorldShape& shape) { return shape.ordered ? 0.25 : 0.0; }

}  // namespace satrap::simulation

#endif  // SATRAP_TESTS_SIMULATION_DATA_SIM_DATA_H_

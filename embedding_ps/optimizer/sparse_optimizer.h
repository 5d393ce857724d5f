// A SparseOptimizer is the rule that turns the gradient of one segment of a row into a step.
//
// It owns no memory of rows: the table keeps `state` beside the row's values (docs/formats.md,
// "Row") and passes both in. One object serves every row of its segment from every thread.
//
// Thread-safe: all methods are const and touch only their arguments.

#ifndef SATRAP_EMBEDDING_PS_OPTIMIZER_SPARSE_OPTIMIZER_H_
#define SATRAP_EMBEDDING_PS_OPTIMIZER_SPARSE_OPTIMIZER_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "proto/table.pb.h"

namespace satrap {

// What a rule may know besides the gradient.
struct StepContext {
  int64_t step = 0;           // the job's step, from 0
  float learning_rate = 0;    // scheduled, and multiplied by the factor of the push
  float global_weight = 1;    // the step's normalizer (StepHeader), > 0
  uint32_t sample_count = 0;  // samples of the update that hold the key; 0: not known
  int64_t data_time = 0;      // event time of the update's samples; 0: not known
};

class SparseOptimizer {
 public:
  virtual ~SparseOptimizer() = default;

  // Number of floats kept beside `dim` values. Constant for the life of the object and part of the
  // table fingerprint.
  virtual int StateSize(int dim) const = 0;

  // Whether the step of value i depends on nothing but the context, gradient[i], values[i] and, if
  // StateSize(dim) is dim, state[i]; StateSize(dim) is dim or 0 then. Neighbouring segments of one
  // such rule and equal learning rates may be stepped as one segment: the bits are the same.
  virtual bool StepsEachValueAlone() const = 0;

  // Sets the state of a row that was just created.
  // REQUIRES: state.size() == StateSize(dim)
  virtual void InitState(absl::Span<float> state) const = 0;

  // Applies one step in place. `gradient` is normalised: summed over the global batch, divided by
  // its weight, with L2 and clipping applied. A zero gradient is a step like any other. REQUIRES:
  // gradient.size() == values.size(), state.size() == StateSize(values.size()), no overlap
  virtual void Step(const StepContext& context, absl::Span<const float> gradient,
                    absl::Span<float> values, absl::Span<float> state) const = 0;
};

// The rule of `config`; Adagrad with its defaults if no kind is set.
// INVALID_ARGUMENT, naming the field and the value got, if a constant is out of range.
absl::StatusOr<std::unique_ptr<const SparseOptimizer>> NewSparseOptimizer(
    const SparseOptimizerConfig& config);

}  // namespace satrap

#endif  // SATRAP_EMBEDDING_PS_OPTIMIZER_SPARSE_OPTIMIZER_H_

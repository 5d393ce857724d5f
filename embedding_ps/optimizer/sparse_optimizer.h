// A SparseOptimizer is the rule that turns the gradient of one segment of a row into a step.
//
// It owns no memory of rows: the table stores `state` in the row, after the values
// (docs/formats.md, "Row"), and passes both in. One object serves all rows of its segment on all
// threads.
//
// Thread-safe: all methods are const and touch only their arguments.

#ifndef SATRAP_EMBEDDING_PS_OPTIMIZER_SPARSE_OPTIMIZER_H_
#define SATRAP_EMBEDDING_PS_OPTIMIZER_SPARSE_OPTIMIZER_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "proto/table.pb.h"

namespace satrap {

// What an optimizer may use in addition to the gradient.
struct StepContext {
  // The fields up to clip_factor are the same for all keys of an Update.
  int64_t step = 0;                   // the job's step, from 0
  bool finite = true;                 // false: no row takes the step
  float normalizer = 1;               // the normalizer of the step (StepHeader), > 0
  float learning_rate_factor = 1;     // of the push; multiplies the table's schedule
  absl::optional<int64_t> data_time;  // event time of the samples; nullopt: not known
  double part_share = 1;              // this update's share of the step: 1 in sync; in hybrid the
                                      // part's weight divided by the normalizer
  float clip_factor = 1;  // factor of each normalised gradient (JobConfig.gradient_clip_norm)

  // Filled in by RowUpdater for each key and segment.
  float learning_rate = 0;                // scheduled, and multiplied by learning_rate_factor
  absl::optional<uint32_t> sample_count;  // samples of the update that hold the key; 0: none, in a
      // sweep (TableConfig.semantics GLOBAL); nullopt: not known
};

// One segment in several rows. Row r begins r * stride floats after the first row.
struct SegmentRows {
  float* values;  // [dim]
  float* state;   // [StateSize(dim)]
  size_t dim;
  size_t stride;
  size_t count;
};

class SparseOptimizer {
 public:
  virtual ~SparseOptimizer() = default;

  // The number of state floats for `dim` values. Constant for the life of the object. Saved rows
  // hold the state, so the table fingerprint (common/checkpoint/manifest.h) includes the kind of
  // optimizer and any constant that changes this number.
  virtual int StateSize(int dim) const = 0;

  // Whether the step of value i depends only on the context, gradient[i], values[i] and state[i].
  // StateSize(dim) is then dim or 0. Neighbouring segments with the same element-wise rule and
  // learning rate may be stepped as one segment, and get the same bits.
  virtual bool IsElementwise() const = 0;

  // Whether Step reads context.sample_count. If it does, an Update without counts is refused, so
  // the count is always known.
  virtual bool NeedsSampleCount() const { return false; }

  // What a step with a gradient of 0 changes. This decides how semantics GLOBAL treats idle rows.
  enum class IdleStep {
    kNothing,
    kState,   // AgeState has a closed form for any number of such steps
    kValues,  // values change, so each such step must be taken
  };
  virtual IdleStep idle_step() const { return IdleStep::kValues; }
  // Changes `state` as `steps` steps with a gradient of 0 would. A rule whose idle_step() is
  // kValues need only handle the state that InitState sets, because with that state such steps move
  // no value. REQUIRES: steps >= 1, state.size() == StateSize(dim) for some dim
  virtual void AgeState(int64_t /*steps*/, absl::Span<float> /*state*/) const {}

  // Sets the state of a row that was just created.
  // REQUIRES: state.size() == StateSize(dim)
  virtual void InitState(absl::Span<float> state) const = 0;

  // Applies one step in place. `gradient` is normalised: the sum over the samples, divided by the
  // step's normalizer, with L2 and clipping applied. A zero gradient is a step like any other.
  // REQUIRES: gradient.size() == values.size(), state.size() == StateSize(values.size()), no
  // overlap
  virtual void Step(const StepContext& context, absl::Span<const float> gradient,
                    absl::Span<float> values, absl::Span<float> state) const = 0;

  // Takes a step for each of `rows` with the gradient l2 * value * factor. In a sweep most rows
  // have no other gradient, and a call of Step for each row would cost more than the step itself.
  // Returns false, with nothing changed, if the rule implements only Step. Otherwise the result has
  // the bits that Step gives.
  virtual bool StepDecayed(const StepContext& /*context*/, float /*l2*/, float /*factor*/,
                           const SegmentRows& /*rows*/) const {
    return false;
  }
};

// Creates the rule of `config`; Adagrad with its defaults if no kind is set. INVALID_ARGUMENT,
// naming the field and its value, if a constant is out of range.
absl::StatusOr<std::unique_ptr<const SparseOptimizer>> NewSparseOptimizer(
    const SparseOptimizerConfig& config);

// The type of NewSparseOptimizer. Tests use other functions of this type, to create rules of their
// own.
using SparseOptimizerFactory = decltype(&NewSparseOptimizer);

}  // namespace satrap

#endif  // SATRAP_EMBEDDING_PS_OPTIMIZER_SPARSE_OPTIMIZER_H_

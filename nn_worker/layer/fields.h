// Fields: the vectors of one sample that an interaction layer combines. Each input is one field,
// [d], or several, [k, d] (a stack of embeddings, the vectors of numerics); all have the same d.
//
// Thread-safe: the functions depend only on their arguments.

#ifndef SATRAP_NN_WORKER_LAYER_FIELDS_H_
#define SATRAP_NN_WORKER_LAYER_FIELDS_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "nn_worker/backend/backend.h"
#include "nn_worker/layer/layer.h"

namespace satrap {

struct FieldShape {
  int64_t count = 0;
  int64_t dim = 0;
};

// INVALID_ARGUMENT unless there are `least` or more fields, all of one dim.
absl::StatusOr<FieldShape> FieldsOf(absl::Span<const SampleShape> inputs, int64_t least);

// One view for each field, in the order of the inputs. REQUIRES: the shapes are those of `fields`
std::vector<Tensor> FieldViews(const FieldShape& fields, absl::Span<const Tensor> xs);
// As FieldViews, for gradients. If the target of an input is not wanted, each field of that input
// gets an empty target.
std::vector<GradientTarget> FieldTargets(const FieldShape& fields, absl::Span<const Tensor> xs,
                                         absl::Span<const GradientTarget> dxs);

enum class PairOrder {
  kSecondAfterFirst,  // (0, 1), (0, 2), ..., (1, 2), ...
  kFirstAfterSecond,  // (1, 0), (2, 0), (2, 1), ...
};
// The products of all pairs of `count` whole vectors.
std::vector<PairTerm> AllPairs(int64_t count, PairOrder order);

// Copies the inputs to the columns of y, one after another. An x that already lies in its columns
// is not copied.
void JoinColumns(Backend* backend, absl::Span<const Tensor> xs, Tensor y);
// The gradient of JoinColumns.
void SplitColumns(Backend* backend, absl::Span<const Tensor> xs, Tensor dy,
                  absl::Span<const GradientTarget> dxs);

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_LAYER_FIELDS_H_

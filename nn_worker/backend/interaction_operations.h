// The operations of feature interactions, a part of Backend: products of the vectors of a sample,
// softmax and normalisation. As in all operations, a row of a tensor holds the values of one
// sample. An operation with a `width` divides each row into cols / width groups of `width` values.
//
// The rules of backend.h about memory, order, determinism, zero rows and errors hold here, too. All
// tensors are F32. A gradient operation assigns or adds as its target says, and does nothing for a
// target that is not wanted.

#ifndef SATRAP_NN_WORKER_BACKEND_INTERACTION_OPERATIONS_H_
#define SATRAP_NN_WORKER_BACKEND_INTERACTION_OPERATIONS_H_

#include <cstdint>

#include "absl/types/span.h"
#include "nn_worker/backend/tensor.h"

namespace satrap {

// One product of two vectors of a sample, which begin at these columns of xs[a] and xs[b].
struct PairTerm {
  int a = 0, a_column = 0;
  int b = 0, b_column = 0;
};

// The small matrices of each sample, stored by rows: matrix m of sample i begins at value m * step
// of row i of `tensor`, and its rows are `stride` values apart. If there is only one matrix, `step`
// is not used.
struct SampleMatrices {
  Tensor tensor;
  int64_t rows = 0, cols = 0;
  int64_t stride = 0;
  int64_t step = 0;
  bool transposed = false;  // use the transpose: (cols, rows)
};

enum class Normalization {
  kLayer,  // (x - mean) / sqrt(variance + epsilon); Ba, Kiros and Hinton (2016)
  kL2,     // x / sqrt(sum x^2 + epsilon)
};

class InteractionOperations {
 public:
  virtual ~InteractionOperations() = default;

  // y = factor * x; with `add`, y += factor * x.
  virtual void Scale(float factor, Tensor x, Tensor y, bool add) = 0;
  // y = a * b, element by element; with `add`, y += a * b. b: (n, cols); or (n, 1), which
  // multiplies all of row i; or (1, width), which multiplies each group of every row.
  // a, y: (n, cols)
  virtual void Multiply(Tensor a, Tensor b, Tensor y, bool add) = 0;
  // Each row of x is a matrix (x.cols / width, width). Its transpose is written to the same row of
  // y, or added to it. The gradient is Transpose again, with a width of x.cols / width.
  virtual void Transpose(Tensor x, int64_t width, Tensor y, bool add) = 0;

  // For each sample and each m < count: Y_m = scale * A_m B_m; with `add`, Y_m += scale * A_m B_m.
  // A and B say whether they are transposed; y.transposed is false. The gradients are products of
  // this kind.
  virtual void BatchedProduct(const SampleMatrices& a, const SampleMatrices& b, int64_t count,
                              float scale, const SampleMatrices& y, bool add) = 0;

  // y[i, t] = the dot product of the two vectors of `dim` values that terms[t] names.
  // xs: n rows each   y: (n, terms)
  virtual void PairDots(absl::Span<const Tensor> xs, absl::Span<const PairTerm> terms, int64_t dim,
                        Tensor y) = 0;
  // The gradient of each vector of term t is dy[i, t] times the other vector. Assigned targets are
  // first set to 0; then all contributions are added in the order of the terms. So the same tensor
  // may occur twice among the targets, and values that no term names get 0.
  virtual void PairDotsGrad(absl::Span<const Tensor> xs, absl::Span<const PairTerm> terms,
                            int64_t dim, Tensor dy, absl::Span<const GradientTarget> dxs) = 0;

  // s = sum_f x_f; y = 1/2 (s^2 - sum_f x_f^2), element by element. He and Chua, "Neural
  // Factorization Machines" (2017), equation 4.   xs, s, y: (n, d) each
  virtual void BiInteraction(absl::Span<const Tensor> xs, Tensor s, Tensor y) = 0;
  // dx_f = dy * (s - x_f). The same tensor may be given twice.
  virtual void BiInteractionGrad(absl::Span<const Tensor> xs, Tensor s, Tensor dy,
                                 absl::Span<const GradientTarget> dxs) = 0;

  // y = exp(x - max) / sum exp(x - max) within each group. A NaN makes its group NaN.
  virtual void Softmax(Tensor x, int64_t width, Tensor y) = 0;
  // dx = y * (dy - sum (dy * y)), where the sum is over the values of a group.
  virtual void SoftmaxGrad(Tensor y, Tensor dy, int64_t width, GradientTarget dx) = 0;

  // Normalises each group: y = (x - mean) * inverse for kLayer, y = x * inverse for kL2. inverse[i,
  // g] is 1 / sqrt(variance + epsilon) for kLayer, 1 / sqrt(sum x^2 + epsilon) for kL2, each over
  // group g of row i. The variance is that of the group's values, not an unbiased estimate.
  // inverse: (n, cols / width)
  virtual void Normalize(Normalization kind, Tensor x, int64_t width, float epsilon, Tensor y,
                         Tensor inverse) = 0;
  // Computes dx from y and `inverse` of Normalize: dx = inverse * (dy - mean dy - y mean (dy * y))
  // for kLayer, and dx = inverse * (dy - y sum (dy * y)) for kL2. Means and sums are over the
  // values of a group.
  virtual void NormalizeGrad(Normalization kind, Tensor y, Tensor inverse, Tensor dy, int64_t width,
                             GradientTarget dx) = 0;
};

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_BACKEND_INTERACTION_OPERATIONS_H_

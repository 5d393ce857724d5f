// A Backend owns a device's memory and runs the operations of the dense network on it. Layers are
// written once, against this class, and know nothing of the device. Implementations: CpuBackend;
// CpuHalfBackend, which computes with 16-bit values by means of CpuBackend; DeviceBackend, on a
// card or on the host's device; and ReferenceBackend for tests. Each passes backend_conformance.h.
//
// Memory. The tensors given to a backend view memory of that backend, with the alignment that
// tensor.h promises. Tensors are F32 unless an operation says otherwise, and the outputs of an
// operation do not overlap its inputs; cpu_half_backend.h says where F16 and BF16 may replace F32.
// device_memory.h says how the host gets values in and out; the host's device enforces these rules
// (host_device.h).
//
// Order. Operations and the plain copies of DeviceMemory run one after another in call order; a
// call may return before its operation has run. Operations return no values: sums, counts and flags
// are written to backend memory.
//
// Control. What differs from step to step, and whether a step applies, is read from a StepControl
// (step_control.h) in backend memory: `control`, U8 (1, sizeof(StepControl)).
//
// Determinism. An operation gives the same bits for the same arguments on one kind of device,
// whatever the number of threads. Row i of a forward result depends on row i of the inputs alone,
// not on how many rows there are. Sums depend on which samples are added up, but never on timing.
//
// Zero rows are legal everywhere: sums over them are 0.
// Errors. No operation returns an error. A kernel that fails aborts the process: its results are
// lost.
//
// Threads: device_memory.h says which calls two threads may make at the same time.
//
// Linear layers are in linear_operations.h, feature interactions in interaction_operations.h,
// losses in loss_operations.h, and the operations that end a step in step_operations.h.

#ifndef SATRAP_NN_WORKER_BACKEND_BACKEND_H_
#define SATRAP_NN_WORKER_BACKEND_BACKEND_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "nn_worker/backend/device_memory.h"
#include "nn_worker/backend/interaction_operations.h"
#include "nn_worker/backend/linear_operations.h"
#include "nn_worker/backend/loss_operations.h"
#include "nn_worker/backend/operation_args.h"
#include "nn_worker/backend/row_exchange_args.h"
#include "nn_worker/backend/step_operations.h"
#include "nn_worker/backend/tensor.h"

namespace satrap {

class Backend : public DeviceMemory,
                public LinearOperations,
                public InteractionOperations,
                public LossOperations,
                public StepOperations {
 public:
  // y is F32 or F64.
  virtual void Fill(Tensor y, float value) = 0;
  // y = x; with `add`, y += x. If y.data == x.data and `add` is false, nothing happens.
  virtual void Copy(Tensor x, Tensor y, bool add) = 0;
  // y = float(x), from F64.
  virtual void ToF32(Tensor x, Tensor y) = 0;

  // y[i, :] = x[i, :] + bias.        bias: (1, cols)
  virtual void AddBias(Tensor x, Tensor bias, Tensor y) = 0;
  // sums[0, c] = sum over i of x[i, c].
  virtual void ColumnSum(Tensor x, Tensor sums) = 0;
  // y = f(x), element by element; y may be x.
  virtual void Activate(Activation activation, Tensor x, Tensor y) = 0;
  // dx = dy * f'(x), from y = f(x).
  virtual void ActivateGrad(Activation activation, Tensor y, Tensor dy, GradientTarget dx) = 0;

  // y[i, 0] = sum of all elements of row i of all xs.
  virtual void RowSum(absl::Span<const Tensor> xs, Tensor y) = 0;
  // Every element of row i of every dxs gets dy[i, 0].
  virtual void RowSumGrad(Tensor dy, absl::Span<const GradientTarget> dxs) = 0;

  // Rendle, "Factorization Machines" (2010), lemma 3.1: s = sum_f x_f; y[i, 0] = 1/2 sum_d (s_d^2 -
  // sum_f x_fd^2). xs: (n, d) each   s: (n, d)
  virtual void Fm(absl::Span<const Tensor> xs, Tensor s, Tensor y) = 0;
  // dx_f = dy (s - x_f).
  virtual void FmGrad(absl::Span<const Tensor> xs, Tensor s, Tensor dy,
                      absl::Span<const GradientTarget> dxs) = 0;

  // y[i, :] = the mean, sum or maximum, column by column, over the first lengths[i, 0] positions of
  // row i of x; zeros if the length is 0. A length is rounded and clamped to [0, L].
  // x: (n, L d)   lengths: (n, 1)   y: (n, d)
  virtual void SequencePool(SequencePooling pooling, Tensor x, Tensor lengths, Tensor y) = 0;
  // dx, from y = SequencePool(x): zero for positions beyond the length; the gradient of a maximum
  // goes to the first position that attains it. dy is overwritten.
  virtual void SequencePoolGrad(SequencePooling pooling, Tensor x, Tensor lengths, Tensor y,
                                Tensor dy, GradientTarget dx) = 0;

  // y = x * keep / (1 - rate), where keep[i, c] is a function of (mask.key(), first_sample + i, c)
  // that is 1 with probability 1 - rate. The gradient is the same operation on dy. REQUIRES: 0 <=
  // rate < 1
  virtual void Dropout(Tensor x, const DropoutMask& mask, float rate, Tensor y, bool add) = 0;

  // sums: F64 (1, 2 cols + 1) = [sum x | sum x^2 | n].
  virtual void Moments(Tensor x, Tensor sums) = 0;
  // Ioffe and Szegedy, "Batch Normalization" (2015), algorithm 1, from the sums of Moments (of one
  // rank or of all). stats: (2, cols) gets mean and 1 / sqrt(var + epsilon).   gamma, beta: (1,
  // cols)
  virtual void BatchNorm(Tensor x, Tensor sums, float epsilon, Tensor gamma, Tensor beta,
                         Tensor stats, Tensor y) = 0;
  // As BatchNorm, with given mean and variance, (1, cols) each.
  virtual void BatchNormFixed(Tensor x, Tensor mean, Tensor variance, float epsilon, Tensor gamma,
                              Tensor beta, Tensor y) = 0;
  // grad_sums: F64 (1, 2 cols) = [sum dy | sum dy xhat].
  virtual void BatchNormGradSums(Tensor x, Tensor stats, Tensor dy, Tensor grad_sums) = 0;
  // dx = gamma / std * (dy - (sum dy + xhat * sum dy xhat) / n), n from `sums`.
  virtual void BatchNormGrad(Tensor x, Tensor stats, Tensor gamma, Tensor dy, Tensor sums,
                             Tensor grad_sums, GradientTarget dx) = 0;
  // mean, variance (unbiased where n > 1) := momentum * old + (1 - momentum) * batch; unchanged if
  // n is 0 or the control does not apply.
  virtual void BatchNormRunning(Tensor control, Tensor sums, float momentum, Tensor mean,
                                Tensor variance) = 0;

  // Writes the segments and lengths of all features of a part, whatever their tables, from the rows
  // of their ids (row_exchange_args.h). REQUIRES: all have the same number of samples
  virtual void GatherRows(absl::Span<const FeatureExchange> features) = 0;
  // The gradient of GatherRows for the rows of one table: gradients[r, :] = the sum of the
  // gradients of all ids j with ids[j] == r, feature by feature and in the order of j; zero in
  // columns and rows that no feature reads. With 16-bit values the CPU adds up one block of samples
  // after another, each in this order. If a row has more than 256 ids, a device adds up their
  // gradients in pieces (nn_worker/device/kernels/scatter_rows.h). Except on devices, the last
  // feature may be the part's candidates, which have their own number of samples. gradients:
  // (num_rows, row_values) without gaps. A feature with one row per sample must be the only one in
  // `features`, and its gradients are (samples, row_values). `inverse` is the inverse of the ids of
  // `features`.
  virtual void ScatterGradients(absl::Span<const FeatureExchange> features,
                                const RowInverse& inverse, Tensor gradients) = 0;
  // Allocates the memory that ScatterGradients needs for features with `num_ids` ids in total and
  // gradients with `row_values` columns, because ScatterGradients itself cannot return an error.
  // Any thread may call it. RESOURCE_EXHAUSTED.
  virtual absl::Status ReserveScatter(int64_t /*num_ids*/, int64_t /*row_values*/) {
    return absl::OkStatus();
  }
  // Whether ScatterGradients reads `inverse`. On a device it does, because a device sums up each
  // row separately, in the order of the inverse. If false, the caller need not make an inverse.
  virtual bool ScattersByRow() const = 0;
  // Whether GatherRows takes rows of F16 and BF16. If false, the caller decodes them to F32.
  virtual bool GathersHalves() const { return false; }

  // count, F64 (1, 1), += the number of values of x whose magnitude is above `limit`, or that are
  // NaN. If the limit is the largest float, these are the values that are not finite. REQUIRES:
  // limit > 0, finite
  virtual void CountBeyond(Tensor x, float limit, Tensor count) = 0;
};

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_BACKEND_BACKEND_H_

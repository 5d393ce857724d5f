// The losses of a network, their gradients, and the sums from which the mean loss is computed. The
// formulas are those of nn_worker/backend/backend.h (BceWithLogits) and loss_operations.h.
//
// Gradients are those of a sum, multiplied by the control's gradient_scale. A masked sample adds
// exactly 0, whatever its label. `sums`, [2] in f64, = [sum weight l | sum weight], not scaled.
// Samples, or pairs, are divided into pieces of kLossPiece. The sums of a piece's threads are added
// up by a tree, and the pieces are added in order. So the order of a sum depends only on the
// numbers of samples and columns.

#ifndef SATRAP_NN_WORKER_DEVICE_KERNELS_LOSSES_H_
#define SATRAP_NN_WORKER_DEVICE_KERNELS_LOSSES_H_

#include <cstdint>

#include "nn_worker/device/device_stream.h"
#include "nn_worker/device/kernels/matrix.h"
#include "nn_worker/operation/operation_kinds.h"
#include "nn_worker/operation/step_control.h"

namespace satrap {

// A column of values in device memory: value i is at data + i * stride. Null data means 1 for each
// sample.
struct Column {
  const float* data;
  int64_t stride;
};

struct SampleLossArgs {
  const StepControl* control;
  int64_t samples;
  Column outputs;
  Column labels;
  Column weights;  // may be null
  Column mask;     // may be null
  float* gradients;
  int64_t gradient_stride;
};

// The number of samples or pairs that one block handles.
inline constexpr int64_t kLossPiece = 1024;

// The number of values of `partials` that a loss of `samples` samples or pairs needs.
inline int64_t LossPartials(int64_t samples) {
  return 2 * ((samples + kLossPiece - 1) / kLossPiece);
}

// l = max(z, 0) - z y + log(1 + exp(-|z|)); dz = weight * mask * (sigmoid(z) - y).
//   partials: scratch of LossPartials(samples) values, overwritten; likewise for SquaredError
void BceWithLogits(DeviceStream* stream, const SampleLossArgs& args, double* partials,
                   double* sums);

// l = (z - y)^2; dz = 2 weight mask (z - y).
void SquaredError(DeviceStream* stream, const SampleLossArgs& args, double* partials, double* sums);

struct SoftmaxLossArgs {
  const StepControl* control;
  Matrix<const float> logits;  // (samples, classes)
  Column labels;               // the number of a class; any other makes loss and gradients NaN
  Column weights;              // may be null
  Column mask;                 // may be null
  Matrix<float> gradients;     // (samples, classes)
};
// The number of values of `scratch` that SoftmaxCrossEntropy and CandidateLoss need.
inline int64_t RowLossScratch(int64_t samples) { return LossPartials(samples) + 2 * samples; }
// l = log(sum over c of exp(z_c)) - z_y; dz_c = weight mask (softmax(z)_c - [c == y]). At most 256
// classes are summed in f32 by LanesOf(classes) lanes (warp_sum.h). More classes are summed by 256
// threads: each warp adds up the sums of its threads, and the sums of the warps are added in order.
// If a sample has at most 4096 logits, each of them is read only once.
//   scratch: [RowLossScratch(samples)], overwritten
void SoftmaxCrossEntropy(DeviceStream* stream, const SoftmaxLossArgs& args, double* scratch,
                         double* sums);

struct CandidateLossArrays {
  const StepControl* control;
  Matrix<const float> scores;  // (samples, columns)
  // If true, the positive of sample i is in column i (samples <= columns); otherwise in column 0.
  bool positives_on_diagonal;
  const uint32_t* items;      // [columns]; null: every column counts for every sample
  const uint32_t* positives;  // sample i's positive item at positives[i * positives_stride]
  int64_t positives_stride;
  const float* log_q;       // [columns]; null: 0, and positive_log_q is not read
  Column positive_log_q;    // (samples, 1)
  Column weights;           // may be null
  Column mask;              // may be null
  Matrix<float> gradients;  // (samples, columns)
};
// z = scores - log Q; p is the column of the sample's positive; sums are over the columns that
// count for the sample. For kSoftmax, l = log(sum over c of exp(z_c)) - z_p. For kLogistic, l = sum
// over c of BCE(z_c, [c == p]). A column counts if it is p or if its item is not the positive's
// item; other columns have the gradient 0, whatever their scores. The columns are summed like
// classes.
//   scratch: [RowLossScratch(samples)], overwritten
void CandidateLoss(DeviceStream* stream, CandidateLossKind kind, const CandidateLossArrays& args,
                   double* scratch, double* sums);

struct PairLossArgs {
  const StepControl* control;
  Column scores;
  const uint32_t* pairs;  // (num_pairs, 2): rows [p | n] below the number of samples
  int64_t pair_stride;
  int64_t num_pairs;
  Column weights;           // of pairs
  Matrix<float> gradients;  // (samples, 1)
};
// The number of values of `scratch` that PairwiseLogistic needs.
inline int64_t PairLossScratch(int64_t num_pairs) {
  return LossPartials(num_pairs) + (num_pairs + 1) / 2;
}
// For each pair, l = log(1 + exp(z_n - z_p)); dz_p -= weight sigmoid(z_n - z_p), dz_n += the same.
// The gradient of a sample is summed in f32 over its pairs in their order; without pairs it is 0.
// Each thread searches all pairs for those of its sample, so the work grows as samples times pairs.
//   scratch: [PairLossScratch(num_pairs)], overwritten
void PairwiseLogistic(DeviceStream* stream, const PairLossArgs& args, double* scratch,
                      double* sums);

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_DEVICE_KERNELS_LOSSES_H_

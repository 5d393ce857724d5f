// The layers, each with its formula first, then its errors. layer_factory.h makes one from the job.
//
// Shapes are those of one sample: [d] is a vector, [k, d] has k rows of d values. "n fields of d"
// are either n inputs [d] or one [n, d] (fields.h). A layer refuses other shapes with
// INVALID_ARGUMENT in Infer; the message gives the shapes. REQUIRES of all functions: the values of
// the configuration are in their ranges (proto/model.proto), which NewLayer checks.

#ifndef SATRAP_NN_WORKER_LAYER_LAYERS_H_
#define SATRAP_NN_WORKER_LAYER_LAYERS_H_

#include <memory>

#include "absl/status/statusor.h"
#include "nn_worker/layer/layer.h"
#include "proto/model.pb.h"

namespace satrap {

// ---- Of any shape, element by element

// The backend's constant for a configured activation.
Activation ActivationOf(ActivationConfig::Kind kind);

// y = f(x). After a Linear, LinearConfig.activation does the same in one pass.
absl::StatusOr<std::unique_ptr<Layer>> NewActivationLayer(const ActivationLayerConfig& config);

// y = the sum of the inputs, element by element.   xs, y: one shape
absl::StatusOr<std::unique_ptr<Layer>> NewAddLayer();

// The product of two inputs, element by element; the second may be [1], which multiplies every
// element of the first.   x_0: any shape  x_1: the same, or [1]  y: that of x_0
absl::StatusOr<std::unique_ptr<Layer>> NewMultiplyLayer();

// y = factor * x.   x: any shape  y: that of x
absl::StatusOr<std::unique_ptr<Layer>> NewScaleLayer(const ScaleConfig& config);

// y = x * mask / (1 - rate) in training, y = x in evaluation.   x: any shape  y: that of x
// The mask is a function of (seed, step, number of the sample within the step, column). In ordered
// mode that number is the sample's index in the global batch, so the mask is the same for any
// division among ranks.
absl::StatusOr<std::unique_ptr<Layer>> NewDropoutLayer(const DropoutConfig& config);

// y = x, but no gradient flows back.   x: any shape  y: that of x
absl::StatusOr<std::unique_ptr<Layer>> NewStopGradientLayer();

// ---- Dense

// y = activation(x w + b).   x: [in]  y: [units]. Parameters: weight (in, units), bias (1, units).
// If `in` is 0 (a job without numerics), y is activation(b), or zeros without a bias.
absl::StatusOr<std::unique_ptr<Layer>> NewLinearLayer(const LinearConfig& config);

// y = x + b.   x, y: [dim]. Parameter: bias (1, dim), zero at the start.
absl::StatusOr<std::unique_ptr<Layer>> NewBiasLayer();

// For each numeric column, a trained vector times the column's value.   x: [k]  y: [k, dim]
absl::StatusOr<std::unique_ptr<Layer>> NewNumericEmbeddingLayer(
    const NumericEmbeddingConfig& config);

// ---- Normalisation

// y = gamma (x - mean) / sqrt(variance + epsilon) + beta, column by column (Ioffe and Szegedy
// 2015).   x, y: [dim]
// Parameters: gamma, beta (1, dim). States: running_mean, running_variance.
//
// Training uses the mean and variance of the rank's part (scope LOCAL) or of the global batch
// (GLOBAL). GLOBAL adds up its sums over all ranks, forward and backward, so parts of any size,
// even empty ones, give what one machine would compute from the global batch. Evaluation uses the
// running statistics. In both scopes these statistics follow the global batch, with the same weight
// for each sample. They change only in EndStep, and only if the control applies: a step that does
// not count or is not finite does not change them. LOCAL adds up its sums over the ranks in
// EndStep, in every step; GLOBAL already has them.
absl::StatusOr<std::unique_ptr<Layer>> NewBatchNormLayer(const BatchNormConfig& config);

// Layer normalisation over the last axis (Ba, Kiros and Hinton 2016).   x: any shape  y: that of x
//   y = (x - mean) / sqrt(variance + epsilon) * gamma + beta
absl::StatusOr<std::unique_ptr<Layer>> NewLayerNormLayer(const LayerNormConfig& config);

// y = x / sqrt(s + epsilon), where s is the sum of x^2 over the last axis.
//   x: any shape  y: that of x
absl::StatusOr<std::unique_ptr<Layer>> NewL2NormalizeLayer(const L2NormalizeConfig& config);

// Softmax over the last axis.   x: any shape  y: that of x
absl::StatusOr<std::unique_ptr<Layer>> NewSoftmaxLayer();

// ---- Shapes

// y = the inputs, one after another.   xs: [d_1], [d_2], ...  y: [d_1 + d_2 + ...]. An input may be
// [0]. Inputs that the graph places within y cost nothing, forward or backward.
absl::StatusOr<std::unique_ptr<Layer>> NewConcatLayer();

// Ranges of the first axis, one output for each.   x: [d] or [k, d]  y_i: [size_i] or [size_i, d]
// INVALID_ARGUMENT if there is no range.
absl::StatusOr<std::unique_ptr<Layer>> NewSliceLayer(const SliceConfig& config);

// n fields of d, one after another.   xs: [d] or [k, d] each  y: [n, d]
absl::StatusOr<std::unique_ptr<Layer>> NewStackLayer();

// The same values as one vector.   x: any shape  y: [values of x]
absl::StatusOr<std::unique_ptr<Layer>> NewFlattenLayer();

// y = the sum of all elements of all inputs.   xs: [d_1], [d_2], ...  y: [1]
absl::StatusOr<std::unique_ptr<Layer>> NewSumLayer();

// ---- Interactions of fields

// The factorization machine's second-order term (Rendle 2010, lemma 3.1).   xs: [dim] each  y: [1]
//   y = 1/2 sum_d ((sum_f x_fd)^2 - sum_f x_fd^2)
absl::StatusOr<std::unique_ptr<Layer>> NewFmLayer();

// The interaction of FwFM (Pan et al. 2018).   n fields of d  y: [1]
//   y = sum over i < j of r_ij <v_i, v_j>
absl::StatusOr<std::unique_ptr<Layer>> NewFwfmLayer();

// The interaction of FFM (Juan et al. 2016).   n fields of (n - 1) d  y: [1]
//   y = sum over i < j of <v_i^(j), v_j^(i)>; field i holds the vectors for 0, ..., i - 1, i + 1,
//   ...
absl::StatusOr<std::unique_ptr<Layer>> NewFieldAwareInteractionLayer();

// The bi-interaction of NFM (He and Chua 2017).   n fields of d  y: [d]
//   y = 1/2 ((sum_f v_f)^2 - sum_f v_f^2), element by element
absl::StatusOr<std::unique_ptr<Layer>> NewBiInteractionLayer();

// The products of all pairs (PNN, Qu et al. 2016).   n fields of d  y: [n (n - 1) / 2]
//   y = <v_i, v_j> for i < j: (0, 1), (0, 2), ..., (1, 2), ...
absl::StatusOr<std::unique_ptr<Layer>> NewInnerProductLayer();

// DLRM's interaction (Naumov et al. 2019).   n fields of d  y: [d + n (n - 1) / 2]
//   y = the first vector, then <v_i, v_j> for j < i: (1, 0), (2, 0), (2, 1), ...
absl::StatusOr<std::unique_ptr<Layer>> NewDotInteractionLayer();

// One layer of DCN's cross network (Wang et al. 2017).   x_0, x_l: [d] each  y: [d]
//   y = x_0 (w . x_l) + b + x_l
// INVALID_ARGUMENT unless `layers` is 1: the graph expands a larger number into single layers.
absl::StatusOr<std::unique_ptr<Layer>> NewCrossLayer(const CrossConfig& config);

// One layer of DCNv2's cross network (Wang et al. 2021).   x_0, x_l: [d] each  y: [d]
//   y = x_0 * (W x_l + b) + x_l, element by element. If a rank is given, W = V U of that rank
// INVALID_ARGUMENT if `layers` is not 1 (see NewCrossLayer).
absl::StatusOr<std::unique_ptr<Layer>> NewCrossV2Layer(const CrossV2Config& config);

// The compressed interaction network of xDeepFM (Lian et al. 2018).   n fields of d
//   y: [sum of units]
//   X^k_h = sum_ij W^k_hij (X^{k-1}_i * X^0_j) + b^k_h; y = the sums over d of all X^k_h
// INVALID_ARGUMENT unless there are units.
absl::StatusOr<std::unique_ptr<Layer>> NewCinLayer(const CinConfig& config);

// ---- Sequences

// Multi-head self-attention (Vaswani et al. 2017; AutoInt, Song et al. 2019), with its residual.
//   x: [k, d]  y: [k, units]
//   y = concat over heads of softmax(Q K^T / sqrt(units / heads)) V + x W_residual
//   Q, K, V = x times a weight each, without bias; x itself is the residual if d is `units`
// INVALID_ARGUMENT unless `heads` divides `units` and `layers` is 1: the graph expands a larger
// number into single layers, and adds the layer norm and ReLU after each.
absl::StatusOr<std::unique_ptr<Layer>> NewAttentionLayer(const AttentionConfig& config);

// y = the mean, sum or maximum of those positions of a sequence that come before its end, column by
// column; zeros for an empty sequence.
//   xs: [length, dim], [1] (how many positions count)  y: [dim]
absl::StatusOr<std::unique_ptr<Layer>> NewSequencePoolLayer(const SequencePoolConfig& config);

// ---- Scores of retrieval

// Scores of a sample's positive item and of the part's candidates, for sampled softmax and NCE.
//   user [d], positive [d], candidates [S, d] (and bias: positive [1], candidates [S, 1])
//   y: [1 + S]
//   y_0 = scale <u, p> + b_p,  y_{1+j} = scale <u, c_j> + b_j; with `normalize` u, p and c are
//   divided by their norms
//
// A part may have fewer candidates than S, and in an evaluation has none. The columns of y beyond
// its candidates are not written, and the same columns of dy are not read.
absl::StatusOr<std::unique_ptr<Layer>> NewCandidateLogitsLayer(const CandidateLogitsConfig& config);

// Scores of all items of the part for each of its samples, for in-batch softmax.
//   user [d], item [d]   y: one column for each sample j of the part, y_j = scale <u, v_j>
//
// The columns of y beyond the part's samples are not written, and the same columns of dy are not
// read.
absl::StatusOr<std::unique_ptr<Layer>> NewInBatchLogitsLayer(const InBatchLogitsConfig& config);

// ---- For tests of a run

// y = 0; dx = a constant, whatever dy is.   xs: [d_1], [d_2], ...  y: [1]
//
// It counts samples in the rows of its inputs (TallyConfig, proto/model.proto).
absl::StatusOr<std::unique_ptr<Layer>> NewTallyLayer(const TallyConfig& config);

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_LAYER_LAYERS_H_

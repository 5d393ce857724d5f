#include "nn_worker/backend/cpu/cpu_losses.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "common/base/check.h"
#include "nn_worker/backend/cpu/host_tensor.h"

namespace satrap::cpu {
namespace {

bool IsMasked(const Tensor& mask, int64_t i) { return !mask.empty() && *FloatsOf(mask, i) == 0; }

float WeightOf(const Tensor& weights, int64_t i) {
  return weights.empty() ? 1.0f : *FloatsOf(weights, i);
}

// The score of a column that does not count. Its exponential is exactly 0.
constexpr float kNoScore = -std::numeric_limits<float>::infinity();

// Replaces the scores of a sample by their gradients, multiplied by `scaled`, and returns the loss.
double SoftmaxOfRow(int64_t positive, float scaled, int64_t columns, float* z) {
  const float score = z[positive];
  const float largest = *std::max_element(z, z + columns);
  float sum = 0;
  for (int64_t c = 0; c < columns; ++c) {
    z[c] = std::exp(z[c] - largest);
    sum += z[c];
  }
  for (int64_t c = 0; c < columns; ++c) z[c] *= scaled / sum;
  z[positive] -= scaled;
  return std::log(sum) + largest - score;
}

// As SoftmaxOfRow, but each column is a separate binary decision.
double LogisticOfRow(int64_t positive, float scaled, int64_t columns, float* z) {
  double loss = -z[positive];
  for (int64_t c = 0; c < columns; ++c) {
    const float e = std::exp(-std::abs(z[c]));
    loss += std::max(z[c], 0.0f) + std::log1p(e);
    z[c] = scaled * (z[c] > 0 ? 1.0f : e) / (1 + e);
  }
  z[positive] -= scaled;
  return loss;
}

}  // namespace

void SquaredErrorRows(float gradient_scale, Tensor outputs, Tensor labels, Tensor weights,
                      Tensor mask, Tensor doutputs, int64_t begin, int64_t end, double* sums) {
  double loss = 0;
  double total = 0;
  for (int64_t i = begin; i < end; ++i) {
    // A masked sample is left out, not multiplied by 0, because its label may be NaN.
    if (IsMasked(mask, i)) {
      *FloatsOf(doutputs, i) = 0;
      continue;
    }
    const float weight = WeightOf(weights, i);
    const float error = *FloatsOf(outputs, i) - *FloatsOf(labels, i);
    loss += static_cast<double>(weight * error) * error;
    total += weight;
    *FloatsOf(doutputs, i) = gradient_scale * (2 * weight * error);
  }
  sums[0] = loss;
  sums[1] = total;
}

// This loop is serial, because the pairs of a sample must be added in order and may be anywhere in
// the list. There are at most as many pairs as samples in a part, so this costs little compared
// with the network.
void PairwiseLogistic(float gradient_scale, Tensor scores, Tensor pairs, Tensor weights,
                      Tensor dscores, double* sums) {
  for (int64_t i = 0; i < dscores.rows; ++i) *FloatsOf(dscores, i) = 0;
  sums[0] = sums[1] = 0;
  for (int64_t m = 0; m < pairs.rows; ++m) {
    const uint32_t* const pair = UintsOf(pairs, m);
    const float weight = *FloatsOf(weights, m);
    const float x = *FloatsOf(scores, pair[1]) - *FloatsOf(scores, pair[0]);
    // The exponent is never positive, so nothing overflows.
    const float e = std::exp(-std::abs(x));
    sums[0] += weight * (std::max(x, 0.0f) + std::log1p(e));
    sums[1] += weight;
    const float gradient = gradient_scale * (weight * (x > 0 ? 1.0f : e) / (1 + e));
    *FloatsOf(dscores, pair[0]) -= gradient;
    *FloatsOf(dscores, pair[1]) += gradient;
  }
}

void SoftmaxCrossEntropyRows(float gradient_scale, Tensor logits, Tensor labels, Tensor weights,
                             Tensor mask, Tensor dlogits, int64_t begin, int64_t end,
                             double* sums) {
  const int64_t classes = logits.cols;
  double loss = 0;
  double total = 0;
  for (int64_t i = begin; i < end; ++i) {
    const float* const z = FloatsOf(logits, i);
    float* const dz = FloatsOf(dlogits, i);
    if (IsMasked(mask, i)) {
      std::fill_n(dz, classes, 0.0f);
      continue;
    }
    const float weight = WeightOf(weights, i);
    const int64_t label = static_cast<int64_t>(*FloatsOf(labels, i));
    CHECK(label >= 0 && label < classes) << label;
    // The largest value is subtracted, so that no exponential overflows.
    const float largest = *std::max_element(z, z + classes);
    float sum = 0;
    for (int64_t c = 0; c < classes; ++c) {
      dz[c] = std::exp(z[c] - largest);
      sum += dz[c];
    }
    loss += weight * (std::log(sum) + largest - z[label]);
    total += weight;
    const float scaled = gradient_scale * weight;
    for (int64_t c = 0; c < classes; ++c) dz[c] *= scaled / sum;
    dz[label] -= scaled;
  }
  sums[0] = loss;
  sums[1] = total;
}

// At first dz holds z = scores - log Q, with -infinity in columns that do not count. Then the
// gradient replaces it.
void CandidateLossRows(float gradient_scale, const CandidateLossArgs& args, int64_t begin,
                       int64_t end, double* sums) {
  const int64_t columns = args.scores.cols;
  double loss = 0;
  double total = 0;
  for (int64_t i = begin; i < end; ++i) {
    const float* const scores = FloatsOf(args.scores, i);
    float* const dz = FloatsOf(args.dscores, i);
    if (IsMasked(args.mask, i)) {
      std::fill_n(dz, columns, 0.0f);
      continue;
    }
    const int64_t positive = args.positives_on_diagonal ? i : 0;
    CHECK(positive < columns) << positive;
    std::copy_n(scores, columns, dz);
    if (!args.log_q.empty()) {
      const float* const log_q = FloatsOf(args.log_q);
      for (int64_t c = 0; c < columns; ++c) dz[c] -= log_q[c];
      dz[positive] = scores[positive] - *FloatsOf(args.positive_log_q, i);
    }
    if (args.remove_hits) {
      const uint32_t* const items = UintsOf(args.items);
      const uint32_t own = *UintsOf(args.positives, i);
      const float score = dz[positive];
      for (int64_t c = 0; c < columns; ++c) dz[c] = items[c] == own ? kNoScore : dz[c];
      dz[positive] = score;
    }
    const float weight = WeightOf(args.weights, i);
    const float scaled = gradient_scale * weight;
    loss += weight * (args.kind == CandidateLossKind::kSoftmax
                          ? SoftmaxOfRow(positive, scaled, columns, dz)
                          : LogisticOfRow(positive, scaled, columns, dz));
    total += weight;
  }
  sums[0] = loss;
  sums[1] = total;
}

}  // namespace satrap::cpu

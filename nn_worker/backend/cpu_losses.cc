#include "nn_worker/backend/cpu_losses.h"

#include <algorithm>
#include <cmath>

#include "common/base/check.h"
#include "nn_worker/backend/host_tensor.h"

namespace satrap::cpu {
namespace {

bool IsMasked(const Tensor& mask, int64_t i) { return !mask.empty() && *FloatsOf(mask, i) == 0; }

float WeightOf(const Tensor& weights, int64_t i) {
  return weights.empty() ? 1.0f : *FloatsOf(weights, i);
}

}  // namespace

void SquaredErrorRows(float gradient_scale, Tensor outputs, Tensor labels, Tensor weights,
                      Tensor mask, Tensor doutputs, int64_t begin, int64_t end, double* sums) {
  double loss = 0;
  double total = 0;
  for (int64_t i = begin; i < end; ++i) {
    // Left out, not multiplied by 0: a masked label may be NaN.
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

// Serial, because the pairs of a sample must be added in order and may lie anywhere. There are no
// more pairs than samples of a part, so this is small beside the network.
void PairwiseLogistic(float gradient_scale, Tensor scores, Tensor pairs, Tensor weights,
                      Tensor dscores, double* sums) {
  for (int64_t i = 0; i < dscores.rows; ++i) *FloatsOf(dscores, i) = 0;
  sums[0] = sums[1] = 0;
  for (int64_t m = 0; m < pairs.rows; ++m) {
    const uint32_t* const pair = UintsOf(pairs, m);
    const float weight = *FloatsOf(weights, m);
    const float x = *FloatsOf(scores, pair[1]) - *FloatsOf(scores, pair[0]);
    // With the exponential of a number that is not positive, which cannot overflow.
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
    // Less the largest, so that no exponential overflows.
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

}  // namespace satrap::cpu

#include "nn_worker/backend/testing/reference_losses.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "nn_worker/backend/cpu/host_tensor.h"

namespace satrap {
namespace {

// Sets `gradient` to zeros and calls body(i, weight, label) for each sample that counts.
template <typename Body>
void ForSamples(Tensor labels, Tensor weights, Tensor mask, Tensor gradient, Body body) {
  for (int64_t i = 0; i < labels.rows; ++i) {
    for (int64_t c = 0; c < gradient.cols; ++c) FloatsOf(gradient, i)[c] = 0;
    if (!mask.empty() && *FloatsOf(mask, i) == 0) continue;
    body(i, weights.empty() ? 1.0 : double{*FloatsOf(weights, i)}, double{*FloatsOf(labels, i)});
  }
}

}  // namespace

void ReferenceLossBackend::BceWithLogits(Tensor control, Tensor logits, Tensor labels,
                                         Tensor weights, Tensor mask, Tensor dlogits, Tensor sums) {
  const double gradient_scale = ControlOf(control)->gradient_scale;
  DoublesOf(sums)[0] = DoublesOf(sums)[1] = 0;
  // Masked samples are left out, not multiplied by 0: a masked label may be NaN.
  ForSamples(labels, weights, mask, dlogits, [&](int64_t i, double weight, double y) {
    const double z = *FloatsOf(logits, i);
    DoublesOf(sums)[0] += weight * (std::max(z, 0.0) - z * y + std::log1p(std::exp(-std::abs(z))));
    DoublesOf(sums)[1] += weight;
    *FloatsOf(dlogits, i) =
        static_cast<float>(gradient_scale * weight * (1 / (1 + std::exp(-z)) - y));
  });
}

void ReferenceLossBackend::SquaredError(Tensor control, Tensor outputs, Tensor labels,
                                        Tensor weights, Tensor mask, Tensor doutputs, Tensor sums) {
  const double gradient_scale = ControlOf(control)->gradient_scale;
  DoublesOf(sums)[0] = DoublesOf(sums)[1] = 0;
  ForSamples(labels, weights, mask, doutputs, [&](int64_t i, double weight, double y) {
    const double z = *FloatsOf(outputs, i);
    DoublesOf(sums)[0] += weight * (z - y) * (z - y);
    DoublesOf(sums)[1] += weight;
    *FloatsOf(doutputs, i) = static_cast<float>(gradient_scale * 2 * weight * (z - y));
  });
}

void ReferenceLossBackend::PairwiseLogistic(Tensor control, Tensor scores, Tensor pairs,
                                            Tensor weights, Tensor dscores, Tensor sums) {
  const double gradient_scale = ControlOf(control)->gradient_scale;
  DoublesOf(sums)[0] = DoublesOf(sums)[1] = 0;
  std::vector<double> gradients(dscores.rows, 0.0);
  for (int64_t m = 0; m < pairs.rows; ++m) {
    const uint32_t p = UintsOf(pairs, m)[0], n = UintsOf(pairs, m)[1];
    const double weight = *FloatsOf(weights, m);
    const double x = double{*FloatsOf(scores, n)} - *FloatsOf(scores, p);
    DoublesOf(sums)[0] += weight * std::log1p(std::exp(x));
    DoublesOf(sums)[1] += weight;
    gradients[p] -= gradient_scale * weight / (1 + std::exp(-x));
    gradients[n] += gradient_scale * weight / (1 + std::exp(-x));
  }
  for (int64_t i = 0; i < dscores.rows; ++i) {
    *FloatsOf(dscores, i) = static_cast<float>(gradients[i]);
  }
}

void ReferenceLossBackend::SoftmaxCrossEntropy(Tensor control, Tensor logits, Tensor labels,
                                               Tensor weights, Tensor mask, Tensor dlogits,
                                               Tensor sums) {
  const double gradient_scale = ControlOf(control)->gradient_scale;
  DoublesOf(sums)[0] = DoublesOf(sums)[1] = 0;
  ForSamples(labels, weights, mask, dlogits, [&](int64_t i, double weight, double y) {
    double sum = 0;
    for (int64_t c = 0; c < logits.cols; ++c) sum += std::exp(double{FloatsOf(logits, i)[c]});
    for (int64_t c = 0; c < logits.cols; ++c) {
      const double p = std::exp(double{FloatsOf(logits, i)[c]}) / sum;
      const bool is_label = c == static_cast<int64_t>(y);
      if (is_label) DoublesOf(sums)[0] -= weight * std::log(p);
      FloatsOf(dlogits, i)[c] =
          static_cast<float>(gradient_scale * weight * (p - (is_label ? 1 : 0)));
    }
    DoublesOf(sums)[1] += weight;
  });
}

void ReferenceLossBackend::CandidateLoss(Tensor control, const CandidateLossArgs& args) {
  const double gradient_scale = ControlOf(control)->gradient_scale;
  DoublesOf(args.sums)[0] = DoublesOf(args.sums)[1] = 0;
  // This loss has no labels, so the scores are passed as labels and the label is ignored.
  ForSamples(
      args.scores, args.weights, args.mask, args.dscores, [&](int64_t i, double weight, double) {
        const int64_t positive = args.positives_on_diagonal ? i : 0;
        std::vector<int64_t> counted;
        std::vector<double> z(args.scores.cols);
        double sum = 0;
        for (int64_t c = 0; c < args.scores.cols; ++c) {
          const bool own = c == positive;
          if (args.remove_hits && !own && UintsOf(args.items)[c] == *UintsOf(args.positives, i)) {
            continue;
          }
          double log_q = 0;
          if (!args.log_q.empty()) {
            log_q = own ? *FloatsOf(args.positive_log_q, i) : FloatsOf(args.log_q)[c];
          }
          z[c] = FloatsOf(args.scores, i)[c] - log_q;
          sum += std::exp(z[c]);
          counted.push_back(c);
        }
        const bool softmax = args.kind == CandidateLossKind::kSoftmax;
        for (const int64_t c : counted) {
          const double label = c == positive ? 1 : 0;
          const double p = softmax ? std::exp(z[c]) / sum : 1 / (1 + std::exp(-z[c]));
          const double l =
              softmax ? -label * std::log(p) : std::log1p(std::exp(z[c])) - label * z[c];
          DoublesOf(args.sums)[0] += weight * l;
          FloatsOf(args.dscores, i)[c] = static_cast<float>(gradient_scale * weight * (p - label));
        }
        DoublesOf(args.sums)[1] += weight;
      });
}

}  // namespace satrap

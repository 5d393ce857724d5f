#include "nn_worker/backend/reference_backend.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <vector>

#include "common/base/check.h"
#include "common/numeric/random.h"
#include "nn_worker/backend/dropout_mask.h"

namespace satrap {
namespace {

double Apply(Activation activation, double x) {
  switch (activation) {
    case Activation::kLinear:
      return x;
    case Activation::kRelu:
      return x < 0 ? 0 : x;
    case Activation::kSigmoid:
      return 1 / (1 + std::exp(-x));
    case Activation::kTanh:
      return std::tanh(x);
  }
  return x;
}

// f'(x) from y = f(x), and not from x: of a layer only the outputs are kept for the backward pass.
double Slope(Activation activation, double y) {
  switch (activation) {
    case Activation::kLinear:
      return 1;
    case Activation::kRelu:
      return y > 0 ? 1 : 0;
    case Activation::kSigmoid:
      return y * (1 - y);
    case Activation::kTanh:
      return 1 - y * y;
  }
  return 1;
}

void Put(const GradientTarget& target, int64_t row, int64_t col, double value) {
  float* to = target.tensor.f32(row) + col;
  *to = static_cast<float>(target.add ? *to + value : value);
}

// The formulas of backend.h as they stand there, value by value and with sums in double, in a form that
// a reader can compare with them. It shares no loop with CpuBackend, which is measured against it; only what
// is a format (the bits of dropout) is the same code.
class ReferenceBackend final : public Backend {
 public:
  absl::StatusOr<void*> Allocate(int64_t bytes) override {
    // 64 bytes more than asked for, to begin at a multiple of 64.
    allocations_.emplace_back(new std::vector<double>((bytes + 71) / 8, 0.0));
    void* data = allocations_.back()->data();
    size_t space = allocations_.back()->size() * sizeof(double);
    return std::align(64, static_cast<size_t>(bytes), data, space);
  }
  void CopyIn(absl::Span<const float> host, float* device) override {
    std::copy(host.begin(), host.end(), device);
  }
  void CopyIn(absl::Span<const double> host, double* device) override {
    std::copy(host.begin(), host.end(), device);
  }
  void CopyOut(const float* device, absl::Span<float> host) override {
    std::copy_n(device, host.size(), host.begin());
  }
  void CopyOut(const double* device, absl::Span<double> host) override {
    std::copy_n(device, host.size(), host.begin());
  }
  void Sync() override {}
  void* HostView(void* device) override { return device; }

  void Fill(Tensor y, float value) override {
    ForEach(y, [&](int64_t i, int64_t c) {
      if (y.dtype == DType::kF64) {
        y.f64(i)[c] = value;
      } else {
        y.f32(i)[c] = value;
      }
    });
  }
  void Copy(Tensor x, Tensor y, bool add) override {
    ForEach(y, [&](int64_t i, int64_t c) { Put({y, add}, i, c, x.f32(i)[c]); });
  }
  void ToF32(Tensor x, Tensor y) override {
    ForEach(y, [&](int64_t i, int64_t c) { y.f32(i)[c] = static_cast<float>(x.f64(i)[c]); });
  }

  void Linear(Tensor x, Tensor w, Tensor bias, Activation activation, Tensor y) override {
    ForEach(y, [&](int64_t i, int64_t o) {
      double sum = bias.empty() ? 0 : bias.f32()[o];
      for (int64_t c = 0; c < x.cols; ++c) sum += static_cast<double>(x.f32(i)[c]) * w.f32(c)[o];
      y.f32(i)[o] = static_cast<float>(Apply(activation, sum));
    });
  }
  void LinearGrad(const LinearGradArgs& args) override {
    // From here on dy is the gradient before the activation: db, dw and dx are all made of that.
    ActivateGrad(args.activation, args.y, args.dy, {args.dy, false});
    const int64_t out = args.w.cols;
    if (args.dx.wanted()) {
      ForEach(args.dx.tensor, [&](int64_t i, int64_t c) {
        double sum = 0;
        for (int64_t o = 0; o < out; ++o) {
          sum += static_cast<double>(args.dy.f32(i)[o]) * args.w.f32(c)[o];
        }
        Put(args.dx, i, c, sum);
      });
    }
    ForEach(args.dw, [&](int64_t c, int64_t o) {
      double sum = 0;
      for (int64_t i = 0; i < args.x.rows; ++i) {
        sum += static_cast<double>(args.x.f32(i)[c]) * args.dy.f32(i)[o];
      }
      args.dw.f32(c)[o] = static_cast<float>(sum);
    });
    if (!args.db.empty()) ColumnSum(args.dy, args.db);
  }

  void AddBias(Tensor x, Tensor bias, Tensor y) override {
    ForEach(y, [&](int64_t i, int64_t c) { y.f32(i)[c] = x.f32(i)[c] + bias.f32()[c]; });
  }
  void ColumnSum(Tensor x, Tensor sums) override {
    for (int64_t c = 0; c < x.cols; ++c) {
      double sum = 0;
      for (int64_t i = 0; i < x.rows; ++i) sum += x.f32(i)[c];
      sums.f32()[c] = static_cast<float>(sum);
    }
  }
  void Activate(Activation activation, Tensor x, Tensor y) override {
    ForEach(y, [&](int64_t i, int64_t c) {
      y.f32(i)[c] = static_cast<float>(Apply(activation, x.f32(i)[c]));
    });
  }
  void ActivateGrad(Activation activation, Tensor y, Tensor dy, GradientTarget dx) override {
    ForEach(y, [&](int64_t i, int64_t c) {
      Put(dx, i, c, dy.f32(i)[c] * Slope(activation, y.f32(i)[c]));
    });
  }

  void RowSum(absl::Span<const Tensor> xs, Tensor y) override {
    for (int64_t i = 0; i < y.rows; ++i) {
      double sum = 0;
      for (const Tensor& x : xs) {
        for (int64_t c = 0; c < x.cols; ++c) sum += x.f32(i)[c];
      }
      *y.f32(i) = static_cast<float>(sum);
    }
  }
  void RowSumGrad(Tensor dy, absl::Span<const GradientTarget> dxs) override {
    for (const GradientTarget& dx : dxs) {
      if (!dx.wanted()) continue;
      ForEach(dx.tensor, [&](int64_t i, int64_t c) { Put(dx, i, c, *dy.f32(i)); });
    }
  }
  void Fm(absl::Span<const Tensor> xs, Tensor s, Tensor y) override {
    for (int64_t i = 0; i < y.rows; ++i) {
      double total = 0;
      for (int64_t d = 0; d < s.cols; ++d) {
        double sum = 0;
        double squares = 0;
        for (const Tensor& x : xs) {
          const double v = x.f32(i)[d];
          sum += v;
          squares += v * v;
        }
        s.f32(i)[d] = static_cast<float>(sum);
        total += sum * sum - squares;
      }
      *y.f32(i) = static_cast<float>(total / 2);
    }
  }
  void FmGrad(absl::Span<const Tensor> xs, Tensor s, Tensor dy,
              absl::Span<const GradientTarget> dxs) override {
    for (size_t f = 0; f < xs.size(); ++f) {
      if (!dxs[f].wanted()) continue;
      ForEach(xs[f], [&](int64_t i, int64_t d) {
        Put(dxs[f], i, d, *dy.f32(i) * (s.f32(i)[d] - xs[f].f32(i)[d]));
      });
    }
  }
  void SequencePool(SequencePooling pooling, Tensor x, Tensor lengths, Tensor y) override {
    ForEach(y, [&](int64_t i, int64_t c) {
      const int64_t length = LengthOf(x, lengths, y, i);
      double sum = 0;
      double largest = -std::numeric_limits<double>::infinity();
      for (int64_t p = 0; p < length; ++p) {
        const double value = x.f32(i)[p * y.cols + c];
        sum += value;
        // A NaN must win, so that the finite check sees it; it compares false with everything.
        if (std::isnan(value) || value > largest) largest = value;
      }
      if (pooling == SequencePooling::kMean) sum /= std::max<int64_t>(1, length);
      const bool max = pooling == SequencePooling::kMax && length > 0;
      y.f32(i)[c] = static_cast<float>(max ? largest : sum);
    });
  }
  void SequencePoolGrad(SequencePooling pooling, Tensor x, Tensor lengths, Tensor y, Tensor dy,
                        GradientTarget dx) override {
    ForEach(x, [&](int64_t i, int64_t at) {
      const int64_t length = LengthOf(x, lengths, y, i);
      const int64_t position = at / y.cols;
      const int64_t c = at % y.cols;
      double share = position < length ? 1 : 0;
      if (pooling == SequencePooling::kMean) share /= std::max<int64_t>(1, length);
      // To one position only, the first that attains the maximum: it occurs once in y.
      if (pooling == SequencePooling::kMax) {
        for (int64_t p = 0; p < position; ++p) {
          if (x.f32(i)[p * y.cols + c] == y.f32(i)[c]) share = 0;
        }
        if (x.f32(i)[at] != y.f32(i)[c]) share = 0;
      }
      Put(dx, i, at, share * dy.f32(i)[c]);
    });
  }
  void Dropout(Tensor x, uint64_t key, int64_t first_sample, float rate, Tensor y,
               bool add) override {
    ForEach(y, [&](int64_t i, int64_t c) {
      const uint64_t bits = RandomBits(key, static_cast<uint64_t>(first_sample + i));
      const bool keep = DropoutBits(static_cast<uint32_t>(bits), static_cast<uint32_t>(bits >> 32),
                                    static_cast<uint32_t>(c)) >= DropoutThreshold(rate);
      Put({y, add}, i, c, keep ? x.f32(i)[c] * (1.0f / (1.0f - rate)) : 0);
    });
  }

  void Moments(Tensor x, Tensor sums) override {
    std::fill_n(sums.f64(), 2 * x.cols, 0.0);
    ForEach(x, [&](int64_t i, int64_t c) {
      const double value = x.f32(i)[c];
      sums.f64()[c] += value;
      sums.f64()[x.cols + c] += value * value;
    });
    sums.f64()[2 * x.cols] = static_cast<double>(x.rows);
  }
  void BatchNorm(Tensor x, Tensor sums, float epsilon, Tensor gamma, Tensor beta, Tensor stats,
                 Tensor y) override {
    const double* s = sums.f64();
    const double n = std::max(1.0, s[2 * x.cols]);
    for (int64_t c = 0; c < x.cols; ++c) {
      const double mean = s[c] / n;
      stats.f32(0)[c] = static_cast<float>(mean);
      // Rounding may make the difference of nearly equal sums negative.
      stats.f32(1)[c] = static_cast<float>(
          1 / std::sqrt(std::max(0.0, s[x.cols + c] / n - mean * mean) + epsilon));
    }
    ForEach(x, [&](int64_t i, int64_t c) {
      y.f32(i)[c] = Xhat(x, stats, i, c) * gamma.f32()[c] + beta.f32()[c];
    });
  }
  void BatchNormFixed(Tensor x, Tensor mean, Tensor variance, float epsilon, Tensor gamma,
                      Tensor beta, Tensor y) override {
    ForEach(x, [&](int64_t i, int64_t c) {
      y.f32(i)[c] =
          (x.f32(i)[c] - mean.f32()[c]) / std::sqrt(variance.f32()[c] + epsilon) * gamma.f32()[c] +
          beta.f32()[c];
    });
  }
  void BatchNormGradSums(Tensor x, Tensor stats, Tensor dy, Tensor grad_sums) override {
    std::fill_n(grad_sums.f64(), 2 * x.cols, 0.0);
    ForEach(x, [&](int64_t i, int64_t c) {
      grad_sums.f64()[c] += dy.f32(i)[c];
      grad_sums.f64()[x.cols + c] += static_cast<double>(dy.f32(i)[c]) * Xhat(x, stats, i, c);
    });
  }
  void BatchNormGrad(Tensor x, Tensor stats, Tensor gamma, Tensor dy, Tensor sums, Tensor grad_sums,
                     GradientTarget dx) override {
    const double n = std::max(1.0, sums.f64()[2 * x.cols]);
    ForEach(x, [&](int64_t i, int64_t c) {
      const double mean_dy = grad_sums.f64()[c] / n;
      const double mean_dy_xhat = grad_sums.f64()[x.cols + c] / n;
      Put(dx, i, c,
          gamma.f32()[c] * stats.f32(1)[c] *
              (dy.f32(i)[c] - mean_dy - Xhat(x, stats, i, c) * mean_dy_xhat));
    });
  }
  void BatchNormRunning(Tensor sums, float momentum, Tensor mean, Tensor variance) override {
    const double* s = sums.f64();
    const double n = s[2 * mean.cols];
    if (n == 0) return;  // no sample says anything of the distribution
    for (int64_t c = 0; c < mean.cols; ++c) {
      const double m = s[c] / n;
      const double v = std::max(0.0, s[mean.cols + c] / n - m * m) * (n > 1 ? n / (n - 1) : 1);
      mean.f32()[c] = static_cast<float>(momentum * mean.f32()[c] + (1 - momentum) * m);
      variance.f32()[c] = static_cast<float>(momentum * variance.f32()[c] + (1 - momentum) * v);
    }
  }

  void BceWithLogits(Tensor logits, Tensor labels, Tensor weights, Tensor mask, Tensor dlogits,
                     Tensor sums) override {
    sums.f64()[0] = sums.f64()[1] = 0;
    for (int64_t i = 0; i < logits.rows; ++i) {
      *dlogits.f32(i) = 0;
      // Left out, not multiplied by 0: a masked label may be NaN.
      if (!mask.empty() && *mask.f32(i) == 0) continue;
      const double weight = weights.empty() ? 1 : *weights.f32(i);
      const double z = *logits.f32(i);
      const double y = *labels.f32(i);
      sums.f64()[0] += weight * (std::max(z, 0.0) - z * y + std::log1p(std::exp(-std::abs(z))));
      sums.f64()[1] += weight;
      *dlogits.f32(i) = static_cast<float>(weight * (Apply(Activation::kSigmoid, z) - y));
    }
  }
  void CountNonFinite(Tensor x, Tensor count) override {
    ForEach(x, [&](int64_t i, int64_t c) { *count.f64() += std::isfinite(x.f32(i)[c]) ? 0 : 1; });
  }

  void SgdStep(const UpdateCoefficients& step, Tensor gradient, Tensor w) override {
    ForEach(w, [&](int64_t, int64_t c) {
      w.f32()[c] -= step.learning_rate * ScaledGradient(step, gradient, w, c);
    });
  }
  void AdagradStep(const UpdateCoefficients& step, float epsilon, Tensor gradient, Tensor w,
                   Tensor a) override {
    ForEach(w, [&](int64_t, int64_t c) {
      const double g = ScaledGradient(step, gradient, w, c);
      a.f32()[c] += g * g;
      w.f32()[c] -= step.learning_rate * g / (std::sqrt(a.f32()[c]) + epsilon);
    });
  }
  void AdamStep(const UpdateCoefficients& step, const AdamArgs& adam, Tensor gradient, Tensor w,
                Tensor m, Tensor v) override {
    ForEach(w, [&](int64_t, int64_t c) {
      const double g = ScaledGradient(step, gradient, w, c);
      m.f32()[c] = adam.beta1 * m.f32()[c] + (1 - adam.beta1) * g;
      v.f32()[c] = adam.beta2 * v.f32()[c] + (1 - adam.beta2) * g * g;
      w.f32()[c] -= step.learning_rate * (m.f32()[c] / adam.correction1) /
                    (std::sqrt(v.f32()[c] / adam.correction2) + adam.epsilon);
    });
  }

 private:
  template <typename Body>
  static void ForEach(const Tensor& tensor, Body body) {
    for (int64_t i = 0; i < tensor.rows; ++i) {
      for (int64_t c = 0; c < tensor.cols; ++c) body(i, c);
    }
  }
  // Lengths are a graph input like any other, so they come as floats.
  static int64_t LengthOf(const Tensor& x, const Tensor& lengths, const Tensor& y, int64_t i) {
    return std::clamp<int64_t>(std::lround(*lengths.f32(i)), 0, x.cols / y.cols);
  }
  static float Xhat(const Tensor& x, const Tensor& stats, int64_t i, int64_t c) {
    return (x.f32(i)[c] - stats.f32(0)[c]) * stats.f32(1)[c];
  }
  static double ScaledGradient(const UpdateCoefficients& step, const Tensor& gradient,
                               const Tensor& w, int64_t c) {
    return gradient.f32()[c] * step.scale + step.l2 * w.f32()[c];
  }

  std::vector<std::unique_ptr<std::vector<double>>> allocations_;
};

}  // namespace

std::unique_ptr<Backend> NewReferenceBackend() { return std::make_unique<ReferenceBackend>(); }

}  // namespace satrap

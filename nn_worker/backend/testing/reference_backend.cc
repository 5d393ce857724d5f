#include "nn_worker/backend/testing/reference_backend.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "common/base/check.h"
#include "common/numeric/random.h"
#include "common/thread/mutex.h"
#include "nn_worker/backend/cpu/host_backend.h"
#include "nn_worker/backend/cpu/host_tensor.h"
#include "nn_worker/backend/testing/reference_activation.h"
#include "nn_worker/backend/testing/reference_interaction.h"
#include "nn_worker/backend/testing/reference_losses.h"
#include "nn_worker/backend/testing/reference_optimizer.h"
#include "nn_worker/operation/dropout_mask.h"

namespace satrap {
namespace {

using reference::Apply;
using reference::Slope;

void Put(const GradientTarget& target, int64_t row, int64_t col, double value) {
  float* to = FloatsOf(target.tensor, row) + col;
  *to = static_cast<float>(target.add ? *to + value : value);
}

// Implements the formulas of backend.h literally, value by value and with sums in double, so that a
// reader can compare the two. It shares no loop with CpuBackend, which is tested against it. Only
// code that defines a format (the bits of dropout) is shared.
class ReferenceBackend final : public ReferenceLossBackend {
 public:
  absl::StatusOr<void*> Allocate(int64_t bytes) override {
    MutexLock lock(&allocations_mutex_);
    // Allocates 64 bytes more than requested, so that the memory can begin at a multiple of 64.
    allocations_.emplace_back(new std::vector<double>((bytes + 71) / 8, 0.0));
    void* data = allocations_.back()->data();
    size_t space = allocations_.back()->size() * sizeof(double);
    return std::align(64, static_cast<size_t>(bytes), data, space);
  }
  void CopyIn(absl::Span<const uint8_t> host, Tensor device) override {
    const int64_t size = DTypeBytes(device.dtype);
    CHECK(static_cast<int64_t>(host.size()) == device.rows * device.cols * size) << host.size();
    ForEach(device, [&](int64_t i, int64_t c) {
      std::copy_n(&host[(i * device.cols + c) * size], size, BytesOf(device, i) + c * size);
    });
  }
  void CopyOut(Tensor device, absl::Span<uint8_t> host) override {
    const int64_t size = DTypeBytes(device.dtype);
    CHECK(static_cast<int64_t>(host.size()) == device.rows * device.cols * size) << host.size();
    ForEach(device, [&](int64_t i, int64_t c) {
      std::copy_n(BytesOf(device, i) + c * size, size, &host[(i * device.cols + c) * size]);
    });
  }

  void Fill(Tensor y, float value) override {
    ForEach(y, [&](int64_t i, int64_t c) {
      if (y.dtype == DType::kF64) {
        DoublesOf(y, i)[c] = value;
      } else {
        FloatsOf(y, i)[c] = value;
      }
    });
  }
  void Copy(Tensor x, Tensor y, bool add) override {
    ForEach(y, [&](int64_t i, int64_t c) { Put({y, add}, i, c, FloatsOf(x, i)[c]); });
  }
  void ToF32(Tensor x, Tensor y) override {
    ForEach(y, [&](int64_t i, int64_t c) {
      FloatsOf(y, i)[c] = static_cast<float>(DoublesOf(x, i)[c]);
    });
  }

  void Linear(Tensor x, Tensor w, Tensor bias, Activation activation, Tensor y) override {
    ForEach(y, [&](int64_t i, int64_t o) {
      double sum = bias.empty() ? 0 : FloatsOf(bias)[o];
      for (int64_t c = 0; c < x.cols; ++c)
        sum += static_cast<double>(FloatsOf(x, i)[c]) * FloatsOf(w, c)[o];
      FloatsOf(y, i)[o] = static_cast<float>(Apply(activation, sum));
    });
  }
  void LinearGrad(const LinearGradArgs& args) override {
    // From here on dy is the gradient before the activation. db, dw and dx are all computed from
    // it.
    ActivateGrad(args.activation, args.y, args.dy, {args.dy, false});
    const int64_t out = args.w.cols;
    if (args.dx.wanted()) {
      ForEach(args.dx.tensor, [&](int64_t i, int64_t c) {
        double sum = 0;
        for (int64_t o = 0; o < out; ++o) {
          sum += static_cast<double>(FloatsOf(args.dy, i)[o]) * FloatsOf(args.w, c)[o];
        }
        Put(args.dx, i, c, sum);
      });
    }
    ForEach(args.dw, [&](int64_t c, int64_t o) {
      double sum = 0;
      for (int64_t i = 0; i < args.x.rows; ++i) {
        sum += static_cast<double>(FloatsOf(args.x, i)[c]) * FloatsOf(args.dy, i)[o];
      }
      FloatsOf(args.dw, c)[o] = static_cast<float>(sum);
    });
    if (!args.db.empty()) ColumnSum(args.dy, args.db);
  }

  void AddBias(Tensor x, Tensor bias, Tensor y) override {
    ForEach(y, [&](int64_t i, int64_t c) {
      FloatsOf(y, i)[c] = FloatsOf(x, i)[c] + FloatsOf(bias)[c];
    });
  }
  void ColumnSum(Tensor x, Tensor sums) override {
    for (int64_t c = 0; c < x.cols; ++c) {
      double sum = 0;
      for (int64_t i = 0; i < x.rows; ++i) sum += FloatsOf(x, i)[c];
      FloatsOf(sums)[c] = static_cast<float>(sum);
    }
  }
  void Activate(Activation activation, Tensor x, Tensor y) override {
    ForEach(y, [&](int64_t i, int64_t c) {
      FloatsOf(y, i)[c] = static_cast<float>(Apply(activation, FloatsOf(x, i)[c]));
    });
  }
  void ActivateGrad(Activation activation, Tensor y, Tensor dy, GradientTarget dx) override {
    ForEach(y, [&](int64_t i, int64_t c) {
      Put(dx, i, c, FloatsOf(dy, i)[c] * Slope(activation, FloatsOf(y, i)[c]));
    });
  }

  void RowSum(absl::Span<const Tensor> xs, Tensor y) override {
    for (int64_t i = 0; i < y.rows; ++i) {
      double sum = 0;
      for (const Tensor& x : xs) {
        for (int64_t c = 0; c < x.cols; ++c) sum += FloatsOf(x, i)[c];
      }
      *FloatsOf(y, i) = static_cast<float>(sum);
    }
  }
  void RowSumGrad(Tensor dy, absl::Span<const GradientTarget> dxs) override {
    for (const GradientTarget& dx : dxs) {
      if (!dx.wanted()) continue;
      ForEach(dx.tensor, [&](int64_t i, int64_t c) { Put(dx, i, c, *FloatsOf(dy, i)); });
    }
  }
  void Fm(absl::Span<const Tensor> xs, Tensor s, Tensor y) override {
    for (int64_t i = 0; i < y.rows; ++i) {
      double total = 0;
      for (int64_t d = 0; d < s.cols; ++d) {
        double sum = 0;
        double squares = 0;
        for (const Tensor& x : xs) {
          const double v = FloatsOf(x, i)[d];
          sum += v;
          squares += v * v;
        }
        FloatsOf(s, i)[d] = static_cast<float>(sum);
        total += sum * sum - squares;
      }
      *FloatsOf(y, i) = static_cast<float>(total / 2);
    }
  }
  void FmGrad(absl::Span<const Tensor> xs, Tensor s, Tensor dy,
              absl::Span<const GradientTarget> dxs) override {
    for (size_t f = 0; f < xs.size(); ++f) {
      if (!dxs[f].wanted()) continue;
      ForEach(xs[f], [&](int64_t i, int64_t d) {
        Put(dxs[f], i, d, *FloatsOf(dy, i) * (FloatsOf(s, i)[d] - FloatsOf(xs[f], i)[d]));
      });
    }
  }
  void SequencePool(SequencePooling pooling, Tensor x, Tensor lengths, Tensor y) override {
    ForEach(y, [&](int64_t i, int64_t c) {
      const int64_t length = LengthOf(x, lengths, y, i);
      double sum = 0;
      double largest = -std::numeric_limits<double>::infinity();
      for (int64_t p = 0; p < length; ++p) {
        const double value = FloatsOf(x, i)[p * y.cols + c];
        sum += value;
        // A NaN must become the maximum, so that the finite check finds it. NaN is tested
        // separately, because every comparison with NaN is false.
        if (std::isnan(value) || value > largest) largest = value;
      }
      if (pooling == SequencePooling::kMean) sum /= std::max<int64_t>(1, length);
      const bool max = pooling == SequencePooling::kMax && length > 0;
      FloatsOf(y, i)[c] = static_cast<float>(max ? largest : sum);
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
      // The gradient goes to one position only, the first that attains the maximum, because the
      // maximum occurs once in y.
      if (pooling == SequencePooling::kMax) {
        for (int64_t p = 0; p < position; ++p) {
          if (FloatsOf(x, i)[p * y.cols + c] == FloatsOf(y, i)[c]) share = 0;
        }
        if (FloatsOf(x, i)[at] != FloatsOf(y, i)[c]) share = 0;
      }
      Put(dx, i, at, share * FloatsOf(dy, i)[c]);
    });
  }
  void Dropout(Tensor x, const DropoutMask& mask, float rate, Tensor y, bool add) override {
    ForEach(y, [&](int64_t i, int64_t c) {
      const uint64_t bits =
          RandomBits(mask.key(), static_cast<uint64_t>(mask.pass.first_sample + i));
      const bool keep = DropoutBits(static_cast<uint32_t>(bits), static_cast<uint32_t>(bits >> 32),
                                    static_cast<uint32_t>(c)) >= DropoutThreshold(rate);
      Put({y, add}, i, c, keep ? FloatsOf(x, i)[c] * (1.0f / (1.0f - rate)) : 0);
    });
  }

  void Moments(Tensor x, Tensor sums) override {
    std::fill_n(DoublesOf(sums), 2 * x.cols, 0.0);
    ForEach(x, [&](int64_t i, int64_t c) {
      const double value = FloatsOf(x, i)[c];
      DoublesOf(sums)[c] += value;
      DoublesOf(sums)[x.cols + c] += value * value;
    });
    DoublesOf(sums)[2 * x.cols] = static_cast<double>(x.rows);
  }
  void BatchNorm(Tensor x, Tensor sums, float epsilon, Tensor gamma, Tensor beta, Tensor stats,
                 Tensor y) override {
    const double* s = DoublesOf(sums);
    const double n = std::max(1.0, s[2 * x.cols]);
    for (int64_t c = 0; c < x.cols; ++c) {
      const double mean = s[c] / n;
      FloatsOf(stats, 0)[c] = static_cast<float>(mean);
      // Rounding may make the difference of nearly equal sums negative.
      FloatsOf(stats, 1)[c] = static_cast<float>(
          1 / std::sqrt(std::max(0.0, s[x.cols + c] / n - mean * mean) + epsilon));
    }
    ForEach(x, [&](int64_t i, int64_t c) {
      FloatsOf(y, i)[c] = Xhat(x, stats, i, c) * FloatsOf(gamma)[c] + FloatsOf(beta)[c];
    });
  }
  void BatchNormFixed(Tensor x, Tensor mean, Tensor variance, float epsilon, Tensor gamma,
                      Tensor beta, Tensor y) override {
    ForEach(x, [&](int64_t i, int64_t c) {
      FloatsOf(y, i)[c] = (FloatsOf(x, i)[c] - FloatsOf(mean)[c]) /
                              std::sqrt(FloatsOf(variance)[c] + epsilon) * FloatsOf(gamma)[c] +
                          FloatsOf(beta)[c];
    });
  }
  void BatchNormGradSums(Tensor x, Tensor stats, Tensor dy, Tensor grad_sums) override {
    std::fill_n(DoublesOf(grad_sums), 2 * x.cols, 0.0);
    ForEach(x, [&](int64_t i, int64_t c) {
      DoublesOf(grad_sums)[c] += FloatsOf(dy, i)[c];
      DoublesOf(grad_sums)[x.cols + c] +=
          static_cast<double>(FloatsOf(dy, i)[c]) * Xhat(x, stats, i, c);
    });
  }
  void BatchNormGrad(Tensor x, Tensor stats, Tensor gamma, Tensor dy, Tensor sums, Tensor grad_sums,
                     GradientTarget dx) override {
    const double n = std::max(1.0, DoublesOf(sums)[2 * x.cols]);
    ForEach(x, [&](int64_t i, int64_t c) {
      const double mean_dy = DoublesOf(grad_sums)[c] / n;
      const double mean_dy_xhat = DoublesOf(grad_sums)[x.cols + c] / n;
      Put(dx, i, c,
          FloatsOf(gamma)[c] * FloatsOf(stats, 1)[c] *
              (FloatsOf(dy, i)[c] - mean_dy - Xhat(x, stats, i, c) * mean_dy_xhat));
    });
  }
  void BatchNormRunning(Tensor control, Tensor sums, float momentum, Tensor mean,
                        Tensor variance) override {
    if (ControlOf(control)->apply == 0) return;
    const double* s = DoublesOf(sums);
    const double n = s[2 * mean.cols];
    if (n == 0) return;  // no sample says anything of the distribution
    for (int64_t c = 0; c < mean.cols; ++c) {
      const double m = s[c] / n;
      const double v = std::max(0.0, s[mean.cols + c] / n - m * m) * (n > 1 ? n / (n - 1) : 1);
      FloatsOf(mean)[c] = static_cast<float>(momentum * FloatsOf(mean)[c] + (1 - momentum) * m);
      FloatsOf(variance)[c] =
          static_cast<float>(momentum * FloatsOf(variance)[c] + (1 - momentum) * v);
    }
  }

  void GatherRows(absl::Span<const FeatureExchange> features) override {
    for (const FeatureExchange& f : features) {
      for (const RowSegment& segment : f.segments) {
        ForEach(segment.values, [&](int64_t i, int64_t at) {
          const int64_t column = segment.column + at % segment.width;
          double sum = 0;
          if (f.one_row_a_sample) {
            sum = FloatsOf(f.rows, i)[column];
          } else {
            const auto [begin, end] = IdsOf(f, i);
            for (int64_t j = begin; j < end; ++j) {
              // In a sequence this value belongs to one position, so only the id at that position
              // counts.
              if (f.pooling == RowPooling::kNone && j - begin != at / segment.width) continue;
              if (ShareOf(f, i, j) == 0) continue;
              sum += ShareOf(f, i, j) * FloatsOf(f.rows, UintsOf(f.ids)[j])[column];
            }
          }
          FloatsOf(segment.values, i)[at] = static_cast<float>(sum);
        });
      }
      if (f.lengths.empty()) continue;
      ForEach(f.lengths, [&](int64_t i, int64_t) {
        const auto [begin, end] = IdsOf(f, i);
        *FloatsOf(f.lengths, i) = static_cast<float>(std::min(end - begin, f.max_length));
      });
    }
  }
  void ScatterGradients(absl::Span<const FeatureExchange> features, const RowInverse& inverse,
                        Tensor gradients) override {
    Fill(gradients, 0);
    if (features.size() == 1 && features[0].one_row_a_sample) {
      for (const RowSegment& segment : features[0].segments) {
        Copy(segment.values, gradients.Columns(segment.column, segment.width), /*add=*/false);
      }
      return;
    }
    // The feature, sample and id to which a position in the inverse refers.
    struct Place {
      const FeatureExchange* feature;
      int64_t sample, id;
    };
    std::vector<Place> places;
    for (const FeatureExchange& f : features) {
      for (int64_t i = 0; i < f.samples; ++i) {
        const auto [begin, end] = IdsOf(f, i);
        for (int64_t j = begin; j < end; ++j) places.push_back({&f, i, j});
      }
    }
    ForEach(gradients, [&](int64_t row, int64_t column) {
      double sum = 0;
      for (uint32_t p = UintsOf(inverse.starts)[row]; p < UintsOf(inverse.starts)[row + 1]; ++p) {
        const auto& [feature, i, j] = places[UintsOf(inverse.positions)[p]];
        const double share = ShareOf(*feature, i, j);
        if (share == 0) continue;
        const bool sequence = feature->pooling == RowPooling::kNone;
        const int64_t position = sequence ? j - IdsOf(*feature, i).first : 0;
        for (const RowSegment& segment : feature->segments) {
          const int64_t c = column - segment.column;
          if (c < 0 || c >= segment.width) continue;
          sum += share * FloatsOf(segment.values, i)[position * segment.width + c];
        }
      }
      FloatsOf(gradients, row)[column] = static_cast<float>(sum);
    });
  }
  bool ScattersByRow() const override { return true; }
  void CountBeyond(Tensor x, float limit, Tensor count) override {
    ForEach(x, [&](int64_t i, int64_t c) {
      *DoublesOf(count) += std::fabs(FloatsOf(x, i)[c]) <= limit ? 0 : 1;
    });
  }

  void DecideStep(const StepPlan& plan, Tensor sums, Tensor control) override {
    const double samples = FloatsOf(sums)[kStepSamples];
    const double weight = FloatsOf(sums)[kStepWeight];
    const bool finite = FloatsOf(sums)[kStepNotFinite] == 0;
    const GradientScaleRule& rule = plan.gradient_scale;
    const StepControl before = *ControlOf(control);
    StepControl after = before;
    after.step = plan.step;
    after.learning_rate = plan.learning_rate;
    after.correction1 = plan.correction1;
    after.correction2 = plan.correction2;
    after.apply = weight > 0 && finite;
    after.scale = 0;
    if (weight > 0) {
      const double missing = static_cast<double>(plan.global_batch_size) / samples;
      const auto normalizer = static_cast<float>(weight * std::max(1.0, missing));
      after.scale =
          static_cast<float>(1.0 / (normalizer * static_cast<double>(before.gradient_scale)));
      after.overflows += finite ? 0 : 1;
    }
    if (weight > 0 && rule.growth_steps > 0) {
      const bool grows = finite && before.clean_steps + 1 == rule.growth_steps;
      const float factor = !finite ? rule.backoff : grows ? rule.growth : 1;
      after.gradient_scale = std::clamp(before.gradient_scale * factor, rule.least, rule.most);
      after.clean_steps = finite && !grows ? before.clean_steps + 1 : 0;
    }
    *ControlOf(control) = after;
  }
  void OptimizerStep(Tensor control, const OptimizerRule& rule, Tensor gradient, Tensor w,
                     absl::Span<const Tensor> states,
                     absl::Span<const WeightCopy> copies) override {
    CHECK(static_cast<int>(states.size()) == NumStates(rule)) << states.size();
    CHECK(copies.empty()) << "it computes in f32";
    reference::OptimizerStep(*ControlOf(control), rule, gradient, w, states);
  }
  void AverageStep(Tensor control, float decay, Tensor w, Tensor average) override {
    const StepControl& step = *ControlOf(control);
    if (step.apply == 0) return;
    const double steps = static_cast<double>(step.step) + 1;
    const double kept = std::min<double>(decay, (1 + steps) / (10 + steps));
    ForEach(w, [&](int64_t, int64_t c) {
      float& a = FloatsOf(average)[c];
      a = static_cast<float>(kept * a + (1 - kept) * FloatsOf(w)[c]);
    });
  }

 private:
  template <typename Body>
  static void ForEach(const Tensor& tensor, Body body) {
    for (int64_t i = 0; i < tensor.rows; ++i) {
      for (int64_t c = 0; c < tensor.cols; ++c) body(i, c);
    }
  }
  // Lengths are a graph input like any other, so they are floats.
  static int64_t LengthOf(const Tensor& x, const Tensor& lengths, const Tensor& y, int64_t i) {
    return std::clamp<int64_t>(std::lround(*FloatsOf(lengths, i)), 0, x.cols / y.cols);
  }
  // The ids of sample i: [first, second).
  static std::pair<int64_t, int64_t> IdsOf(const FeatureExchange& f, int64_t i) {
    if (f.offsets.empty()) return {i, i + 1};
    return {UintsOf(f.offsets)[i], UintsOf(f.offsets)[i + 1]};
  }
  // The factor with which the row of id j contributes to sample i; 0 if it does not contribute.
  static double ShareOf(const FeatureExchange& f, int64_t i, int64_t j) {
    const auto [begin, end] = IdsOf(f, i);
    const auto weight = [&](int64_t id) {
      return f.weights.empty() ? 1.0 : FloatsOf(f.weights)[id];
    };
    if (f.pooling == RowPooling::kNone) return j - begin < f.max_length ? weight(j) : 0;
    if (f.pooling == RowPooling::kSum) return weight(j);
    double divisor = 0;
    for (int64_t id = begin; id < end; ++id) {
      divisor += f.pooling == RowPooling::kMean ? weight(id) : weight(id) * weight(id);
    }
    if (f.pooling == RowPooling::kSqrtN) divisor = std::sqrt(divisor);
    return divisor == 0 ? 0 : weight(j) / divisor;
  }
  static float Xhat(const Tensor& x, const Tensor& stats, int64_t i, int64_t c) {
    return (FloatsOf(x, i)[c] - FloatsOf(stats, 0)[c]) * FloatsOf(stats, 1)[c];
  }

  Mutex allocations_mutex_;
  std::vector<std::unique_ptr<std::vector<double>>> allocations_ GUARDED_BY(allocations_mutex_);
};

}  // namespace

std::unique_ptr<Backend> NewReferenceBackend() { return std::make_unique<ReferenceBackend>(); }

}  // namespace satrap

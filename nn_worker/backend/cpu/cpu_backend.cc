#include "nn_worker/backend/cpu/cpu_backend.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/thread/fork_join_pool.h"
#include "common/thread/mutex.h"
#include "nn_worker/backend/cpu/cpu_interaction.h"
#include "nn_worker/backend/cpu/cpu_kernels.h"
#include "nn_worker/backend/cpu/cpu_losses.h"
#include "nn_worker/backend/cpu/cpu_matrix.h"
#include "nn_worker/backend/cpu/cpu_optimizer.h"
#include "nn_worker/backend/cpu/cpu_row_exchange.h"
#include "nn_worker/backend/cpu/cpu_sequence_pool.h"
#include "nn_worker/backend/cpu/host_backend.h"
#include "nn_worker/backend/cpu/host_tensor.h"
#include "nn_worker/operation/step_decision.h"

namespace satrap {
namespace {

// The number of rows in one piece of a loop over samples. A partial sum covers the rows of one
// piece, and partial sums are added in order, so a sum has the same bits for any number of threads.
constexpr int64_t kPartRows = 128;
// The number of values in one piece of a loop over parameters.
constexpr int64_t kPartValues = 16384;
// The number of samples in one piece of GatherRows. Also the number of values in one piece when
// gradients are cleared.
constexpr int64_t kGatherSamples = 512;
constexpr int64_t kClearValues = 65536;

// Merges tensors that are neighbouring columns of the same rows. A model has many inputs of one
// column (linear weights), and they usually lie side by side: one loop then covers them all.
std::vector<Tensor> Joined(absl::Span<const Tensor> tensors) {
  std::vector<Tensor> joined;
  for (const Tensor& tensor : tensors) {
    if (!joined.empty() && joined.back().stride == tensor.stride &&
        FloatsOf(joined.back()) + joined.back().cols == FloatsOf(tensor) &&
        joined.back().cols + tensor.cols <= tensor.stride) {
      joined.back().cols += tensor.cols;
    } else {
      joined.push_back(tensor);
    }
  }
  return joined;
}

// The same values as one row. REQUIRES: no gaps
Tensor OneRow(const Tensor& tensor) { return tensor.Reshaped(1, tensor.size()); }

int64_t Parts(int64_t count, int64_t of) { return (count + of - 1) / of; }

class CpuBackend final : public CpuInteractionBackend {
 public:
  // `owned` may be null.
  CpuBackend(std::unique_ptr<ForkJoinPool> owned, ForkJoinPool* pool)
      : CpuInteractionBackend(pool), owned_pool_(std::move(owned)), pool_(*pool), matrix_(pool) {}

  absl::StatusOr<void*> Allocate(int64_t bytes) override {
    const int64_t rounded = PaddedStride(DType::kU8, bytes);
    void* memory = std::aligned_alloc(kAlignmentBytes, rounded);
    if (memory == nullptr) {
      return absl::ResourceExhaustedError(
          absl::StrCat("dense network: no memory for ", rounded, " bytes"));
    }
    std::memset(memory, 0, rounded);
    MutexLock lock(&allocations_mutex_);
    allocations_.emplace_back(memory);
    return memory;
  }
  void CopyIn(absl::Span<const uint8_t> host, Tensor device) override {
    CHECK(static_cast<int64_t>(host.size()) == device.size_bytes()) << host.size();
    // A tensor without gaps is copied in one piece. Parameters, and all tensors that the network
    // packs for copying, have no gaps.
    const Tensor rows = device.has_gaps() ? device : OneRow(device);
    const int64_t row_bytes = rows.cols * DTypeBytes(rows.dtype);
    if (row_bytes == 0) return;
    for (int64_t i = 0; i < rows.rows; ++i) {
      std::memcpy(BytesOf(rows, i), host.data() + i * row_bytes, row_bytes);
    }
  }
  void CopyOut(Tensor device, absl::Span<uint8_t> host) override {
    CHECK(static_cast<int64_t>(host.size()) == device.size_bytes()) << host.size();
    const Tensor rows = device.has_gaps() ? device : OneRow(device);
    const int64_t row_bytes = rows.cols * DTypeBytes(rows.dtype);
    if (row_bytes == 0) return;
    for (int64_t i = 0; i < rows.rows; ++i) {
      std::memcpy(host.data() + i * row_bytes, BytesOf(rows, i), row_bytes);
    }
  }

  void Fill(Tensor y, float value) override {
    ForRows(y.rows, [&](int64_t b, int64_t e) { cpu::FillRows(y, value, b, e); });
  }
  void Copy(Tensor x, Tensor y, bool add) override {
    CheckSameShape(x, y);
    if (x.data == y.data && !add) return;
    ForRows(y.rows, [&](int64_t b, int64_t e) { cpu::CopyRows(x, y, add, b, e); });
  }
  void ToF32(Tensor x, Tensor y) override {
    CheckSameShape(x, y);
    for (int64_t i = 0; i < x.rows; ++i) {
      for (int64_t c = 0; c < x.cols; ++c)
        FloatsOf(y, i)[c] = static_cast<float>(DoublesOf(x, i)[c]);
    }
  }

  void Linear(Tensor x, Tensor w, Tensor bias, Activation activation, Tensor y) override;
  void LinearGrad(const LinearGradArgs& args) override;

  void AddBias(Tensor x, Tensor bias, Tensor y) override {
    CheckSameShape(x, y);
    ForRows(y.rows, [&](int64_t b, int64_t e) {
      if (x.data != y.data) cpu::CopyRows(x, y, /*add=*/false, b, e);
      cpu::BiasActivateRows(FloatsOf(bias), Activation::kLinear, y, b, e);
    });
  }
  void ColumnSum(Tensor x, Tensor sums) override { ColumnSums(x, Tensor(), FloatsOf(sums)); }
  void Activate(Activation activation, Tensor x, Tensor y) override {
    CheckSameShape(x, y);
    ForRows(y.rows, [&](int64_t b, int64_t e) { cpu::ActivateRows(activation, x, y, b, e); });
  }
  void ActivateGrad(Activation activation, Tensor y, Tensor dy, GradientTarget dx) override {
    CheckSameShape(dx.tensor, y);
    ForRows(y.rows,
            [&](int64_t b, int64_t e) { cpu::ActivateGradRows(activation, y, dy, dx, b, e); });
  }

  void RowSum(absl::Span<const Tensor> xs, Tensor y) override {
    const std::vector<Tensor> joined = Joined(xs);
    ForRows(y.rows, [&](int64_t b, int64_t e) { cpu::RowSumRows(joined, y, b, e); });
  }
  void RowSumGrad(Tensor dy, absl::Span<const GradientTarget> dxs) override {
    for (const bool add : {false, true}) {
      std::vector<Tensor> targets;
      for (const GradientTarget& dx : dxs) {
        if (dx.wanted() && dx.add == add) targets.push_back(dx.tensor);
      }
      if (targets.empty()) continue;
      targets = Joined(targets);
      ForRows(dy.rows, [&](int64_t b, int64_t e) { cpu::RowSumGradRows(dy, targets, add, b, e); });
    }
  }
  void Fm(absl::Span<const Tensor> xs, Tensor s, Tensor y) override {
    for (const Tensor& x : xs) CheckSameShape(x, s);
    ForRows(y.rows, [&](int64_t b, int64_t e) { cpu::FmRows(xs, s, y, b, e); });
  }
  void FmGrad(absl::Span<const Tensor> xs, Tensor s, Tensor dy,
              absl::Span<const GradientTarget> dxs) override {
    CHECK(xs.size() == dxs.size());
    ForRows(dy.rows, [&](int64_t b, int64_t e) { cpu::FmGradRows(xs, s, dy, dxs, b, e); });
  }
  void SequencePool(SequencePooling pooling, Tensor x, Tensor lengths, Tensor y) override {
    CheckSequence(x, lengths, y);
    ForRows(y.rows,
            [&](int64_t b, int64_t e) { cpu::SequencePoolRows(pooling, x, lengths, y, b, e); });
  }
  void SequencePoolGrad(SequencePooling pooling, Tensor x, Tensor lengths, Tensor y, Tensor dy,
                        GradientTarget dx) override {
    CheckSequence(x, lengths, y);
    CheckSameShape(y, dy);
    CheckSameShape(x, dx.tensor);
    ForRows(y.rows, [&](int64_t b, int64_t e) {
      cpu::SequencePoolGradRows(pooling, x, lengths, y, dy, dx, b, e);
    });
  }
  void Dropout(Tensor x, const DropoutMask& mask, float rate, Tensor y, bool add) override {
    CheckSameShape(x, y);
    CHECK(rate >= 0 && rate < 1) << rate;
    ForRows(y.rows, [&](int64_t b, int64_t e) {
      cpu::DropoutRows(x, mask.key(), mask.pass.first_sample, rate, y, add, b, e);
    });
  }

  void Moments(Tensor x, Tensor sums) override {
    PartialSums(x.rows, 2 * x.cols, DoublesOf(sums),
                [&](int64_t b, int64_t e, double* partial) { cpu::MomentsRows(x, b, e, partial); });
    DoublesOf(sums)[2 * x.cols] = static_cast<double>(x.rows);
  }
  void BatchNorm(Tensor x, Tensor sums, float epsilon, Tensor gamma, Tensor beta, Tensor stats,
                 Tensor y) override;
  void BatchNormFixed(Tensor x, Tensor mean, Tensor variance, float epsilon, Tensor gamma,
                      Tensor beta, Tensor y) override {
    float* scale = scratch_.Get<float>(x.cols);
    for (int64_t c = 0; c < x.cols; ++c) {
      scale[c] = FloatsOf(gamma)[c] / std::sqrt(FloatsOf(variance)[c] + epsilon);
    }
    ForRows(x.rows, [&](int64_t b, int64_t e) {
      cpu::NormalizeRows(x, FloatsOf(mean), scale, FloatsOf(beta), y, b, e);
    });
  }
  void BatchNormGradSums(Tensor x, Tensor stats, Tensor dy, Tensor grad_sums) override {
    PartialSums(x.rows, 2 * x.cols, DoublesOf(grad_sums),
                [&](int64_t b, int64_t e, double* partial) {
                  cpu::BatchNormGradSumsRows(x, stats, dy, b, e, partial);
                });
  }
  void BatchNormGrad(Tensor x, Tensor stats, Tensor gamma, Tensor dy, Tensor sums, Tensor grad_sums,
                     GradientTarget dx) override;
  void BatchNormRunning(Tensor control, Tensor sums, float momentum, Tensor mean,
                        Tensor variance) override;

  void BceWithLogits(Tensor control, Tensor logits, Tensor labels, Tensor weights, Tensor mask,
                     Tensor dlogits, Tensor sums) override {
    const float scale = ControlOf(control)->gradient_scale;
    PartialSums(logits.rows, 2, DoublesOf(sums), [&](int64_t b, int64_t e, double* partial) {
      cpu::BceRows(scale, logits, labels, weights, mask, dlogits, b, e, partial);
    });
  }
  void SquaredError(Tensor control, Tensor outputs, Tensor labels, Tensor weights, Tensor mask,
                    Tensor doutputs, Tensor sums) override {
    const float scale = ControlOf(control)->gradient_scale;
    PartialSums(outputs.rows, 2, DoublesOf(sums), [&](int64_t b, int64_t e, double* partial) {
      cpu::SquaredErrorRows(scale, outputs, labels, weights, mask, doutputs, b, e, partial);
    });
  }
  void PairwiseLogistic(Tensor control, Tensor scores, Tensor pairs, Tensor weights, Tensor dscores,
                        Tensor sums) override {
    cpu::PairwiseLogistic(ControlOf(control)->gradient_scale, scores, pairs, weights, dscores,
                          DoublesOf(sums));
  }
  void SoftmaxCrossEntropy(Tensor control, Tensor logits, Tensor labels, Tensor weights,
                           Tensor mask, Tensor dlogits, Tensor sums) override {
    const float scale = ControlOf(control)->gradient_scale;
    PartialSums(logits.rows, 2, DoublesOf(sums), [&](int64_t b, int64_t e, double* partial) {
      cpu::SoftmaxCrossEntropyRows(scale, logits, labels, weights, mask, dlogits, b, e, partial);
    });
  }
  void CandidateLoss(Tensor control, const CandidateLossArgs& args) override {
    PartialSums(args.scores.rows, 2, DoublesOf(args.sums), [&](int64_t b, int64_t e, double* sums) {
      cpu::CandidateLossRows(ControlOf(control)->gradient_scale, args, b, e, sums);
    });
  }
  void GatherRows(absl::Span<const FeatureExchange> features) override;
  void ScatterGradients(absl::Span<const FeatureExchange> features, const RowInverse& inverse,
                        Tensor gradients) override;
  bool ScattersByRow() const override { return false; }
  void CountBeyond(Tensor x, float limit, Tensor count) override {
    double found = 0;
    PartialSums(x.rows, 1, &found, [&](int64_t b, int64_t e, double* partial) {
      *partial = static_cast<double>(cpu::BeyondRows(x, limit, b, e));
    });
    *DoublesOf(count) += found;
  }

  void DecideStep(const StepPlan& plan, Tensor sums, Tensor control) override {
    CHECK(sums.cols == kNumStepSums) << sums.cols;
    DecideStepBySums(plan, FloatsOf(sums), ControlOf(control));
  }
  void OptimizerStep(Tensor control, const OptimizerRule& rule, Tensor gradient, Tensor w,
                     absl::Span<const Tensor> states,
                     absl::Span<const WeightCopy> copies) override {
    CHECK(static_cast<int>(states.size()) == NumStates(rule)) << states.size();
    CHECK(copies.empty()) << "it computes in f32";
    UpdateValues(control, w, [&](const StepControl& step, int64_t at, int64_t n) {
      cpu::OptimizerArrays arrays;
      arrays.gradient = FloatsOf(gradient) + at;
      arrays.w = FloatsOf(w) + at;
      for (size_t s = 0; s < states.size(); ++s) arrays.states[s] = FloatsOf(states[s]) + at;
      arrays.count = n;
      cpu::OptimizerRange(step, rule, arrays);
    });
  }
  void AverageStep(Tensor control, float decay, Tensor w, Tensor average) override {
    UpdateValues(control, w, [&](const StepControl& step, int64_t at, int64_t n) {
      cpu::AverageRange(step, decay, FloatsOf(w) + at, FloatsOf(average) + at, n);
    });
  }

 private:
  struct Free {
    void operator()(void* p) const { std::free(p); }
  };

  static void CheckSameShape(const Tensor& a, const Tensor& b) {
    CHECK(a.rows == b.rows && a.cols == b.cols)
        << "(" << a.rows << ", " << a.cols << ") and (" << b.rows << ", " << b.cols << ")";
  }

  static void CheckSequence(const Tensor& x, const Tensor& lengths, const Tensor& y) {
    CHECK(x.rows == y.rows && lengths.rows == y.rows && lengths.cols == 1);
    CHECK(y.cols > 0 && x.cols % y.cols == 0) << x.cols << " columns, " << y.cols << " a position";
  }

  void ForRows(int64_t rows, absl::FunctionRef<void(int64_t, int64_t)> body) {
    pool_.Run(Parts(rows, kPartRows), [&](int64_t part, int) {
      body(part * kPartRows, std::min(rows, (part + 1) * kPartRows));
    });
  }
  // Calls body(control, begin, count) for pieces of w, unless the step changes nothing.
  // REQUIRES: w is one row
  void UpdateValues(Tensor control, Tensor w,
                    absl::FunctionRef<void(const StepControl&, int64_t, int64_t)> body) {
    CHECK(w.rows == 1);
    const StepControl& step = *ControlOf(control);
    if (step.apply == 0) return;
    pool_.Run(Parts(w.cols, kPartValues), [&](int64_t part, int) {
      const int64_t at = part * kPartValues;
      body(step, at, std::min(kPartValues, w.cols - at));
    });
  }
  // For each part of the rows, body(begin, end, partial) writes sums to partial[c]. total[c]
  // becomes the sum of these over all parts.
  template <typename T, typename Body>
  void PartialSums(int64_t rows, int64_t cols, T* total, Body body) {
    const int64_t parts = Parts(rows, kPartRows);
    T* partials = partials_.Get<T>(std::max<int64_t>(1, parts * cols));
    pool_.Run(parts, [&](int64_t part, int) {
      body(part * kPartRows, std::min(rows, (part + 1) * kPartRows), partials + part * cols);
    });
    std::fill_n(total, cols, T{0});
    cpu::AddPartials(partials, parts, cols, total);
  }
  // sums[c] = sum over rows of scale[i] x[i, c].
  void ColumnSums(Tensor x, Tensor scale, float* sums) {
    PartialSums(x.rows, x.cols, sums, [&](int64_t b, int64_t e, float* partial) {
      cpu::WeightedColumnSums(x, scale, b, e, partial);
    });
  }
  void LinearGradOfOneUnit(const LinearGradArgs& args);

  const std::unique_ptr<ForkJoinPool> owned_pool_;
  ForkJoinPool& pool_;
  CpuMatrix matrix_;
  AlignedScratch scratch_;
  AlignedScratch partials_;
  Mutex allocations_mutex_;
  std::vector<std::unique_ptr<void, Free>> allocations_ GUARDED_BY(allocations_mutex_);
};

void CpuBackend::Linear(Tensor x, Tensor w, Tensor bias, Activation activation, Tensor y) {
  CHECK(x.rows == y.rows && x.cols == w.rows && w.cols == y.cols && w.stride == w.cols);
  const float* b = bias.empty() ? nullptr : FloatsOf(bias);
  if (w.rows == 0) {
    Fill(y, 0);
    ForRows(y.rows, [&](int64_t begin, int64_t end) {
      cpu::BiasActivateRows(b, activation, y, begin, end);
    });
  } else if (w.cols == 1) {
    ForRows(y.rows, [&](int64_t begin, int64_t end) {
      cpu::DotRows(x, FloatsOf(w), b == nullptr ? 0.0f : *b, activation, y, begin, end);
    });
  } else {
    matrix_.Product(x, w, y, [&](int64_t begin, int64_t end) {
      cpu::BiasActivateRows(b, activation, y, begin, end);
    });
  }
}

void CpuBackend::LinearGrad(const LinearGradArgs& args) {
  const int64_t out = args.w.cols;
  CHECK(args.x.rows == args.dy.rows && args.x.cols == args.w.rows && out == args.dy.cols);
  CHECK(args.dw.stride == args.dw.cols && args.w.stride == args.w.cols);
  if (args.w.rows == 0 || out == 1) return LinearGradOfOneUnit(args);
  // One pass over dy: while a slice is in cache, turn it into the gradient before the activation,
  // sum its columns for db, and multiply it for dx. dw comes last, since it sums over all rows of
  // dy. The partial sums of db are added in the order of slices, whichever thread made them.
  const int64_t slices = Parts(args.dy.rows, CpuMatrix::kRowBlock);
  float* partials = partials_.Get<float>(std::max<int64_t>(1, slices * out));
  matrix_.InputGradient(args.dy, args.w, args.dx, [&](int64_t begin, int64_t end) {
    if (args.activation != Activation::kLinear) {
      cpu::ActivateGradRows(args.activation, args.y, args.dy, {args.dy, false}, begin, end);
    }
    if (args.db.empty()) return;
    cpu::WeightedColumnSums(args.dy, Tensor(), begin, end,
                            partials + begin / CpuMatrix::kRowBlock * out);
  });
  if (!args.db.empty()) {
    std::fill_n(FloatsOf(args.db), out, 0.0f);
    cpu::AddPartials(partials, slices, out, FloatsOf(args.db));
  }
  matrix_.WeightGradient(args.x, args.dy, args.dw);
}

// With one unit, dx is a multiple of w and dw a sum of scaled rows, so plain loops suffice. This
// function also handles layers without inputs, whatever their number of units: they have only a
// bias gradient.
void CpuBackend::LinearGradOfOneUnit(const LinearGradArgs& args) {
  ForRows(args.dy.rows, [&](int64_t begin, int64_t end) {
    cpu::ActivateGradRows(args.activation, args.y, args.dy, {args.dy, false}, begin, end);
    if (args.dx.wanted() && args.w.rows > 0) {
      cpu::OuterRows(args.dy, FloatsOf(args.w), args.dx, begin, end);
    }
  });
  if (!args.db.empty()) ColumnSums(args.dy, Tensor(), FloatsOf(args.db));
  if (args.w.rows > 0) ColumnSums(args.x, args.dy, FloatsOf(args.dw));
}

void CpuBackend::BatchNorm(Tensor x, Tensor sums, float epsilon, Tensor gamma, Tensor beta,
                           Tensor stats, Tensor y) {
  const int64_t cols = x.cols;
  const double* moments = DoublesOf(sums);
  const double n = std::max(1.0, moments[2 * cols]);
  float* scale = scratch_.Get<float>(cols);
  for (int64_t c = 0; c < cols; ++c) {
    const double mean = moments[c] / n;
    // Rounding can make the difference slightly negative where all values are equal.
    const double variance = std::max(0.0, moments[cols + c] / n - mean * mean);
    FloatsOf(stats, 0)[c] = static_cast<float>(mean);
    FloatsOf(stats, 1)[c] = static_cast<float>(1.0 / std::sqrt(variance + epsilon));
    scale[c] = FloatsOf(gamma)[c] * FloatsOf(stats, 1)[c];
  }
  ForRows(x.rows, [&](int64_t b, int64_t e) {
    cpu::NormalizeRows(x, FloatsOf(stats, 0), scale, FloatsOf(beta), y, b, e);
  });
}

void CpuBackend::BatchNormGrad(Tensor x, Tensor stats, Tensor gamma, Tensor dy, Tensor sums,
                               Tensor grad_sums, GradientTarget dx) {
  const int64_t cols = x.cols;
  const double n = std::max(1.0, DoublesOf(sums)[2 * cols]);
  float* scale = scratch_.Get<float>(3 * cols);
  float* mean_dy = scale + cols;
  float* mean_dy_xhat = mean_dy + cols;
  for (int64_t c = 0; c < cols; ++c) {
    scale[c] = FloatsOf(gamma)[c] * FloatsOf(stats, 1)[c];
    mean_dy[c] = static_cast<float>(DoublesOf(grad_sums)[c] / n);
    mean_dy_xhat[c] = static_cast<float>(DoublesOf(grad_sums)[cols + c] / n);
  }
  ForRows(x.rows, [&](int64_t b, int64_t e) {
    cpu::BatchNormGradRows(x, stats, scale, mean_dy, mean_dy_xhat, dy, dx, b, e);
  });
}

// A piece writes all features of its samples: they share the cache lines of the network's inputs.
// No two pieces write the same memory.
void CpuBackend::GatherRows(absl::Span<const FeatureExchange> features) {
  if (features.empty()) return;
  const int64_t samples = features[0].samples;
  for (const FeatureExchange& feature : features) {
    CHECK(feature.samples == samples) << feature.samples << " and " << samples;
    CHECK(!feature.rows.has_gaps());
  }
  pool_.Run(Parts(samples, kGatherSamples), [&](int64_t part, int) {
    const int64_t begin = part * kGatherSamples;
    const int64_t end = std::min(samples, begin + kGatherSamples);
    for (const FeatureExchange& feature : features) cpu::GatherSamples(feature, begin, end);
  });
}

// The sums run on one thread: several samples add to the same row, and the order of these additions
// must not depend on the number of threads.
void CpuBackend::ScatterGradients(absl::Span<const FeatureExchange> features, const RowInverse&,
                                  Tensor gradients) {
  CHECK(!gradients.has_gaps());
  if (!cpu::AssignsEveryValue(features, gradients)) {
    float* const values = FloatsOf(gradients);
    pool_.Run(Parts(gradients.size(), kClearValues), [&](int64_t part, int) {
      const int64_t begin = part * kClearValues;
      std::fill(values + begin, values + std::min(gradients.size(), begin + kClearValues), 0.0f);
    });
  }
  for (const FeatureExchange& feature : features) cpu::ScatterFeature(feature, gradients);
}

void CpuBackend::BatchNormRunning(Tensor control, Tensor sums, float momentum, Tensor mean,
                                  Tensor variance) {
  if (ControlOf(control)->apply == 0) return;
  const int64_t cols = mean.cols;
  const double* moments = DoublesOf(sums);
  const double n = moments[2 * cols];
  if (n == 0) return;  // a step without samples says nothing about the data
  const double unbiased = n > 1 ? n / (n - 1) : 1.0;
  for (int64_t c = 0; c < cols; ++c) {
    const double batch_mean = moments[c] / n;
    const double batch_variance =
        std::max(0.0, moments[cols + c] / n - batch_mean * batch_mean) * unbiased;
    FloatsOf(mean)[c] =
        static_cast<float>(momentum * FloatsOf(mean)[c] + (1 - momentum) * batch_mean);
    FloatsOf(variance)[c] =
        static_cast<float>(momentum * FloatsOf(variance)[c] + (1 - momentum) * batch_variance);
  }
}

}  // namespace

std::unique_ptr<Backend> NewCpuBackend(int compute_threads) {
  auto pool = std::make_unique<ForkJoinPool>(compute_threads);
  ForkJoinPool* const borrowed = pool.get();
  return std::make_unique<CpuBackend>(std::move(pool), borrowed);
}

std::unique_ptr<Backend> NewCpuBackend(ForkJoinPool* pool) {
  return std::make_unique<CpuBackend>(nullptr, pool);
}

}  // namespace satrap

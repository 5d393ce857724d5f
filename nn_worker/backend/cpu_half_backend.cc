#include "nn_worker/backend/cpu_half_backend.h"

#include <algorithm>
#include <deque>
#include <utility>
#include <vector>

#include "common/base/check.h"
#include "common/numeric/half.h"
#include "nn_worker/backend/cpu_backend.h"
#include "nn_worker/backend/cpu_bf16_matrix.h"
#include "nn_worker/backend/cpu_matrix.h"
#include "nn_worker/backend/host_backend.h"
#include "nn_worker/backend/host_tensor.h"

namespace satrap {
namespace {

// Values of one piece of a conversion.
constexpr int64_t kPartValues = 16384;

bool Is16Bit(const Tensor& tensor) {
  return tensor.dtype == DType::kF16 || tensor.dtype == DType::kBF16;
}

absl::Span<uint16_t> Bits(const Tensor& tensor, int64_t row, int64_t count) {
  return {reinterpret_cast<uint16_t*>(BytesOf(tensor, row)), static_cast<size_t>(count)};
}

// `count` values from the beginning of a row of `half` and of `wide` on.
void WidenRow(const Tensor& half, int64_t row, int64_t count, const Tensor& wide) {
  const absl::Span<float> to(FloatsOf(wide, row), count);
  if (half.dtype == DType::kF16) {
    F32FromF16(Bits(half, row, count), to);
  } else {
    F32FromBf16(Bits(half, row, count), to);
  }
}

void NarrowRow(const Tensor& wide, int64_t row, int64_t count, const Tensor& half) {
  const absl::Span<const float> from(FloatsOf(wide, row), count);
  if (half.dtype == DType::kF16) {
    F16FromF32(from, Bits(half, row, count));
  } else {
    Bf16FromF32(from, Bits(half, row, count));
  }
}

// Whether `next` is the columns behind `tensor` in the same rows.
bool AreNeighbours(const Tensor& tensor, const Tensor& next) {
  return tensor.dtype == next.dtype && tensor.rows == next.rows && tensor.stride == next.stride &&
         BytesOf(tensor) + tensor.cols * DTypeBytes(tensor.dtype) == BytesOf(next) &&
         tensor.cols + next.cols <= tensor.stride;
}

class CpuHalfBackend final : public HostBackend {
 public:
  // `owned` may be null.
  CpuHalfBackend(std::unique_ptr<ForkJoinPool> owned, ForkJoinPool* pool, HalfProducts products)
      : owned_pool_(std::move(owned)), pool_(*pool), inner_(NewCpuBackend(pool)) {
    if (products == HalfProducts::kBf16) bf16_ = std::make_unique<CpuBf16Matrix>(pool);
  }

  absl::StatusOr<void*> Allocate(int64_t bytes) override { return inner_->Allocate(bytes); }
  void CopyIn(absl::Span<const uint8_t> host, Tensor device) override {
    inner_->CopyIn(host, device);
  }
  void CopyOut(Tensor device, absl::Span<uint8_t> host) override { inner_->CopyOut(device, host); }

  void Fill(Tensor y, float value) override {
    if (y.dtype == DType::kF64) return inner_->Fill(y, value);
    Operation operation(this);
    inner_->Fill(operation.Write(y), value);
  }
  void Copy(Tensor x, Tensor y, bool add) override {
    if (x.data == y.data && !add) return;
    Operation operation(this);
    inner_->Copy(operation.Read(x), operation.Output(y, add), add);
  }
  void ToF32(Tensor x, Tensor y) override { inner_->ToF32(x, y); }

  void Linear(Tensor x, Tensor w, Tensor bias, Activation activation, Tensor y) override;
  void LinearGrad(const LinearGradArgs& args) override;

  void AddBias(Tensor x, Tensor bias, Tensor y) override {
    Operation operation(this);
    inner_->AddBias(operation.Read(x), bias, operation.Write(y));
  }
  void ColumnSum(Tensor x, Tensor sums) override {
    Operation operation(this);
    inner_->ColumnSum(operation.Read(x), sums);
  }
  void Activate(Activation activation, Tensor x, Tensor y) override {
    Operation operation(this);
    inner_->Activate(activation, operation.Read(x), operation.Write(y));
  }
  void ActivateGrad(Activation activation, Tensor y, Tensor dy, GradientTarget dx) override {
    Operation operation(this);
    inner_->ActivateGrad(activation, operation.Read(y), operation.Read(dy), operation.Target(dx));
  }

  void RowSum(absl::Span<const Tensor> xs, Tensor y) override {
    Operation operation(this);
    inner_->RowSum(operation.ReadAll(xs), operation.Write(y));
  }
  void RowSumGrad(Tensor dy, absl::Span<const GradientTarget> dxs) override {
    Operation operation(this);
    inner_->RowSumGrad(operation.Read(dy), operation.Targets(dxs));
  }
  void Fm(absl::Span<const Tensor> xs, Tensor s, Tensor y) override {
    Operation operation(this);
    inner_->Fm(operation.ReadAll(xs), operation.Write(s), operation.Write(y));
  }
  void FmGrad(absl::Span<const Tensor> xs, Tensor s, Tensor dy,
              absl::Span<const GradientTarget> dxs) override {
    Operation operation(this);
    inner_->FmGrad(operation.ReadAll(xs), operation.Read(s), operation.Read(dy),
                   operation.Targets(dxs));
  }
  void SequencePool(SequencePooling pooling, Tensor x, Tensor lengths, Tensor y) override {
    Operation operation(this);
    inner_->SequencePool(pooling, operation.Read(x), operation.Read(lengths), operation.Write(y));
  }
  void SequencePoolGrad(SequencePooling pooling, Tensor x, Tensor lengths, Tensor y, Tensor dy,
                        GradientTarget dx) override {
    Operation operation(this);
    inner_->SequencePoolGrad(pooling, operation.Read(x), operation.Read(lengths), operation.Read(y),
                             operation.Read(dy), operation.Target(dx));
  }
  void Dropout(Tensor x, const DropoutMask& mask, float rate, Tensor y, bool add) override {
    Operation operation(this);
    inner_->Dropout(operation.Read(x), mask, rate, operation.Output(y, add), add);
  }

  void Moments(Tensor x, Tensor sums) override {
    Operation operation(this);
    inner_->Moments(operation.Read(x), sums);
  }
  void BatchNorm(Tensor x, Tensor sums, float epsilon, Tensor gamma, Tensor beta, Tensor stats,
                 Tensor y) override {
    Operation operation(this);
    inner_->BatchNorm(operation.Read(x), sums, epsilon, gamma, beta, stats, operation.Write(y));
  }
  void BatchNormFixed(Tensor x, Tensor mean, Tensor variance, float epsilon, Tensor gamma,
                      Tensor beta, Tensor y) override {
    Operation operation(this);
    inner_->BatchNormFixed(operation.Read(x), mean, variance, epsilon, gamma, beta,
                           operation.Write(y));
  }
  void BatchNormGradSums(Tensor x, Tensor stats, Tensor dy, Tensor grad_sums) override {
    Operation operation(this);
    inner_->BatchNormGradSums(operation.Read(x), stats, operation.Read(dy), grad_sums);
  }
  void BatchNormGrad(Tensor x, Tensor stats, Tensor gamma, Tensor dy, Tensor sums, Tensor grad_sums,
                     GradientTarget dx) override {
    Operation operation(this);
    inner_->BatchNormGrad(operation.Read(x), stats, gamma, operation.Read(dy), sums, grad_sums,
                          operation.Target(dx));
  }
  void BatchNormRunning(Tensor control, Tensor sums, float momentum, Tensor mean,
                        Tensor variance) override {
    inner_->BatchNormRunning(control, sums, momentum, mean, variance);
  }

  void BceWithLogits(Tensor control, Tensor logits, Tensor labels, Tensor weights, Tensor mask,
                     Tensor dlogits, Tensor sums) override {
    inner_->BceWithLogits(control, logits, labels, weights, mask, dlogits, sums);
  }

  // Losses read outputs and write gradients that are always F32.
  void SquaredError(Tensor control, Tensor outputs, Tensor labels, Tensor weights, Tensor mask,
                    Tensor doutputs, Tensor sums) override {
    inner_->SquaredError(control, outputs, labels, weights, mask, doutputs, sums);
  }
  void PairwiseLogistic(Tensor control, Tensor scores, Tensor pairs, Tensor weights, Tensor dscores,
                        Tensor sums) override {
    inner_->PairwiseLogistic(control, scores, pairs, weights, dscores, sums);
  }
  void SoftmaxCrossEntropy(Tensor control, Tensor logits, Tensor labels, Tensor weights,
                           Tensor mask, Tensor dlogits, Tensor sums) override {
    inner_->SoftmaxCrossEntropy(control, logits, labels, weights, mask, dlogits, sums);
  }
  void CandidateLoss(Tensor control, const CandidateLossArgs& args) override {
    inner_->CandidateLoss(control, args);
  }

  void Scale(float factor, Tensor x, Tensor y, bool add) override {
    Operation operation(this);
    inner_->Scale(factor, operation.Read(x), operation.Output(y, add), add);
  }
  void Multiply(Tensor a, Tensor b, Tensor y, bool add) override {
    Operation operation(this);
    inner_->Multiply(operation.Read(a), operation.Read(b), operation.Output(y, add), add);
  }
  void Transpose(Tensor x, int64_t width, Tensor y, bool add) override {
    Operation operation(this);
    inner_->Transpose(operation.Read(x), width, operation.Output(y, add), add);
  }
  void BatchedProduct(const SampleMatrices& a, const SampleMatrices& b, int64_t count, float scale,
                      const SampleMatrices& y, bool add) override {
    Operation operation(this);
    SampleMatrices wide_a = a, wide_b = b, wide_y = y;
    wide_a.tensor = operation.Read(a.tensor);
    wide_b.tensor = operation.Read(b.tensor);
    // The matrices may be a part of the tensor, whose other values stay.
    wide_y.tensor = operation.Update(y.tensor);
    inner_->BatchedProduct(wide_a, wide_b, count, scale, wide_y, add);
  }
  void PairDots(absl::Span<const Tensor> xs, absl::Span<const PairTerm> terms, int64_t dim,
                Tensor y) override {
    Operation operation(this);
    inner_->PairDots(operation.ReadAll(xs), terms, dim, operation.Write(y));
  }
  void PairDotsGrad(absl::Span<const Tensor> xs, absl::Span<const PairTerm> terms, int64_t dim,
                    Tensor dy, absl::Span<const GradientTarget> dxs) override {
    Operation operation(this);
    inner_->PairDotsGrad(operation.ReadAll(xs), terms, dim, operation.Read(dy),
                         operation.Targets(dxs));
  }
  void BiInteraction(absl::Span<const Tensor> xs, Tensor s, Tensor y) override {
    Operation operation(this);
    inner_->BiInteraction(operation.ReadAll(xs), operation.Write(s), operation.Write(y));
  }
  void BiInteractionGrad(absl::Span<const Tensor> xs, Tensor s, Tensor dy,
                         absl::Span<const GradientTarget> dxs) override {
    Operation operation(this);
    inner_->BiInteractionGrad(operation.ReadAll(xs), operation.Read(s), operation.Read(dy),
                              operation.Targets(dxs));
  }
  void Softmax(Tensor x, int64_t width, Tensor y) override {
    Operation operation(this);
    inner_->Softmax(operation.Read(x), width, operation.Write(y));
  }
  void SoftmaxGrad(Tensor y, Tensor dy, int64_t width, GradientTarget dx) override {
    Operation operation(this);
    inner_->SoftmaxGrad(operation.Read(y), operation.Read(dy), width, operation.Target(dx));
  }
  void Normalize(Normalization kind, Tensor x, int64_t width, float epsilon, Tensor y,
                 Tensor inverse) override {
    Operation operation(this);
    inner_->Normalize(kind, operation.Read(x), width, epsilon, operation.Write(y),
                      operation.Write(inverse));
  }
  void NormalizeGrad(Normalization kind, Tensor y, Tensor inverse, Tensor dy, int64_t width,
                     GradientTarget dx) override {
    Operation operation(this);
    inner_->NormalizeGrad(kind, operation.Read(y), operation.Read(inverse), operation.Read(dy),
                          width, operation.Target(dx));
  }

  void GatherRows(absl::Span<const FeatureExchange> features) override {
    Operation operation(this);
    std::vector<FeatureExchange> wide(features.begin(), features.end());
    for (FeatureExchange& feature : wide) {
      for (RowSegment& segment : feature.segments) segment.values = operation.Write(segment.values);
    }
    inner_->GatherRows(wide);
  }
  void ScatterGradients(absl::Span<const FeatureExchange> features, const RowInverse& inverse,
                        Tensor gradients) override {
    Operation operation(this);
    std::vector<FeatureExchange> wide(features.begin(), features.end());
    for (FeatureExchange& feature : wide) {
      for (RowSegment& segment : feature.segments) segment.values = operation.Read(segment.values);
    }
    inner_->ScatterGradients(wide, inverse, gradients);
  }
  bool ScattersByRow() const override { return inner_->ScattersByRow(); }

  void CountNonFinite(Tensor x, Tensor count) override {
    Operation operation(this);
    inner_->CountNonFinite(operation.Read(x), count);
  }

  void DecideStep(const StepPlan& plan, Tensor sums, Tensor control) override {
    inner_->DecideStep(plan, sums, control);
  }
  void OptimizerStep(Tensor control, const OptimizerRule& rule, Tensor gradient, Tensor w,
                     absl::Span<const Tensor> slots, absl::Span<const WeightCopy> copies) override {
    inner_->OptimizerStep(control, rule, gradient, w, slots, {});
    for (const WeightCopy& copy : copies) {
      const Tensor& half = copy.values;
      Narrow(w.Columns(copy.begin, half.size()).Reshaped(half.rows, half.cols), half);
    }
  }
  void AverageStep(Tensor control, float decay, Tensor w, Tensor average) override {
    inner_->AverageStep(control, decay, w, average);
  }

 private:
  // The operands of one operation in f32: an F32 tensor is its own, a 16-bit one has a copy in
  // scratch memory, without gaps. The destructor rounds what was written back to 16 bits.
  class Operation {
   public:
    explicit Operation(CpuHalfBackend* backend) : backend_(*backend) {}
    ~Operation() {
      for (const Written& written : written_) backend_.Narrow(written.wide, written.half);
    }
    Operation(const Operation&) = delete;
    Operation& operator=(const Operation&) = delete;

    Tensor Read(const Tensor& tensor) {
      if (tensor.empty() || !Is16Bit(tensor)) return tensor;
      const Tensor wide = Scratch(tensor);
      backend_.Widen(tensor, wide);
      return wide;
    }
    // A tensor that is written twice, as a gradient that two inputs share, has one copy.
    Tensor Write(const Tensor& tensor) {
      if (tensor.empty() || !Is16Bit(tensor)) return tensor;
      for (const Written& written : written_) {
        if (written.half.data == tensor.data) return written.wide;
      }
      written_.push_back({Scratch(tensor), tensor});
      return written_.back().wide;
    }
    Tensor Update(const Tensor& tensor) {
      const size_t before = written_.size();
      const Tensor wide = Write(tensor);
      if (written_.size() > before) backend_.Widen(tensor, wide);
      return wide;
    }
    Tensor Output(const Tensor& tensor, bool add) { return add ? Update(tensor) : Write(tensor); }
    GradientTarget Target(const GradientTarget& target) {
      return {Output(target.tensor, target.add), target.add};
    }
    std::vector<GradientTarget> Targets(absl::Span<const GradientTarget> targets) {
      std::vector<GradientTarget> wide;
      for (const GradientTarget& target : targets) wide.push_back(Target(target));
      return wide;
    }
    // The inputs of a sum usually lie side by side in one concatenation: they are widened together.
    std::vector<Tensor> ReadAll(absl::Span<const Tensor> tensors) {
      std::vector<Tensor> wide;
      for (size_t i = 0; i < tensors.size();) {
        Tensor all = tensors[i];
        size_t end = i + 1;
        while (end < tensors.size() && Is16Bit(all) && AreNeighbours(all, tensors[end])) {
          all.cols += tensors[end++].cols;
        }
        const Tensor together = Read(all);
        for (int64_t column = 0; i < end; column += tensors[i++].cols) {
          wide.push_back(together.Columns(column, tensors[i].cols));
        }
      }
      return wide;
    }

    // Memory for an F32 tensor of the shape of `tensor`, for the time of the operation.
    Tensor Scratch(const Tensor& tensor) {
      if (used_ == backend_.scratch_.size()) backend_.scratch_.emplace_back();
      float* const values =
          backend_.scratch_[used_++].Get<float>(std::max<int64_t>(1, tensor.size()));
      return TensorF32(values, tensor.rows, tensor.cols);
    }

   private:
    struct Written {
      Tensor wide, half;
    };

    CpuHalfBackend& backend_;
    size_t used_ = 0;  // of the backend's scratch memory
    std::vector<Written> written_;
  };

  void LinearGradBf16(const LinearGradArgs& args);
  // Whether a product with `w` is made of BF16: not with one output, which plain loops make.
  bool MultipliesBf16(const Tensor& x, const Tensor& w) const {
    return bf16_ != nullptr && x.dtype == DType::kBF16 && w.dtype == DType::kBF16 && w.rows > 0 &&
           w.cols > 1;
  }

  // Calls body(row, values) for all rows of a tensor, or once for all its values if it has no gaps.
  template <typename Body>
  void ForRows(const Tensor& tensor, Body body) {
    const int64_t rows = std::max<int64_t>(1, kPartValues / std::max<int64_t>(1, tensor.cols));
    pool_.Run((tensor.rows + rows - 1) / rows, [&](int64_t part, int) {
      const int64_t begin = part * rows;
      const int64_t end = std::min(tensor.rows, begin + rows);
      if (!tensor.has_gaps()) return body(begin, (end - begin) * tensor.cols);
      for (int64_t i = begin; i < end; ++i) body(i, tensor.cols);
    });
  }
  void Widen(const Tensor& half, const Tensor& wide) {
    ForRows(half, [&](int64_t row, int64_t count) { WidenRow(half, row, count, wide); });
  }
  void Narrow(const Tensor& wide, const Tensor& half) {
    ForRows(half, [&](int64_t row, int64_t count) { NarrowRow(wide, row, count, half); });
  }

  const std::unique_ptr<ForkJoinPool> owned_pool_;
  ForkJoinPool& pool_;
  const std::unique_ptr<Backend> inner_;
  std::unique_ptr<CpuBf16Matrix> bf16_;  // null: all products are of f32
  // Grows to the largest operation. A deque keeps what it holds where it is.
  std::deque<AlignedScratch> scratch_;
};

void CpuHalfBackend::Linear(Tensor x, Tensor w, Tensor bias, Activation activation, Tensor y) {
  Operation operation(this);
  if (!MultipliesBf16(x, w)) {
    inner_->Linear(operation.Read(x), operation.Read(w), bias, activation, operation.Write(y));
    return;
  }
  const Tensor product = operation.Scratch(y);
  bf16_->Product(x, w, product);
  if (!bias.empty()) inner_->AddBias(product, bias, product);
  inner_->Activate(activation, product, operation.Write(y));
}

// The gradient before the activation is rounded before it is multiplied, as hardware that stores it
// in 16 bits would have it: so it is made by an operation of its own.
void CpuHalfBackend::LinearGrad(const LinearGradArgs& args) {
  const bool rounds = Is16Bit(args.dy);
  if (rounds && args.activation != Activation::kLinear) {
    ActivateGrad(args.activation, args.y, args.dy, {args.dy, false});
  }
  if (args.dy.dtype == DType::kBF16 && MultipliesBf16(args.x, args.w)) return LinearGradBf16(args);
  Operation operation(this);
  LinearGradArgs wide = args;
  wide.x = operation.Read(args.x);
  wide.w = operation.Read(args.w);
  wide.dy = operation.Read(args.dy);
  wide.dx = operation.Target(args.dx);
  wide.y = rounds ? wide.dy : operation.Read(args.y);
  if (rounds) wide.activation = Activation::kLinear;
  inner_->LinearGrad(wide);
}

// From the gradient before the activation, which args.dy holds.
void CpuHalfBackend::LinearGradBf16(const LinearGradArgs& args) {
  Operation operation(this);
  if (args.dx.wanted()) {
    const Tensor product = operation.Scratch(args.dx.tensor);
    bf16_->InputGradient(args.dy, args.w, product);
    const GradientTarget dx = operation.Target(args.dx);
    inner_->Copy(product, dx.tensor, dx.add);
  }
  if (!args.db.empty()) inner_->ColumnSum(operation.Read(args.dy), args.db);
  bf16_->WeightGradient(args.x, args.dy, args.dw);
}

}  // namespace

HalfProducts FastestHalfProducts() {
  return CpuBf16Matrix::IsFast() ? HalfProducts::kBf16 : HalfProducts::kF32;
}

std::unique_ptr<Backend> NewCpuHalfBackend(int compute_threads, HalfProducts products) {
  auto pool = std::make_unique<ForkJoinPool>(compute_threads);
  ForkJoinPool* const borrowed = pool.get();
  return std::make_unique<CpuHalfBackend>(std::move(pool), borrowed, products);
}

std::unique_ptr<Backend> NewCpuHalfBackend(ForkJoinPool* pool, HalfProducts products) {
  return std::make_unique<CpuHalfBackend>(nullptr, pool, products);
}

}  // namespace satrap

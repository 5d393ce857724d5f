#include "nn_worker/backend/cpu/cpu_half_backend.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "common/base/check.h"
#include "common/numeric/vectorize.h"
#include "nn_worker/backend/cpu/cpu_amx_bf16.h"
#include "nn_worker/backend/cpu/cpu_avx512_bf16.h"
#include "nn_worker/backend/cpu/cpu_backend.h"
#include "nn_worker/backend/cpu/cpu_bf16_products.h"
#include "nn_worker/backend/cpu/cpu_half_exchange.h"
#include "nn_worker/backend/cpu/cpu_half_fm.h"
#include "nn_worker/backend/cpu/cpu_half_operation.h"
#include "nn_worker/backend/cpu/cpu_kernels.h"
#include "nn_worker/backend/cpu/cpu_row_exchange.h"
#include "nn_worker/backend/cpu/host_backend.h"
#include "nn_worker/backend/cpu/host_tensor.h"
#include "nn_worker/backend/operation_operands.h"

namespace satrap {
namespace {

// The number of rows in a block. It is so small that the f32 copies of a block, both those that are
// read and those that are written, stay in the L2 cache of a core if a row has some hundred values.
constexpr int64_t kBlockRows = 64;

// These structs say how an operation uses an argument. For an argument in such a struct, the inner
// backend gets what Widened() returns; all other arguments are passed unchanged.
struct In {
  const Tensor& tensor;
};
struct Ins {
  absl::Span<const Tensor> tensors;
};
struct Out {
  const Tensor& tensor;
  bool add = false;
};
struct Grad {
  const GradientTarget& target;
};
struct Grads {
  absl::Span<const GradientTarget> targets;
};
struct InMatrices {
  const SampleMatrices& matrices;
};
// The matrices may cover only a part of the tensor; the tensor's other values are kept.
struct AddMatrices {
  const SampleMatrices& matrices;
};

Tensor Widened(HalfOperation* operation, In in) { return operation->Read(in.tensor); }
std::vector<Tensor> Widened(HalfOperation* operation, Ins in) {
  return operation->ReadAll(in.tensors);
}
Tensor Widened(HalfOperation* operation, Out out) { return operation->Output(out.tensor, out.add); }
GradientTarget Widened(HalfOperation* operation, Grad grad) {
  return operation->Target(grad.target);
}
std::vector<GradientTarget> Widened(HalfOperation* operation, Grads grads) {
  return operation->Targets(grads.targets);
}
SampleMatrices Widened(HalfOperation* operation, InMatrices in) {
  SampleMatrices wide = in.matrices;
  wide.tensor = operation->Read(wide.tensor);
  return wide;
}
SampleMatrices Widened(HalfOperation* operation, AddMatrices target) {
  SampleMatrices wide = target.matrices;
  wide.tensor = operation->Update(wide.tensor);
  return wide;
}
template <typename Value>
const Value& Widened(HalfOperation*, const Value& value) {
  return value;
}

// The number of rows of the first tensor that an operation reads or writes. If the operation runs
// in blocks, all its tensors have this number of rows.
template <typename... Others>
int64_t RowsOf(const In& in, const Others&...) {
  return in.tensor.rows;
}
template <typename... Others>
int64_t RowsOf(const Out& out, const Others&...) {
  return out.tensor.rows;
}
template <typename First, typename... Others>
int64_t RowsOf(const First&, const Others&... others) {
  return RowsOf(others...);
}

// dx = dy where y is positive, else 0, for values in either 16-bit format. A number is positive if
// its bits are from 1 up to those of infinity, so no conversion to f32 is needed.
SATRAP_VECTORIZE_SAME_BITS void ReluGradRow(const uint16_t* y, const uint16_t* dy,
                                            uint16_t infinity, int64_t cols, uint16_t* dx) {
  for (int64_t c = 0; c < cols; ++c) {
    dx[c] = static_cast<uint16_t>(y[c] - 1) < infinity ? dy[c] : 0;
  }
}

// The number of values that are NaN or whose magnitude is above a limit with the bits `limit_bits`.
// The magnitude of a BF16 is above an f32 if its bits are above the upper half of the f32's bits.
SATRAP_VECTORIZE_SAME_BITS int64_t Bf16BeyondRow(const uint16_t* x, uint32_t limit_bits,
                                                 int64_t cols) {
  const auto most = static_cast<uint16_t>(limit_bits >> 16);
  int64_t count = 0;
  // Counts in 16 bits, so that a vector holds as many counts as values. A count cannot overflow
  // within this many values.
  constexpr int64_t kAtATime = 65535;
  for (int64_t begin = 0; begin < cols; begin += kAtATime) {
    const int64_t end = std::min(cols, begin + kAtATime);
    uint16_t found = 0;
    for (int64_t c = begin; c < end; ++c) {
      found = static_cast<uint16_t>(found + ((x[c] & 0x7fff) > most ? 1 : 0));
    }
    count += found;
  }
  return count;
}

// dx = dy where y is positive, else 0, for rows [begin, end) of 16-bit tensors of one dtype.
void HalfReluGradRows(const Tensor& y, const Tensor& dy, const Tensor& dx, int64_t begin,
                      int64_t end) {
  const uint16_t infinity = y.dtype == DType::kF16 ? 0x7c00 : 0x7f80;
  for (int64_t i = begin; i < end; ++i) {
    ReluGradRow(HalvesOf(y, i, y.cols).data(), HalvesOf(dy, i, y.cols).data(), infinity, y.cols,
                HalvesOf(dx, i, y.cols).data());
  }
}

std::unique_ptr<CpuBf16Products> NewBf16Products(HalfProducts products, ForkJoinPool* pool) {
  switch (products) {
    case HalfProducts::kF32:
      return nullptr;
    case HalfProducts::kAvx512Bf16:
      return std::make_unique<CpuAvx512Bf16>(pool);
    case HalfProducts::kAmxBf16:
      return std::make_unique<CpuAmxBf16>(pool);
  }
  return nullptr;
}

class CpuHalfBackend final : public HostBackend {
 public:
  // `owned` may be null.
  CpuHalfBackend(std::unique_ptr<ForkJoinPool> owned, ForkJoinPool* pool, HalfProducts products)
      : owned_pool_(std::move(owned)),
        pool_(*pool),
        inner_(NewCpuBackend(pool)),
        products_(NewBf16Products(products, pool)),
        memory_{pool, {}} {
    for (int i = 0; i < pool->num_threads(); ++i) workers_.push_back(std::make_unique<Worker>());
  }

  absl::StatusOr<void*> Allocate(int64_t bytes) override { return inner_->Allocate(bytes); }
  void CopyIn(absl::Span<const uint8_t> host, Tensor device) override {
    inner_->CopyIn(host, device);
  }
  void CopyOut(Tensor device, absl::Span<uint8_t> host) override { inner_->CopyOut(device, host); }

  void Fill(Tensor y, float value) override {
    if (y.dtype == DType::kF64) return inner_->Fill(y, value);
    Whole(&Backend::Fill, Out{y}, value);
  }
  void Copy(Tensor x, Tensor y, bool add) override {
    if (x.data == y.data && !add) return;
    InBlocks(&Backend::Copy, In{x}, Out{y, add}, add);
  }
  void ToF32(Tensor x, Tensor y) override { inner_->ToF32(x, y); }

  void Linear(Tensor x, Tensor w, Tensor bias, Activation activation, Tensor y) override;
  void LinearGrad(const LinearGradArgs& args) override;

  void AddBias(Tensor x, Tensor bias, Tensor y) override {
    InBlocks(&Backend::AddBias, In{x}, bias, Out{y});
  }
  void ColumnSum(Tensor x, Tensor sums) override { Whole(&Backend::ColumnSum, In{x}, sums); }
  void Activate(Activation activation, Tensor x, Tensor y) override {
    InBlocks(&Backend::Activate, activation, In{x}, Out{y});
  }
  void ActivateGrad(Activation activation, Tensor y, Tensor dy, GradientTarget dx) override {
    if (activation == Activation::kRelu && Is16Bit(y) && dy.dtype == y.dtype &&
        dx.tensor.dtype == y.dtype && !dx.add) {
      return HalfReluGrad(y, dy, dx.tensor);
    }
    InBlocks(&Backend::ActivateGrad, activation, In{y}, In{dy}, Grad{dx});
  }

  void RowSum(absl::Span<const Tensor> xs, Tensor y) override {
    InBlocks(&Backend::RowSum, Ins{xs}, Out{y});
  }
  void RowSumGrad(Tensor dy, absl::Span<const GradientTarget> dxs) override {
    InBlocks(&Backend::RowSumGrad, In{dy}, Grads{dxs});
  }
  void Fm(absl::Span<const Tensor> xs, Tensor s, Tensor y) override {
    if (cpu::TakesHalfFm(xs, {}) && s.dtype != DType::kF16 && y.dtype != DType::kF16) {
      return ForBlocks(y.rows,
                       [&](int64_t begin, int64_t end) { cpu::FmHalfRows(xs, s, y, begin, end); });
    }
    InBlocks(&Backend::Fm, Ins{xs}, Out{s}, Out{y});
  }
  void FmGrad(absl::Span<const Tensor> xs, Tensor s, Tensor dy,
              absl::Span<const GradientTarget> dxs) override {
    if (cpu::TakesHalfFm(xs, dxs) && s.dtype != DType::kF16 && dy.dtype != DType::kF16) {
      return ForBlocks(dy.rows, [&](int64_t begin, int64_t end) {
        cpu::FmGradHalfRows(xs, s, dy, dxs, begin, end);
      });
    }
    InBlocks(&Backend::FmGrad, Ins{xs}, In{s}, In{dy}, Grads{dxs});
  }
  void SequencePool(SequencePooling pooling, Tensor x, Tensor lengths, Tensor y) override {
    InBlocks(&Backend::SequencePool, pooling, In{x}, In{lengths}, Out{y});
  }
  void SequencePoolGrad(SequencePooling pooling, Tensor x, Tensor lengths, Tensor y, Tensor dy,
                        GradientTarget dx) override {
    InBlocks(&Backend::SequencePoolGrad, pooling, In{x}, In{lengths}, In{y}, In{dy}, Grad{dx});
  }
  void Dropout(Tensor x, const DropoutMask& mask, float rate, Tensor y, bool add) override {
    Whole(&Backend::Dropout, In{x}, mask, rate, Out{y, add}, add);
  }

  void Moments(Tensor x, Tensor sums) override { Whole(&Backend::Moments, In{x}, sums); }
  void BatchNorm(Tensor x, Tensor sums, float epsilon, Tensor gamma, Tensor beta, Tensor stats,
                 Tensor y) override {
    Whole(&Backend::BatchNorm, In{x}, sums, epsilon, gamma, beta, stats, Out{y});
  }
  void BatchNormFixed(Tensor x, Tensor mean, Tensor variance, float epsilon, Tensor gamma,
                      Tensor beta, Tensor y) override {
    Whole(&Backend::BatchNormFixed, In{x}, mean, variance, epsilon, gamma, beta, Out{y});
  }
  void BatchNormGradSums(Tensor x, Tensor stats, Tensor dy, Tensor grad_sums) override {
    Whole(&Backend::BatchNormGradSums, In{x}, stats, In{dy}, grad_sums);
  }
  void BatchNormGrad(Tensor x, Tensor stats, Tensor gamma, Tensor dy, Tensor sums, Tensor grad_sums,
                     GradientTarget dx) override {
    Whole(&Backend::BatchNormGrad, In{x}, stats, gamma, In{dy}, sums, grad_sums, Grad{dx});
  }
  void BatchNormRunning(Tensor control, Tensor sums, float momentum, Tensor mean,
                        Tensor variance) override {
    inner_->BatchNormRunning(control, sums, momentum, mean, variance);
  }

#define SATRAP_WIDENED_OPERATION(name, parameters, rows, ...) \
  void name parameters final { rows(&Backend::name, __VA_ARGS__); }
  SATRAP_INTERACTION_OPERATIONS(SATRAP_WIDENED_OPERATION)
  SATRAP_LOSS_OPERATIONS(SATRAP_WIDENED_OPERATION)
#undef SATRAP_WIDENED_OPERATION

  void GatherRows(absl::Span<const FeatureExchange> features) override {
    if (features.empty()) return;
    RunBlocks(
        features[0].samples,
        [&](HalfOperation& operation, Backend&) { cpu::GatherHalves(features, &operation); },
        cpu::kExchangeSamples);
  }
  void ScatterGradients(absl::Span<const FeatureExchange> features, const RowInverse& inverse,
                        Tensor gradients) override;
  bool ScattersByRow() const override { return inner_->ScattersByRow(); }

  void CountBeyond(Tensor x, float limit, Tensor count) override {
    if (x.dtype == DType::kBF16) return CountBf16Beyond(x, limit, count);
    Whole(&Backend::CountBeyond, In{x}, limit, count);
  }

  void DecideStep(const StepPlan& plan, Tensor sums, Tensor control) override {
    inner_->DecideStep(plan, sums, control);
  }
  void OptimizerStep(Tensor control, const OptimizerRule& rule, Tensor gradient, Tensor w,
                     absl::Span<const Tensor> states,
                     absl::Span<const WeightCopy> copies) override {
    inner_->OptimizerStep(control, rule, gradient, w, states, {});
    for (const WeightCopy& copy : copies) {
      const Tensor& half = copy.values;
      Narrow(&pool_, w.Columns(copy.begin, half.size()).Reshaped(half.rows, half.cols), half);
    }
  }
  void AverageStep(Tensor control, float decay, Tensor w, Tensor average) override {
    inner_->AverageStep(control, decay, w, average);
  }

 private:
  void LinearGradOfOneUnit(const LinearGradArgs& args);
  void HalfReluGrad(const Tensor& y, const Tensor& dy, const Tensor& dx);
  void CountBf16Beyond(const Tensor& x, float limit, const Tensor& count);
  // Whether products_ multiplies x by w. `result` may be empty.
  bool MultipliesBf16(const Tensor& x, const Tensor& w, const Tensor& result) const {
    return products_ != nullptr && x.dtype == DType::kBF16 && w.dtype == DType::kBF16 &&
           result.dtype != DType::kF16;
  }

  // Calls body(begin, end) for blocks of rows.
  void ForBlocks(int64_t rows, absl::FunctionRef<void(int64_t, int64_t)> body) {
    pool_.Run((rows + kBlockRows - 1) / kBlockRows, [&](int64_t part, int) {
      body(part * kBlockRows, std::min(rows, (part + 1) * kBlockRows));
    });
  }

  // What a thread of the pool needs to compute a block.
  struct Worker {
    ForkJoinPool pool{1};
    const std::unique_ptr<Backend> inner = NewCpuBackend(&pool);
    HalfMemory memory{&pool, {}};
  };

  // Calls body(operation, inner) for blocks of rows; one thread computes a block. REQUIRES: the
  // bits of a row's result do not depend on the other rows. A thread converts, computes and rounds
  // its block while it is in the thread's cache, and the threads wait for one another only once.
  template <typename Body>
  void RunBlocks(int64_t rows, Body body, int64_t block = kBlockRows) {
    pool_.Run(std::max<int64_t>(1, (rows + block - 1) / block), [&](int64_t part, int thread) {
      Worker& worker = *workers_[thread];
      const int64_t begin = part * block;
      HalfOperation operation(&worker.memory, begin, std::min(block, rows - begin));
      body(operation, *worker.inner);
    });
  }

  // Calls `method` of the inner backend, block by block. REQUIRES: what RunBlocks requires
  template <typename Method, typename... Arguments>
  void InBlocks(Method method, const Arguments&... arguments) {
    RunBlocks(RowsOf(arguments...), [&](HalfOperation& operation, Backend& inner) {
      (inner.*method)(Widened(&operation, arguments)...);
    });
  }
  // As InBlocks, for all rows at once.
  template <typename Method, typename... Arguments>
  void Whole(Method method, const Arguments&... arguments) {
    HalfOperation operation(&memory_);
    (inner_.get()->*method)(Widened(&operation, arguments)...);
  }

  const std::unique_ptr<ForkJoinPool> owned_pool_;
  ForkJoinPool& pool_;
  const std::unique_ptr<Backend> inner_;
  const std::unique_ptr<CpuBf16Products> products_;  // null: all products are computed in f32
  HalfMemory memory_;
  std::vector<std::unique_ptr<Worker>> workers_;  // by thread of the pool
};

void CpuHalfBackend::CountBf16Beyond(const Tensor& x, float limit, const Tensor& count) {
  uint32_t limit_bits;
  std::memcpy(&limit_bits, &limit, sizeof(limit_bits));
  constexpr int64_t kRows = 16 * kBlockRows;
  std::vector<int64_t> found((x.rows + kRows - 1) / kRows, 0);
  pool_.Run(static_cast<int64_t>(found.size()), [&](int64_t part, int) {
    const int64_t end = std::min(x.rows, (part + 1) * kRows);
    for (int64_t i = part * kRows; i < end; ++i) {
      found[part] += Bf16BeyondRow(HalvesOf(x, i, x.cols).data(), limit_bits, x.cols);
    }
  });
  *DoublesOf(count) += static_cast<double>(std::accumulate(found.begin(), found.end(), int64_t{0}));
}

void CpuHalfBackend::HalfReluGrad(const Tensor& y, const Tensor& dy, const Tensor& dx) {
  ForBlocks(y.rows, [&](int64_t begin, int64_t end) { HalfReluGradRows(y, dy, dx, begin, end); });
}

void CpuHalfBackend::Linear(Tensor x, Tensor w, Tensor bias, Activation activation, Tensor y) {
  HalfOperation operation(&memory_);
  if (MultipliesBf16(x, w, y)) {
    const bool relu = activation == Activation::kRelu;
    if (relu || activation == Activation::kLinear) return products_->Product(x, w, bias, relu, y);
    const Tensor product = operation.Scratch(y.rows, y.cols);
    products_->Product(x, w, bias, /*relu=*/false, product);
    inner_->Activate(activation, product, operation.Write(y));
  } else {
    inner_->Linear(operation.Read(x), operation.Read(w), bias, activation, operation.Write(y));
  }
}

// The gradient before the activation is rounded to 16 bits before it is multiplied, as on hardware
// that stores it in 16 bits. Therefore a separate operation computes it. The gradient before a ReLU
// is an exception: a ReLU does not round, so its gradient is computed slice by slice, while a slice
// is in the cache.
void CpuHalfBackend::LinearGrad(const LinearGradArgs& args) {
  const bool rounds = Is16Bit(args.dy);
  const bool by_bf16 =
      args.dy.dtype == DType::kBF16 && MultipliesBf16(args.x, args.w, args.dx.tensor);
  const bool relu_by_slices =
      by_bf16 && args.activation == Activation::kRelu && args.y.dtype == DType::kBF16;
  if (rounds && args.activation != Activation::kLinear && !relu_by_slices) {
    ActivateGrad(args.activation, args.y, args.dy, {args.dy, false});
  }
  if (by_bf16) {
    if (relu_by_slices || args.dx.wanted()) {
      products_->InputGradient(args.dy, args.w, args.dx, [&](int64_t begin, int64_t end) {
        if (relu_by_slices) HalfReluGradRows(args.y, args.dy, args.dy, begin, end);
      });
    }
    return products_->WeightGradient(args.x, args.dy, args.dw, args.db);
  }
  if (args.w.cols == 1 && args.w.rows > 0 && Is16Bit(args.x) && Is16Bit(args.w) &&
      args.dy.dtype == DType::kF32 && args.y.dtype == DType::kF32) {
    return LinearGradOfOneUnit(args);
  }
  HalfOperation operation(&memory_);
  LinearGradArgs wide = args;
  wide.x = operation.Read(args.x);
  wide.w = operation.Read(args.w);
  wide.dy = operation.Read(args.dy);
  wide.dx = operation.Target(args.dx);
  wide.y = rounds ? wide.dy : operation.Read(args.y);
  if (rounds) wide.activation = Activation::kLinear;
  inner_->LinearGrad(wide);
}

// This layer's outputs are logits. They are F32, and so is their gradient. The layer's input and
// the input's gradient, converted to f32 as a whole, would not fit into a cache, so both are
// converted block by block. Sums over the samples are made by adding the sums of blocks in order.
void CpuHalfBackend::LinearGradOfOneUnit(const LinearGradArgs& args) {
  const int64_t in = args.w.rows, samples = args.x.rows;
  CHECK(samples == args.dy.rows && args.x.cols == in && args.dy.cols == 1);
  CHECK(args.dw.stride == args.dw.cols);
  HalfOperation whole(&memory_);
  const float* const w = FloatsOf(whole.Read(args.w));
  const int64_t blocks = std::max<int64_t>(1, (samples + kBlockRows - 1) / kBlockRows);
  // One row for each block: the block's sums for dw, then its sum for db.
  const Tensor sums = whole.Scratch(blocks, in + 1);
  RunBlocks(samples, [&](HalfOperation& operation, Backend&) {
    const int64_t rows = operation.rows();
    const Tensor x = operation.Read(args.x), dy = operation.Rows(args.dy);
    cpu::ActivateGradRows(args.activation, operation.Rows(args.y), dy, {dy, false}, 0, rows);
    if (args.dx.wanted()) cpu::OuterRows(dy, w, operation.Target(args.dx), 0, rows);
    float* const sum = FloatsOf(sums, operation.begin() / kBlockRows);
    cpu::WeightedColumnSums(x, dy, 0, rows, sum);
    cpu::WeightedColumnSums(dy, Tensor(), 0, rows, sum + in);
  });
  std::fill_n(FloatsOf(args.dw), in, 0.0f);
  if (!args.db.empty()) *FloatsOf(args.db) = 0;
  for (int64_t block = 0; block < blocks; ++block) {
    cpu::AddPartials(FloatsOf(sums, block), 1, in, FloatsOf(args.dw));
    if (!args.db.empty()) *FloatsOf(args.db) += FloatsOf(sums, block)[in];
  }
}

void CpuHalfBackend::ScatterGradients(absl::Span<const FeatureExchange> features,
                                      const RowInverse& inverse, Tensor gradients) {
  if (!cpu::Have16BitValues(features)) {
    return inner_->ScatterGradients(features, inverse, gradients);
  }
  if (!cpu::AssignsEveryValue(features, gradients)) inner_->Fill(gradients, 0);
  if (features.size() == 1 && features[0].one_row_a_sample) {
    return RunBlocks(
        features[0].samples,
        [&](HalfOperation& operation, Backend&) {
          cpu::AssignGradients(features[0], gradients, &operation);
        },
        cpu::kExchangeSamples);
  }
  // This runs in one thread, as in CpuBackend, because several samples add to the same row.
  cpu::AddGradients(features, gradients, &workers_[0]->memory);
}

}  // namespace

HalfProductsChoice ChooseHalfProducts(const Bf16Units& units) {
  HalfProductsChoice choice;
  if (units.cpu_has_amx && units.kernel_allows_amx) {
    choice.products = HalfProducts::kAmxBf16;
    return choice;
  }
  if (units.has_avx512_bf16) choice.products = HalfProducts::kAvx512Bf16;
  if (units.cpu_has_amx) choice.because = "the kernel does not let this process use AMX";
  return choice;
}

HalfProductsChoice FastestHalfProducts() {
  Bf16Units units;
  units.cpu_has_amx = CpuAmxBf16::CpuHasIt();
  units.kernel_allows_amx = CpuAmxBf16::IsSupported();
  units.has_avx512_bf16 = CpuAvx512Bf16::IsSupported();
  return ChooseHalfProducts(units);
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

#include "nn_worker/backend/benchmark/products.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/numeric/half.h"
#include "common/numeric/random.h"
#include "nn_worker/backend/tensor.h"
#include "nn_worker/device/kernels/add_pieces.h"
#include "nn_worker/device/kernels/column_sum.h"
#include "nn_worker/device/kernels/matrix_product.h"
#include "nn_worker/device/kernels/one_output.h"
#include "nn_worker/device/kernels/values.h"
#include "nn_worker/device/product_spec.h"
#include "nn_worker/operation/operation_kinds.h"

namespace satrap {
namespace {

constexpr int64_t kTimeoutMs = 300000;
// The number of random values that the host makes. They are repeated to fill a matrix, because
// making all values of a large matrix would take longer than what is measured.
constexpr int64_t kPatternValues = int64_t{1} << 18;
constexpr int64_t kWorkspaceAlignment = 256;  // as ProductPlan::Run asks for

ProductPrecision PrecisionOf(NnWorkerConfig::Precision precision) {
  switch (precision) {
    case NnWorkerConfig::BF16:
      return ProductPrecision::kBf16;
    case NnWorkerConfig::F16:
      return ProductPrecision::kF16;
    case NnWorkerConfig::TF32:
      return ProductPrecision::kTf32;
    case NnWorkerConfig::F32:
      break;
  }
  return ProductPrecision::kF32;
}

DType DTypeOf(ProductPrecision precision) {
  if (precision == ProductPrecision::kBf16) return DType::kBF16;
  return precision == ProductPrecision::kF16 ? DType::kF16 : DType::kF32;
}

ElementType ElementTypeOf(DType dtype) {
  if (dtype == DType::kBF16) return ElementType::kBF16;
  return dtype == DType::kF16 ? ElementType::kF16 : ElementType::kF32;
}

}  // namespace

std::string ProductName(LinearProduct product, int64_t in, int64_t out) {
  const char* const name = product == LinearProduct::kForward         ? "forward"
                           : product == LinearProduct::kInputGradient ? "input gradient"
                                                                      : "weight gradient";
  return absl::StrCat(in, " x ", out, ", ", name);
}

// The tensors of a layer: activations, padded as in a network, and weights in the form that
// products read.
struct ProductBenchmark::Factors {
  int64_t samples, in, out;
  DType dtype;
  int64_t x_stride, z_stride, w_stride;  // of x and dx, of y and dz, of w
  std::unique_ptr<Memory> x, z, w, dw;   // dw is F32 without gaps
  int64_t piece = 0;                     // of the weight gradient
  std::unique_ptr<Memory> partials;      // the products of its pieces

  Values X() const { return {x->data(), samples, in, x_stride, ElementTypeOf(dtype)}; }
  Values Z() const { return {z->data(), samples, out, z_stride, ElementTypeOf(dtype)}; }
  Values W() const { return {w->data(), in, out, w_stride, ElementTypeOf(dtype)}; }
  Matrix<float> Dw() const { return {static_cast<float*>(dw->data()), in, out, out}; }

  // The product that DeviceLinear requests for such a layer, but without an epilogue.
  ProductSpec Spec(LinearProduct product, ProductPrecision precision) const {
    ProductSpec spec;
    spec.precision = precision;
    spec.f32_output = dtype == DType::kF32;
    spec.rows = samples;
    switch (product) {
      case LinearProduct::kForward:
        spec.cols = out;
        spec.terms = in;
        spec.a_stride = x_stride;
        spec.b_stride = w_stride;
        spec.c_stride = z_stride;
        break;
      case LinearProduct::kInputGradient:  // dx = dz w^T
        spec.cols = in;
        spec.terms = out;
        spec.transpose_b = true;
        spec.a_stride = z_stride;
        spec.b_stride = w_stride;
        spec.c_stride = x_stride;
        break;
      case LinearProduct::kWeightGradient:  // dw = x^T dz
        spec.rows = in;
        spec.cols = out;
        spec.terms = samples;
        spec.transpose_a = true;
        spec.a_stride = x_stride;
        spec.b_stride = z_stride;
        spec.c_stride = out;
        spec.f32_output = true;
        if (piece < samples) spec.piece = piece;
        break;
    }
    return spec;
  }

  ProductBuffers Buffers(LinearProduct product) const {
    ProductBuffers buffers;
    buffers.a = product == LinearProduct::kInputGradient ? z->data() : x->data();
    buffers.b = product == LinearProduct::kWeightGradient ? z->data() : w->data();
    buffers.c = product == LinearProduct::kForward         ? z->data()
                : product == LinearProduct::kInputGradient ? x->data()
                : piece < samples                          ? partials->data()
                                                           : dw->data();
    return buffers;
  }
};

absl::StatusOr<std::unique_ptr<ProductBenchmark>> ProductBenchmark::Create(
    JobDevice device, NnWorkerConfig::Precision precision, const TimingOptions& timing) {
  std::unique_ptr<ProductBenchmark> made(
      new ProductBenchmark(std::move(device), precision, timing));
  Device* const on = made->on_.device.get();
  ASSIGN_OR_RETURN(made->stream_, on->NewStream());
  ASSIGN_OR_RETURN(made->event_, on->NewEvent());
  ASSIGN_OR_RETURN(made->workspace_,
                   on->Allocate(made->on_.products->PlanWorkspaceBytes() + kWorkspaceAlignment));
  ASSIGN_OR_RETURN(made->f32_pattern_,
                   on->AllocatePinned(kPatternValues * static_cast<int64_t>(sizeof(float))));
  ASSIGN_OR_RETURN(made->half_pattern_,
                   on->AllocatePinned(kPatternValues * static_cast<int64_t>(sizeof(uint16_t))));
  auto* const values = static_cast<float*>(made->f32_pattern_->data());
  auto* const halves = static_cast<uint16_t*>(made->half_pattern_->data());
  for (int64_t i = 0; i < kPatternValues; ++i) {
    values[i] = 2 * UniformFloat(RandomBits(2, static_cast<uint64_t>(i))) - 1;
    halves[i] = precision == NnWorkerConfig::F16 ? F16FromF32(values[i]) : Bf16FromF32(values[i]);
  }
  return made;
}

// Enqueued operations may still read memory that is freed with this object.
ProductBenchmark::~ProductBenchmark() {
  if (event_ != nullptr) Await().IgnoreError();
}

absl::Status ProductBenchmark::Await() {
  stream_->Record(event_.get());
  return WaitForEvent(event_.get(), kTimeoutMs, [] { return false; });
}

absl::StatusOr<Timing> ProductBenchmark::Time(absl::FunctionRef<void()> enqueue) {
  return TimeOperation(timing_, enqueue, [this] { return Await(); });
}

absl::StatusOr<std::unique_ptr<Memory>> ProductBenchmark::AllocateRandom(int64_t bytes, bool f32) {
  ASSIGN_OR_RETURN(std::unique_ptr<Memory> memory, on_.device->Allocate(bytes));
  const Memory& pattern = f32 ? *f32_pattern_ : *half_pattern_;
  for (int64_t done = 0; done < bytes; done += pattern.bytes()) {
    stream_->CopyIn(pattern.data(), static_cast<char*>(memory->data()) + done,
                    std::min(pattern.bytes(), bytes - done));
  }
  RETURN_IF_ERROR(Await());
  return memory;
}

absl::StatusOr<BenchmarkRow> ProductBenchmark::Copy(int64_t bytes) {
  ASSIGN_OR_RETURN(const std::unique_ptr<Memory> from, AllocateRandom(bytes, /*f32=*/true));
  ASSIGN_OR_RETURN(const std::unique_ptr<Memory> to, AllocateRandom(bytes, /*f32=*/true));
  BenchmarkRow row;
  row.operation = "Copy ceiling";
  row.what = absl::StrCat(bytes >> 20, " MiB, device to device");
  row.precision = "any";
  row.bytes = 2 * bytes;  // read and written
  ASSIGN_OR_RETURN(row.timing, Time([&] { stream_->CopyWithin(from->data(), to->data(), bytes); }));
  return row;
}

absl::StatusOr<BenchmarkRow> ProductBenchmark::Square(int64_t size) {
  ASSIGN_OR_RETURN(BenchmarkRow row, OfLayer(LinearProduct::kForward, size, size, size));
  row.operation = "Product ceiling";
  row.what = absl::StrCat(size, " x ", size, " x ", size);
  return row;
}

absl::StatusOr<ProductBenchmark::Factors> ProductBenchmark::NewFactors(int64_t samples, int64_t in,
                                                                       int64_t out) {
  Factors factors;
  factors.samples = samples;
  factors.in = in;
  factors.out = out;
  factors.dtype = DTypeOf(PrecisionOf(precision_));
  const bool f32 = factors.dtype == DType::kF32;
  const int64_t value_bytes = DTypeBytes(factors.dtype);
  factors.x_stride = PaddedStride(factors.dtype, in);
  factors.z_stride = PaddedStride(factors.dtype, out);
  // Parameters have no gaps. Products in 16 bits read copies of the parameters, and these are
  // padded.
  factors.w_stride = f32 ? out : PaddedStride(factors.dtype, out);
  ASSIGN_OR_RETURN(factors.x, AllocateRandom(samples * factors.x_stride * value_bytes, f32));
  ASSIGN_OR_RETURN(factors.z, AllocateRandom(samples * factors.z_stride * value_bytes, f32));
  ASSIGN_OR_RETURN(factors.w, AllocateRandom(in * factors.w_stride * value_bytes, f32));
  ASSIGN_OR_RETURN(factors.dw, AllocateRandom(in * out * DTypeBytes(DType::kF32), /*f32=*/true));
  return factors;
}

absl::StatusOr<BenchmarkRow> ProductBenchmark::OfLayer(LinearProduct product, int64_t samples,
                                                       int64_t in, int64_t out) {
  const int64_t padded_in = ProductWidth(in), padded_out = ProductWidth(out);
  ASSIGN_OR_RETURN(Factors factors, NewFactors(samples, padded_in, padded_out));
  if (product == LinearProduct::kWeightGradient) {
    factors.piece = samples;
    const ProductSpec spec = factors.Spec(product, PrecisionOf(precision_));
    const bool planned = on_.products->has_library() && ForLibrary(spec);
    factors.piece = planned ? WeightGradientPiece(spec) : kProductPiece;
    ASSIGN_OR_RETURN(
        factors.partials,
        on_.device->Allocate(std::max<int64_t>(
            1, Products::WeightGradientWorkspace(samples, padded_in, padded_out, factors.piece))));
  }
  ASSIGN_OR_RETURN(BenchmarkRow row, Run(product, &factors));
  row.operation = "Product";
  row.what = ProductName(product, in, out);
  row.flops = 2.0 * static_cast<double>(samples * in * out);
  return row;
}

absl::StatusOr<BenchmarkRow> ProductBenchmark::ReluAndBiasGradient(int64_t samples, int64_t cols) {
  // Both matrices have the shape of the layer's outputs.
  ASSIGN_OR_RETURN(const Factors factors, NewFactors(samples, cols, cols));
  const auto floats = static_cast<int64_t>(sizeof(float));
  ASSIGN_OR_RETURN(const std::unique_ptr<Memory> partials,
                   on_.device->Allocate(ColumnSumPartials(samples, cols) * floats));
  BenchmarkRow row;
  row.operation = "ReluAndBiasGradient";
  row.what = absl::StrCat("n x ", cols, ", in place");
  row.precision = NnWorkerConfig::Precision_Name(precision_);
  row.bytes = 3 * samples * cols * DTypeBytes(factors.dtype) + cols * floats;
  ASSIGN_OR_RETURN(row.timing, Time([&] {
                     ActivateGradColumnSum(stream_.get(), Activation::kRelu, factors.Z(),
                                           factors.X(), factors.X(),
                                           static_cast<float*>(partials->data()),
                                           static_cast<float*>(factors.dw->data()));
                   }));
  return row;
}

absl::StatusOr<BenchmarkRow> ProductBenchmark::OneOutputGradients(int64_t samples, int64_t in) {
  ASSIGN_OR_RETURN(const Factors below, NewFactors(samples, in, in));
  ASSIGN_OR_RETURN(const Factors factors, NewFactors(samples, in, 1));
  const auto floats = static_cast<int64_t>(sizeof(float));
  ASSIGN_OR_RETURN(const std::unique_ptr<Memory> partials,
                   on_.device->Allocate(OneOutputPartials(samples, in) * floats));
  // The gradient of a logit is F32 in every precision.
  ASSIGN_OR_RETURN(const std::unique_ptr<Memory> dz,
                   AllocateRandom(samples * PaddedStride(DType::kF32, 1) * floats, /*f32=*/true));
  ASSIGN_OR_RETURN(const std::unique_ptr<Memory> sums, on_.device->Allocate((in + 1) * floats));
  OneOutputGradient gradient;
  gradient.x = factors.X();
  gradient.w = factors.W();
  gradient.dz = {dz->data(), samples, 1, PaddedStride(DType::kF32, 1), ElementType::kF32};
  gradient.dx = below.X();
  gradient.relu_of_x = true;
  gradient.dw = factors.Dw();
  gradient.db = static_cast<float*>(sums->data());
  gradient.input_bias_gradient = gradient.db + 1;
  BenchmarkRow row;
  row.operation = "OneOutputGradients";
  row.what = absl::StrCat(in, " x 1, ReLU and bias of the layer below");
  row.precision = NnWorkerConfig::Precision_Name(precision_);
  const int64_t value_bytes = DTypeBytes(factors.dtype);
  row.bytes =
      2 * samples * in * value_bytes + samples * floats + in * value_bytes + (2 * in + 1) * floats;
  ASSIGN_OR_RETURN(row.timing, Time([&] {
                     OneOutputBackward(stream_.get(), gradient,
                                       static_cast<float*>(partials->data()));
                   }));
  return row;
}

absl::StatusOr<BenchmarkRow> ProductBenchmark::Run(LinearProduct product, Factors* factors) {
  BenchmarkRow row;
  row.precision = NnWorkerConfig::Precision_Name(precision_);
  Products* const products = on_.products.get();
  ASSIGN_OR_RETURN(const std::unique_ptr<ProductPlan> plan,
                   products->Plan(factors->Spec(product, PrecisionOf(precision_))));
  if (plan != nullptr) {
    auto* workspace = static_cast<char*>(workspace_->data());
    const auto misaligned =
        static_cast<int64_t>(reinterpret_cast<uintptr_t>(workspace) % kWorkspaceAlignment);
    if (misaligned != 0) workspace += kWorkspaceAlignment - misaligned;
    row.made_by = "library";
    const ProductSpec spec = factors->Spec(product, PrecisionOf(precision_));
    const int64_t pieces = spec.pieces(factors->samples);
    ASSIGN_OR_RETURN(
        row.timing, Time([&] {
          plan->Run(stream_.get(), factors->samples, factors->Buffers(product), workspace);
          if (pieces == 1) return;
          AddPieces(stream_.get(), static_cast<const float*>(factors->partials->data()), pieces,
                    factors->Dw());
        }));
    return row;
  }
  // There is no library, or it refuses this product, so our own kernel computes it, as in a
  // network.
  row.made_by = "own kernel";
  ASSIGN_OR_RETURN(row.timing, Time([&] {
                     switch (product) {
                       case LinearProduct::kForward:
                         return products->Linear(stream_.get(), factors->X(), factors->W(), {},
                                                 Activation::kLinear, factors->Z());
                       case LinearProduct::kInputGradient:
                         return products->InputGradient(stream_.get(), factors->Z(), factors->W(),
                                                        factors->X(), /*add=*/false);
                       case LinearProduct::kWeightGradient:
                         return products->WeightGradient(stream_.get(), factors->X(), factors->Z(),
                                                         factors->Dw(), factors->piece,
                                                         factors->partials->data());
                     }
                   }));
  return row;
}

}  // namespace satrap

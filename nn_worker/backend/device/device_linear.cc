#include "nn_worker/backend/device/device_linear.h"

#include <algorithm>
#include <utility>

#include "absl/types/optional.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "nn_worker/backend/device/device_matrix.h"
#include "nn_worker/device/kernels/activation.h"
#include "nn_worker/device/kernels/column_sum.h"
#include "nn_worker/device/kernels/fill.h"

namespace satrap {

class PlannedLinear final : public PreparedLinear {
 public:
  explicit PlannedLinear(const LinearSpec& of) : PreparedLinear(of.args.activation), spec(of) {}

  const LinearSpec spec;
  // Null where our own kernel computes the product.
  std::unique_ptr<ProductPlan> forward, input_gradient, weight_gradient;
  bool forward_is_whole = false;  // it ends with bias and activation
  void* mask = nullptr;           // of this layer's ReLU, written by `forward`
  // Whether the gradient of y has already passed through the ReLU when this layer receives it.
  bool gradient_passed_relu = false;
  void* input_mask = nullptr;  // read by `input_gradient`
  bool sums_columns = false;   // `weight_gradient` makes the bias gradient, too
};

namespace {

constexpr int64_t kWorkspaceAlignment = 256;
constexpr int64_t kMostAlignment = 16;  // more is of no use to libraries

bool Is16Bit(const Tensor& tensor) { return tensor.dtype != DType::kF32; }

int64_t AlignmentOf(const Tensor& tensor) {
  const auto address = reinterpret_cast<uintptr_t>(tensor.data);
  int64_t alignment = kMostAlignment;
  while (address % static_cast<uintptr_t>(alignment) != 0) alignment /= 2;
  return alignment;
}

ProductPrecision PrecisionOf(DType dtype) {
  if (dtype == DType::kBF16) return ProductPrecision::kBf16;
  return dtype == DType::kF16 ? ProductPrecision::kF16 : ProductPrecision::kF32;
}

// The spec of a product of two factors of one type, with a result of that type or f32. nullopt for
// other types: our own kernel, which takes any types, computes those products.
absl::optional<ProductSpec> SpecOf(const Tensor& a, const Tensor& b, const Tensor& c) {
  if (a.dtype != b.dtype || (c.dtype != DType::kF32 && c.dtype != a.dtype)) return {};
  ProductSpec spec;
  spec.rows = c.rows;
  spec.cols = c.cols;
  spec.a_stride = a.stride;
  spec.b_stride = b.stride;
  spec.c_stride = c.stride;
  spec.a_alignment = AlignmentOf(a);
  spec.b_alignment = AlignmentOf(b);
  spec.c_alignment = AlignmentOf(c);
  spec.precision = PrecisionOf(a.dtype);
  spec.f32_output = c.dtype == DType::kF32;
  return spec;
}

// The columns of a forward product, and those of a weight gradient, with the padding that all of
// their tensors have.
int64_t ForwardCols(const LinearSpec& spec) {
  const int64_t cols = std::min(spec.args.w.padded_cols(), spec.args.y.padded_cols());
  return spec.bias.empty() ? cols : std::min(cols, spec.bias.padded_cols());
}
int64_t WeightGradientCols(const LinearGradArgs& args) {
  const int64_t cols = std::min(args.dy.padded_cols(), args.dw.padded_cols());
  return args.db.empty() ? cols : std::min(cols, args.db.padded_cols());
}

absl::optional<ProductSpec> ForwardSpec(const LinearSpec& of) {
  const LinearGradArgs& args = of.args;
  absl::optional<ProductSpec> spec = SpecOf(args.x, args.w, args.y);
  if (!spec.has_value()) return spec;
  spec->cols = ForwardCols(of);
  spec->terms = std::min(args.x.padded_cols(), args.w.padded_rows());
  return spec;
}

// The epilogue that adds bias and activation to a forward product; nullopt if there is no such
// epilogue.
absl::optional<ProductEpilogue> WholeEpilogue(const LinearSpec& spec) {
  const Activation activation = spec.args.activation;
  if (spec.bias.empty()) {
    if (activation == Activation::kLinear) return ProductEpilogue::kNone;
    return {};
  }
  if (activation == Activation::kLinear) return ProductEpilogue::kBias;
  if (activation == Activation::kRelu) return ProductEpilogue::kBiasRelu;
  return {};
}

// A plan works only with the addresses that it was made for.
void CheckIsPrepared(const char* name, const Tensor& got, const Tensor& prepared) {
  CHECK(got.data == prepared.data && got.dtype == prepared.dtype && got.cols == prepared.cols &&
        got.rows <= prepared.rows && (got.stride == prepared.stride || got.rows <= 1))
      << "a linear layer got another " << name << " than it was prepared for: " << got.rows << " x "
      << got.cols << " at " << got.data << ", stride " << got.stride << "; prepared "
      << prepared.rows << " x " << prepared.cols << " at " << prepared.data << ", stride "
      << prepared.stride;
}

void CheckShapes(const LinearGradArgs& args) {
  CHECK(args.x.rows == args.dy.rows && args.x.cols == args.w.rows && args.w.cols == args.dy.cols);
}

}  // namespace

void DeviceLinear::Linear(const Tensor& x, const Tensor& w, const Tensor& bias,
                          Activation activation, const Tensor& y) {
  CHECK(x.rows == y.rows && x.cols == w.rows && w.cols == y.cols);
  products_->Linear(transfers_.stream(), ConstValuesOf(x), ConstValuesOf(w),
                    bias.empty() ? nullptr : F32Data(bias), activation, ValuesOf(y));
}

void DeviceLinear::LinearGrad(const LinearGradArgs& args) {
  CheckShapes(args);
  // From here on dy is the gradient before the activation. db, dw and dx are all computed from it.
  if (args.activation != Activation::kLinear) {
    ActivateGrad(transfers_.stream(), args.activation, ConstValuesOf(args.y),
                 ConstValuesOf(args.dy), ValuesOf(args.dy), /*add=*/false);
  }
  if (!args.db.empty()) ColumnSum(args.dy, args.db);
  if (args.dx.wanted()) InputGradient(args);
  WeightGradient(args);
}

absl::StatusOr<std::unique_ptr<PreparedLinear>> DeviceLinear::Prepare(const LinearSpec& spec) {
  auto layer = std::make_unique<PlannedLinear>(spec);
  RETURN_IF_ERROR(PlanForward(layer.get()));
  if (!spec.args.dy.empty()) {
    RETURN_IF_ERROR(PlanInputGradient(layer.get(), static_cast<PlannedLinear*>(spec.input_relu)));
    RETURN_IF_ERROR(PlanWeightGradient(layer.get()));
  }
  RETURN_IF_ERROR(ReserveScratch(spec));
  return layer;
}

absl::StatusOr<std::unique_ptr<ProductPlan>> DeviceLinear::Plan(ProductSpec product,
                                                                ProductEpilogue epilogue) {
  product.epilogue = epilogue;
  ASSIGN_OR_RETURN(std::unique_ptr<ProductPlan> plan, products_->Plan(product));
  if (plan != nullptr && workspace_ == nullptr) {
    const int64_t bytes = products_->PlanWorkspaceBytes() + kWorkspaceAlignment;
    ASSIGN_OR_RETURN(void* const memory, transfers_.Allocate(bytes));
    const auto misaligned =
        static_cast<int64_t>(reinterpret_cast<uintptr_t>(memory) % kWorkspaceAlignment);
    workspace_ =
        static_cast<char*>(memory) + (misaligned == 0 ? 0 : kWorkspaceAlignment - misaligned);
  }
  return plan;
}

absl::Status DeviceLinear::PlanForward(PlannedLinear* layer) {
  absl::optional<ProductSpec> product = ForwardSpec(layer->spec);
  if (!product.has_value()) return absl::OkStatus();
  const absl::optional<ProductEpilogue> whole = WholeEpilogue(layer->spec);
  if (whole.has_value()) {
    ASSIGN_OR_RETURN(layer->forward, Plan(*product, *whole));
    layer->forward_is_whole = layer->forward != nullptr;
    if (layer->forward_is_whole || whole == ProductEpilogue::kNone) return absl::OkStatus();
  }
  if (Is16Bit(layer->spec.args.y)) {
    // Sums stay f32 until bias and activation have been applied.
    product->f32_output = true;
    product->c_stride = product->cols;
    product->c_alignment = kMostAlignment;
  }
  ASSIGN_OR_RETURN(layer->forward, Plan(*product, ProductEpilogue::kNone));
  return absl::OkStatus();
}

absl::StatusOr<bool> DeviceLinear::PlanMask(PlannedLinear* layer) {
  const LinearSpec& spec = layer->spec;
  const absl::optional<ProductSpec> product = ForwardSpec(spec);
  if (!product.has_value() || spec.bias.empty() || spec.args.activation != Activation::kRelu) {
    return false;
  }
  ASSIGN_OR_RETURN(std::unique_ptr<ProductPlan> plan,
                   Plan(*product, ProductEpilogue::kBiasReluMask));
  if (plan == nullptr) return false;
  ASSIGN_OR_RETURN(layer->mask, transfers_.Allocate(product->rows * MaskStride(product->cols) / 8));
  layer->forward = std::move(plan);
  layer->forward_is_whole = true;
  return true;
}

absl::Status DeviceLinear::PlanInputGradient(PlannedLinear* layer, PlannedLinear* input_relu) {
  const LinearGradArgs& args = layer->spec.args;
  if (!args.dx.wanted()) return absl::OkStatus();
  absl::optional<ProductSpec> product = SpecOf(args.dy, args.w, args.dx.tensor);
  if (!product.has_value()) return absl::OkStatus();
  product->cols = std::min(args.w.padded_rows(), args.dx.tensor.padded_cols());
  product->terms = std::min(args.dy.padded_cols(), args.w.padded_cols());
  product->transpose_b = true;
  if (input_relu != nullptr) {
    const Tensor& y = input_relu->spec.args.y;
    CHECK(y.data == args.x.data && y.cols == args.x.cols && args.x.rows <= y.rows);
    ASSIGN_OR_RETURN(std::unique_ptr<ProductPlan> plan, Plan(*product, ProductEpilogue::kReluGrad));
    // The mask is planned last, because it is of no use if no input gradient reads it.
    if (plan != nullptr) {
      ASSIGN_OR_RETURN(input_relu->gradient_passed_relu, PlanMask(input_relu));
    }
    if (input_relu->gradient_passed_relu) {
      layer->input_gradient = std::move(plan);
      layer->input_mask = input_relu->mask;
      return absl::OkStatus();
    }
  }
  ASSIGN_OR_RETURN(layer->input_gradient, Plan(*product, ProductEpilogue::kNone));
  return absl::OkStatus();
}

absl::Status DeviceLinear::PlanWeightGradient(PlannedLinear* layer) {
  const LinearGradArgs& args = layer->spec.args;
  absl::optional<ProductSpec> product = SpecOf(args.x, args.dy, args.dw);
  if (!product.has_value()) return absl::OkStatus();
  product->rows = std::min(args.x.padded_cols(), args.dw.padded_rows());
  product->cols = WeightGradientCols(args);
  product->terms = args.x.rows;
  product->transpose_a = true;
  if (!args.db.empty()) {
    ASSIGN_OR_RETURN(layer->weight_gradient, Plan(*product, ProductEpilogue::kColumnSums));
    layer->sums_columns = layer->weight_gradient != nullptr;
    if (layer->sums_columns) return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(layer->weight_gradient, Plan(*product, ProductEpilogue::kNone));
  return absl::OkStatus();
}

// Reserves scratch memory in advance, so that no step allocates.
absl::Status DeviceLinear::ReserveScratch(const LinearSpec& spec) {
  const LinearGradArgs& args = spec.args;
  const int64_t n = args.x.rows, in = args.w.rows, out = args.w.padded_cols();
  const bool trains = !args.dy.empty();
  const int64_t floats =
      std::max(Is16Bit(args.y) ? n * out : 0, trains ? ColumnSumPartials(n, out) : 0);
  return transfers_.ReserveScratch(
      std::max(floats * static_cast<int64_t>(sizeof(float)),
               trains ? products_->WeightGradientWorkspace(n, in, out) : 0));
}

void DeviceLinear::Forward(PreparedLinear* layer, const Tensor& x, const Tensor& w,
                           const Tensor& bias, const Tensor& y) {
  const auto& planned = *static_cast<PlannedLinear*>(layer);
  const LinearSpec& spec = planned.spec;
  if (planned.forward == nullptr || y.rows == 0) {
    return Linear(x, w, bias, spec.args.activation, y);
  }
  CheckIsPrepared("x", x, spec.args.x);
  CheckIsPrepared("w", w, spec.args.w);
  CheckIsPrepared("bias", bias, spec.bias);
  CheckIsPrepared("y", y, spec.args.y);
  Values sums = ValuesOf(y);
  if (!planned.forward_is_whole && Is16Bit(y)) {
    const int64_t cols = ForwardCols(spec);
    sums = Values(transfers_.Scratch<float>(y.rows * cols), y.rows, y.cols, cols);
  }
  const float* const added = bias.empty() ? nullptr : F32Data(bias);
  ProductBuffers buffers;
  buffers.a = x.data;
  buffers.b = w.data;
  buffers.c = sums.data;
  buffers.bias = added;
  buffers.mask = planned.mask;
  Run(planned.forward.get(), y.rows, buffers);
  if (planned.forward_is_whole) return;
  BiasActivate(transfers_.stream(), sums, added, spec.args.activation, ValuesOf(y));
}

void DeviceLinear::Backward(PreparedLinear* layer, const LinearGradArgs& args) {
  const auto& planned = *static_cast<PlannedLinear*>(layer);
  const LinearGradArgs& prepared = planned.spec.args;
  CheckShapes(args);
  const int64_t n = args.dy.rows;
  if (n == 0) {
    // The last step may have left NaN in the padding, which LinearGrad does not write.
    for (const Tensor& sums : {args.dw, args.db}) {
      if (!sums.empty()) Fill(transfers_.stream(), F32Matrix(sums.WithPadding()), 0);
    }
    return LinearGrad(args);
  }
  CheckIsPrepared("x", args.x, prepared.x);
  CheckIsPrepared("w", args.w, prepared.w);
  CheckIsPrepared("y", args.y, prepared.y);
  CheckIsPrepared("dy", args.dy, prepared.dy);
  CHECK(args.dx.wanted() == prepared.dx.wanted());
  if (args.dx.wanted()) CheckIsPrepared("dx", args.dx.tensor, prepared.dx.tensor);
  CheckIsPrepared("dw", args.dw, prepared.dw);
  CheckIsPrepared("db", args.db, prepared.db);
  CHECK(args.activation == prepared.activation);
  if (args.activation != Activation::kLinear && !planned.gradient_passed_relu) {
    ActivateGrad(transfers_.stream(), args.activation, ConstValuesOf(args.y),
                 ConstValuesOf(args.dy), ValuesOf(args.dy), /*add=*/false);
  }
  if (!args.db.empty() && !planned.sums_columns) ColumnSum(args.dy, args.db);
  if (planned.input_gradient != nullptr) {
    ProductBuffers buffers;
    buffers.a = args.dy.data;
    buffers.b = args.w.data;
    buffers.c = args.dx.tensor.data;
    buffers.add = args.dx.add;
    buffers.mask = planned.input_mask;
    Run(planned.input_gradient.get(), n, buffers);
  } else if (args.dx.wanted()) {
    InputGradient(args);
  }
  if (planned.weight_gradient == nullptr) return WeightGradient(args);
  ProductBuffers buffers;
  buffers.a = args.x.data;
  buffers.b = args.dy.data;
  buffers.c = args.dw.data;
  if (planned.sums_columns) buffers.sums = F32Data(args.db);
  Run(planned.weight_gradient.get(), n, buffers);
}

void DeviceLinear::ColumnSum(const Tensor& x, const Tensor& sums) {
  satrap::ColumnSum(transfers_.stream(), ConstValuesOf(x),
                    transfers_.Scratch<float>(ColumnSumPartials(x.rows, x.cols)), F32Data(sums));
}

void DeviceLinear::InputGradient(const LinearGradArgs& args) {
  products_->InputGradient(transfers_.stream(), ConstValuesOf(args.dy), ConstValuesOf(args.w),
                           ValuesOf(args.dx.tensor), args.dx.add);
}

void DeviceLinear::WeightGradient(const LinearGradArgs& args) {
  // The kernel wants rows without gaps, so it also writes padding columns, the products of those of
  // dy.
  Tensor dy = args.dy, dw = args.dw;
  if (dw.has_gaps()) {
    dw.cols = dw.padded_cols();
    dy.cols = dy.padded_cols();
    CHECK(!dw.has_gaps() && dy.cols == dw.cols);
  }
  const int64_t workspace = products_->WeightGradientWorkspace(dy.rows, dw.rows, dw.cols);
  products_->WeightGradient(transfers_.stream(), ConstValuesOf(args.x), ConstValuesOf(dy),
                            F32Matrix(dw), transfers_.Scratch<uint8_t>(workspace));
}

}  // namespace satrap

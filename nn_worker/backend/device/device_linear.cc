#include "nn_worker/backend/device/device_linear.h"

#include <algorithm>
#include <utility>

#include "absl/types/optional.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "nn_worker/backend/device/device_matrix.h"
#include "nn_worker/device/kernels/activation.h"
#include "nn_worker/device/kernels/add_pieces.h"
#include "nn_worker/device/kernels/column_sum.h"
#include "nn_worker/device/kernels/fill.h"
#include "nn_worker/device/kernels/one_output.h"

namespace satrap {

class PlannedLinear final : public PreparedLinear {
 public:
  explicit PlannedLinear(const LinearSpec& of) : PreparedLinear(of.args.activation), spec(of) {}

  const LinearSpec spec;
  // Null where our own kernel computes the product.
  std::unique_ptr<ProductPlan> forward, input_gradient, weight_gradient;
  bool forward_is_whole = false;  // it ends with bias and activation
  // The samples whose products are summed in one sequence for a weight gradient, whether by a plan
  // or by our own kernel.
  int64_t piece = kProductPiece;
  int64_t dw_rows = 0, dw_cols = 0;  // of what `weight_gradient` writes
  // If true, the layer of one output that follows this layer's ReLU computes the gradients of the
  // ReLU and of the bias in its own backward pass.
  bool gradient_passed_relu = false;
  const PlannedLinear* input_relu = nullptr;  // for which this layer does that
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
  return std::min(args.dy.padded_cols(), args.dw.padded_cols());
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
  if (spec.bias.dtype != spec.args.y.dtype) return {};
  if (activation == Activation::kLinear) return ProductEpilogue::kBias;
  if (activation == Activation::kRelu) return ProductEpilogue::kBiasRelu;
  return {};
}

// A plan works only with the addresses that it was made for.
void CheckIsPrepared(const char* name, const Tensor& got, const Tensor& prepared) {
  CHECK(got.data == prepared.data && got.dtype == prepared.dtype && got.cols == prepared.cols &&
        got.rows <= prepared.rows && (got.stride == prepared.stride || got.rows <= 1))
      << "a linear layer was called with a different " << name
      << " from the one it was prepared for: " << got.rows << " x " << got.cols << " at "
      << got.data << ", stride " << got.stride << "; prepared " << prepared.rows << " x "
      << prepared.cols << " at " << prepared.data << ", stride " << prepared.stride;
}

ConstValues BiasOf(const Tensor& bias) {
  return bias.empty() ? ConstValues() : ConstValuesOf(bias);
}

void CheckShapes(const LinearGradArgs& args) {
  CHECK(args.x.rows == args.dy.rows && args.x.cols == args.w.rows && args.w.cols == args.dy.cols);
}

}  // namespace

void DeviceLinear::Linear(const Tensor& x, const Tensor& w, const Tensor& bias,
                          Activation activation, const Tensor& y) {
  CHECK(x.rows == y.rows && x.cols == w.rows && w.cols == y.cols);
  products_->Linear(transfers_.stream(), ConstValuesOf(x), ConstValuesOf(w), BiasOf(bias),
                    activation, ValuesOf(y));
}

void DeviceLinear::LinearGrad(const LinearGradArgs& args) {
  CheckShapes(args);
  if (args.w.cols == 1) return OneOutputGrad(args, nullptr);
  ActivationAndBiasGradient(args);
  if (args.dx.wanted()) InputGradient(args);
  WeightGradient(kProductPiece, args);
}

absl::StatusOr<std::unique_ptr<PreparedLinear>> DeviceLinear::Prepare(const LinearSpec& spec) {
  auto layer = std::make_unique<PlannedLinear>(spec);
  RETURN_IF_ERROR(PlanForward(layer.get()));
  if (!spec.args.dy.empty()) {
    if (spec.args.w.cols == 1) TakeReluAlong(layer.get());
    RETURN_IF_ERROR(PlanInputGradient(layer.get()));
    RETURN_IF_ERROR(PlanWeightGradient(layer.get()));
  }
  RETURN_IF_ERROR(ReserveScratch(*layer));
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

void DeviceLinear::TakeReluAlong(PlannedLinear* layer) {
  const LinearGradArgs& args = layer->spec.args;
  auto* const before = static_cast<PlannedLinear*>(layer->spec.input_relu);
  if (before == nullptr || !args.dx.wanted()) return;
  const Tensor& y = before->spec.args.y;
  CHECK(y.data == args.x.data && y.cols == args.x.cols && args.x.rows <= y.rows);
  before->gradient_passed_relu = true;
  layer->input_relu = before;
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

absl::Status DeviceLinear::PlanInputGradient(PlannedLinear* layer) {
  const LinearGradArgs& args = layer->spec.args;
  if (!args.dx.wanted()) return absl::OkStatus();
  absl::optional<ProductSpec> product = SpecOf(args.dy, args.w, args.dx.tensor);
  if (!product.has_value()) return absl::OkStatus();
  product->cols = std::min(args.w.padded_rows(), args.dx.tensor.padded_cols());
  product->terms = std::min(args.dy.padded_cols(), args.w.padded_cols());
  product->transpose_b = true;
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
  if (!products_->has_library() || !ForLibrary(*product)) return absl::OkStatus();
  layer->piece = WeightGradientPiece(*product);
  // One plan writes both the pieces, which have no gaps, and the single product of a small part.
  if (args.dw.stride != product->cols) layer->piece = product->samples();
  if (layer->piece < product->samples()) {
    product->piece = layer->piece;
    product->c_stride = product->cols;
    // c is dw, or scratch memory where each product begins at the end of the one before it.
    const int64_t bytes = product->rows * product->cols * static_cast<int64_t>(sizeof(float));
    while (bytes % product->c_alignment != 0) product->c_alignment /= 2;
  }
  ASSIGN_OR_RETURN(layer->weight_gradient, Plan(*product, ProductEpilogue::kNone));
  layer->dw_rows = product->rows;
  layer->dw_cols = product->cols;
  return absl::OkStatus();
}

// Reserves scratch memory in advance, so that no step allocates.
absl::Status DeviceLinear::ReserveScratch(const PlannedLinear& layer) {
  const LinearGradArgs& args = layer.spec.args;
  const int64_t n = args.x.rows, out = args.w.padded_cols();
  const int64_t in = std::max(args.w.rows, layer.dw_rows);
  const bool trains = !args.dy.empty();
  int64_t floats = Is16Bit(args.y) ? n * out : 0;
  if (trains) {
    floats = std::max(
        {floats, ColumnSumPartials(n, out), out == 1 ? OneOutputPartials(n, args.x.cols) : 0});
  }
  return transfers_.ReserveScratch(
      std::max(floats * static_cast<int64_t>(sizeof(float)),
               trains ? Products::WeightGradientWorkspace(n, in, out, layer.piece) : 0));
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
  ProductBuffers buffers;
  buffers.a = x.data;
  buffers.b = w.data;
  buffers.c = sums.data;
  buffers.bias = bias.data;
  Run(planned.forward.get(), y.rows, buffers);
  if (planned.forward_is_whole) return;
  BiasActivate(transfers_.stream(), sums, BiasOf(bias), spec.args.activation, ValuesOf(y));
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
  if (args.w.cols == 1) return OneOutputGrad(args, planned.input_relu);
  if (!planned.gradient_passed_relu) ActivationAndBiasGradient(args);
  if (planned.input_gradient != nullptr) {
    ProductBuffers buffers;
    buffers.a = args.dy.data;
    buffers.b = args.w.data;
    buffers.c = args.dx.tensor.data;
    buffers.add = args.dx.add;
    Run(planned.input_gradient.get(), n, buffers);
  } else if (args.dx.wanted()) {
    InputGradient(args);
  }
  if (planned.weight_gradient == nullptr) return WeightGradient(planned.piece, args);
  PlannedWeightGradient(planned, args);
}

// From here on dy is the gradient before the activation. db, dw and dx are all computed from it.
void DeviceLinear::ActivationAndBiasGradient(const LinearGradArgs& args) {
  if (!args.db.empty()) {
    float* const partials =
        transfers_.Scratch<float>(ColumnSumPartials(args.dy.rows, args.dy.cols));
    ActivateGradColumnSum(transfers_.stream(), args.activation, ConstValuesOf(args.y),
                          ConstValuesOf(args.dy), ValuesOf(args.dy), partials, F32Data(args.db));
  } else if (args.activation != Activation::kLinear) {
    ActivateGrad(transfers_.stream(), args.activation, ConstValuesOf(args.y),
                 ConstValuesOf(args.dy), ValuesOf(args.dy), /*add=*/false);
  }
}

void DeviceLinear::OneOutputGrad(const LinearGradArgs& args, const PlannedLinear* input_relu) {
  if (args.activation != Activation::kLinear) {
    ActivateGrad(transfers_.stream(), args.activation, ConstValuesOf(args.y),
                 ConstValuesOf(args.dy), ValuesOf(args.dy), /*add=*/false);
  }
  OneOutputGradient gradient;
  gradient.x = ConstValuesOf(args.x);
  gradient.w = ConstValuesOf(args.w);
  gradient.dz = ConstValuesOf(args.dy);
  if (args.dx.wanted()) {
    gradient.dx = ValuesOf(args.dx.tensor);
    gradient.add = args.dx.add;
  }
  gradient.dw = F32Matrix(args.dw);
  if (!args.db.empty()) gradient.db = F32Data(args.db);
  if (input_relu != nullptr) {
    const Tensor& input_bias_gradient = input_relu->spec.args.db;
    gradient.relu_of_x = true;
    if (!input_bias_gradient.empty()) gradient.input_bias_gradient = F32Data(input_bias_gradient);
  }
  OneOutputBackward(transfers_.stream(), gradient,
                    transfers_.Scratch<float>(OneOutputPartials(args.x.rows, args.x.cols)));
}

void DeviceLinear::InputGradient(const LinearGradArgs& args) {
  products_->InputGradient(transfers_.stream(), ConstValuesOf(args.dy), ConstValuesOf(args.w),
                           ValuesOf(args.dx.tensor), args.dx.add);
}

void DeviceLinear::WeightGradient(int64_t piece, const LinearGradArgs& args) {
  // The kernel needs rows without gaps, so it also computes dw's padding columns, from those of dy.
  Tensor dy = args.dy, dw = args.dw;
  if (dw.has_gaps()) {
    dw.cols = dw.padded_cols();
    dy.cols = dy.padded_cols();
    CHECK(!dw.has_gaps() && dy.cols == dw.cols);
  }
  const int64_t bytes = Products::WeightGradientWorkspace(dy.rows, dw.rows, dw.cols, piece);
  products_->WeightGradient(transfers_.stream(), ConstValuesOf(args.x), ConstValuesOf(dy),
                            F32Matrix(dw), piece, transfers_.Scratch<uint8_t>(bytes));
}

void DeviceLinear::PlannedWeightGradient(const PlannedLinear& layer, const LinearGradArgs& args) {
  const int64_t n = args.dy.rows;
  const Matrix<float> dw = {F32Data(args.dw), layer.dw_rows, layer.dw_cols, args.dw.stride};
  ProductBuffers buffers;
  buffers.a = args.x.data;
  buffers.b = args.dy.data;
  buffers.c = dw.data;
  if (n <= layer.piece) return Run(layer.weight_gradient.get(), n, buffers);
  const int64_t pieces = (n + layer.piece - 1) / layer.piece;
  auto* const products = transfers_.Scratch<float>(pieces * dw.rows * dw.cols);
  buffers.c = products;
  Run(layer.weight_gradient.get(), n, buffers);
  AddPieces(transfers_.stream(), products, pieces, dw);
}

}  // namespace satrap

#include "nn_worker/backend/benchmark/workbench.h"

#include <algorithm>

#include "common/base/check.h"
#include "common/numeric/random.h"
#include "nn_worker/backend/tensor_copy.h"

namespace satrap {
namespace {

constexpr int64_t kPatternValues = int64_t{1} << 18;

}  // namespace

Workbench::Workbench(Backend* backend, int64_t samples, DType values)
    : backend_(backend), samples_(samples), values_(values) {
  std::vector<float> pattern(kPatternValues);
  for (size_t i = 0; i < pattern.size(); ++i) pattern[i] = 2 * UniformFloat(RandomBits(1, i)) - 1;
  pattern_ = New(DType::kF32, 1, kPatternValues);
  CopyIn(backend_, pattern, pattern_);
}

Tensor Workbench::New(DType dtype, int64_t rows, int64_t cols, int64_t stride) {
  const auto tensor = AllocateTensor(backend_, dtype, rows, cols, stride);
  CHECK_OK(tensor.status());
  return *tensor;
}

// Copies a pattern on the device, because the host would take minutes to fill tensors of the size
// that is measured on a card.
void Workbench::FillWithRandom(const Tensor& tensor) {
  const int64_t width = std::min(tensor.cols, kPatternValues);
  const int64_t height = kPatternValues / std::max<int64_t>(1, width);
  for (int64_t row = 0; row < tensor.rows; row += height) {
    const Tensor rows = tensor.Rows(row, std::min(height, tensor.rows - row));
    for (int64_t column = 0; column < tensor.cols; column += width) {
      const Tensor to = rows.Columns(column, std::min(width, tensor.cols - column));
      backend_->Copy(TensorF32(pattern_.data, to.rows, to.cols), to, /*add=*/false);
    }
  }
}

Tensor Workbench::Padded(DType dtype, int64_t cols) {
  const Tensor tensor = New(dtype, samples_, cols, PaddedStride(dtype, cols));
  FillWithRandom(tensor);
  return tensor;
}

Tensor Workbench::WithPadding(DType dtype, int64_t rows, int64_t cols, int64_t padded_rows,
                              int64_t stride) {
  const int64_t padded_cols = backend_->PaddedWidth(cols);
  const Tensor block = New(dtype, padded_rows, padded_cols, stride);
  backend_->Fill(block, 0);
  const Tensor tensor = block.Padded(rows, cols);
  FillWithRandom(tensor);
  return tensor;
}

Tensor Workbench::ValuesOfProducts(int64_t cols) {
  return WithPadding(values_, samples_, cols, samples_,
                     PaddedStride(values_, backend_->PaddedWidth(cols)));
}

Tensor Workbench::WeightsOfProducts(int64_t rows, int64_t cols) {
  if (values_ == DType::kF32) return GradientsOfProducts(rows, cols);
  return WithPadding(values_, rows, cols, PaddedRows(rows),
                     PaddedStride(values_, backend_->PaddedWidth(cols)));
}

Tensor Workbench::GradientsOfProducts(int64_t rows, int64_t cols) {
  return WithPadding(DType::kF32, rows, cols, PaddedRows(rows), backend_->PaddedWidth(cols));
}

Tensor Workbench::BiasOfProducts(DType outputs, int64_t cols) {
  const bool rounded = DTypeBytes(outputs) == 2 && backend_->takes_rounded_biases();
  return WithPadding(rounded ? outputs : DType::kF32, 1, cols, 1, backend_->PaddedWidth(cols));
}

std::vector<Tensor> Workbench::Fields(int64_t count, int64_t cols) {
  const Tensor block = Values(count * cols);
  std::vector<Tensor> fields;
  for (int64_t f = 0; f < count; ++f) fields.push_back(block.Columns(f * cols, cols));
  return fields;
}

Tensor Workbench::Tight(DType dtype, int64_t rows, int64_t cols) {
  const Tensor tensor = New(dtype, rows, cols);
  FillWithRandom(tensor);
  return tensor;
}

Tensor Workbench::Filled(int64_t rows, int64_t cols, float value) {
  const Tensor tensor = New(DType::kF32, rows, cols);
  backend_->Fill(tensor, value);
  return tensor;
}

Tensor Workbench::Doubles(int64_t cols) { return New(DType::kF64, 1, cols); }

Tensor Workbench::Weights(int64_t rows, int64_t cols) {
  const Tensor tensor =
      New(values_, rows, cols, values_ == DType::kF32 ? cols : PaddedStride(values_, cols));
  FillWithRandom(tensor);
  return tensor;
}

Tensor Workbench::Indices(const std::vector<uint32_t>& indices, int64_t rows, int64_t cols) {
  const Tensor tensor = New(DType::kU32, rows, cols);
  CopyIn(backend_, indices, tensor);
  return tensor;
}

Tensor Workbench::Control() {
  const auto control = AllocateControl(backend_);
  CHECK_OK(control.status());
  const Tensor sums = New(DType::kF32, 1, kNumStepSums);
  const auto samples = static_cast<float>(samples_);
  const float values[kNumStepSums] = {samples, samples, 0};
  CopyIn(backend_, absl::MakeConstSpan(values), sums);
  StepPlan plan;
  plan.learning_rate = 1e-6f;
  plan.correction1 = 0.1f;
  plan.correction2 = 0.001f;
  plan.global_batch_size = samples_;
  backend_->DecideStep(plan, sums, *control);
  return *control;
}

std::vector<GradientTarget> TargetsOf(const std::vector<Tensor>& tensors) {
  std::vector<GradientTarget> targets;
  for (const Tensor& tensor : tensors) targets.push_back({tensor, /*add=*/false});
  return targets;
}

}  // namespace satrap

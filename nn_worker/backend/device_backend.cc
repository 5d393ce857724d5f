#include "nn_worker/backend/device_backend.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "nn_worker/backend/device_matrix.h"
#include "nn_worker/backend/device_missing_operations.h"
#include "nn_worker/backend/device_row_exchange.h"
#include "nn_worker/backend/device_transfers.h"
#include "nn_worker/device/kernels/activation.h"
#include "nn_worker/device/kernels/batch_norm.h"
#include "nn_worker/device/kernels/bce_with_logits.h"
#include "nn_worker/device/kernels/column_sum.h"
#include "nn_worker/device/kernels/convert.h"
#include "nn_worker/device/kernels/count_non_finite.h"
#include "nn_worker/device/kernels/decide_step.h"
#include "nn_worker/device/kernels/dropout.h"
#include "nn_worker/device/kernels/fill.h"
#include "nn_worker/device/kernels/optimizer_step.h"
#include "nn_worker/device/kernels/row_sum.h"
#include "nn_worker/device/kernels/sequence_pool.h"

namespace satrap {
namespace {

void CheckSameShape(const Tensor& a, const Tensor& b) {
  CHECK(a.rows == b.rows && a.cols == b.cols)
      << "(" << a.rows << ", " << a.cols << ") and (" << b.rows << ", " << b.cols << ")";
}

void CheckSequence(const Tensor& x, const Tensor& lengths, const Tensor& y) {
  CHECK(x.rows == y.rows && lengths.rows == y.rows && lengths.cols == 1);
  CHECK(y.cols > 0 && x.cols % y.cols == 0) << x.cols << " columns, " << y.cols << " a position";
}

// Merges tensors that are neighbouring columns of the same rows: a model has many inputs of one
// column (linear weights) that lie side by side, and a lane then reads four of them at once.
template <typename T>
void AddInput(const Tensor& tensor, bool add, std::vector<RowSumInput<T>>* inputs) {
  if (tensor.cols == 0) return;
  T* const data = F32Data(tensor);
  if (!inputs->empty()) {
    RowSumInput<T>& last = inputs->back();
    if (last.stride == tensor.stride && last.add == add && last.data + last.cols == data &&
        last.cols + tensor.cols <= tensor.stride) {
      last.cols += static_cast<int32_t>(tensor.cols);
      return;
    }
  }
  RowSumInput<T>& input = inputs->emplace_back();
  input.data = data;
  input.stride = tensor.stride;
  input.cols = static_cast<int32_t>(tensor.cols);
  input.aligned = GroupsOfRowsAligned(tensor);
  input.add = add;
}

Column ColumnOf(const Tensor& tensor) {
  if (tensor.empty()) return {nullptr, 0};
  return {F32Data(tensor), tensor.stride};
}

BatchNormStats StatsOf(const Tensor& stats) {
  return {F32Data(stats), F32Data(stats) + stats.stride};
}

class DeviceBackend final : public DeviceMissingOperations {
 public:
  DeviceBackend(std::unique_ptr<DeviceTransfers> transfers, std::unique_ptr<Products> products)
      : products_(std::move(products)), transfers_(std::move(transfers)) {}

  absl::StatusOr<void*> Allocate(int64_t bytes) override { return transfers_->Allocate(bytes); }
  absl::StatusOr<void*> AllocatePinned(int64_t bytes) override {
    ASSIGN_OR_RETURN(uint8_t* const memory, transfers_->pinned()->NewBlock(bytes));
    std::fill_n(memory, bytes, uint8_t{0});
    return memory;
  }
  std::shared_ptr<BufferAllocator> PinnedBuffers() override { return transfers_->pinned(); }
  bool IsPinned(const void* host, int64_t bytes) const override {
    return transfers_->pinned()->Holds(host, bytes);
  }
  void CopyIn(absl::Span<const uint8_t> host, Tensor device) override {
    transfers_->CopyIn(host, device);
  }
  void CopyOut(Tensor device, absl::Span<uint8_t> host) override {
    transfers_->CopyOut(device, host);
  }
  void StartCopyIn(absl::Span<const uint8_t> pinned, Tensor device) override {
    const auto bytes = static_cast<int64_t>(pinned.size());
    CHECK(bytes == device.size_bytes() && !device.has_gaps()) << bytes;
    transfers_->stream(Lane::kCopiesIn)->CopyIn(pinned.data(), device.data, bytes);
  }
  void StartCopyOut(Tensor device, absl::Span<uint8_t> pinned) override {
    const auto bytes = static_cast<int64_t>(pinned.size());
    CHECK(bytes == device.size_bytes() && !device.has_gaps()) << bytes;
    transfers_->stream(Lane::kCopiesOut)->CopyOut(device.data, pinned.data(), bytes);
  }
  absl::StatusOr<std::unique_ptr<BackendEvent>> NewEvent() override {
    return transfers_->NewEvent();
  }
  void Record(Lane lane, BackendEvent* event) override { transfers_->Record(lane, event); }
  void WaitFor(Lane lane, BackendEvent* event) override { transfers_->WaitFor(lane, event); }
  absl::StatusOr<bool> Poll(BackendEvent* event) override { return transfers_->Poll(event); }
  void Sync() override { transfers_->Sync(); }
  void* HostView(void*) override { return nullptr; }
  void* DeviceView(void*) override { return nullptr; }

  void Fill(Tensor y, float value) override {
    if (y.dtype == DType::kF64) {
      satrap::Fill(stream(), Matrix<double>{F64Data(y), y.rows, y.cols, y.stride}, value);
    } else {
      satrap::Fill(stream(), F32Matrix(y), value);
    }
  }
  void Copy(Tensor x, Tensor y, bool add) override {
    CheckSameShape(x, y);
    if (x.data == y.data && !add) return;
    Convert(stream(), ConstF32Matrix(x), F32Matrix(y), add);
  }
  void ToF32(Tensor x, Tensor y) override {
    CheckSameShape(x, y);
    Convert(stream(), Matrix<const double>{F64Data(x), x.rows, x.cols, x.stride}, F32Matrix(y),
            /*add=*/false);
  }

  void Linear(Tensor x, Tensor w, Tensor bias, Activation activation, Tensor y) override {
    CHECK(x.rows == y.rows && x.cols == w.rows && w.cols == y.cols);
    products_->Linear(stream(), ConstF32Matrix(x), ConstF32Matrix(w),
                      bias.empty() ? nullptr : F32Data(bias), activation, F32Matrix(y));
  }
  void LinearGrad(const LinearGradArgs& args) override;

  void AddBias(Tensor x, Tensor bias, Tensor y) override {
    CheckSameShape(x, y);
    BiasActivate(stream(), ConstF32Matrix(x), F32Data(bias), Activation::kLinear, F32Matrix(y));
  }
  void ColumnSum(Tensor x, Tensor sums) override {
    satrap::ColumnSum(stream(), ConstF32Matrix(x),
                      transfers_->Scratch<float>(ColumnSumPartials(x.rows, x.cols)), F32Data(sums));
  }
  void Activate(Activation activation, Tensor x, Tensor y) override {
    CheckSameShape(x, y);
    BiasActivate(stream(), ConstF32Matrix(x), nullptr, activation, F32Matrix(y));
  }
  void ActivateGrad(Activation activation, Tensor y, Tensor dy, GradientTarget dx) override {
    CheckSameShape(dx.tensor, y);
    satrap::ActivateGrad(stream(), activation, ConstF32Matrix(y), ConstF32Matrix(dy),
                         F32Matrix(dx.tensor), dx.add);
  }

  void RowSum(absl::Span<const Tensor> xs, Tensor y) override {
    std::vector<RowSumInput<const float>> inputs;
    for (const Tensor& x : xs) AddInput(x, /*add=*/false, &inputs);
    satrap::RowSum(stream(), transfers_->Table(inputs), static_cast<int>(inputs.size()),
                   F32Matrix(y));
  }
  void RowSumGrad(Tensor dy, absl::Span<const GradientTarget> dxs) override {
    std::vector<RowSumInput<float>> inputs;
    int64_t max_cols = 0;
    for (const GradientTarget& dx : dxs) {
      if (dx.wanted()) AddInput(dx.tensor, dx.add, &inputs);
      if (!inputs.empty()) max_cols = std::max<int64_t>(max_cols, inputs.back().cols);
    }
    satrap::RowSumGrad(stream(), ConstF32Matrix(dy), transfers_->Table(inputs),
                       static_cast<int>(inputs.size()), max_cols);
  }
  void Fm(absl::Span<const Tensor> xs, Tensor s, Tensor y) override;
  void FmGrad(absl::Span<const Tensor> xs, Tensor s, Tensor dy,
              absl::Span<const GradientTarget> dxs) override;

  void SequencePool(SequencePooling pooling, Tensor x, Tensor lengths, Tensor y) override {
    CheckSequence(x, lengths, y);
    PoolSequences(stream(), pooling, ConstF32Matrix(x), ConstF32Matrix(lengths), F32Matrix(y));
  }
  void SequencePoolGrad(SequencePooling pooling, Tensor x, Tensor lengths, Tensor y, Tensor dy,
                        GradientTarget dx) override {
    CheckSequence(x, lengths, y);
    CheckSameShape(y, dy);
    CheckSameShape(x, dx.tensor);
    PoolSequencesGrad(stream(), pooling, ConstF32Matrix(x), ConstF32Matrix(lengths),
                      ConstF32Matrix(y), ConstF32Matrix(dy), F32Matrix(dx.tensor), dx.add);
  }
  void Dropout(Tensor x, uint64_t key, int64_t first_sample, float rate, Tensor y,
               bool add) override {
    CheckSameShape(x, y);
    CHECK(rate >= 0 && rate < 1) << rate;
    DropOut(stream(), ConstF32Matrix(x), key, first_sample, rate, F32Matrix(y), add);
  }

  void Moments(Tensor x, Tensor sums) override {
    SumMoments(stream(), ConstF32Matrix(x), BatchNormScratch(x), F64Data(sums));
  }
  void BatchNorm(Tensor x, Tensor sums, float epsilon, Tensor gamma, Tensor beta, Tensor stats,
                 Tensor y) override {
    CheckSameShape(x, y);
    MomentsToStats(stream(), F64Data(sums), x.cols, epsilon, F32Data(stats),
                   F32Data(stats) + stats.stride);
    satrap::Normalize(stream(), ConstF32Matrix(x), StatsOf(stats), F32Data(gamma), F32Data(beta),
                      F32Matrix(y));
  }
  void BatchNormFixed(Tensor x, Tensor mean, Tensor variance, float epsilon, Tensor gamma,
                      Tensor beta, Tensor y) override {
    CheckSameShape(x, y);
    auto* const inverse_std = transfers_->Scratch<float>(x.cols);
    InvertDeviations(stream(), F32Data(variance), x.cols, epsilon, inverse_std);
    satrap::Normalize(stream(), ConstF32Matrix(x), {F32Data(mean), inverse_std}, F32Data(gamma),
                      F32Data(beta), F32Matrix(y));
  }
  void BatchNormGradSums(Tensor x, Tensor stats, Tensor dy, Tensor grad_sums) override {
    CheckSameShape(x, dy);
    SumBatchNormGrad(stream(), ConstF32Matrix(x), StatsOf(stats), ConstF32Matrix(dy),
                     BatchNormScratch(x), F64Data(grad_sums));
  }
  void BatchNormGrad(Tensor x, Tensor stats, Tensor gamma, Tensor dy, Tensor sums, Tensor grad_sums,
                     GradientTarget dx) override {
    CheckSameShape(x, dy);
    CheckSameShape(x, dx.tensor);
    satrap::NormalizeGrad(stream(), ConstF32Matrix(x), StatsOf(stats), F32Data(gamma),
                          ConstF32Matrix(dy), F64Data(sums), F64Data(grad_sums),
                          transfers_->Scratch<float>(2 * x.cols), F32Matrix(dx.tensor), dx.add);
  }
  void BatchNormRunning(Tensor control, Tensor sums, float momentum, Tensor mean,
                        Tensor variance) override {
    UpdateRunningStats(stream(), ControlData(control), F64Data(sums), mean.cols, momentum,
                       F32Data(mean), F32Data(variance));
  }

  void BceWithLogits(Tensor control, Tensor logits, Tensor labels, Tensor weights, Tensor mask,
                     Tensor dlogits, Tensor sums) override {
    BceArgs args = {};
    args.control = ControlData(control);
    args.samples = logits.rows;
    args.logits = ColumnOf(logits);
    args.labels = ColumnOf(labels);
    args.weights = ColumnOf(weights);
    args.mask = ColumnOf(mask);
    args.dlogits = F32Data(dlogits);
    args.dlogits_stride = dlogits.stride;
    satrap::BceWithLogits(stream(), args, transfers_->Scratch<double>(BcePartials(args.samples)),
                          F64Data(sums));
  }
  void GatherRows(absl::Span<const FeatureExchange> features) override {
    GatherRowsOnDevice(transfers_.get(), features);
  }
  void ScatterGradients(absl::Span<const FeatureExchange> features, const RowInverse& inverse,
                        Tensor gradients) override {
    if (features.empty()) return Fill(gradients, 0);
    if (features.size() > 1 || !features[0].one_row_a_sample) {
      return ScatterGradientsOnDevice(transfers_.get(), features, inverse, gradients);
    }
    Fill(gradients, 0);
    for (const RowSegment& segment : features[0].segments) {
      Copy(segment.values, gradients.Columns(segment.column, segment.width), /*add=*/false);
    }
  }
  bool ScattersByRow() const override { return true; }
  void CountNonFinite(Tensor x, Tensor count) override {
    satrap::CountNonFinite(stream(), ConstF32Matrix(x),
                           transfers_->Scratch<uint64_t>(kNonFinitePartials), F64Data(count));
  }

  void DecideStep(const StepPlan& plan, Tensor sums, Tensor control) override {
    CHECK(sums.cols == kNumStepSums) << sums.cols;
    satrap::DecideStep(stream(), plan, F32Data(sums), ControlData(control));
  }
  void SgdStep(Tensor control, float l2, Tensor gradient, Tensor w) override {
    satrap::SgdStep(stream(), {ControlData(control), l2}, F32Data(gradient), F32Data(w), w.cols);
  }
  void AdagradStep(Tensor control, float l2, float epsilon, Tensor gradient, Tensor w,
                   Tensor a) override {
    satrap::AdagradStep(stream(), {ControlData(control), l2}, epsilon, F32Data(gradient),
                        F32Data(w), F32Data(a), w.cols);
  }
  void AdamStep(Tensor control, float l2, const AdamArgs& adam, Tensor gradient, Tensor w, Tensor m,
                Tensor v) override {
    satrap::AdamStep(stream(), {ControlData(control), l2}, {adam.beta1, adam.beta2, adam.epsilon},
                     F32Data(gradient), F32Data(w), F32Data(m), F32Data(v), w.cols);
  }

 private:
  Stream* stream() { return transfers_->stream(); }
  double* BatchNormScratch(const Tensor& x) {
    return transfers_->Scratch<double>(BatchNormPartials(x.rows, x.cols));
  }

  const std::unique_ptr<Products> products_;
  // Destroyed first: what is enqueued may still use memory of the products.
  const std::unique_ptr<DeviceTransfers> transfers_;
};

void DeviceBackend::LinearGrad(const LinearGradArgs& args) {
  CHECK(args.x.rows == args.dy.rows && args.x.cols == args.w.rows && args.w.cols == args.dy.cols);
  // From here on dy is the gradient before the activation: db, dw and dx are all made of that.
  if (args.activation != Activation::kLinear) {
    ActivateGrad(args.activation, args.y, args.dy, {args.dy, false});
  }
  const Matrix<const float> dz = ConstF32Matrix(args.dy);
  if (!args.db.empty()) ColumnSum(args.dy, args.db);
  if (args.dx.wanted()) {
    products_->InputGradient(stream(), dz, ConstF32Matrix(args.w), F32Matrix(args.dx.tensor),
                             args.dx.add);
  }
  const int64_t workspace = products_->WeightGradientWorkspace(dz.rows, args.w.rows, args.w.cols);
  products_->WeightGradient(stream(), ConstF32Matrix(args.x), dz, F32Matrix(args.dw),
                            transfers_->Scratch<uint8_t>(workspace));
}

void DeviceBackend::Fm(absl::Span<const Tensor> xs, Tensor s, Tensor y) {
  std::vector<RowSumInput<const float>> inputs;
  for (const Tensor& x : xs) {
    CheckSameShape(x, s);
    RowSumInput<const float>& input = inputs.emplace_back();
    input.data = F32Data(x);
    input.stride = x.stride;
    input.cols = static_cast<int32_t>(x.cols);
    input.aligned = GroupsOfRowsAligned(x);
  }
  satrap::Fm(stream(), transfers_->Table(inputs), static_cast<int>(inputs.size()), F32Matrix(s),
             F32Matrix(y));
}

void DeviceBackend::FmGrad(absl::Span<const Tensor> xs, Tensor s, Tensor dy,
                           absl::Span<const GradientTarget> dxs) {
  CHECK(xs.size() == dxs.size());
  std::vector<FmGradInput> inputs;
  for (size_t f = 0; f < xs.size(); ++f) {
    if (!dxs[f].wanted()) continue;
    CheckSameShape(xs[f], s);
    CheckSameShape(dxs[f].tensor, s);
    FmGradInput& input = inputs.emplace_back();
    input.x.data = F32Data(xs[f]);
    input.x.stride = xs[f].stride;
    input.x.aligned = GroupsOfRowsAligned(xs[f]);
    input.dx.data = F32Data(dxs[f].tensor);
    input.dx.stride = dxs[f].tensor.stride;
    input.dx.aligned = GroupsOfRowsAligned(dxs[f].tensor);
    input.dx.add = dxs[f].add;
  }
  satrap::FmGrad(stream(), transfers_->Table(inputs), static_cast<int>(inputs.size()),
                 ConstF32Matrix(s), ConstF32Matrix(dy));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Backend>> NewDeviceBackend(std::unique_ptr<Device> device,
                                                          std::unique_ptr<Products> products) {
  ASSIGN_OR_RETURN(std::unique_ptr<DeviceTransfers> transfers,
                   DeviceTransfers::Create(std::move(device)));
  return std::unique_ptr<Backend>(
      std::make_unique<DeviceBackend>(std::move(transfers), std::move(products)));
}

}  // namespace satrap

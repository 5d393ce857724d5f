#include "nn_worker/backend/device/device_backend.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "nn_worker/backend/device/device_linear.h"
#include "nn_worker/backend/device/device_losses.h"
#include "nn_worker/backend/device/device_matrix.h"
#include "nn_worker/backend/device/device_row_exchange.h"
#include "nn_worker/backend/device/device_transfers.h"
#include "nn_worker/device/kernels/activation.h"
#include "nn_worker/device/kernels/batch_norm.h"
#include "nn_worker/device/kernels/column_sum.h"
#include "nn_worker/device/kernels/convert.h"
#include "nn_worker/device/kernels/count_beyond.h"
#include "nn_worker/device/kernels/decide_step.h"
#include "nn_worker/device/kernels/dropout.h"
#include "nn_worker/device/kernels/fill.h"
#include "nn_worker/device/kernels/optimizer_step.h"
#include "nn_worker/device/kernels/row_sum.h"
#include "nn_worker/device/kernels/sequence_pool.h"
#include "nn_worker/device/product_spec.h"

namespace satrap {
namespace {

void CheckSequence(const Tensor& x, const Tensor& lengths, const Tensor& y) {
  CHECK(x.rows == y.rows && lengths.rows == y.rows && lengths.cols == 1);
  CHECK(y.cols > 0 && x.cols % y.cols == 0) << x.cols << " columns, " << y.cols << " a position";
}

// Whether `next` consists of the columns that follow those of `x` in the same rows. A model has
// many inputs of one column (linear weights) side by side; if they are joined, a lane reads four at
// once.
template <typename View>
bool AreNeighbours(const View& x, const View& next) {
  return x.type == next.type && x.stride == next.stride && x.cols + next.cols <= x.stride &&
         static_cast<const char*>(x.data) + x.cols * ElementBytes(x.type) == next.data;
}

// Calls body(matrix), where `matrix` has the type of the tensor's values.
template <typename Body>
void WithMatrix(const Tensor& tensor, Body body) {
  const Values x = ValuesOf(tensor);
  if (x.type == ElementType::kF32) {
    body(Matrix<float>{static_cast<float*>(x.data), x.rows, x.cols, x.stride});
  } else if (x.type == ElementType::kF16) {
    body(Matrix<Half>{static_cast<Half*>(x.data), x.rows, x.cols, x.stride});
  } else {
    body(Matrix<Bf16>{static_cast<Bf16*>(x.data), x.rows, x.cols, x.stride});
  }
}

template <typename T>
Matrix<const T> AsConst(const Matrix<T>& m) {
  return {m.data, m.rows, m.cols, m.stride};
}

BatchNormStats StatsOf(const Tensor& stats) {
  return {F32Data(stats), F32Data(stats) + stats.stride};
}

class DeviceBackend final : public DeviceLossBackend {
 public:
  DeviceBackend(std::shared_ptr<Device> device, std::unique_ptr<DeviceTransfers> transfers,
                std::unique_ptr<Products> products)
      : DeviceLossBackend(transfers.get()),
        device_(std::move(device)),
        linear_(std::move(products), transfers.get()),
        transfers_(std::move(transfers)) {}

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
  // These copies have their own streams, which run at the same time as the operations. Callers
  // order them by events.
  void StartCopyIn(absl::Span<const uint8_t> pinned, Tensor device) override {
    const auto bytes = static_cast<int64_t>(pinned.size());
    CHECK(bytes == device.size_bytes() && !device.has_gaps()) << bytes;
    transfers_->meter()->CountCopyIn(bytes);
    transfers_->stream(DeviceQueue::kCopiesIn)->CopyIn(pinned.data(), device.data, bytes);
  }
  void StartCopyOut(Tensor device, absl::Span<uint8_t> pinned) override {
    const auto bytes = static_cast<int64_t>(pinned.size());
    CHECK(bytes == device.size_bytes() && !device.has_gaps()) << bytes;
    transfers_->meter()->CountCopyOut(bytes);
    transfers_->stream(DeviceQueue::kCopiesOut)->CopyOut(device.data, pinned.data(), bytes);
  }
  absl::StatusOr<std::unique_ptr<BackendEvent>> NewEvent() override {
    return transfers_->NewEvent();
  }
  void Record(DeviceQueue queue, BackendEvent* event) override { transfers_->Record(queue, event); }
  void WaitFor(DeviceQueue queue, BackendEvent* event) override {
    transfers_->WaitFor(queue, event);
  }
  absl::StatusOr<bool> Poll(BackendEvent* event) override { return transfers_->Poll(event); }
  void Sync() override { transfers_->Sync(); }
  absl::Status EnqueueBeside(absl::FunctionRef<absl::Status(DeviceStream*)> enqueue,
                             BackendEvent* done) override {
    return transfers_->EnqueueBeside(enqueue, done);
  }
  int64_t GraphEpoch() const override { return transfers_->tables()->epoch(); }
  absl::StatusOr<std::unique_ptr<OperationGraph>> Capture(
      absl::FunctionRef<absl::Status()> enqueue) override {
    return transfers_->Capture(enqueue);
  }
  void Enqueue(OperationGraph* graph) override { transfers_->Enqueue(graph); }
  void BeginRange(const char* name) override { device_->BeginRange(name); }
  void EndRange() override { device_->EndRange(); }
  // The host and the device cannot access each other's memory in place.
  void* HostView(void*) override { return nullptr; }
  void* DeviceView(void*) override { return nullptr; }

  void Fill(Tensor y, float value) override {
    if (y.dtype == DType::kF64) {
      satrap::Fill(stream(), Matrix<double>{F64Data(y), y.rows, y.cols, y.stride}, value);
    } else {
      WithMatrix(y, [&](auto to) { satrap::Fill(stream(), to, value); });
    }
  }
  void Copy(Tensor x, Tensor y, bool add) override {
    CheckSameShape(x, y);
    if (x.data == y.data && !add) return;
    WithMatrix(x, [&](auto from) {
      WithMatrix(y, [&](auto to) { Convert(stream(), AsConst(from), to, add); });
    });
  }
  void ToF32(Tensor x, Tensor y) override {
    CheckSameShape(x, y);
    Convert(stream(), Matrix<const double>{F64Data(x), x.rows, x.cols, x.stride}, F32Matrix(y),
            /*add=*/false);
  }

  // Only our own kernels compute these: a library has plans only for prepared layers.
  void Linear(Tensor x, Tensor w, Tensor bias, Activation activation, Tensor y) override {
    linear_.Linear(x, w, bias, activation, y);
  }
  void LinearGrad(const LinearGradArgs& args) override { linear_.LinearGrad(args); }
  bool takes_rounded_biases() const override { return true; }
  int64_t PaddedWidth(int64_t width) const override { return ProductWidth(width); }
  absl::StatusOr<std::unique_ptr<PreparedLinear>> PrepareLinear(const LinearSpec& spec) override {
    return linear_.Prepare(spec);
  }
  void LinearForward(PreparedLinear* layer, Tensor x, Tensor w, Tensor bias, Tensor y) override {
    linear_.Forward(layer, x, w, bias, y);
  }
  void LinearBackward(PreparedLinear* layer, const LinearGradArgs& args) override {
    linear_.Backward(layer, args);
  }

  void AddBias(Tensor x, Tensor bias, Tensor y) override {
    CheckSameShape(x, y);
    BiasActivate(stream(), ConstValuesOf(x), ConstValuesOf(bias), Activation::kLinear, ValuesOf(y));
  }
  void ColumnSum(Tensor x, Tensor sums) override {
    satrap::ColumnSum(stream(), ConstValuesOf(x),
                      transfers_->Scratch<float>(ColumnSumPartials(x.rows, x.cols)), F32Data(sums));
  }
  void Activate(Activation activation, Tensor x, Tensor y) override {
    CheckSameShape(x, y);
    BiasActivate(stream(), ConstValuesOf(x), {}, activation, ValuesOf(y));
  }
  void ActivateGrad(Activation activation, Tensor y, Tensor dy, GradientTarget dx) override {
    CheckSameShape(dx.tensor, y);
    satrap::ActivateGrad(stream(), activation, ConstValuesOf(y), ConstValuesOf(dy),
                         ValuesOf(dx.tensor), dx.add);
  }

  void RowSum(absl::Span<const Tensor> xs, Tensor y) override;
  void RowSumGrad(Tensor dy, absl::Span<const GradientTarget> dxs) override;

  void SequencePool(SequencePooling pooling, Tensor x, Tensor lengths, Tensor y) override {
    CheckSequence(x, lengths, y);
    PoolSequences(stream(), pooling, ConstValuesOf(x), ConstValuesOf(lengths), ValuesOf(y));
  }
  void SequencePoolGrad(SequencePooling pooling, Tensor x, Tensor lengths, Tensor y, Tensor dy,
                        GradientTarget dx) override {
    CheckSequence(x, lengths, y);
    CheckSameShape(y, dy);
    CheckSameShape(x, dx.tensor);
    PoolSequencesGrad(stream(), pooling, ConstValuesOf(x), ConstValuesOf(lengths), ConstValuesOf(y),
                      ConstValuesOf(dy), ValuesOf(dx.tensor), dx.add);
  }
  void Dropout(Tensor x, const DropoutMask& mask, float rate, Tensor y, bool add) override {
    CheckSameShape(x, y);
    CHECK(rate >= 0 && rate < 1) << rate;
    CHECK(mask.pass_in_memory.size_bytes() == sizeof(PassNumbers));
    DropOut(stream(), ConstValuesOf(x), mask.seed,
            static_cast<const PassNumbers*>(mask.pass_in_memory.data), rate, ValuesOf(y), add);
  }

  void Moments(Tensor x, Tensor sums) override {
    SumMoments(stream(), ConstValuesOf(x), BatchNormScratch(x), F64Data(sums));
  }
  void BatchNorm(Tensor x, Tensor sums, float epsilon, Tensor gamma, Tensor beta, Tensor stats,
                 Tensor y) override {
    CheckSameShape(x, y);
    // Computes the root and the division once per column, so that each value costs only a product
    // and a sum.
    MomentsToStats(stream(), F64Data(sums), x.cols, epsilon, F32Data(stats),
                   F32Data(stats) + stats.stride);
    satrap::Normalize(stream(), ConstValuesOf(x), StatsOf(stats), F32Data(gamma), F32Data(beta),
                      ValuesOf(y));
  }
  void BatchNormFixed(Tensor x, Tensor mean, Tensor variance, float epsilon, Tensor gamma,
                      Tensor beta, Tensor y) override {
    CheckSameShape(x, y);
    auto* const inverse_std = transfers_->Scratch<float>(x.cols);
    InvertDeviations(stream(), F32Data(variance), x.cols, epsilon, inverse_std);
    satrap::Normalize(stream(), ConstValuesOf(x), {F32Data(mean), inverse_std}, F32Data(gamma),
                      F32Data(beta), ValuesOf(y));
  }
  void BatchNormGradSums(Tensor x, Tensor stats, Tensor dy, Tensor grad_sums) override {
    CheckSameShape(x, dy);
    SumBatchNormGrad(stream(), ConstValuesOf(x), StatsOf(stats), ConstValuesOf(dy),
                     BatchNormScratch(x), F64Data(grad_sums));
  }
  void BatchNormGrad(Tensor x, Tensor stats, Tensor gamma, Tensor dy, Tensor sums, Tensor grad_sums,
                     GradientTarget dx) override {
    CheckSameShape(x, dy);
    CheckSameShape(x, dx.tensor);
    satrap::NormalizeGrad(stream(), ConstValuesOf(x), StatsOf(stats), F32Data(gamma),
                          ConstValuesOf(dy), F64Data(sums), F64Data(grad_sums),
                          transfers_->Scratch<float>(2 * x.cols), ValuesOf(dx.tensor), dx.add);
  }
  void BatchNormRunning(Tensor control, Tensor sums, float momentum, Tensor mean,
                        Tensor variance) override {
    UpdateRunningStats(stream(), ControlData(control), F64Data(sums), mean.cols, momentum,
                       F32Data(mean), F32Data(variance));
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
    // The rows were pooled elsewhere, one per sample, so nothing is added up. Columns that no
    // segment reads stay 0.
    Fill(gradients, 0);
    for (const RowSegment& segment : features[0].segments) {
      Copy(segment.values, gradients.Columns(segment.column, segment.width), /*add=*/false);
    }
  }
  absl::Status ReserveScatter(int64_t num_ids, int64_t row_values) override {
    return ReserveScatterOnDevice(transfers_.get(), num_ids, row_values);
  }
  bool ScattersByRow() const override { return true; }
  bool GathersHalves() const override { return true; }
  void CountBeyond(Tensor x, float limit, Tensor count) override {
    satrap::CountBeyond(stream(), ConstValuesOf(x), limit,
                        transfers_->Scratch<uint64_t>(kBeyondPartials), F64Data(count));
  }

  void DecideStep(const StepPlan& plan, Tensor sums, Tensor control) override {
    CHECK(sums.cols == kNumStepSums) << sums.cols;
    satrap::DecideStep(stream(), plan, F32Data(sums), ControlData(control));
  }
  void OptimizerStep(Tensor control, const OptimizerRule& rule, Tensor gradient, Tensor w,
                     absl::Span<const Tensor> states,
                     absl::Span<const WeightCopy> copies) override {
    CHECK(static_cast<int>(states.size()) == NumStates(rule)) << states.size();
    OptimizerArrays arrays = {F32Data(gradient), F32Data(w), {}, w.cols};
    for (size_t s = 0; s < states.size(); ++s) arrays.states[s] = F32Data(states[s]);
    // The kernel also rounds the weights into their copies, because it has the new values at hand.
    std::vector<RoundedWeights> rounded;
    for (const WeightCopy& copy : copies) {
      rounded.push_back({copy.begin, ValuesOf(copy.values)});
    }
    arrays.copies = transfers_->tables()->Table(rounded);
    arrays.num_copies = static_cast<int64_t>(rounded.size());
    satrap::OptimizerStep(stream(), ControlData(control), rule, arrays);
  }
  void AverageStep(Tensor control, float decay, Tensor w, Tensor average) override {
    satrap::AverageStep(stream(), ControlData(control), decay, F32Data(w), F32Data(average),
                        w.cols);
  }

 private:
  DeviceStream* stream() { return transfers_->stream(); }
  // The sums are in double precision, because the sum of squares of a large batch loses digits in
  // f32.
  double* BatchNormScratch(const Tensor& x) {
    return transfers_->Scratch<double>(BatchNormPartials(x.rows, x.cols));
  }

  const std::shared_ptr<Device> device_;
  DeviceLinear linear_;
  // Destroyed before the other members, because enqueued operations may still use a library's
  // memory.
  const std::unique_ptr<DeviceTransfers> transfers_;
};

void DeviceBackend::RowSum(absl::Span<const Tensor> xs, Tensor y) {
  std::vector<ConstValues> inputs;
  for (const Tensor& x : xs) {
    const ConstValues input = ConstValuesOf(x);
    if (!inputs.empty() && AreNeighbours(inputs.back(), input)) {
      inputs.back().cols += input.cols;
    } else if (input.cols > 0) {
      inputs.push_back(input);
    }
  }
  satrap::RowSum(stream(), transfers_->tables()->Table(inputs), static_cast<int>(inputs.size()),
                 ValuesOf(y));
}

void DeviceBackend::RowSumGrad(Tensor dy, absl::Span<const GradientTarget> dxs) {
  std::vector<RowSumTarget> targets;
  for (const GradientTarget& dx : dxs) {
    if (!dx.wanted() || dx.tensor.cols == 0) continue;
    const RowSumTarget target = {ValuesOf(dx.tensor), dx.add ? 1 : 0};
    if (!targets.empty() && targets.back().add == target.add &&
        AreNeighbours(targets.back().dx, target.dx)) {
      targets.back().dx.cols += target.dx.cols;
    } else {
      targets.push_back(target);
    }
  }
  // The grid is as wide as the widest target. For narrower targets, threads beyond the last column
  // have nothing to do.
  int64_t max_cols = 0;
  for (const RowSumTarget& target : targets) max_cols = std::max(max_cols, target.dx.cols);
  satrap::RowSumGrad(stream(), ConstValuesOf(dy), transfers_->tables()->Table(targets),
                     static_cast<int>(targets.size()), max_cols);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Backend>> NewDeviceBackend(std::unique_ptr<Device> device,
                                                          std::unique_ptr<Products> products,
                                                          const DeviceBackendOptions& options) {
  auto meter = options.meter != nullptr ? options.meter : std::make_shared<DeviceMeter>();
  const std::shared_ptr<Device> metered = NewMeteredDevice(std::move(device), meter);
  ASSIGN_OR_RETURN(std::unique_ptr<DeviceTransfers> transfers,
                   DeviceTransfers::Create(metered, meter));
  // The memory is reserved before the first operation, so that no operation has to allocate.
  if (options.scratch_bytes > 0) {
    RETURN_IF_ERROR(transfers->ReserveScratch(options.scratch_bytes));
  }
  RETURN_IF_ERROR(transfers->ReserveTables(options.list_bytes, options.part_list_bytes));
  return std::unique_ptr<Backend>(
      std::make_unique<DeviceBackend>(metered, std::move(transfers), std::move(products)));
}

}  // namespace satrap

#include "nn_worker/backend/device/device_losses.h"

#include <algorithm>

#include "common/base/check.h"
#include "nn_worker/backend/device/device_matrix.h"
#include "nn_worker/device/kernels/losses.h"

namespace satrap {
namespace {

Column ColumnOf(const Tensor& tensor) {
  if (tensor.empty()) return {nullptr, 0};
  return {F32Data(tensor), tensor.stride};
}

SampleLossArgs SampleArgs(const Tensor& control, const Tensor& outputs, const Tensor& labels,
                          const Tensor& weights, const Tensor& mask, const Tensor& gradients) {
  CHECK(outputs.cols == 1 && labels.rows == outputs.rows);
  CheckSameShape(outputs, gradients);
  SampleLossArgs args = {};
  args.control = ControlData(control);
  args.samples = outputs.rows;
  args.outputs = ColumnOf(outputs);
  args.labels = ColumnOf(labels);
  args.weights = ColumnOf(weights);
  args.mask = ColumnOf(mask);
  args.gradients = F32Data(gradients);
  args.gradient_stride = gradients.stride;
  return args;
}

}  // namespace

void DeviceLossBackend::BceWithLogits(Tensor control, Tensor logits, Tensor labels, Tensor weights,
                                      Tensor mask, Tensor dlogits, Tensor sums) {
  satrap::BceWithLogits(losses_.stream(),
                        SampleArgs(control, logits, labels, weights, mask, dlogits),
                        losses_.Scratch<double>(LossPartials(logits.rows)), F64Data(sums));
}

void DeviceLossBackend::SquaredError(Tensor control, Tensor outputs, Tensor labels, Tensor weights,
                                     Tensor mask, Tensor doutputs, Tensor sums) {
  satrap::SquaredError(losses_.stream(),
                       SampleArgs(control, outputs, labels, weights, mask, doutputs),
                       losses_.Scratch<double>(LossPartials(outputs.rows)), F64Data(sums));
}

void DeviceLossBackend::PairwiseLogistic(Tensor control, Tensor scores, Tensor pairs,
                                         Tensor weights, Tensor dscores, Tensor sums) {
  CHECK(scores.cols == 1 && weights.rows == pairs.rows);
  CHECK(pairs.cols == 2 || pairs.rows == 0) << pairs.cols;
  CheckSameShape(scores, dscores);
  PairLossArgs args = {};
  args.control = ControlData(control);
  args.scores = ColumnOf(scores);
  args.pairs = U32Data(pairs);
  args.pair_stride = pairs.stride;
  args.num_pairs = pairs.rows;
  args.weights = ColumnOf(weights);
  args.gradients = F32Matrix(dscores);
  satrap::PairwiseLogistic(losses_.stream(), args,
                           losses_.Scratch<double>(PairLossScratch(pairs.rows)), F64Data(sums));
}

void DeviceLossBackend::SoftmaxCrossEntropy(Tensor control, Tensor logits, Tensor labels,
                                            Tensor weights, Tensor mask, Tensor dlogits,
                                            Tensor sums) {
  CHECK(labels.rows == logits.rows) << labels.rows;
  CheckSameShape(logits, dlogits);
  const SoftmaxLossArgs args = {ControlData(control), ConstF32Matrix(logits), ColumnOf(labels),
                                ColumnOf(weights),    ColumnOf(mask),         F32Matrix(dlogits)};
  satrap::SoftmaxCrossEntropy(losses_.stream(), args,
                              losses_.Scratch<double>(RowLossScratch(logits.rows)), F64Data(sums));
}

void DeviceLossBackend::CandidateLoss(Tensor control, const CandidateLossArgs& args) {
  const int64_t samples = args.scores.rows, columns = args.scores.cols;
  CHECK(columns >= (args.positives_on_diagonal ? samples : std::min<int64_t>(samples, 1)))
      << samples << " positives in " << columns << " columns";
  CheckSameShape(args.scores, args.dscores);
  CandidateLossArrays arrays = {};
  arrays.control = ControlData(control);
  arrays.scores = ConstF32Matrix(args.scores);
  arrays.positives_on_diagonal = args.positives_on_diagonal;
  if (args.remove_hits) {
    CHECK(args.items.cols == columns && args.positives.rows == samples) << args.items.cols;
    arrays.items = U32Data(args.items);
    arrays.positives = U32Data(args.positives);
    arrays.positives_stride = args.positives.stride;
  }
  if (!args.log_q.empty()) {
    CHECK(args.log_q.cols == columns && args.positive_log_q.rows == samples) << args.log_q.cols;
    arrays.log_q = F32Data(args.log_q);
    arrays.positive_log_q = ColumnOf(args.positive_log_q);
  }
  arrays.weights = ColumnOf(args.weights);
  arrays.mask = ColumnOf(args.mask);
  arrays.gradients = F32Matrix(args.dscores);
  satrap::CandidateLoss(losses_.stream(), args.kind, arrays,
                        losses_.Scratch<double>(RowLossScratch(samples)), F64Data(args.sums));
}

}  // namespace satrap

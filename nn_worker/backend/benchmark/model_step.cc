#include "nn_worker/backend/benchmark/model_step.h"

#include <limits>
#include <utility>

#include "absl/types/span.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "common/numeric/random.h"
#include "nn_worker/backend/row_inverse.h"
#include "nn_worker/backend/tensor_copy.h"
#include "nn_worker/collective/local_collective.h"
#include "nn_worker/graph/precision.h"
#include "nn_worker/graph/step/loss_scale.h"
#include "proto/position.pb.h"

namespace satrap {
namespace {

constexpr float kLearningRate = 1e-3f;
// The size of a feature's vocabulary divided by the number of samples of the part. If n samples
// draw from v * n ids, about v * (1 - exp(-1 / v)) * n ids are distinct, which is half of n for
// this v.
constexpr double kVocabularyOfSample = 0.63;
// Small enough that the terms of pairs in a factorization machine are about as large as its other
// terms.
constexpr double kRowRange = 0.25;

float Uniform(double range, SplitMix64* random) {
  return static_cast<float>(range * (2 * random->NextDouble() - 1));
}

template <typename T>
absl::StatusOr<Tensor> OnBackend(Backend* backend, DType dtype, const std::vector<T>& values,
                                 int64_t cols) {
  const auto rows = static_cast<int64_t>(values.size()) / cols;
  ASSIGN_OR_RETURN(const Tensor tensor, AllocateTensor(backend, dtype, rows, cols));
  CopyIn(backend, values, tensor);
  return tensor;
}

template <typename T>
absl::StatusOr<Tensor> ListOnBackend(Backend* backend, DType dtype, const std::vector<T>& values) {
  return OnBackend(backend, dtype, values, static_cast<int64_t>(values.size()));
}

}  // namespace

struct ModelStep::Part {
  std::vector<float> numeric;              // [samples, numerics]
  std::vector<float> rows;                 // [distinct ids, row_values]
  std::vector<std::vector<uint32_t>> ids;  // by feature; of each [samples]
  std::vector<float> labels;               // [samples]
};

// Rows are numbered as an embedding worker numbers them: in the order in which ids first occur.
ModelStep::Part ModelStep::MakePart(const ModelStepOptions& options, int64_t row_values) {
  constexpr uint32_t kNone = std::numeric_limits<uint32_t>::max();
  SplitMix64 random(1);
  Part part;
  std::vector<double> scores(options.samples, 0);
  for (double& score : scores) {
    for (int64_t n = 0; n < options.data.numerics; ++n) {
      part.numeric.push_back(Uniform(1, &random));
      score += part.numeric.back();
    }
  }
  const auto vocabulary =
      1 + static_cast<uint64_t>(kVocabularyOfSample * static_cast<double>(options.samples));
  uint32_t num_rows = 0;
  for (int64_t f = 0; f < options.data.features; ++f) {
    std::vector<uint32_t> row_of(vocabulary, kNone);
    std::vector<uint32_t>& ids = part.ids.emplace_back();
    for (double& score : scores) {
      uint32_t& row = row_of[random.Below(vocabulary)];
      if (row == kNone) {
        row = num_rows++;
        for (int64_t c = 0; c < row_values; ++c) part.rows.push_back(Uniform(kRowRange, &random));
      }
      ids.push_back(row);
      score += part.rows[static_cast<int64_t>(row) * row_values];
    }
  }
  for (const double score : scores) part.labels.push_back(score > 0 ? 1.0f : 0.0f);
  return part;
}

ModelStep::ModelStep(const ModelStepOptions& options, GraphInputs inputs)
    : samples_(options.samples),
      inputs_(std::move(inputs)),
      collectives_(NewLocalCollectives(1)),
      backend_(options.backend) {}

absl::StatusOr<std::unique_ptr<ModelStep>> ModelStep::Create(const ModelStepOptions& options) {
  CHECK(options.samples > 0 && options.backend != nullptr) << options.samples;
  std::unique_ptr<ModelStep> step(
      new ModelStep(options, ExampleInputs(options.model, options.data)));
  JobConfig job;
  job.set_global_batch_size(options.samples);
  job.mutable_nn_worker()->set_precision(options.precision);
  NetworkOptions network;
  network.model = options.model;
  network.inputs = step->inputs_;
  network.optimizer.set_learning_rate(kLearningRate);
  network.optimizer.mutable_adam();
  network.max_samples = options.samples;
  network.dtype = DTypeOf(options.precision);
  network.gradient_scale = GradientScaleOf(job, RunPosition());
  network.graph_capture = options.graph_capture;
  network.on_graph_refusal = options.on_graph_refusal;
  network.backend = options.backend;
  network.collective = step->collectives_[0].get();
  ASSIGN_OR_RETURN(step->network_, Network::Create(network));

  const int64_t segments = static_cast<int64_t>(step->inputs_.segments.size());
  CHECK(segments % options.data.features == 0) << "not all features have the same segments";
  int64_t row_values = 0;
  for (int64_t s = 0; s < segments / options.data.features; ++s) {
    row_values += step->inputs_.segments[s].dim;
  }
  const Part part = MakePart(options, row_values);
  RETURN_IF_ERROR(step->Bind(part, row_values));
  return step;
}

absl::Status ModelStep::Bind(const Part& part, int64_t row_values) {
  labels_ = part.labels;
  ASSIGN_OR_RETURN(const Tensor rows, OnBackend(backend_, DType::kF32, part.rows, row_values));
  ASSIGN_OR_RETURN(row_gradients_, AllocateTensor(backend_, DType::kF32, rows.rows, row_values));

  const Tensor numeric = network_->input_view(0);
  if (!numeric.empty() && !part.numeric.empty()) {
    FeatureExchange block;
    block.samples = samples_;
    block.one_row_a_sample = true;
    ASSIGN_OR_RETURN(block.rows, OnBackend(backend_, DType::kF32, part.numeric, numeric.cols));
    block.segments = {{0, numeric.cols, numeric}};
    gathers_.push_back(block);
  }
  const size_t segments = inputs_.segments.size() / part.ids.size();
  std::vector<absl::Span<const uint32_t>> ids;
  for (size_t f = 0; f < part.ids.size(); ++f) {
    ids.push_back(part.ids[f]);
    FeatureExchange gather;
    gather.samples = samples_;
    gather.rows = rows;
    ASSIGN_OR_RETURN(gather.ids, ListOnBackend(backend_, DType::kU32, part.ids[f]));
    FeatureExchange scatter = gather;
    int64_t column = 0;
    for (size_t s = f * segments; s < (f + 1) * segments; ++s) {
      const int input = 1 + static_cast<int>(s);
      const int64_t width = inputs_.segments[s].dim;
      gather.segments.push_back({column, width, network_->input_view(input)});
      scatter.segments.push_back({column, width, network_->input_gradient(input)});
      column += width;
    }
    gathers_.push_back(gather);
    scatters_.push_back(scatter);
  }
  if (backend_->ScattersByRow()) {
    HostRowInverse inverse;
    InvertIds(ids, static_cast<size_t>(rows.rows), &inverse);
    ASSIGN_OR_RETURN(inverse_.starts, ListOnBackend(backend_, DType::kU32, inverse.starts));
    ASSIGN_OR_RETURN(inverse_.positions, ListOnBackend(backend_, DType::kU32, inverse.positions));
  }
  return absl::OkStatus();
}

absl::Status ModelStep::Run() {
  backend_->GatherRows(gathers_);
  const LossTargets targets = {labels_, {}, {}, {}};
  RETURN_IF_ERROR(network_->Train(samples_, PassContext::Training(step_, step_ * samples_),
                                  absl::MakeConstSpan(&targets, 1)));
  backend_->ScatterGradients(scatters_, inverse_, row_gradients_);
  StepTotals totals;
  totals.samples = totals.weight = static_cast<float>(samples_);
  if (network_->gradient_scale().moves() && network_->CountNonFiniteGradients() > 0) {
    totals.not_finite = 1;
  }
  RETURN_IF_ERROR(network_->Step({step_, samples_}, totals));
  ++step_;
  return absl::OkStatus();
}

double ModelStep::ReadLoss() {
  const LossSums sums = network_->ReadLoss();
  return sums.loss / sums.weight;
}

}  // namespace satrap

#include "nn_worker/graph/network.h"

#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "nn_worker/graph/model/graph_builder.h"
#include "nn_worker/graph/model/output_model.h"
#include "nn_worker/graph/network_graph.h"
#include "nn_worker/graph/network_saving.h"
#include "nn_worker/graph/network_training.h"
#include "nn_worker/graph/network_values.h"
#include "nn_worker/optimizer/dense_optimizer_factory.h"

namespace satrap {

struct Network::Rep {
  Rep(const NetworkOptions& used, Graph built, DenseOptimizer optimizer)
      : options(used),
        graph(options, std::move(built)),
        training(options, std::move(optimizer), &values) {}

  absl::Status Allocate() {
    RETURN_IF_ERROR(graph.Allocate());
    RETURN_IF_ERROR(values.Allocate(graph.graph(), options));
    RETURN_IF_ERROR(training.Allocate());
    values.SetInitialValues(options.seed);
    training.SetInitialState();
    return graph.Bind(values, training.gradients(), training.control());
  }
  void BeginPass(int64_t samples, const PassContext& pass) {
    graph.BeginPass(samples, pass);
    values.ShowAverages(!pass.training);
  }
  // The parts that are saved and loaded.
  SavedParts Parts() { return {options, &values, &training}; }

  const NetworkOptions options;
  NetworkValues values;
  NetworkGraph graph;
  NetworkTraining training;  // last, so that a sum ends before the memory that it adds up is freed
};

Network::Network(std::unique_ptr<Rep> rep) : rep_(std::move(rep)) {}
Network::~Network() = default;

absl::StatusOr<std::unique_ptr<Network>> Network::Create(const NetworkOptions& options) {
  CHECK(options.backend != nullptr && options.collective != nullptr);
  CHECK(options.max_samples > 0) << options.max_samples;
  NetworkOptions used = options;
  GraphUse use = GraphUse::kTraining;
  used.inputs.max_samples = options.max_samples;
  if (!options.outputs.empty()) {
    used.trains = false;
    ASSIGN_OR_RETURN(used.model, ModelOfOutputs(options.model, options.inputs, options.outputs));
    use = GraphUse::kOutputs;
    // Patterns in the optimizer's settings may name parameters that the outputs do not need.
    used.optimizer.clear_parameters();
  }
  ASSIGN_OR_RETURN(Graph graph, BuildGraph(used.model, used.inputs, used.dtype, use));
  ASSIGN_OR_RETURN(DenseOptimizer optimizer, NewDenseOptimizer(options.optimizer));
  auto rep = std::make_unique<Rep>(used, std::move(graph), std::move(optimizer));
  RETURN_IF_ERROR(rep->Allocate());
  return std::unique_ptr<Network>(new Network(std::move(rep)));
}

int Network::num_inputs() const { return rep_->graph.graph().num_inputs; }

Tensor Network::input_view(int input) const {
  CHECK(input >= 0 && input < num_inputs());
  return rep_->graph.memory().values[input];
}

Tensor Network::input_gradient(int input) const {
  CHECK(input >= 0 && input < num_inputs());
  return rep_->graph.memory().gradients[input];
}

Backend* Network::backend() const { return rep_->options.backend; }

absl::Status Network::Forward(int64_t samples, const PassContext& pass) {
  rep_->BeginPass(samples, pass);
  return rep_->graph.Forward();
}

absl::Status Network::Train(int64_t samples, const PassContext& pass,
                            absl::Span<const LossTargets> targets) {
  CHECK(pass.training && rep_->options.trains);
  rep_->BeginPass(samples, pass);
  return rep_->graph.Train(targets);
}

int64_t Network::graph_launches() const { return rep_->graph.graph_launches(); }

std::string Network::WhyNoGraphs() const { return rep_->graph.WhyNoGraphs(); }

std::vector<float> Network::ReadLogits(int task) { return rep_->graph.ReadLogits(task); }

int Network::num_tasks() const { return static_cast<int>(rep_->graph.graph().outputs.size()); }

int64_t Network::num_outputs(int task) const { return rep_->graph.num_outputs(task); }

void Network::Loss(absl::Span<const float> labels, absl::Span<const float> weights,
                   absl::Span<const float> mask) {
  const LossTargets targets = {labels, weights, mask, {}};
  Loss(absl::MakeConstSpan(&targets, 1));
}

void Network::Loss(absl::Span<const LossTargets> targets) { rep_->graph.Loss(targets); }

LossSums Network::ReadLoss() { return rep_->graph.ReadLoss(); }

absl::Status Network::Backward() { return rep_->graph.Backward(); }

int64_t Network::CountGradientsBeyond(float limit) {
  return rep_->graph.CountGradientsBeyond(gradients(), limit);
}

int64_t Network::CountNonFiniteGradients() {
  return CountGradientsBeyond(std::numeric_limits<float>::max());
}

absl::Status Network::StartReduce() { return rep_->training.StartReduce(); }
absl::Status Network::FinishReduce() { return rep_->training.FinishReduce(); }

Tensor Network::gradients() const { return rep_->training.gradients(); }
Tensor Network::parameters() const {
  rep_->values.ShowAverages(false);
  return rep_->values.parameters;
}

double Network::GradientSquares(const DenseStep& step, const StepTotals& totals) {
  return rep_->training.GradientSquares(step, totals);
}

absl::Status Network::Step(const DenseStep& step, const StepTotals& totals, float clip_factor) {
  const ProfilerRange range(rep_->options.backend, "optimizer");
  rep_->training.Step(step, totals, clip_factor);
  RETURN_IF_ERROR(rep_->graph.EndStep());
  rep_->training.EndStep();
  return absl::OkStatus();
}

const GradientScale& Network::gradient_scale() const { return rep_->training.gradient_scale(); }

StepControl Network::ReadControl() { return rep_->training.ReadControl(); }

int64_t Network::num_parameters() const {
  int64_t count = 0;
  for (const FlatArray& array : rep_->values.parameter_layout.arrays) {
    count += array.spec.rows * array.spec.cols;
  }
  return count;
}

std::vector<std::string> Network::parameter_names() const {
  std::vector<std::string> names;
  for (const FlatArray& array : rep_->values.parameter_layout.arrays) names.push_back(array.name);
  return names;
}

std::vector<float> Network::ParameterValues() {
  std::vector<float> values;
  for (const std::string& name : parameter_names()) {
    const NamedArray parameter = Parameter(name).value();
    values.insert(values.end(), parameter.values.begin(), parameter.values.end());
  }
  return values;
}

std::vector<std::string> Network::value_names() const {
  std::vector<std::string> names = parameter_names();
  for (const FlatArray& array : rep_->values.state_layout.arrays) names.push_back(array.name);
  return names;
}

absl::StatusOr<NamedArray> Network::Parameter(absl::string_view name) {
  const Tensor parameters = this->parameters();
  for (const FlatArray& array : rep_->values.parameter_layout.arrays) {
    if (array.name != name) continue;
    return ReadKept({{array.name, ViewOf(array, parameters)}}, backend())[0];
  }
  return absl::NotFoundError(absl::StrCat("no parameter \"", name, "\""));
}

std::string Network::Save() { return SaveParts(rep_->Parts()); }

absl::Status Network::Load(absl::string_view bytes, LoadScope scope) {
  return LoadParts(bytes, scope, rep_->Parts());
}

absl::StatusOr<Network::Taken> Network::StartFrom(absl::string_view bytes,
                                                  const WarmStartConfig& config,
                                                  uint64_t model_step) {
  return StartPartsFrom(bytes, config, model_step, rep_->Parts());
}

}  // namespace satrap

// Linear layers, losses, and the operations at the end of a step.

#include <algorithm>
#include <memory>

#include "common/base/check.h"
#include "nn_worker/backend/benchmark/operation.h"

namespace satrap {
namespace {

// Some losses take time proportional to the square of the number of samples.
constexpr int64_t kMostSquared = 4096;
constexpr int64_t kClasses = 100;
constexpr int64_t kGradientCols = 442;  // DeepFM's embeddings and linear weights
// The number of parameters per sample of a batch. It is so large that a batch with enough samples
// to fill a card's memory bus also comes with enough parameters to fill that bus.
constexpr int64_t kParametersOfSample = 512;

// The tensors of a layer in a network.
LinearGradArgs LinearTensors(Workbench* on, int64_t in, int64_t out) {
  LinearGradArgs args;
  args.x = on->ValuesOfProducts(in);
  args.w = on->WeightsOfProducts(in, out);
  // A single output is a logit, which has no activation and is F32 in every precision.
  args.activation = out == 1 ? Activation::kLinear : Activation::kRelu;
  args.y = out == 1 ? on->F32Values(1) : on->ValuesOfProducts(out);
  args.dy = out == 1 ? on->F32Values(1) : on->ValuesOfProducts(out);
  args.dx = {on->ValuesOfProducts(in), /*add=*/false};
  args.dw = on->GradientsOfProducts(in, out);
  args.db = on->GradientsOfProducts(1, out);
  return args;
}

double Flops(Workbench* on, int64_t in, int64_t out, int products) {
  return 2.0 * products * static_cast<double>(on->samples() * in * out);
}

// A layer, prepared as in a network.
struct Layer {
  Layer(Workbench* on, int64_t in, int64_t out)
      : args(LinearTensors(on, in, out)), bias(on->BiasOfProducts(args.y.dtype, out)) {
    auto made = on->backend()->PrepareLinear({args, bias, nullptr});
    CHECK_OK(made.status());
    prepared = std::move(made).value();
  }
  void Forward(Backend* backend) const {
    backend->LinearForward(prepared.get(), args.x, args.w, bias, args.y);
  }
  LinearGradArgs args;
  Tensor bias;
  std::unique_ptr<PreparedLinear> prepared;
};

BenchmarkWork ForwardOf(Workbench* on, int64_t in, int64_t out) {
  const auto layer = std::make_shared<const Layer>(on, in, out);
  return {[=] { layer->Forward(on->backend()); },
          {layer->args.x, layer->args.w, layer->bias},
          {layer->args.y},
          out == 1 ? 0 : Flops(on, in, out, 1)};
}

// The backward pass reads the results of a forward pass of the same layer.
BenchmarkWork BackwardOf(Workbench* on, int64_t in, int64_t out) {
  const auto layer = std::make_shared<const Layer>(on, in, out);
  layer->Forward(on->backend());
  const LinearGradArgs& args = layer->args;
  return {[=] { on->backend()->LinearBackward(layer->prepared.get(), layer->args); },
          {args.x, args.w, args.y, args.dy},
          {args.dx.tensor, args.dw, args.db},
          out == 1 ? 0 : Flops(on, in, out, 2)};
}

constexpr char kForward[] = "reads x, w and the bias, writes y";
constexpr char kBackward[] = "reads x, w, y and dy, writes dx, dw and db";

// Layers with one output are judged by their bytes, because they do only two arithmetic operations
// for each value of x.
constexpr BenchmarkOperation kLinears[] = {
    {"Linear", "400 x 400, ReLU, own kernel", OperationTypes::kProducts, kForward,
     [](Workbench* on) -> BenchmarkWork {
       const LinearGradArgs args = LinearTensors(on, 400, 400);
       const Tensor bias = on->Floats(1, 400);
       return {[=] { on->backend()->Linear(args.x, args.w, bias, args.activation, args.y); },
               {args.x, args.w, bias},
               {args.y},
               Flops(on, 400, 400, 1)};
     }},
    {"LinearGrad", "400 x 400, ReLU, own kernel", OperationTypes::kProducts, kBackward,
     [](Workbench* on) -> BenchmarkWork {
       const LinearGradArgs args = LinearTensors(on, 400, 400);
       return {[=] { on->backend()->LinearGrad(args); },
               {args.x, args.w, args.y, args.dy},
               {args.dx.tensor, args.dw, args.db},
               Flops(on, 400, 400, 2)};
     }},
    {"LinearForward", "429 x 400, ReLU", OperationTypes::kProducts, kForward,
     [](Workbench* on) { return ForwardOf(on, 429, 400); }},
    {"LinearForward", "400 x 400, ReLU", OperationTypes::kProducts, kForward,
     [](Workbench* on) { return ForwardOf(on, 400, 400); }},
    {"LinearForward", "1024 x 1024, ReLU", OperationTypes::kProducts, kForward,
     [](Workbench* on) { return ForwardOf(on, 1024, 1024); }},
    {"LinearForward", "1024 x 512, ReLU", OperationTypes::kProducts, kForward,
     [](Workbench* on) { return ForwardOf(on, 1024, 512); }},
    {"LinearForward", "400 x 1", OperationTypes::kF32AndBf16, kForward,
     [](Workbench* on) { return ForwardOf(on, 400, 1); }},
    {"LinearBackward", "429 x 400, ReLU", OperationTypes::kProducts, kBackward,
     [](Workbench* on) { return BackwardOf(on, 429, 400); }},
    {"LinearBackward", "400 x 400, ReLU", OperationTypes::kProducts, kBackward,
     [](Workbench* on) { return BackwardOf(on, 400, 400); }},
    {"LinearBackward", "1024 x 1024, ReLU", OperationTypes::kProducts, kBackward,
     [](Workbench* on) { return BackwardOf(on, 1024, 1024); }},
    {"LinearBackward", "1024 x 512, ReLU", OperationTypes::kProducts, kBackward,
     [](Workbench* on) { return BackwardOf(on, 1024, 512); }},
    {"LinearBackward", "400 x 1", OperationTypes::kF32AndBf16,
     "reads x, w and dy, writes dx, dw and db",
     [](Workbench* on) { return BackwardOf(on, 400, 1); },
     /*launches=*/2},
};

constexpr BenchmarkOperation kLosses[] = {
    {"BceWithLogits", "n x 1", OperationTypes::kF32,
     "reads logits and labels, writes their gradients and two sums",
     [](Workbench* on) -> BenchmarkWork {
       const Tensor z = on->Floats(on->samples(), 1), labels = on->Filled(on->samples(), 1, 1),
                    dz = on->Floats(on->samples(), 1), sums = on->Doubles(2),
                    control = on->Control();
       return {[=] { on->backend()->BceWithLogits(control, z, labels, {}, {}, dz, sums); },
               {z, labels},
               {dz, sums}};
     },
     /*launches=*/2},
    {"SquaredError", "n x 1", OperationTypes::kF32,
     "reads outputs and labels, writes their gradients and two sums",
     [](Workbench* on) -> BenchmarkWork {
       const Tensor z = on->Floats(on->samples(), 1), labels = on->Filled(on->samples(), 1, 1),
                    dz = on->Floats(on->samples(), 1), sums = on->Doubles(2),
                    control = on->Control();
       return {[=] { on->backend()->SquaredError(control, z, labels, {}, {}, dz, sums); },
               {z, labels},
               {dz, sums}};
     },
     /*launches=*/2},
    {"PairwiseLogistic", "as many pairs as samples, at most 4096", OperationTypes::kF32,
     "reads scores, pairs and their weights, writes the scores' gradients and two sums",
     [](Workbench* on) -> BenchmarkWork {
       const int64_t n = std::max<int64_t>(2, std::min(on->samples(), kMostSquared));
       std::vector<uint32_t> pairs;
       for (int64_t p = 0; p < n; ++p) {
         pairs.push_back(static_cast<uint32_t>(p));
         pairs.push_back(static_cast<uint32_t>((p + 1) % n));
       }
       const Tensor scores = on->Floats(n, 1), of = on->Indices(pairs, n, 2),
                    weights = on->Filled(n, 1, 1), gradients = on->Floats(n, 1),
                    sums = on->Doubles(2), control = on->Control();
       return {
           [=] { on->backend()->PairwiseLogistic(control, scores, of, weights, gradients, sums); },
           {scores, of, weights},
           {gradients, sums}};
     },
     /*launches=*/3},
    {"SoftmaxCrossEntropy", "n x 100", OperationTypes::kF32,
     "reads logits and labels, writes the logits' gradients and two sums",
     [](Workbench* on) -> BenchmarkWork {
       const Tensor z = on->Floats(on->samples(), kClasses),
                    labels = on->Filled(on->samples(), 1, 7),
                    dz = on->Floats(on->samples(), kClasses), sums = on->Doubles(2),
                    control = on->Control();
       return {[=] { on->backend()->SoftmaxCrossEntropy(control, z, labels, {}, {}, dz, sums); },
               {z, labels},
               {dz, sums}};
     },
     /*launches=*/3},
    {"CandidateLoss", "in the batch, at most 4096 x 4096", OperationTypes::kF32,
     "reads scores and items, writes the scores' gradients and two sums",
     [](Workbench* on) -> BenchmarkWork {
       const int64_t n = std::min(on->samples(), kMostSquared);
       std::vector<uint32_t> items(n);
       for (int64_t i = 0; i < n; ++i) items[i] = static_cast<uint32_t>(i);
       CandidateLossArgs args;
       args.positives_on_diagonal = true;
       args.remove_hits = true;
       args.scores = on->Floats(n, n);
       args.items = on->Indices(items, 1, n);
       args.positives = on->Indices(items, n, 1);
       args.dscores = on->Floats(n, n);
       args.sums = on->Doubles(2);
       const Tensor control = on->Control();
       return {[=] { on->backend()->CandidateLoss(control, args); },
               {args.scores, args.items, args.positives},
               {args.dscores, args.sums}};
     },
     /*launches=*/3},
};

BenchmarkWork AdamOf(Workbench* on, int64_t rows, int64_t cols, bool copies) {
  const int64_t count = rows * cols;
  OptimizerRule rule;
  rule.kind = OptimizerKind::kAdam;
  rule.beta1 = 0.9f;
  rule.beta2 = 0.999f;
  rule.epsilon = 1e-8f;
  const Tensor control = on->Control(), gradient = on->Floats(1, count), w = on->Floats(1, count),
               m = on->Filled(1, count, 0), v = on->Filled(1, count, 0);
  BenchmarkWork work;
  work.reads = {gradient, w, m, v};
  work.writes = {w, m, v};
  std::vector<WeightCopy> rounded;
  if (copies) {
    rounded.push_back({0, on->Weights(rows, cols)});
    on->backend()->Copy(w.Reshaped(rows, cols), rounded[0].values, /*add=*/false);
    work.writes.push_back(rounded[0].values);
  }
  const std::vector<Tensor> states = {m, v};
  work.enqueue = [=] { on->backend()->OptimizerStep(control, rule, gradient, w, states, rounded); };
  return work;
}

constexpr BenchmarkOperation kSteps[] = {
    {"CountBeyond", "n x 442", OperationTypes::kF32AndBf16, "reads x, writes a number",
     [](Workbench* on) -> BenchmarkWork {
       const Tensor x = on->Values(kGradientCols), count = on->Doubles(1);
       return {[=] { on->backend()->CountBeyond(x, 1e15f, count); }, {x, count}, {count}};
     },
     /*launches=*/2},
    {"DecideStep", "one control", OperationTypes::kF32,
     "reads sums and control, writes the control",
     [](Workbench* on) -> BenchmarkWork {
       const Tensor control = on->Control(), sums = on->Filled(1, kNumStepSums, 1);
       return {[=] { on->backend()->DecideStep(StepPlan(), sums, control); },
               {sums, control},
               {control}};
     }},
    {"OptimizerStep", "Adam, 400 x 400", OperationTypes::kF32,
     "reads gradient, w, m and v, writes w, m and v",
     [](Workbench* on) { return AdamOf(on, 400, 400, /*copies=*/false); }},
    {"OptimizerStep", "Adam, n x 512", OperationTypes::kF32,
     "reads gradient, w, m and v, writes w, m and v",
     [](Workbench* on) {
       return AdamOf(on, on->samples(), kParametersOfSample, /*copies=*/false);
     }},
    {"OptimizerStep", "Adam, n x 512, with a copy in 16 bits", OperationTypes::kBf16,
     "reads gradient, w, m and v, writes w, m, v and the copy",
     [](Workbench* on) { return AdamOf(on, on->samples(), kParametersOfSample, /*copies=*/true); }},
    {"AverageStep", "n x 512", OperationTypes::kF32, "reads w and the average, writes the average",
     [](Workbench* on) -> BenchmarkWork {
       const Tensor control = on->Control(), w = on->Floats(1, on->samples() * kParametersOfSample),
                    average = on->Floats(1, on->samples() * kParametersOfSample);
       return {[=] { on->backend()->AverageStep(control, 0.99f, w, average); },
               {w, average},
               {average}};
     }},
};

}  // namespace

absl::Span<const BenchmarkOperation> LinearLayerOperations() { return kLinears; }
absl::Span<const BenchmarkOperation> LossOperationsToMeasure() { return kLosses; }
absl::Span<const BenchmarkOperation> StepOperationsToMeasure() { return kSteps; }

}  // namespace satrap

// Operations on single values, and batch normalisation, at the shapes of DeepFM: hidden layers of
// 400, and 26 embeddings of 16 as one block of 416.

#include "common/base/check.h"
#include "nn_worker/backend/benchmark/operation.h"
#include "nn_worker/backend/tensor_copy.h"

namespace satrap {
namespace {

constexpr int64_t kHidden = 400, kEmbeddings = 416;
constexpr float kEpsilon = 1e-5f, kMomentum = 0.99f;

constexpr BenchmarkOperation kElementwise[] = {
    {"Fill", "n x 400", OperationTypes::kF32AndBf16, "writes y",
     [](Workbench* on) -> BenchmarkWork {
       const Tensor y = on->Values(kHidden);
       return {[=] { on->backend()->Fill(y, 0); }, {}, {y}};
     }},
    {"Copy", "n x 416", OperationTypes::kF32AndBf16, "reads x, writes y",
     [](Workbench* on) -> BenchmarkWork {
       const Tensor x = on->Values(kEmbeddings), y = on->Values(kEmbeddings);
       return {[=] { on->backend()->Copy(x, y, /*add=*/false); }, {x}, {y}};
     }},
    {"Copy", "n x 416, adds", OperationTypes::kF32AndBf16, "reads x and y, writes y",
     [](Workbench* on) -> BenchmarkWork {
       const Tensor x = on->Values(kEmbeddings), y = on->Values(kEmbeddings);
       return {[=] { on->backend()->Copy(x, y, /*add=*/true); }, {x, y}, {y}};
     }},
    {"Copy", "n x 416, from F32", OperationTypes::kBf16, "reads x (F32), writes y",
     [](Workbench* on) -> BenchmarkWork {
       const Tensor x = on->F32Values(kEmbeddings), y = on->Values(kEmbeddings);
       return {[=] { on->backend()->Copy(x, y, /*add=*/false); }, {x}, {y}};
     }},
    {"ToF32", "1 x 800", OperationTypes::kF32, "reads x (F64), writes y",
     [](Workbench* on) -> BenchmarkWork {
       const Tensor x = on->Doubles(2 * kHidden), y = on->Floats(1, 2 * kHidden);
       return {[=] { on->backend()->ToF32(x, y); }, {x}, {y}};
     }},
    {"AddBias", "n x 400", OperationTypes::kF32AndBf16, "reads x and the bias, writes y",
     [](Workbench* on) -> BenchmarkWork {
       const Tensor x = on->Values(kHidden), bias = on->Floats(1, kHidden), y = on->Values(kHidden);
       return {[=] { on->backend()->AddBias(x, bias, y); }, {x, bias}, {y}};
     }},
    {"Activate", "ReLU, n x 400", OperationTypes::kF32AndBf16, "reads x, writes y",
     [](Workbench* on) -> BenchmarkWork {
       const Tensor x = on->Values(kHidden), y = on->Values(kHidden);
       return {[=] { on->backend()->Activate(Activation::kRelu, x, y); }, {x}, {y}};
     }},
    {"Activate", "sigmoid, n x 400", OperationTypes::kF32AndBf16, "reads x, writes y",
     [](Workbench* on) -> BenchmarkWork {
       const Tensor x = on->Values(kHidden), y = on->Values(kHidden);
       return {[=] { on->backend()->Activate(Activation::kSigmoid, x, y); }, {x}, {y}};
     }},
    {"ActivateGrad", "ReLU, n x 400, in place", OperationTypes::kF32AndBf16,
     "reads y and dy, writes dx in the place of dy",
     [](Workbench* on) -> BenchmarkWork {
       const Tensor y = on->Values(kHidden), dy = on->Values(kHidden);
       return {[=] {
                 on->backend()->ActivateGrad(Activation::kRelu, y, dy, {dy, false});
               },
               {y, dy},
               {dy}};
     }},
    {"Dropout", "n x 400", OperationTypes::kF32AndBf16, "reads x, writes y; the mask is computed",
     [](Workbench* on) -> BenchmarkWork {
       const Tensor x = on->Values(kHidden), y = on->Values(kHidden);
       DropoutMask mask;
       const auto memory = AllocatePassNumbers(on->backend());
       CHECK_OK(memory.status());
       mask.pass_in_memory = *memory;
       WritePassNumbers(on->backend(), mask.pass, mask.pass_in_memory);
       return {[=] { on->backend()->Dropout(x, mask, 0.5f, y, /*add=*/false); }, {x}, {y}};
     }},
    {"Scale", "n x 416", OperationTypes::kF32AndBf16, "reads x, writes y",
     [](Workbench* on) -> BenchmarkWork {
       const Tensor x = on->Values(kEmbeddings), y = on->Values(kEmbeddings);
       return {[=] { on->backend()->Scale(0.5f, x, y, /*add=*/false); }, {x}, {y}};
     }},
    {"Multiply", "n x 416 by n x 416", OperationTypes::kF32AndBf16, "reads a and b, writes y",
     [](Workbench* on) -> BenchmarkWork {
       const Tensor a = on->Values(kEmbeddings), b = on->Values(kEmbeddings),
                    y = on->Values(kEmbeddings);
       return {[=] { on->backend()->Multiply(a, b, y, /*add=*/false); }, {a, b}, {y}};
     }},
    {"Multiply", "n x 416 by n x 1", OperationTypes::kF32AndBf16, "reads a and b, writes y",
     [](Workbench* on) -> BenchmarkWork {
       const Tensor a = on->Values(kEmbeddings), b = on->Values(1), y = on->Values(kEmbeddings);
       return {[=] { on->backend()->Multiply(a, b, y, /*add=*/false); }, {a, b}, {y}};
     }},
};

// The tensors that all operations of a batch normalisation use.
struct BatchNormTensors {
  explicit BatchNormTensors(Workbench* on)
      : x(on->Values(kHidden)),
        sums(on->Doubles(2 * kHidden + 1)),
        gamma(on->Floats(1, kHidden)),
        beta(on->Floats(1, kHidden)),
        stats(on->Floats(2, kHidden)),
        y(on->Values(kHidden)) {
    on->backend()->Moments(x, sums);
    on->backend()->BatchNorm(x, sums, kEpsilon, gamma, beta, stats, y);
  }
  Tensor x, sums, gamma, beta, stats, y;
};

constexpr BenchmarkOperation kBatchNorm[] = {
    {"Moments", "n x 400", OperationTypes::kF32AndBf16,
     "reads x, writes two sums a column and the count",
     [](Workbench* on) -> BenchmarkWork {
       const BatchNormTensors t(on);
       return {[=] { on->backend()->Moments(t.x, t.sums); }, {t.x}, {t.sums}};
     },
     /*launches=*/3},
    {"BatchNorm", "n x 400", OperationTypes::kF32AndBf16,
     "reads x, sums, gamma and beta, writes stats and y",
     [](Workbench* on) -> BenchmarkWork {
       const BatchNormTensors t(on);
       return {
           [=] { on->backend()->BatchNorm(t.x, t.sums, kEpsilon, t.gamma, t.beta, t.stats, t.y); },
           {t.x, t.sums, t.gamma, t.beta},
           {t.stats, t.y}};
     },
     /*launches=*/2},
    {"BatchNormFixed", "n x 400", OperationTypes::kF32AndBf16,
     "reads x, mean, variance, gamma and beta, writes y",
     [](Workbench* on) -> BenchmarkWork {
       const BatchNormTensors t(on);
       const Tensor mean = on->Filled(1, kHidden, 0), variance = on->Filled(1, kHidden, 1);
       return {[=] {
                 on->backend()->BatchNormFixed(t.x, mean, variance, kEpsilon, t.gamma, t.beta, t.y);
               },
               {t.x, mean, variance, t.gamma, t.beta},
               {t.y}};
     },
     /*launches=*/2},
    {"BatchNormGradSums", "n x 400", OperationTypes::kF32AndBf16,
     "reads x, stats and dy, writes two sums a column",
     [](Workbench* on) -> BenchmarkWork {
       const BatchNormTensors t(on);
       const Tensor dy = on->Values(kHidden), sums = on->Doubles(2 * kHidden);
       return {[=] { on->backend()->BatchNormGradSums(t.x, t.stats, dy, sums); },
               {t.x, t.stats, dy},
               {sums}};
     },
     /*launches=*/2},
    {"BatchNormGrad", "n x 400", OperationTypes::kF32AndBf16,
     "reads x, stats, gamma, dy and both sums, writes dx",
     [](Workbench* on) -> BenchmarkWork {
       const BatchNormTensors t(on);
       const Tensor dy = on->Values(kHidden), sums = on->Doubles(2 * kHidden),
                    dx = on->Values(kHidden);
       on->backend()->BatchNormGradSums(t.x, t.stats, dy, sums);
       return {[=] {
                 on->backend()->BatchNormGrad(t.x, t.stats, t.gamma, dy, t.sums, sums, {dx, false});
               },
               {t.x, t.stats, t.gamma, dy, t.sums, sums},
               {dx}};
     },
     /*launches=*/2},
    {"BatchNormRunning", "1 x 400", OperationTypes::kF32,
     "reads the control, the sums and both means, writes the means",
     [](Workbench* on) -> BenchmarkWork {
       const BatchNormTensors t(on);
       const Tensor control = on->Control();
       const Tensor mean = on->Filled(1, kHidden, 0), variance = on->Filled(1, kHidden, 1);
       return {[=] { on->backend()->BatchNormRunning(control, t.sums, kMomentum, mean, variance); },
               {control, t.sums, mean, variance},
               {mean, variance}};
     }},
};

}  // namespace

absl::Span<const BenchmarkOperation> ElementwiseOperations() { return kElementwise; }
absl::Span<const BenchmarkOperation> BatchNormOperations() { return kBatchNorm; }

}  // namespace satrap

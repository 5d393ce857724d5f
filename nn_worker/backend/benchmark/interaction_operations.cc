// Operations between the vectors of a sample: DeepFM's 26 embeddings of 16, DLRM's 27 vectors of 16
// and of 128, AutoInt's attention over 26 fields with two heads of 32, and sequences of 50.

#include <utility>

#include "nn_worker/backend/benchmark/operation.h"

namespace satrap {
namespace {

constexpr int64_t kFields = 26, kDim = 16;
constexpr int64_t kHidden = 400;
constexpr int64_t kLength = 50;  // of a sequence
constexpr int64_t kHeads = 2, kHeadDim = 32;

// Joins the lists of tensors that an operation reads, or that it writes, so that their bytes are
// counted.
std::vector<Tensor> With(std::vector<Tensor> tensors, const std::vector<Tensor>& more) {
  tensors.insert(tensors.end(), more.begin(), more.end());
  return tensors;
}

constexpr BenchmarkOperation kSequences[] = {
    {"SequencePool", "mean of 50 x 16", OperationTypes::kF32AndBf16,
     "reads x, whose sequences are full, and the lengths, writes y",
     [](Workbench* on) -> BenchmarkWork {
       const Tensor x = on->Values(kLength * kDim), y = on->Values(kDim),
                    lengths = on->Filled(on->samples(), 1, kLength);
       return {[=] { on->backend()->SequencePool(SequencePooling::kMean, x, lengths, y); },
               {x, lengths},
               {y}};
     }},
    {"SequencePoolGrad", "mean of 50 x 16", OperationTypes::kF32AndBf16,
     "reads dy and the lengths, writes dx; a mean's gradient needs no x",
     [](Workbench* on) -> BenchmarkWork {
       const Tensor x = on->Values(kLength * kDim), y = on->Values(kDim), dy = on->Values(kDim),
                    dx = on->Values(kLength * kDim),
                    lengths = on->Filled(on->samples(), 1, kLength);
       return {[=] {
                 on->backend()->SequencePoolGrad(SequencePooling::kMean, x, lengths, y, dy,
                                                 {dx, /*add=*/false});
               },
               {dy, lengths},
               {dx}};
     }},
};

constexpr BenchmarkOperation kSums[] = {
    {"ColumnSum", "n x 400", OperationTypes::kF32AndBf16, "reads x, writes a sum a column",
     [](Workbench* on) -> BenchmarkWork {
       const Tensor x = on->Values(kHidden), sums = on->Floats(1, kHidden);
       return {[=] { on->backend()->ColumnSum(x, sums); }, {x}, {sums}};
     },
     /*launches=*/2},
    {"RowSum", "26 of n x 1", OperationTypes::kF32AndBf16, "reads each x, writes y",
     [](Workbench* on) -> BenchmarkWork {
       const std::vector<Tensor> xs = on->Fields(kFields, 1);
       const Tensor y = on->Values(1);
       return {[=] { on->backend()->RowSum(xs, y); }, xs, {y}};
     }},
    {"RowSumGrad", "26 of n x 1", OperationTypes::kF32AndBf16, "reads dy, writes each dx",
     [](Workbench* on) -> BenchmarkWork {
       const std::vector<Tensor> dxs = on->Fields(kFields, 1);
       const Tensor dy = on->Values(1);
       return {[=] { on->backend()->RowSumGrad(dy, TargetsOf(dxs)); }, {dy}, dxs};
     }},
    {"Fm", "26 of n x 16", OperationTypes::kF32AndBf16, "reads each x, writes s (F32) and y",
     [](Workbench* on) -> BenchmarkWork {
       const std::vector<Tensor> xs = on->Fields(kFields, kDim);
       const Tensor s = on->Floats(on->samples(), kDim), y = on->Values(1);
       return {[=] { on->backend()->Fm(xs, s, y); }, xs, {s, y}};
     }},
    {"FmGrad", "26 of n x 16", OperationTypes::kF32AndBf16,
     "reads each x, s (F32) and dy, writes each dx",
     [](Workbench* on) -> BenchmarkWork {
       const std::vector<Tensor> xs = on->Fields(kFields, kDim), dxs = on->Fields(kFields, kDim);
       const Tensor s = on->Floats(on->samples(), kDim), dy = on->Values(1);
       return {[=] { on->backend()->FmGrad(xs, s, dy, TargetsOf(dxs)); }, With({s, dy}, xs), dxs};
     }},
    {"BiInteraction", "26 of n x 16", OperationTypes::kF32AndBf16,
     "reads each x, writes s (F32) and y",
     [](Workbench* on) -> BenchmarkWork {
       const std::vector<Tensor> xs = on->Fields(kFields, kDim);
       const Tensor s = on->Floats(on->samples(), kDim), y = on->Values(kDim);
       return {[=] { on->backend()->BiInteraction(xs, s, y); }, xs, {s, y}};
     }},
    {"BiInteractionGrad", "26 of n x 16", OperationTypes::kF32AndBf16,
     "reads each x, s (F32) and dy, writes each dx",
     [](Workbench* on) -> BenchmarkWork {
       const std::vector<Tensor> xs = on->Fields(kFields, kDim), dxs = on->Fields(kFields, kDim);
       const Tensor s = on->Floats(on->samples(), kDim), dy = on->Values(kDim);
       return {[=] { on->backend()->BiInteractionGrad(xs, s, dy, TargetsOf(dxs)); },
               With({s, dy}, xs), dxs};
     }},
};

// DLRM's pairs: each vector with those before it.
std::vector<PairTerm> AllPairs(int count) {
  std::vector<PairTerm> terms;
  for (int a = 1; a < count; ++a) {
    for (int b = 0; b < a; ++b) terms.push_back({a, 0, b, 0});
  }
  return terms;
}

BenchmarkWork PairDotsOf(Workbench* on, int count, int64_t dim) {
  const std::vector<Tensor> xs = on->Fields(count, dim);
  const std::vector<PairTerm> terms = AllPairs(count);
  const Tensor y = on->Values(static_cast<int64_t>(terms.size()));
  return {[=] { on->backend()->PairDots(xs, terms, dim, y); }, xs, {y}};
}

BenchmarkWork PairDotsGradOf(Workbench* on, int count, int64_t dim) {
  const std::vector<Tensor> xs = on->Fields(count, dim), dxs = on->Fields(count, dim);
  const std::vector<PairTerm> terms = AllPairs(count);
  const Tensor dy = on->Values(static_cast<int64_t>(terms.size()));
  return {[=] { on->backend()->PairDotsGrad(xs, terms, dim, dy, TargetsOf(dxs)); }, With({dy}, xs),
          dxs};
}

// The heads of `x` as matrices, arranged as attention arranges them: the heads of a vector lie side
// by side, and each head has its own matrix of scores.
SampleMatrices OfHeads(const Tensor& x) {
  return {x, kFields, kHeadDim, kHeads * kHeadDim, kHeadDim};
}
SampleMatrices OfScores(const Tensor& x) {
  return {x, kFields, kFields, kFields, kFields * kFields};
}

constexpr BenchmarkOperation kPairs[] = {
    {"PairDots", "27 of n x 16", OperationTypes::kF32AndBf16,
     "reads each x once, though it is in 26 terms, writes y",
     [](Workbench* on) { return PairDotsOf(on, 27, 16); }},
    {"PairDots", "27 of n x 128", OperationTypes::kF32AndBf16, "likewise",
     [](Workbench* on) { return PairDotsOf(on, 27, 128); }},
    {"PairDotsGrad", "27 of n x 16", OperationTypes::kF32AndBf16,
     "reads each x once, though it is in 26 terms, and dy, writes each dx",
     [](Workbench* on) { return PairDotsGradOf(on, 27, 16); }},
    {"PairDotsGrad", "27 of n x 128", OperationTypes::kF32AndBf16, "likewise",
     [](Workbench* on) { return PairDotsGradOf(on, 27, 128); }},
    {"BatchedProduct", "scores: 2 of 26 x 32 by 32 x 26", OperationTypes::kF32AndBf16,
     "reads a and b, writes y",
     [](Workbench* on) -> BenchmarkWork {
       const Tensor a = on->Values(kFields * kHeads * kHeadDim),
                    b = on->Values(kFields * kHeads * kHeadDim),
                    y = on->Values(kHeads * kFields * kFields);
       SampleMatrices transposed = OfHeads(b);
       transposed.transposed = true;
       return {[=] {
                 on->backend()->BatchedProduct(OfHeads(a), transposed, kHeads, 1, OfScores(y),
                                               /*add=*/false);
               },
               {a, b},
               {y}};
     }},
    {"BatchedProduct", "values: 2 of 26 x 26 by 26 x 32", OperationTypes::kF32AndBf16,
     "reads a and b, writes y",
     [](Workbench* on) -> BenchmarkWork {
       const Tensor a = on->Values(kHeads * kFields * kFields),
                    b = on->Values(kFields * kHeads * kHeadDim),
                    y = on->Values(kFields * kHeads * kHeadDim);
       return {[=] {
                 on->backend()->BatchedProduct(OfScores(a), OfHeads(b), kHeads, 1, OfHeads(y),
                                               /*add=*/false);
               },
               {a, b},
               {y}};
     }},
};

BenchmarkWork NormalizeOf(Workbench* on, Normalization kind, int64_t width) {
  const Tensor x = on->Values(kHidden), y = on->Values(kHidden),
               inverse = on->Floats(on->samples(), kHidden / width);
  return {[=] { on->backend()->Normalize(kind, x, width, 1e-5f, y, inverse); }, {x}, {y, inverse}};
}

BenchmarkWork NormalizeGradOf(Workbench* on, Normalization kind, int64_t width) {
  const Tensor y = on->Values(kHidden), dy = on->Values(kHidden), dx = on->Values(kHidden),
               inverse = on->Floats(on->samples(), kHidden / width);
  return {[=] {
            on->backend()->NormalizeGrad(kind, y, inverse, dy, width, {dx, /*add=*/false});
          },
          {y, inverse, dy},
          {dx}};
}

constexpr BenchmarkOperation kGroups[] = {
    {"Softmax", "52 groups of 26", OperationTypes::kF32AndBf16, "reads x, writes y",
     [](Workbench* on) -> BenchmarkWork {
       const Tensor x = on->Values(kHeads * kFields * kFields),
                    y = on->Values(kHeads * kFields * kFields);
       return {[=] { on->backend()->Softmax(x, kFields, y); }, {x}, {y}};
     }},
    {"SoftmaxGrad", "52 groups of 26", OperationTypes::kF32AndBf16, "reads y and dy, writes dx",
     [](Workbench* on) -> BenchmarkWork {
       const Tensor y = on->Values(kHeads * kFields * kFields),
                    dy = on->Values(kHeads * kFields * kFields),
                    dx = on->Values(kHeads * kFields * kFields);
       return {[=] {
                 on->backend()->SoftmaxGrad(y, dy, kFields, {dx, /*add=*/false});
               },
               {y, dy},
               {dx}};
     }},
    {"Normalize", "layer norm of 400", OperationTypes::kF32AndBf16,
     "reads x, writes y and the inverse of each group (F32)",
     [](Workbench* on) { return NormalizeOf(on, Normalization::kLayer, kHidden); }},
    {"Normalize", "L2, 25 groups of 16", OperationTypes::kF32AndBf16, "likewise",
     [](Workbench* on) { return NormalizeOf(on, Normalization::kL2, kDim); }},
    {"NormalizeGrad", "layer norm of 400", OperationTypes::kF32AndBf16,
     "reads y, the inverses (F32) and dy, writes dx",
     [](Workbench* on) { return NormalizeGradOf(on, Normalization::kLayer, kHidden); }},
    {"NormalizeGrad", "L2, 25 groups of 16", OperationTypes::kF32AndBf16, "likewise",
     [](Workbench* on) { return NormalizeGradOf(on, Normalization::kL2, kDim); }},
    {"Transpose", "26 x 16", OperationTypes::kF32AndBf16, "reads x, writes y",
     [](Workbench* on) -> BenchmarkWork {
       const Tensor x = on->Values(kFields * kDim), y = on->Values(kFields * kDim);
       return {[=] { on->backend()->Transpose(x, kDim, y, /*add=*/false); }, {x}, {y}};
     }},
};

}  // namespace

absl::Span<const BenchmarkOperation> SequenceOperations() { return kSequences; }
absl::Span<const BenchmarkOperation> SumOperations() { return kSums; }
absl::Span<const BenchmarkOperation> PairOperations() { return kPairs; }
absl::Span<const BenchmarkOperation> GroupOperations() { return kGroups; }

}  // namespace satrap

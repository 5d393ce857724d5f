#include "nn_worker/device/cuda/algorithm_table.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace satrap {
namespace {

constexpr int64_t kAlignment = 16;

LayerProduct ProductOf(const ProductSpec& spec) {
  if (spec.transpose_a) return LayerProduct::kWeightGradient;
  return spec.transpose_b ? LayerProduct::kInputGradient : LayerProduct::kForward;
}

bool Matches(const MeasuredAlgorithm& entry, const AlgorithmPlace& place, const ProductSpec& spec) {
  const LayerProduct product = ProductOf(spec);
  // Compares the dimensions of the weights. In a forward product the weights are the spec's b, in a
  // weight gradient its c, and in an input gradient its b, transposed.
  const bool swapped = product == LayerProduct::kInputGradient;
  const int64_t first = product == LayerProduct::kWeightGradient ? spec.rows : spec.terms;
  return entry.place.library == place.library && entry.place.capability == place.capability &&
         entry.place.multiprocessors == place.multiprocessors &&
         entry.precision == spec.precision && entry.product == product &&
         entry.in == (swapped ? spec.cols : first) && entry.out == (swapped ? first : spec.cols);
}

// How far apart two numbers of samples are, as a ratio of at least 1.
double Distance(int64_t a, int64_t b) {
  return static_cast<double>(std::max(a, b)) / static_cast<double>(std::min(a, b));
}

const char* NameOf(ProductPrecision precision) {
  constexpr const char* kNames[] = {"kF32", "kTf32", "kBf16", "kF16"};
  return kNames[static_cast<int>(precision)];
}

const char* NameOf(LayerProduct product) {
  constexpr const char* kNames[] = {"kForward", "kInputGradient", "kWeightGradient"};
  return kNames[static_cast<int>(product)];
}

}  // namespace

const MeasuredAlgorithm* FindAlgorithm(absl::Span<const MeasuredAlgorithm> table,
                                       const AlgorithmPlace& place, const ProductSpec& spec) {
  if (std::min({spec.a_alignment, spec.b_alignment, spec.c_alignment}) < kAlignment) return nullptr;
  const MeasuredAlgorithm* nearest = nullptr;
  for (const MeasuredAlgorithm& entry : table) {
    if (!Matches(entry, place, spec)) continue;
    if (nearest != nullptr) {
      const double ours = Distance(entry.samples, spec.samples());
      const double best = Distance(nearest->samples, spec.samples());
      if (ours > best || (ours == best && entry.samples > nearest->samples)) continue;
    }
    nearest = &entry;
  }
  return nearest;
}

int PreferredAlgorithm(absl::Span<const AlgorithmConfig> offered,
                       const MeasuredAlgorithm* measured) {
  if (measured == nullptr) return 0;
  const auto* const found = std::find(offered.begin(), offered.end(), measured->algorithm);
  return found == offered.end() ? 0 : static_cast<int>(found - offered.begin());
}

// The lines that begin and end an unnamed namespace are composed from parts, because the build
// looks for such lines (bazel/unit.bzl).
std::string SourceBegin(const AlgorithmPlace& place, const std::string& card) {
  return absl::StrCat(
      "// The output of algorithm_table_cuda (nn_worker/backend/benchmark).\n\n"
      "#include \"nn_worker/device/cuda/algorithm_table.h\"\n\n"
      "namespace satrap {\nnamespace {\n\n"
      "using L = LayerProduct;\nusing P = ProductPrecision;\n\n// ",
      card, "\nconstexpr AlgorithmPlace kCard = {", place.library, ", ", place.capability, ", ",
      place.multiprocessors, "};\n\nconstexpr MeasuredAlgorithm kMeasured[] = {\n");
}

std::string SourceOf(const MeasuredAlgorithm& entry) {
  return absl::StrCat("    {kCard, P::", NameOf(entry.precision), ", L::", NameOf(entry.product),
                      ", ", entry.samples, ", ", entry.in, ", ", entry.out, ", {",
                      absl::StrJoin(entry.algorithm, ", "), "}},\n");
}

std::string SourceEnd() {
  return "};\n\n}  // namespace\n\n"
         "absl::Span<const MeasuredAlgorithm> MeasuredAlgorithms() { return kMeasured; }\n\n"
         "}  // namespace satrap\n";
}

}  // namespace satrap

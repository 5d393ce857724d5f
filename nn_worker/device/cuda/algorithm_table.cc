#include "nn_worker/device/cuda/algorithm_table.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace satrap {
namespace {

constexpr int64_t kAlignment = 16;

bool Matches(const MeasuredAlgorithm& entry, const AlgorithmPlace& place,
             const ProductSpec& spec) {
  return entry.place.library == place.library && entry.place.capability == place.capability &&
         entry.place.multiprocessors == place.multiprocessors &&
         entry.precision == spec.precision && entry.epilogue == spec.epilogue &&
         entry.transpose_a == spec.transpose_a && entry.transpose_b == spec.transpose_b &&
         entry.f32_output == spec.f32_output && entry.pieces == (spec.piece > 0) &&
         entry.other == (spec.transpose_a ? spec.rows : spec.terms) && entry.cols == spec.cols;
}

// How far apart two numbers of samples are: at least 1.
double Distance(int64_t a, int64_t b) {
  return static_cast<double>(std::max(a, b)) / static_cast<double>(std::min(a, b));
}

const char* PrecisionName(ProductPrecision precision) {
  constexpr const char* kNames[] = {"kF32", "kTf32", "kBf16", "kF16"};
  return kNames[static_cast<int>(precision)];
}

const char* EpilogueName(ProductEpilogue epilogue) {
  constexpr const char* kNames[] = {"kNone", "kBias", "kBiasRelu"};
  return kNames[static_cast<int>(epilogue)];
}

const char* BoolName(bool value) { return value ? "true" : "false"; }

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

std::string SourceOf(const MeasuredAlgorithm& entry) {
  return absl::StrCat(
      "    {{", entry.place.library, ", ", entry.place.capability, ", ",
      entry.place.multiprocessors, "}, ProductPrecision::", PrecisionName(entry.precision),
      ", ProductEpilogue::", EpilogueName(entry.epilogue), ",\n     ", BoolName(entry.transpose_a),
      ", ", BoolName(entry.transpose_b), ", ", BoolName(entry.f32_output), ", ",
      BoolName(entry.pieces), ", ", entry.samples, ", ", entry.other, ", ", entry.cols, ", {",
      absl::StrJoin(entry.algorithm, ", "), "}},\n");
}

}  // namespace satrap

#include "nn_worker/layer/shape.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace satrap {

std::string ShapeText(const SampleShape& shape) {
  return absl::StrCat("[", absl::StrJoin(shape, ", "), "]");
}

int64_t ShapeSize(const SampleShape& shape) {
  int64_t size = 1;
  for (const int64_t dim : shape) size *= dim;
  return size;
}

absl::Status RequireOneInput(absl::Span<const SampleShape> inputs) {
  if (inputs.size() == 1) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("takes one input, got ", inputs.size()));
}

absl::Status RequireSomeInput(absl::Span<const SampleShape> inputs) {
  if (!inputs.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError("takes at least one input, got none");
}

absl::Status RequireVectors(absl::Span<const SampleShape> inputs) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].size() == 1) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("takes inputs of shape [dim], but input ", i, " is ", ShapeText(inputs[i])));
  }
  return absl::OkStatus();
}

absl::Status RequireEqualShapes(absl::Span<const SampleShape> inputs) {
  for (size_t i = 1; i < inputs.size(); ++i) {
    if (inputs[i] == inputs[0]) continue;
    return absl::InvalidArgumentError(absl::StrCat("takes inputs of one shape, but input 0 is ",
                                                   ShapeText(inputs[0]), " and input ", i, " is ",
                                                   ShapeText(inputs[i])));
  }
  return absl::OkStatus();
}

}  // namespace satrap

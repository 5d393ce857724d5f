#include "nn_worker/layer/fields.h"

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "nn_worker/layer/shape.h"

namespace satrap {

absl::StatusOr<FieldShape> FieldsOf(absl::Span<const SampleShape> inputs, int64_t least) {
  FieldShape fields;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const SampleShape& input = inputs[i];
    if (input.empty() || input.size() > 2 || input.back() < 1) {
      return absl::InvalidArgumentError(absl::StrCat(
          "takes inputs of shape [d] or [k, d], but input ", i, " is ", ShapeText(input)));
    }
    if (i > 0 && input.back() != fields.dim) {
      return absl::InvalidArgumentError(absl::StrCat("takes vectors of one length, but input 0 is ",
                                                     ShapeText(inputs[0]), " and input ", i, " is ",
                                                     ShapeText(input)));
    }
    fields.dim = input.back();
    fields.count += input.size() == 1 ? 1 : input[0];
  }
  if (fields.count >= least) return fields;
  return absl::InvalidArgumentError(
      absl::StrCat("takes at least ", least, " vectors, got ", fields.count));
}

std::vector<Tensor> FieldViews(const FieldShape& fields, absl::Span<const Tensor> xs) {
  std::vector<Tensor> views;
  for (const Tensor& x : xs) {
    for (int64_t c = 0; c < x.cols; c += fields.dim) views.push_back(x.Columns(c, fields.dim));
  }
  CHECK(static_cast<int64_t>(views.size()) == fields.count);
  return views;
}

std::vector<GradientTarget> FieldTargets(const FieldShape& fields, absl::Span<const Tensor> xs,
                                         absl::Span<const GradientTarget> dxs) {
  std::vector<GradientTarget> targets;
  for (size_t i = 0; i < xs.size(); ++i) {
    for (int64_t c = 0; c < xs[i].cols; c += fields.dim) {
      targets.emplace_back();
      if (dxs[i].wanted()) {
        targets.back() = {dxs[i].tensor.Columns(c, fields.dim), dxs[i].add};
      }
    }
  }
  return targets;
}

std::vector<PairTerm> AllPairs(int64_t count, PairOrder order) {
  std::vector<PairTerm> terms;
  const int n = static_cast<int>(count);
  for (int i = 0; i < n; ++i) {
    if (order == PairOrder::kFirstAfterSecond) {
      for (int j = 0; j < i; ++j) terms.push_back({i, 0, j, 0});
    } else {
      for (int j = i + 1; j < n; ++j) terms.push_back({i, 0, j, 0});
    }
  }
  return terms;
}

void JoinColumns(Backend* backend, absl::Span<const Tensor> xs, Tensor y) {
  int64_t begin = 0;
  for (const Tensor& x : xs) {
    if (x.cols > 0) backend->Copy(x, y.Columns(begin, x.cols), /*add=*/false);
    begin += x.cols;
  }
}

void SplitColumns(Backend* backend, absl::Span<const Tensor> xs, Tensor dy,
                  absl::Span<const GradientTarget> dxs) {
  int64_t begin = 0;
  for (size_t i = 0; i < xs.size(); ++i) {
    if (dxs[i].wanted() && xs[i].cols > 0) {
      backend->Copy(dy.Columns(begin, xs[i].cols), dxs[i].tensor, dxs[i].add);
    }
    begin += xs[i].cols;
  }
}

}  // namespace satrap

#include "nn_worker/backend/device/device_interaction.h"

#include <algorithm>
#include <set>
#include <vector>

#include "common/base/check.h"
#include "nn_worker/backend/device/device_matrix.h"
#include "nn_worker/backend/device/dot_plan.h"
#include "nn_worker/device/kernels/batched_product.h"
#include "nn_worker/device/kernels/group_normalization.h"
#include "nn_worker/device/kernels/multiply.h"
#include "nn_worker/device/kernels/pair_dots.h"
#include "nn_worker/device/kernels/row_sum.h"

namespace satrap {
namespace {

void CheckGroups(const Tensor& x, int64_t width) {
  CHECK(width > 0 && x.cols % width == 0) << x.cols << " columns in groups of " << width;
}

std::vector<ConstValues> InputsOf(absl::Span<const Tensor> xs) {
  std::vector<ConstValues> inputs;
  inputs.reserve(xs.size());
  for (const Tensor& x : xs) inputs.push_back(ConstValuesOf(x));
  return inputs;
}

// The shape of a matrix of BatchedProduct after its transposition, if there is one.
int64_t RowsOf(const SampleMatrices& m) { return m.transposed ? m.cols : m.rows; }
int64_t ColsOf(const SampleMatrices& m) { return m.transposed ? m.rows : m.cols; }

void CheckMatrices(const SampleMatrices& m, int64_t count) {
  CHECK(m.rows > 0 && m.cols > 0 && m.stride >= m.cols);
  CHECK((count - 1) * m.step + (m.rows - 1) * m.stride + m.cols <= m.tensor.cols)
      << count << " matrices of (" << m.rows << ", " << m.cols << ") in " << m.tensor.cols;
}

// A transposed matrix is read with its two strides exchanged; no values are moved.
RowMatrices MatricesOf(const SampleMatrices& m) {
  return {ConstValuesOf(m.tensor), m.step, m.transposed ? 1 : m.stride,
          m.transposed ? m.stride : 1};
}

// A gradient of Fm or BiInteraction and the inputs that share it.
struct SharedGradient {
  GradientTarget dx;
  std::vector<ConstValues> inputs;
};

// Each value of a gradient is written by one thread, which adds up the contributions of all inputs.
// If each input had its own threads, threads of two inputs could race.
std::vector<SharedGradient> ShareGradients(absl::Span<const Tensor> xs,
                                           absl::Span<const GradientTarget> dxs) {
  CHECK(xs.size() == dxs.size()) << xs.size() << " inputs, " << dxs.size() << " gradients";
  std::vector<SharedGradient> shared;
  for (size_t f = 0; f < xs.size(); ++f) {
    if (!dxs[f].wanted()) continue;
    CheckSameShape(xs[f], dxs[f].tensor);
    auto of = std::find_if(shared.begin(), shared.end(), [&](const SharedGradient& other) {
      return other.dx.tensor.data == dxs[f].tensor.data;
    });
    if (of == shared.end()) {
      of = shared.insert(shared.end(), {dxs[f], {}});
    } else if (!dxs[f].add) {
      *of = {dxs[f], {}};  // overwrites the contributions of earlier inputs
    }
    of->inputs.push_back(ConstValuesOf(xs[f]));
  }
  return shared;
}

bool HaveWideRows(const std::vector<ConstValues>& views) {
  return std::all_of(views.begin(), views.end(), [&](const ConstValues& view) {
    return view.type == views[0].type && HasWideRows(view);
  });
}

// The targets of WideFmGrad. Empty if WideFmGrad does not apply.
std::vector<WideFmGradTarget> WideTargetsOf(const std::vector<SharedGradient>& gradients) {
  std::vector<WideFmGradTarget> targets;
  std::vector<ConstValues> views;
  for (const auto& [dx, inputs] : gradients) {
    if (inputs.size() != 1) return {};
    views.push_back(inputs[0]);
    views.push_back(ConstValuesOf(dx.tensor));
    targets.push_back(
        {inputs[0].data, inputs[0].stride, dx.tensor.data, dx.tensor.stride, dx.add ? 1 : 0});
  }
  if (!HaveWideRows(views)) targets.clear();
  return targets;
}

void EnqueueFmGrad(DeviceTransfers* transfers, absl::Span<const Tensor> xs, const Tensor& s,
                   const Tensor& dy, absl::Span<const GradientTarget> dxs) {
  const std::vector<SharedGradient> gradients = ShareGradients(xs, dxs);
  for (const SharedGradient& shared : gradients) CheckSameShape(shared.dx.tensor, s);
  if (const auto wide = WideTargetsOf(gradients); !wide.empty()) {
    WideFmGrad(transfers->stream(), transfers->tables()->Table(wide), static_cast<int>(wide.size()),
               gradients[0].inputs[0].type, ConstValuesOf(s), ConstValuesOf(dy));
    return;
  }
  std::vector<ConstValues> inputs;
  std::vector<FmGradTarget> targets;
  for (const SharedGradient& shared : gradients) {
    // The inputs of one target are consecutive in `inputs`.
    targets.push_back({ValuesOf(shared.dx.tensor), static_cast<int32_t>(inputs.size()),
                       static_cast<int32_t>(shared.inputs.size()), shared.dx.add ? 1 : 0});
    inputs.insert(inputs.end(), shared.inputs.begin(), shared.inputs.end());
  }
  if (targets.empty()) return;
  const auto [input_list, target_list] = transfers->tables()->Tables(inputs, targets);
  satrap::FmGrad(transfers->stream(), input_list, target_list, static_cast<int>(targets.size()),
                 ConstValuesOf(s), ConstValuesOf(dy));
}

// One gradient tensor of PairDots, and the products that are added to it. Several inputs may share
// the tensor.
struct DotGradient {
  struct Term {
    int64_t column;    // of the vector in the gradient
    DotFactor factor;  // with the whole other vector
  };
  Tensor dx;
  bool add;
  std::vector<Term> terms;
};

std::vector<DotGradient> DotGradients(absl::Span<const PairTerm> terms,
                                      absl::Span<const GradientTarget> dxs) {
  std::vector<DotGradient> gradients;
  std::vector<int> of_input;  // the number of an input's gradient, or -1
  for (const GradientTarget& dx : dxs) {
    of_input.push_back(-1);
    if (!dx.wanted()) continue;
    for (size_t g = 0; g < gradients.size(); ++g) {
      if (gradients[g].dx.data == dx.tensor.data) of_input.back() = static_cast<int>(g);
    }
    if (of_input.back() < 0) {
      of_input.back() = static_cast<int>(gradients.size());
      gradients.push_back({dx.tensor, true, {}});
    }
    DotGradient& gradient = gradients[of_input.back()];
    CheckSameShape(gradient.dx, dx.tensor);
    // If one input assigns to the gradient, the whole gradient is assigned.
    gradient.add = gradient.add && dx.add;
  }
  for (size_t t = 0; t < terms.size(); ++t) {
    const auto number = static_cast<int32_t>(t);
    const auto& [a, a_column, b, b_column] = terms[t];
    if (of_input[a] >= 0) {
      gradients[of_input[a]].terms.push_back({a_column, {number, b, b_column}});
    }
    if (of_input[b] >= 0) {
      gradients[of_input[b]].terms.push_back({b_column, {number, a, a_column}});
    }
  }
  return gradients;
}

// Divides the columns of a gradient into pieces: a new piece begins wherever a vector of the
// gradient begins or ends. So all columns of a piece are sums of the same terms.
void AddPieces(const DotGradient& gradient, int64_t dim, std::vector<DotGradPiece>* pieces,
               std::vector<DotFactor>* factors) {
  std::set<int64_t> cuts = {0, gradient.dx.cols};
  for (const DotGradient::Term& term : gradient.terms) {
    cuts.insert(term.column);
    cuts.insert(term.column + dim);
  }
  for (auto begin = cuts.begin(), end = std::next(begin); end != cuts.end(); begin = end++) {
    const size_t first = factors->size();
    for (const DotGradient::Term& term : gradient.terms) {
      if (term.column > *begin || *end > term.column + dim) continue;
      DotFactor factor = term.factor;
      factor.column += static_cast<int32_t>(*begin - term.column);
      factors->push_back(factor);
    }
    const size_t count = factors->size() - first;
    // A piece without terms becomes 0, unless `add` is set: then it stays as it is.
    if (count == 0 && gradient.add) continue;
    pieces->push_back({ValuesOf(gradient.dx), static_cast<int32_t>(*begin),
                       static_cast<int32_t>(*end - *begin), static_cast<int32_t>(first),
                       static_cast<int32_t>(count), gradient.add ? 1 : 0});
  }
}

void CheckTerms(absl::Span<const Tensor> xs, absl::Span<const PairTerm> terms, int64_t dim,
                const Tensor& y) {
  CHECK(y.cols == static_cast<int64_t>(terms.size())) << y.cols << " for " << terms.size();
  for (const Tensor& x : xs) CHECK(x.rows == y.rows) << x.rows;
  for (const PairTerm& term : terms) {
    CHECK(term.a_column + dim <= xs[term.a].cols && term.b_column + dim <= xs[term.b].cols);
  }
}

}  // namespace

void DeviceInteractionBackend::Fm(absl::Span<const Tensor> xs, Tensor s, Tensor y) {
  for (const Tensor& x : xs) CheckSameShape(x, s);
  const std::vector<ConstValues> inputs = InputsOf(xs);
  const ConstValues* const list = operations_.tables()->Table(inputs);
  const auto count = static_cast<int>(inputs.size());
  if (count > 0 && HaveWideRows(inputs)) {
    WideFm(operations_.stream(), list, count, inputs[0].type, ValuesOf(s), ValuesOf(y));
  } else {
    satrap::Fm(operations_.stream(), list, count, ValuesOf(s), ValuesOf(y));
  }
}

void DeviceInteractionBackend::FmGrad(absl::Span<const Tensor> xs, Tensor s, Tensor dy,
                                      absl::Span<const GradientTarget> dxs) {
  CHECK(dy.rows == s.rows && dy.cols == 1);
  EnqueueFmGrad(&operations_, xs, s, dy, dxs);
}

void DeviceInteractionBackend::Scale(float factor, Tensor x, Tensor y, bool add) {
  CheckSameShape(x, y);
  ScaleValues(operations_.stream(), factor, ConstValuesOf(x), ValuesOf(y), add);
}

void DeviceInteractionBackend::Multiply(Tensor a, Tensor b, Tensor y, bool add) {
  CheckSameShape(a, y);
  // b has one value for each value of y, or one for each row of y; or b is a single row that is
  // used for every group of b.cols columns of y.
  if (b.rows != y.rows || (b.cols != 1 && b.cols != y.cols)) {
    CHECK(b.rows == 1) << "(" << b.rows << ", " << b.cols << ")";
    CheckGroups(y, b.cols);
  }
  MultiplyValues(operations_.stream(), ConstValuesOf(a), ConstValuesOf(b), ValuesOf(y), add);
}

void DeviceInteractionBackend::Transpose(Tensor x, int64_t width, Tensor y, bool add) {
  CheckSameShape(x, y);
  CheckGroups(x, width);
  TransposeRows(operations_.stream(), ConstValuesOf(x), width, ValuesOf(y), add);
}

void DeviceInteractionBackend::BatchedProduct(const SampleMatrices& a, const SampleMatrices& b,
                                              int64_t count, float scale, const SampleMatrices& y,
                                              bool add) {
  CHECK(!y.transposed && RowsOf(a) == y.rows && ColsOf(b) == y.cols && ColsOf(a) == RowsOf(b));
  CHECK(a.tensor.rows == y.tensor.rows && b.tensor.rows == y.tensor.rows);
  for (const SampleMatrices* m : {&a, &b, &y}) CheckMatrices(*m, count);
  BatchedProductArgs args = {};
  args.a = MatricesOf(a);
  args.b = MatricesOf(b);
  args.y = ValuesOf(y.tensor);
  args.y_step = y.step;
  args.y_stride = y.stride;
  args.rows = y.rows;
  args.cols = y.cols;
  args.inner = ColsOf(a);
  args.count = count;
  args.scale = scale;
  args.add = add;
  satrap::BatchedProduct(operations_.stream(), args);
}

void DeviceInteractionBackend::PairDots(absl::Span<const Tensor> xs,
                                        absl::Span<const PairTerm> terms, int64_t dim, Tensor y) {
  CheckTerms(xs, terms, dim, y);
  if (const auto plan = PlanDots(xs, terms, dim)) {
    const auto [vectors, tiles, list] =
        operations_.tables()->Tables(plan->vectors, plan->tiles, plan->terms);
    PairDotsInTiles(operations_.stream(),
                    {vectors, static_cast<int32_t>(plan->vectors.size()), plan->type, dim}, tiles,
                    list, static_cast<int>(plan->tiles.size()), ValuesOf(y));
    return;
  }
  std::vector<DotTerm> products;
  products.reserve(terms.size());
  for (const auto& [a, a_column, b, b_column] : terms) {
    products.push_back({a, a_column, b, b_column});
  }
  const auto [inputs, list] = operations_.tables()->Tables(InputsOf(xs), products);
  satrap::PairDots(operations_.stream(), inputs, list, dim, ValuesOf(y));
}

void DeviceInteractionBackend::PairDotsGrad(absl::Span<const Tensor> xs,
                                            absl::Span<const PairTerm> terms, int64_t dim,
                                            Tensor dy, absl::Span<const GradientTarget> dxs) {
  CheckTerms(xs, terms, dim, dy);
  CHECK(xs.size() == dxs.size()) << xs.size() << " inputs, " << dxs.size() << " gradients";
  if (const auto plan = PlanDotGrad(xs, terms, dim, dxs)) {
    const auto [vectors, targets, pairs] =
        operations_.tables()->Tables(plan->vectors, plan->targets, plan->pairs);
    PairDotsGradInTiles(operations_.stream(),
                        {vectors, static_cast<int32_t>(plan->vectors.size()), plan->type, dim},
                        targets, pairs, ConstValuesOf(dy));
    return;
  }
  std::vector<DotGradPiece> pieces;
  std::vector<DotFactor> factors;
  for (const DotGradient& gradient : DotGradients(terms, dxs)) {
    AddPieces(gradient, dim, &pieces, &factors);
  }
  int64_t max_width = 0;
  for (const DotGradPiece& piece : pieces) max_width = std::max<int64_t>(max_width, piece.width);
  if (pieces.empty()) return;
  const auto [inputs, piece_list, factor_list] =
      operations_.tables()->Tables(InputsOf(xs), pieces, factors);
  satrap::PairDotsGrad(operations_.stream(), inputs, piece_list, static_cast<int>(pieces.size()),
                       max_width, factor_list, ConstValuesOf(dy));
}

void DeviceInteractionBackend::BiInteraction(absl::Span<const Tensor> xs, Tensor s, Tensor y) {
  CHECK(!xs.empty());
  for (const Tensor& x : xs) CheckSameShape(x, y);
  CheckSameShape(s, y);
  const std::vector<ConstValues> inputs = InputsOf(xs);
  satrap::BiInteraction(operations_.stream(), operations_.tables()->Table(inputs),
                        static_cast<int>(inputs.size()), ValuesOf(s), ValuesOf(y));
}

void DeviceInteractionBackend::BiInteractionGrad(absl::Span<const Tensor> xs, Tensor s, Tensor dy,
                                                 absl::Span<const GradientTarget> dxs) {
  CheckSameShape(dy, s);
  EnqueueFmGrad(&operations_, xs, s, dy, dxs);
}

void DeviceInteractionBackend::Softmax(Tensor x, int64_t width, Tensor y) {
  CheckSameShape(x, y);
  CheckGroups(x, width);
  SoftmaxGroups(operations_.stream(), ConstValuesOf(x), width, ValuesOf(y));
}

void DeviceInteractionBackend::SoftmaxGrad(Tensor y, Tensor dy, int64_t width, GradientTarget dx) {
  if (!dx.wanted()) return;
  CheckSameShape(y, dy);
  CheckSameShape(y, dx.tensor);
  CheckGroups(y, width);
  SoftmaxGroupsGrad(operations_.stream(), ConstValuesOf(y), ConstValuesOf(dy), width,
                    ValuesOf(dx.tensor), dx.add);
}

void DeviceInteractionBackend::Normalize(Normalization kind, Tensor x, int64_t width, float epsilon,
                                         Tensor y, Tensor inverse) {
  CheckSameShape(x, y);
  CheckGroups(x, width);
  CHECK(inverse.rows == y.rows && inverse.cols == y.cols / width);
  NormalizeGroups(operations_.stream(), kind == Normalization::kLayer, ConstValuesOf(x), width,
                  epsilon, ValuesOf(y), ValuesOf(inverse));
}

void DeviceInteractionBackend::NormalizeGrad(Normalization kind, Tensor y, Tensor inverse,
                                             Tensor dy, int64_t width, GradientTarget dx) {
  if (!dx.wanted()) return;
  CheckSameShape(y, dy);
  CheckSameShape(y, dx.tensor);
  CheckGroups(y, width);
  CHECK(inverse.rows == y.rows && inverse.cols == y.cols / width);
  NormalizeGroupsGrad(operations_.stream(), kind == Normalization::kLayer, ConstValuesOf(y),
                      ConstValuesOf(inverse), ConstValuesOf(dy), width, ValuesOf(dx.tensor),
                      dx.add);
}

}  // namespace satrap

#include "nn_worker/backend/device/dot_plan.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>

#include "nn_worker/backend/device/device_matrix.h"

namespace satrap {
namespace {

// With fewer vectors, most of the products that a tile computes are not used.
constexpr size_t kLeastVectors = 8;
// A tile of 4 x 4 products takes about as long as a quarter of these products computed one by one.
constexpr size_t kMostUnused = 4;

// The vectors of the terms, in the order of inputs and columns.
struct Place {
  int32_t input, column;
  friend bool operator<(const Place& a, const Place& b) {
    return a.input != b.input ? a.input < b.input : a.column < b.column;
  }
  friend bool operator==(const Place& a, const Place& b) {
    return a.input == b.input && a.column == b.column;
  }
};

std::vector<Place> PlacesOf(absl::Span<const PairTerm> terms) {
  std::vector<Place> places;
  places.reserve(2 * terms.size());
  for (const auto& [a, a_column, b, b_column] : terms) {
    places.push_back({static_cast<int32_t>(a), static_cast<int32_t>(a_column)});
    places.push_back({static_cast<int32_t>(b), static_cast<int32_t>(b_column)});
  }
  std::sort(places.begin(), places.end());
  places.erase(std::unique(places.begin(), places.end()), places.end());
  return places;
}

int IndexOf(const std::vector<Place>& places, int64_t input, int64_t column) {
  const Place place = {static_cast<int32_t>(input), static_cast<int32_t>(column)};
  return static_cast<int>(std::lower_bound(places.begin(), places.end(), place) - places.begin());
}

std::vector<DotPair> PairsOf(const std::vector<Place>& places, absl::Span<const PairTerm> terms) {
  std::vector<DotPair> pairs;
  pairs.reserve(terms.size());
  for (const auto& [a, a_column, b, b_column] : terms) {
    pairs.push_back({static_cast<int16_t>(IndexOf(places, a, a_column)),
                     static_cast<int16_t>(IndexOf(places, b, b_column))});
  }
  return pairs;
}

bool HaveOneType(absl::Span<const Tensor> xs, const std::vector<Place>& places) {
  return std::all_of(places.begin(), places.end(), [&](const Place& place) {
    return xs[place.input].dtype == xs[places[0].input].dtype;
  });
}

char* AddressOf(const Tensor& x, int64_t column) {
  return static_cast<char*>(x.data) + column * DTypeBytes(x.dtype);
}

std::vector<DotVector> VectorsOf(absl::Span<const Tensor> xs, const std::vector<Place>& places) {
  std::vector<DotVector> vectors;
  vectors.reserve(places.size());
  for (const Place& place : places) {
    const Tensor& x = xs[place.input];
    vectors.push_back({AddressOf(x, place.column), x.stride});
  }
  return vectors;
}

// Each term takes a place in the tile of its two vectors. If another term has that place, because a
// pair is in several terms, another tile of the same vectors is added.
void AddTiles(const std::vector<DotPair>& pairs, DotPlan* plan) {
  struct Tile {
    DotTile of;
    std::array<int32_t, kTileProducts> terms;
  };
  const int step = DotTileStep(static_cast<int>(plan->vectors.size()));
  std::map<std::pair<int, int>, std::vector<Tile>> tiles;
  for (size_t t = 0; t < pairs.size(); ++t) {
    int a = pairs[t].a, b = pairs[t].b;
    if (a % step > b % step) std::swap(a, b);
    std::vector<Tile>& of_pair = tiles[{a % step, b % step}];
    const int at = a / step * kDotTile + b / step;
    if (of_pair.empty() || of_pair.back().terms[at] >= 0) {
      of_pair.push_back({{a % step, b % step}, {}});
      of_pair.back().terms.fill(-1);
    }
    of_pair.back().terms[at] = static_cast<int32_t>(t);
  }
  std::vector<Tile> list;
  for (const auto& [of, of_pair] : tiles) list.insert(list.end(), of_pair.begin(), of_pair.end());
  for (const Tile& tile : list) plan->tiles.push_back(tile.of);
  for (int at = 0; at < kTileProducts; ++at) {
    for (const Tile& tile : list) plan->terms.push_back(tile.terms[at]);
  }
}

// Whether the pairs are exactly those of different vectors, each once, and each vector meets the
// others in their order.
bool MeetsAllInOrder(const std::vector<DotPair>& pairs, int vectors) {
  if (static_cast<int64_t>(pairs.size()) != int64_t{vectors} * (vectors - 1) / 2) return false;
  std::vector<int> next(vectors, 0);  // the vector that is to come, and not the vector itself
  next[0] = 1;
  for (const auto& [a, b] : pairs) {
    if (next[a] != b || next[b] != a) return false;
    next[a] = b + 1 == a ? a + 1 : b + 1;
    next[b] = a + 1 == b ? b + 1 : a + 1;
  }
  return true;
}

// Whether every column of a wanted gradient is in exactly one vector, and no two inputs share a
// gradient.
bool AreApart(const std::vector<Place>& places, int64_t dim, DType dtype,
              absl::Span<const GradientTarget> dxs) {
  std::vector<int64_t> covered(dxs.size(), 0);  // columns of each input that are in vectors
  for (const Place& place : places) {
    if (!dxs[place.input].wanted()) continue;
    if (place.column != covered[place.input]) return false;
    covered[place.input] += dim;
  }
  std::set<const void*> tensors;
  for (size_t f = 0; f < dxs.size(); ++f) {
    if (!dxs[f].wanted()) continue;
    const Tensor& dx = dxs[f].tensor;
    if (covered[f] != dx.cols || dx.dtype != dtype) return false;
    if (!tensors.insert(dx.data).second) return false;
  }
  return true;
}

}  // namespace

absl::optional<DotPlan> PlanDots(absl::Span<const Tensor> xs, absl::Span<const PairTerm> terms,
                                 int64_t dim) {
  const std::vector<Place> places = PlacesOf(terms);
  if (places.size() < kLeastVectors || !HaveOneType(xs, places)) return absl::nullopt;
  const auto vectors = static_cast<int>(places.size());
  const ElementType type = ElementTypeOf(xs[places[0].input].dtype);
  const auto columns = static_cast<int64_t>(terms.size());
  if (DotTileSamples(vectors, type, dim, columns) == 0) return absl::nullopt;
  DotPlan plan = {type, VectorsOf(xs, places), {}, {}};
  AddTiles(PairsOf(places, terms), &plan);
  if (plan.terms.size() > kMostUnused * terms.size()) return absl::nullopt;
  return plan;
}

absl::optional<DotGradPlan> PlanDotGrad(absl::Span<const Tensor> xs,
                                        absl::Span<const PairTerm> terms, int64_t dim,
                                        absl::Span<const GradientTarget> dxs) {
  const std::vector<Place> places = PlacesOf(terms);
  if (places.size() < kLeastVectors || !HaveOneType(xs, places)) return absl::nullopt;
  const DType dtype = xs[places[0].input].dtype;
  const auto vectors = static_cast<int>(places.size());
  if (DotGradSamples(vectors, ElementTypeOf(dtype), dim) == 0) return absl::nullopt;
  DotGradPlan plan = {ElementTypeOf(dtype), VectorsOf(xs, places), {}, PairsOf(places, terms)};
  if (!MeetsAllInOrder(plan.pairs, vectors) || !AreApart(places, dim, dtype, dxs)) {
    return absl::nullopt;
  }
  for (const Place& place : places) {
    const GradientTarget& dx = dxs[place.input];
    if (!dx.wanted()) {
      plan.targets.push_back({nullptr, 0, 0});
      continue;
    }
    plan.targets.push_back({AddressOf(dx.tensor, place.column), dx.tensor.stride, dx.add ? 1 : 0});
  }
  return plan;
}

}  // namespace satrap

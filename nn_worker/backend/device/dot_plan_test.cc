#include "nn_worker/backend/device/dot_plan.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "gtest/gtest.h"
#include "nn_worker/backend/tensor_copy.h"
#include "nn_worker/backend/testing/host_device_backend.h"
#include "nn_worker/device/testing/device_testing.h"

namespace satrap {
namespace {

constexpr int64_t kSamples = 19;
constexpr DType kTypes[] = {DType::kF32, DType::kF16, DType::kBF16};

// Half a unit in the last place of a result of the type.
double RoundingOf(DType dtype) {
  if (dtype == DType::kF32) return 1e-6;
  return dtype == DType::kF16 ? 1.0 / 2048 : 1.0 / 256;
}

std::vector<PairTerm> AllPairs(int count) {
  std::vector<PairTerm> terms;
  for (int a = 1; a < count; ++a) {
    for (int b = 0; b < a; ++b) terms.push_back({a, 0, b, 0});
  }
  return terms;
}

class DotPlanTest : public testing::TestWithParam<HostDeviceOptions> {
 protected:
  Tensor New(DType dtype, int64_t cols) {
    return AllocateTensor(backend_.get(), dtype, kSamples, cols, PaddedStride(dtype, cols)).value();
  }
  Tensor Put(DType dtype, const std::vector<float>& values) {
    const auto cols = static_cast<int64_t>(values.size()) / kSamples;
    const Tensor wide = AllocateTensor(backend_.get(), DType::kF32, kSamples, cols).value();
    const Tensor tensor = New(dtype, cols);
    CopyIn(backend_.get(), values, wide);
    backend_->Copy(wide, tensor, /*add=*/false);
    return tensor;
  }
  Tensor Random(DType dtype, int64_t cols, uint64_t seed) {
    return Put(dtype, RandomValues(kSamples * cols, seed));
  }
  // Vectors of `dim` values side by side, from column `begin` on.
  std::vector<Tensor> Vectors(DType dtype, int count, int64_t dim, int64_t begin, uint64_t seed) {
    const auto values = RandomValues(kSamples * count * dim, seed);
    const int64_t cols = begin + count * dim;
    std::vector<float> shifted(kSamples * cols, 0);
    for (int64_t i = 0; i < kSamples; ++i) {
      std::copy_n(&values[i * count * dim], count * dim, &shifted[i * cols + begin]);
    }
    const Tensor block = Put(dtype, shifted);
    std::vector<Tensor> vectors;
    for (int f = 0; f < count; ++f) vectors.push_back(block.Columns(begin + f * dim, dim));
    return vectors;
  }
  std::vector<float> Get(const Tensor& tensor) {
    const Tensor wide =
        AllocateTensor(backend_.get(), DType::kF32, tensor.rows, tensor.cols).value();
    backend_->Copy(tensor, wide, /*add=*/false);
    return ReadFloats(backend_.get(), wide);
  }
  std::vector<std::vector<float>> Get(const std::vector<Tensor>& tensors) {
    std::vector<std::vector<float>> values;
    for (const Tensor& tensor : tensors) values.push_back(Get(tensor));
    return values;
  }
  std::vector<float> Dots(const std::vector<Tensor>& xs, const std::vector<PairTerm>& terms) {
    const Tensor y = New(xs[0].dtype, static_cast<int64_t>(terms.size()));
    backend_->PairDots(xs, terms, xs[0].cols, y);
    return Get(y);
  }

  void ExpectDots(const std::vector<Tensor>& xs, const std::vector<PairTerm>& terms);
  void ExpectGradients(const std::vector<Tensor>& xs, const std::vector<PairTerm>& terms,
                       int64_t begin);

  const std::unique_ptr<Backend> backend_ = NewHostDeviceBackend(GetParam());
};

IN_EVERY_ORDER(DotPlanTest);

void DotPlanTest::ExpectDots(const std::vector<Tensor>& xs, const std::vector<PairTerm>& terms) {
  const std::vector<std::vector<float>> x = Get(xs);
  const std::vector<float> got = Dots(xs, terms);
  const auto count = static_cast<int64_t>(terms.size());
  const int64_t dim = xs[0].cols;
  for (int64_t i = 0; i < kSamples; ++i) {
    for (int64_t t = 0; t < count; ++t) {
      double sum = 0;
      for (int64_t d = 0; d < dim; ++d) {
        sum += double{x[terms[t].a][i * dim + d]} * x[terms[t].b][i * dim + d];
      }
      ASSERT_NEAR(got[i * count + t], sum, 1e-5 + std::abs(sum) * RoundingOf(xs[0].dtype))
          << xs.size() << " x " << dim << ", sample " << i << ", term " << t;
    }
  }
}

// Adds to every second gradient, and requests no gradient for vector 1.
void DotPlanTest::ExpectGradients(const std::vector<Tensor>& xs, const std::vector<PairTerm>& terms,
                                  int64_t begin) {
  const auto count = static_cast<int64_t>(terms.size());
  const int64_t dim = xs[0].cols;
  const DType dtype = xs[0].dtype;
  const std::vector<Tensor> dxs =
      Vectors(dtype, static_cast<int>(xs.size()), dim, begin, /*seed=*/2);
  const Tensor dy = Random(dtype, count, 3);
  const std::vector<std::vector<float>> x = Get(xs), before = Get(dxs);
  const std::vector<float> slopes = Get(dy);
  std::vector<GradientTarget> targets;
  std::vector<std::vector<double>> want;
  for (size_t f = 0; f < xs.size(); ++f) {
    targets.push_back({dxs[f], f % 2 == 0});
    want.emplace_back(before[f].size(), 0.0);
    if (f % 2 == 0) want.back().assign(before[f].begin(), before[f].end());
  }
  targets[1] = {};
  for (int64_t i = 0; i < kSamples; ++i) {
    for (int64_t t = 0; t < count; ++t) {
      for (int64_t d = i * dim; d < (i + 1) * dim; ++d) {
        want[terms[t].a][d] += double{slopes[i * count + t]} * x[terms[t].b][d];
        want[terms[t].b][d] += double{slopes[i * count + t]} * x[terms[t].a][d];
      }
    }
  }
  want[1].assign(before[1].begin(), before[1].end());
  backend_->PairDotsGrad(xs, terms, dim, dy, targets);
  const std::vector<std::vector<float>> got = Get(dxs);
  for (size_t f = 0; f < xs.size(); ++f) {
    for (size_t d = 0; d < got[f].size(); ++d) {
      ASSERT_NEAR(got[f][d], want[f][d], 1e-5 + std::abs(want[f][d]) * RoundingOf(dtype))
          << xs.size() << " x " << dim << ", vector " << f << ", value " << d;
    }
  }
}

// The last tile is full, has one vector, or has a few. Vectors end within 16 bytes, at a multiple
// of 16 bytes, or after many of them; they begin at multiples of 16 bytes or elsewhere.
TEST_P(DotPlanTest, AllPairsOfVectorsAreThoseOfALoop) {
  for (const DType dtype : kTypes) {
    for (const int count : {2, 8, 27, 40}) {
      for (const int64_t dim : {1, 4, 10, 16, 17}) {
        for (const int64_t begin : {0, 1}) {
          const std::vector<Tensor> xs = Vectors(dtype, count, dim, begin, 1);
          ExpectDots(xs, AllPairs(count));
          ExpectGradients(xs, AllPairs(count), 1 - begin);
        }
      }
    }
    const std::vector<Tensor> wide = Vectors(dtype, 27, 128, 0, 1);
    ExpectDots(wide, AllPairs(27));
    ExpectGradients(wide, AllPairs(27), 0);
    const std::vector<Tensor> many = Vectors(dtype, 100, 4, 0, 1);  // more tiles than threads
    ExpectDots(many, AllPairs(100));
    ExpectGradients(many, AllPairs(100), 0);
  }
}

// Some pairs are in several terms, some consist of a vector and itself, and some are in no term.
TEST_P(DotPlanTest, TermsMayBeAnyPairs) {
  std::vector<PairTerm> terms = AllPairs(9);
  terms.resize(30);
  for (int f = 0; f < 9; ++f) terms.push_back({f, 0, f, 0});
  for (int f = 1; f < 9; ++f) terms.push_back({0, 0, f, 0});
  for (const DType dtype : kTypes) {
    const std::vector<Tensor> xs = Vectors(dtype, 9, 10, 0, 1);
    ASSERT_TRUE(PlanDots(xs, terms, 10).has_value());
    ExpectDots(xs, terms);
  }
}

// If there are only a few terms, the kernel for arbitrary terms computes them.
TEST_P(DotPlanTest, DotProductsHaveTheBitsOfTheOtherKernel) {
  const std::vector<PairTerm> terms = AllPairs(27);
  const auto count = static_cast<int64_t>(terms.size());
  for (const DType dtype : kTypes) {
    for (const int64_t begin : {0, 1}) {
      const std::vector<Tensor> xs = Vectors(dtype, 27, 17, begin, 1);
      ASSERT_TRUE(PlanDots(xs, terms, 17).has_value());
      const std::vector<float> all = Dots(xs, terms);
      for (int64_t t = 0; t < count; t += 7) {
        ASSERT_FALSE(PlanDots(xs, {terms[t]}, 17).has_value());
        const std::vector<float> one = Dots(xs, {terms[t]});
        for (int64_t i = 0; i < kSamples; ++i)
          ASSERT_EQ(all[i * count + t], one[i]) << i << " " << t;
      }
    }
  }
}

// If a gradient has another type, the kernel for arbitrary terms computes it.
TEST_P(DotPlanTest, GradientsHaveTheBitsOfTheOtherKernel) {
  const std::vector<PairTerm> terms = AllPairs(9);
  for (const DType dtype : {DType::kF16, DType::kBF16}) {
    for (const int64_t begin : {0, 1}) {
      const std::vector<Tensor> xs = Vectors(dtype, 9, 17, begin, 1);
      const std::vector<Tensor> dxs = Vectors(dtype, 9, 17, begin, 2);
      const std::vector<Tensor> others = Vectors(dtype, 9, 17, begin, 2);
      const Tensor dy = Random(dtype, static_cast<int64_t>(terms.size()), 3);
      std::vector<GradientTarget> targets, other_targets;
      for (int f = 0; f < 9; ++f) {
        targets.push_back({dxs[f], f % 3 == 0});
        other_targets.push_back({others[f], f % 3 == 0});
      }
      other_targets[8] = {New(DType::kF32, 17), false};
      ASSERT_TRUE(PlanDotGrad(xs, terms, 17, targets).has_value());
      ASSERT_FALSE(PlanDotGrad(xs, terms, 17, other_targets).has_value());
      backend_->PairDotsGrad(xs, terms, 17, dy, targets);
      backend_->PairDotsGrad(xs, terms, 17, dy, other_targets);
      for (int f = 0; f < 8; ++f) ASSERT_EQ(Get(dxs[f]), Get(others[f])) << f;
    }
  }
}

TEST_P(DotPlanTest, AnInfiniteVectorSpoilsOnlyTheGradientsOfOthers) {
  const float infinite = std::numeric_limits<float>::infinity();
  const std::vector<Tensor> xs = Vectors(DType::kF32, 8, 4, 0, 1),
                            dxs = Vectors(DType::kF32, 8, 4, 0, 2);
  CopyIn(backend_.get(), std::vector<float>(4, infinite), xs[3].Rows(0, 1));
  const std::vector<PairTerm> terms = AllPairs(8);
  std::vector<GradientTarget> targets;
  for (const Tensor& dx : dxs) targets.push_back({dx, false});
  backend_->PairDotsGrad(xs, terms, 4, Random(DType::kF32, 28, 3), targets);
  for (int f = 0; f < 8; ++f) EXPECT_EQ(std::isfinite(Get(dxs[f])[0]), f == 3) << f;
}

// Several vectors lie in one input, as after a `stack` layer.
TEST_P(DotPlanTest, VectorsMayBeColumnsOfAnInput) {
  const Tensor x = Random(DType::kF32, 8 * 5, 1), dx = Random(DType::kF32, 8 * 5, 2);
  std::vector<PairTerm> of_columns;
  std::vector<Tensor> xs, dxs;
  std::vector<GradientTarget> targets;
  for (int a = 0; a < 8; ++a) {
    xs.push_back(x.Columns(5 * a, 5));
    dxs.push_back(New(DType::kF32, 5));
    targets.push_back({dxs.back(), false});
    for (int b = 0; b < a; ++b) of_columns.push_back({0, 5 * a, 0, 5 * b});
  }
  ASSERT_TRUE(PlanDotGrad({x}, of_columns, 5, {{dx, false}}).has_value());
  const Tensor y = New(DType::kF32, 28), dy = Random(DType::kF32, 28, 3);
  backend_->PairDots({x}, of_columns, 5, y);
  EXPECT_EQ(Get(y), Dots(xs, AllPairs(8)));
  backend_->PairDotsGrad({x}, of_columns, 5, dy, {{dx, false}});
  backend_->PairDotsGrad(xs, AllPairs(8), 5, dy, targets);
  for (int f = 0; f < 8; ++f) EXPECT_EQ(Get(dx.Columns(5 * f, 5)), Get(dxs[f])) << f;
}

// These cases depend on the shapes alone, so one execution order is enough.
class DotPlanChoiceTest : public DotPlanTest {};
INSTANTIATE_TEST_SUITE_P(, DotPlanChoiceTest, testing::Values(HostDeviceOptions()));

TEST_P(DotPlanChoiceTest, FewVectorsOfManyTypesOrTooLargeTakeTheOtherKernel) {
  EXPECT_FALSE(PlanDots(Vectors(DType::kF32, 7, 4, 0, 1), AllPairs(7), 4).has_value());
  EXPECT_TRUE(PlanDots(Vectors(DType::kF32, 8, 4, 0, 1), AllPairs(8), 4).has_value());
  std::vector<Tensor> mixed = Vectors(DType::kF32, 8, 4, 0, 1);
  mixed[5] = New(DType::kBF16, 4);
  EXPECT_FALSE(PlanDots(mixed, AllPairs(8), 4).has_value());
  const std::vector<Tensor> large = Vectors(DType::kF32, 8, 2000, 0, 1);
  EXPECT_FALSE(PlanDots(large, AllPairs(8), 2000).has_value());
  EXPECT_FALSE(PlanDotGrad(large, AllPairs(8), 2000, std::vector<GradientTarget>(8)).has_value());
  std::vector<PairTerm> chain;
  for (int f = 0; f < 12; f += 2) chain.push_back({f, 0, f + 1, 0});
  EXPECT_FALSE(PlanDots(Vectors(DType::kF32, 12, 4, 0, 1), chain, 4).has_value());
}

TEST_P(DotPlanChoiceTest, GradientsThatAreSharedOrOfOtherTermsTakeTheOtherKernel) {
  const std::vector<Tensor> xs = Vectors(DType::kF32, 8, 4, 0, 1);
  std::vector<GradientTarget> targets;
  for (const Tensor& dx : Vectors(DType::kF32, 8, 4, 0, 2)) targets.push_back({dx, false});
  const auto planned = [&](const std::vector<PairTerm>& terms,
                           const std::vector<GradientTarget>& dxs) {
    return PlanDotGrad(xs, terms, 4, dxs).has_value();
  };
  ASSERT_TRUE(planned(AllPairs(8), targets));
  std::vector<GradientTarget> shared = targets;
  shared[2] = {shared[6].tensor, true};
  EXPECT_FALSE(planned(AllPairs(8), shared));
  std::vector<GradientTarget> wider = targets;
  wider[2].tensor = New(DType::kF32, 5);
  EXPECT_FALSE(planned(AllPairs(8), wider));
  std::vector<PairTerm> fewer = AllPairs(8), twice = fewer, reversed = fewer;
  fewer.pop_back();
  EXPECT_FALSE(planned(fewer, targets));
  twice.back() = twice.front();
  EXPECT_FALSE(planned(twice, targets));
  std::reverse(reversed.begin(), reversed.end());
  EXPECT_FALSE(planned(reversed, targets));
}

}  // namespace
}  // namespace satrap

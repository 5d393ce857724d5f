#include "nn_worker/backend/cpu/cpu_half_backend.h"

#include <cstdint>
#include <functional>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "common/numeric/half.h"
#include "common/numeric/random.h"
#include "gtest/gtest.h"
#include "nn_worker/backend/cpu/cpu_amx_bf16.h"
#include "nn_worker/backend/cpu/cpu_avx512_bf16.h"
#include "nn_worker/backend/tensor_copy.h"
#include "nn_worker/backend/testing/backend_conformance.h"
#include "nn_worker/backend/testing/half_conformance.h"

namespace satrap {
namespace {

INSTANTIATE_TEST_SUITE_P(CpuHalf, BackendConformance,
                         testing::Values<BackendFactory>([] { return NewCpuHalfBackend(2); }));
INSTANTIATE_TEST_SUITE_P(CpuHalf, LinearConformance,
                         testing::Values<BackendFactory>([] { return NewCpuHalfBackend(2); }));
INSTANTIATE_TEST_SUITE_P(CpuHalf, InteractionConformance,
                         testing::Values<BackendFactory>([] { return NewCpuHalfBackend(2); }));
INSTANTIATE_TEST_SUITE_P(CpuHalf, LossConformance,
                         testing::Values<BackendFactory>([] { return NewCpuHalfBackend(2); }));
INSTANTIATE_TEST_SUITE_P(
    CpuHalf, HalfConformance,
    testing::Values<BackendFactory>([] { return NewCpuHalfBackend(1, HalfProducts::kF32); },
                                    [] { return NewCpuHalfBackend(3, HalfProducts::kF32); }));

INSTANTIATE_TEST_SUITE_P(
    CpuHalf, HalfLinearConformance,
    testing::Values<BackendFactory>([] { return NewCpuHalfBackend(1, HalfProducts::kF32); },
                                    [] { return NewCpuHalfBackend(3, HalfProducts::kF32); }));

// The ways in which this CPU can compute BF16 products, whether or not they are the fastest.
std::vector<HalfProducts> Bf16Ways() {
  std::vector<HalfProducts> ways;
  if (CpuAmxBf16::IsSupported()) ways.push_back(HalfProducts::kAmxBf16);
  if (CpuAvx512Bf16::IsSupported()) ways.push_back(HalfProducts::kAvx512Bf16);
  return ways;
}
std::vector<BackendFactory> WithBf16Products() {
  std::vector<BackendFactory> factories;
  for (const HalfProducts way : Bf16Ways()) {
    for (const int threads : {1, 3}) {
      factories.push_back([=] { return NewCpuHalfBackend(threads, way); });
    }
  }
  return factories;
}
INSTANTIATE_TEST_SUITE_P(CpuBf16, HalfConformance, testing::ValuesIn(WithBf16Products()));
INSTANTIATE_TEST_SUITE_P(CpuBf16, HalfLinearConformance, testing::ValuesIn(WithBf16Products()));

void ExpectTheSameBitsForAnyNumberOfThreadsAndRows(HalfProducts way) {
  // Enough rows for several parts of a weight gradient.
  constexpr int64_t kRows = 6100, kIn = 200, kOut = 72;
  std::vector<std::vector<float>> results;
  for (const int threads : {1, 3}) {
    const auto backend = NewCpuHalfBackend(threads, way);
    const auto random = [&](int64_t rows, int64_t cols, uint64_t salt) {
      std::vector<uint16_t> bits;
      for (int64_t i = 0; i < rows * cols; ++i) {
        bits.push_back(Bf16FromF32(static_cast<float>(UniformDouble(RandomBits(salt, i)) - 0.5)));
      }
      const Tensor tensor = AllocateTensor(backend.get(), DType::kBF16, rows, cols).value();
      CopyIn(backend.get(), bits, tensor);
      return tensor;
    };
    const auto zeros = [&](int64_t rows, int64_t cols) {
      return AllocateTensor(backend.get(), DType::kF32, rows, cols).value();
    };
    const Tensor x = random(kRows, kIn, 1), w = random(kIn, kOut, 2), dy = random(kRows, kOut, 3);
    const Tensor y = zeros(kRows, kOut), parts = zeros(kRows, kOut), dx = zeros(kRows, kIn);
    const Tensor dw = zeros(kIn, kOut), db = zeros(1, kOut);
    backend->Linear(x, w, Tensor(), Activation::kLinear, y);
    for (int64_t begin = 0; begin < kRows; begin += 100) {
      backend->Linear(x.Rows(begin, 100), w, Tensor(), Activation::kLinear, parts.Rows(begin, 100));
    }
    backend->LinearGrad({x, w, Activation::kLinear, y, dy, {dx, false}, dw, db});
    EXPECT_EQ(ReadFloats(backend.get(), y), ReadFloats(backend.get(), parts));
    results.emplace_back();
    for (const Tensor& tensor : {y, dx, dw, db}) {
      const std::vector<float> values = ReadFloats(backend.get(), tensor);
      results.back().insert(results.back().end(), values.begin(), values.end());
    }
  }
  EXPECT_EQ(results[0], results[1]);
}

TEST(CpuHalfBackendTest, Bf16ProductsHaveTheSameBitsForAnyNumberOfThreadsAndRows) {
  if (Bf16Ways().empty()) GTEST_SKIP() << "this CPU has no products of BF16";
  for (const HalfProducts way : Bf16Ways()) ExpectTheSameBitsForAnyNumberOfThreadsAndRows(way);
}

// Fakes the answers of the CPU and of the operating system's kernel.
TEST(CpuHalfBackendTest, TakesAmxBeforeAvx512AndAvx512BeforeF32) {
  constexpr char kRefused[] = "the kernel does not let this process use AMX";
  struct Case {
    Bf16Units units;
    HalfProducts products;
    const char* because;
  };
  const Case cases[] = {{{false, false, false}, HalfProducts::kF32, ""},
                        {{false, false, true}, HalfProducts::kAvx512Bf16, ""},
                        {{true, true, true}, HalfProducts::kAmxBf16, ""},
                        {{true, false, true}, HalfProducts::kAvx512Bf16, kRefused},
                        {{true, false, false}, HalfProducts::kF32, kRefused}};
  for (const Case& each : cases) {
    const HalfProductsChoice choice = ChooseHalfProducts(each.units);
    EXPECT_EQ(choice.products, each.products) << &each - cases;
    EXPECT_EQ(choice.because, each.because) << &each - cases;
  }
}

TEST(CpuHalfBackendTest, TheChoiceOnThisCpuIsOneOfItsWays) {
  const std::vector<HalfProducts> ways = Bf16Ways();
  EXPECT_EQ(FastestHalfProducts().products, ways.empty() ? HalfProducts::kF32 : ways[0]);
}

// Where y is a zero of either sign or a NaN, no gradient passes, as in f32. Where y is a subnormal
// BF16, the gradient passes, although loops of f32 flush such a value to zero. That does not
// matter, because the ReLU's forward pass never produces one.
TEST(CpuHalfBackendTest, AReluGradientPassesWhereTheBitsOfYAreAPositiveNumber) {
  const auto backend = NewCpuHalfBackend(2, HalfProducts::kF32);
  for (const DType dtype : {DType::kF16, DType::kBF16}) {
    const uint16_t infinity = dtype == DType::kF16 ? 0x7c00 : 0x7f80;
    const auto sign = uint16_t{0x8000};
    const std::vector<uint16_t> y = {0,        sign,
                                     1,        static_cast<uint16_t>(sign | 1),
                                     0x3c00,   static_cast<uint16_t>(sign | 0x3c00),
                                     infinity, static_cast<uint16_t>(sign | infinity),
                                     0x7fff,   0xffff};
    const std::vector<uint16_t> dy(y.size(), 0x3c01);
    const auto tensor = [&](const std::vector<uint16_t>& bits) {
      const auto cols = static_cast<int64_t>(bits.size());
      const Tensor made = AllocateTensor(backend.get(), dtype, 1, cols).value();
      CopyIn(backend.get(), bits, made);
      return made;
    };
    const Tensor dx = tensor(dy);
    backend->ActivateGrad(Activation::kRelu, tensor(y), dx, {dx, /*add=*/false});
    std::vector<uint16_t> got(y.size());
    CopyOut(backend.get(), dx, absl::MakeSpan(got));
    EXPECT_EQ(got, (std::vector<uint16_t>{0, 0, 0x3c01, 0, 0x3c01, 0, 0x3c01, 0, 0, 0}));
  }
}

// The backend multiplies with plain loops of f32 (kF32); any other unit must give the same sums.
// The value 1 + 2^-9 is not a BF16, so a sum of 64 such values shows whether the operands were
// rounded before they were multiplied, and whether the sum was rounded on the way.
TEST(CpuHalfBackendTest, MultipliesRoundedValuesAndSumsThemInF32) {
  const auto backend = NewCpuHalfBackend(1, HalfProducts::kF32);
  const auto tensor = [&](DType dtype, int64_t rows, int64_t cols, float value) {
    const Tensor wide = AllocateTensor(backend.get(), DType::kF32, rows, cols).value();
    backend->Fill(wide, value);
    const Tensor half = AllocateTensor(backend.get(), dtype, rows, cols).value();
    backend->Copy(wide, half, /*add=*/false);
    return half;
  };
  const Tensor y = AllocateTensor(backend.get(), DType::kF32, 1, 2).value();
  backend->Linear(tensor(DType::kBF16, 1, 64, 1 + 0x1p-9f),
                  tensor(DType::kBF16, 64, 2, 1 + 0x1p-7f), Tensor(), Activation::kLinear, y);
  EXPECT_EQ(ReadFloats(backend.get(), y), (std::vector<float>(2, 64 + 0.5f)));
  backend->Linear(tensor(DType::kF16, 1, 64, 1 + 0x1p-9f), tensor(DType::kF16, 64, 2, 1 + 0x1p-7f),
                  Tensor(), Activation::kLinear, y);
  EXPECT_EQ(ReadFloats(backend.get(), y),
            (std::vector<float>(2, 64 * (1 + 0x1p-9f) * (1 + 0x1p-7f))));
}

// The tensors have more rows than a block. Some operations read and write neighbouring columns of
// one tensor, as in a concatenation.
TEST(CpuHalfBackendTest, OperationsInBlocksGiveRowsTheBitsThatTheyHaveAlone) {
  constexpr int64_t kRows = 1300, kWidth = 12;
  const auto backend = NewCpuHalfBackend(2);
  const auto random = [&](uint64_t salt) {
    std::vector<uint16_t> bits;
    for (int64_t i = 0; i < kRows * kWidth; ++i) {
      bits.push_back(Bf16FromF32(static_cast<float>(UniformDouble(RandomBits(salt, i)) - 0.5)));
    }
    const Tensor tensor = AllocateTensor(backend.get(), DType::kBF16, kRows, kWidth).value();
    CopyIn(backend.get(), bits, tensor);
    return tensor;
  };
  const auto bits_of = [&](const Tensor& tensor) {
    std::vector<uint16_t> bits(tensor.size());
    CopyOut(backend.get(), tensor, absl::MakeSpan(bits));
    return bits;
  };
  using Operation = std::function<void(Tensor x, Tensor y, Tensor inverse)>;
  const std::vector<Operation> operations = {
      [&](Tensor x, Tensor y, Tensor) { backend->Scale(3, x, y, /*add=*/true); },
      [&](Tensor x, Tensor y, Tensor) { backend->Transpose(x, 4, y, /*add=*/false); },
      [&](Tensor x, Tensor y, Tensor) { backend->Softmax(x, 4, y); },
      [&](Tensor x, Tensor y, Tensor inverse) {
        backend->Normalize(Normalization::kLayer, x, kWidth, 1e-5f, y, inverse);
      },
      [&](Tensor x, Tensor y, Tensor) {
        const std::vector<Tensor> xs = {x.Columns(4, 4), x.Columns(0, 4), x.Columns(8, 4)};
        const std::vector<PairTerm> terms = {{0, 0, 1, 0}, {0, 0, 2, 0}, {1, 0, 2, 0}};
        backend->PairDots(xs, terms, 4, y.Columns(0, 3));
      },
      [&](Tensor x, Tensor y, Tensor) {
        const std::vector<Tensor> xs = {x.Columns(4, 4), x.Columns(0, 4), x.Columns(8, 4)};
        backend->BiInteraction(xs, y.Columns(0, 4), y.Columns(4, 4));
      },
      [&](Tensor x, Tensor y, Tensor) {
        backend->ActivateGrad(Activation::kTanh, x, x, {y, /*add=*/true});
      },
  };
  const Tensor x = random(1);
  const Tensor inverse = AllocateTensor(backend.get(), DType::kF32, kRows, 1).value();
  for (size_t o = 0; o < operations.size(); ++o) {
    const Tensor whole = random(2), alone = random(2);
    operations[o](x, whole, inverse);
    for (int64_t begin = 0; begin < kRows; begin += 100) {
      operations[o](x.Rows(begin, 100), alone.Rows(begin, 100), inverse.Rows(begin, 100));
    }
    EXPECT_EQ(bits_of(whole), bits_of(alone)) << "operation " << o;
  }
}

// Neighbouring segments are written together, in blocks of samples.
TEST(CpuHalfBackendTest, GathersTheRowsOfF32Rounded) {
  constexpr int64_t kSamples = 1300, kTableRows = 50, kDim = 5;
  const auto backend = NewCpuHalfBackend(2);
  std::vector<float> rows;
  for (int64_t i = 0; i < kTableRows * kDim; ++i) {
    rows.push_back(static_cast<float>(UniformDouble(RandomBits(3, i)) - 0.5));
  }
  const Tensor table = AllocateTensor(backend.get(), DType::kF32, kTableRows, kDim).value();
  CopyIn(backend.get(), rows, table);
  const Tensor all = AllocateTensor(backend.get(), DType::kBF16, kSamples, 8).value();
  std::vector<FeatureExchange> features(2);
  std::vector<std::vector<uint32_t>> ids(2);
  for (size_t f = 0; f < 2; ++f) {
    FeatureExchange& feature = features[f];
    feature.samples = kSamples;
    feature.rows = table;
    // Feature 0 has one id per sample; feature 1 has none for even samples and two for odd ones.
    std::vector<uint32_t> offsets = {0};
    for (int64_t i = 0; i < kSamples; ++i) {
      for (int64_t n = 0; n < (f == 0 ? 1 : i % 2 * 2); ++n) {
        ids[f].push_back(static_cast<uint32_t>(RandomBits(f, i, n) % kTableRows));
      }
      offsets.push_back(static_cast<uint32_t>(ids[f].size()));
    }
    const auto uints = [&](const std::vector<uint32_t>& values) {
      const auto count = static_cast<int64_t>(values.size());
      const Tensor tensor = AllocateTensor(backend.get(), DType::kU32, 1, count).value();
      CopyIn(backend.get(), values, tensor);
      return tensor;
    };
    feature.ids = uints(ids[f]);
    if (f == 1) feature.offsets = uints(offsets);
    // Reads columns 1 to 4 of a row. The values of the second feature lie in front of those of the
    // first.
    feature.segments = {{1, 4, all.Columns(f == 0 ? 4 : 0, 4)}};
  }
  backend->GatherRows(features);
  std::vector<uint16_t> got(all.size());
  CopyOut(backend.get(), all, absl::MakeSpan(got));
  size_t next = 0;  // of feature 1's ids
  for (int64_t i = 0; i < kSamples; ++i) {
    for (int64_t c = 0; c < 4; ++c) {
      float sum = 0;
      for (int64_t n = 0; n < i % 2 * 2; ++n) sum += rows[ids[1][next + n] * kDim + 1 + c];
      ASSERT_EQ(got[i * 8 + c], Bf16FromF32(sum)) << i << ", " << c;
      ASSERT_EQ(got[i * 8 + 4 + c], Bf16FromF32(rows[ids[0][i] * kDim + 1 + c])) << i << ", " << c;
    }
    next += i % 2 * 2;
  }
}

// All features use the same rows. They have one id per sample, bags with weights, and sequences.
// The last feature has fewer samples than the others, like the candidates of a part.
TEST(CpuHalfBackendTest, ScattersTheGradientsOfAllSamples) {
  constexpr int64_t kTableRows = 7, kRowValues = 4, kWidth = 3;
  struct Shape {
    RowPooling pooling;
    int64_t samples, max_length;
  };
  constexpr Shape kShapes[] = {{RowPooling::kSum, 700, 1},
                               {RowPooling::kMean, 700, 1},
                               {RowPooling::kNone, 700, 2},
                               {RowPooling::kSum, 300, 1}};
  const auto backend = NewCpuHalfBackend(2);
  const auto made = [&](DType dtype, int64_t rows, int64_t cols) {
    return AllocateTensor(backend.get(), dtype, rows, cols).value();
  };
  std::vector<FeatureExchange> features;
  std::vector<double> wanted(kTableRows * kRowValues, 0.0);
  for (size_t f = 0; f < std::size(kShapes); ++f) {
    const auto& [pooling, samples, max_length] = kShapes[f];
    const bool is_bag = pooling != RowPooling::kSum;
    std::vector<uint32_t> ids, offsets = {0};
    std::vector<float> weights;
    std::vector<uint16_t> gradients;
    for (int64_t i = 0; i < samples; ++i) {
      const int64_t count = is_bag ? i % 3 : 1;
      double sum = 0;
      for (int64_t n = 0; n < count; ++n) {
        ids.push_back(static_cast<uint32_t>(RandomBits(f, i, n) % kTableRows));
        weights.push_back(is_bag ? static_cast<float>(1 + n) : 1);
        sum += weights.back();
      }
      for (int64_t c = 0; c < max_length * kWidth; ++c) {
        const double value = UniformDouble(RandomBits(f + 10, i, c)) - 0.5;
        gradients.push_back(Bf16FromF32(static_cast<float>(value)));
      }
      for (int64_t n = 0; n < count; ++n) {
        const size_t id = offsets.back() + n;
        const double scale = weights[id] / (pooling == RowPooling::kMean ? sum : 1);
        const size_t from = (i * max_length + (pooling == RowPooling::kNone ? n : 0)) * kWidth;
        for (int64_t c = 0; c < kWidth; ++c) {
          wanted[ids[id] * kRowValues + 1 + c] += scale * F32FromBf16(gradients[from + c]);
        }
      }
      offsets.push_back(static_cast<uint32_t>(ids.size()));
    }
    FeatureExchange feature;
    feature.samples = samples;
    feature.pooling = pooling;
    feature.max_length = max_length;
    feature.ids = made(DType::kU32, 1, static_cast<int64_t>(ids.size()));
    CopyIn(backend.get(), ids, feature.ids);
    if (is_bag) {
      feature.offsets = made(DType::kU32, 1, samples + 1);
      CopyIn(backend.get(), offsets, feature.offsets);
      feature.weights = made(DType::kF32, 1, static_cast<int64_t>(weights.size()));
      CopyIn(backend.get(), weights, feature.weights);
    }
    // The feature's segment is columns 1 to 3 of a row.
    feature.segments = {{1, kWidth, made(DType::kBF16, samples, max_length * kWidth)}};
    CopyIn(backend.get(), gradients, feature.segments[0].values);
    features.push_back(std::move(feature));
  }
  const Tensor sums = made(DType::kF32, kTableRows, kRowValues);
  backend->Fill(sums, 5);  // the scatter must clear it
  backend->ScatterGradients(features, {}, sums);
  const std::vector<float> got = ReadFloats(backend.get(), sums);
  for (size_t i = 0; i < wanted.size(); ++i) ASSERT_NEAR(got[i], wanted[i], 1e-3) << i;
}

// The rows were pooled elsewhere, so the row of sample i is row i, in every block.
TEST(CpuHalfBackendTest, GradientsOfPooledRowsAreTheRowsOfTheirSamples) {
  constexpr int64_t kSamples = 600, kDim = 2;
  const auto backend = NewCpuHalfBackend(2);
  std::vector<uint16_t> gradients;
  std::vector<float> wanted;
  for (int64_t i = 0; i < kSamples * kDim; ++i) {
    wanted.push_back(static_cast<float>(i % 256));
    gradients.push_back(Bf16FromF32(wanted.back()));
  }
  FeatureExchange feature;
  feature.samples = kSamples;
  feature.one_row_a_sample = true;
  feature.segments = {
      {0, kDim, AllocateTensor(backend.get(), DType::kBF16, kSamples, kDim).value()}};
  CopyIn(backend.get(), gradients, feature.segments[0].values);
  const Tensor rows = AllocateTensor(backend.get(), DType::kF32, kSamples, kDim).value();
  backend->ScatterGradients({feature}, {}, rows);
  EXPECT_EQ(ReadFloats(backend.get(), rows), wanted);
}

// The layer's output is a logit, and it has more samples than a block.
TEST(CpuHalfBackendTest, ALayerOfOneUnitHasTheSameBitsForAnyNumberOfThreads) {
  constexpr int64_t kSamples = 500, kIn = 9;
  std::vector<std::vector<float>> results;
  for (const int threads : {1, 3}) {
    const auto backend = NewCpuHalfBackend(threads);
    const auto random = [&](DType dtype, int64_t rows, int64_t cols, uint64_t salt) {
      std::vector<float> values;
      for (int64_t i = 0; i < rows * cols; ++i) {
        values.push_back(static_cast<float>(UniformDouble(RandomBits(salt, i)) - 0.5));
      }
      const Tensor wide = AllocateTensor(backend.get(), DType::kF32, rows, cols).value();
      CopyIn(backend.get(), values, wide);
      if (dtype == DType::kF32) return wide;
      const Tensor half = AllocateTensor(backend.get(), dtype, rows, cols).value();
      backend->Copy(wide, half, /*add=*/false);
      return half;
    };
    const Tensor y = random(DType::kF32, kSamples, 1, 1), dw = random(DType::kF32, kIn, 1, 2);
    const Tensor db = random(DType::kF32, 1, 1, 3), dx = random(DType::kBF16, kSamples, kIn, 4);
    LinearGradArgs args = {random(DType::kBF16, kSamples, kIn, 5),
                           random(DType::kBF16, kIn, 1, 6),
                           Activation::kLinear,
                           y,
                           random(DType::kF32, kSamples, 1, 7),
                           {dx, /*add=*/true},
                           dw,
                           db};
    backend->LinearGrad(args);
    const std::vector<float> weight_gradient = ReadFloats(backend.get(), dw);
    args.dx = {};
    args.db = Tensor();
    backend->LinearGrad(args);
    EXPECT_EQ(ReadFloats(backend.get(), dw), weight_gradient) << "with neither dx nor db";
    const Tensor wide = AllocateTensor(backend.get(), DType::kF32, kSamples, kIn).value();
    backend->Copy(dx, wide, /*add=*/false);
    results.emplace_back();
    for (const Tensor& tensor : {dw, db, wide}) {
      const std::vector<float> values = ReadFloats(backend.get(), tensor);
      results.back().insert(results.back().end(), values.begin(), values.end());
    }
  }
  EXPECT_EQ(results[0], results[1]);
}

// No job multiplies BF16 matrices into an F16 result, but cpu_half_backend.h allows it.
TEST(CpuHalfBackendTest, ProductsOfBf16MayHaveResultsOfF16) {
  const auto backend = NewCpuHalfBackend(1);
  const auto ones = [&](DType dtype, int64_t rows, int64_t cols) {
    const Tensor wide = AllocateTensor(backend.get(), DType::kF32, rows, cols).value();
    backend->Fill(wide, 1);
    const Tensor half = AllocateTensor(backend.get(), dtype, rows, cols).value();
    backend->Copy(wide, half, /*add=*/false);
    return half;
  };
  const Tensor x = ones(DType::kBF16, 4, 6), w = ones(DType::kBF16, 6, 3);
  const Tensor y = ones(DType::kF16, 8, 3), dx = ones(DType::kF16, 8, 6);
  const Tensor dw = AllocateTensor(backend.get(), DType::kF32, 6, 3).value();
  backend->Linear(x, w, Tensor(), Activation::kLinear, y.Rows(0, 4));
  backend->LinearGrad({x,
                       w,
                       Activation::kLinear,
                       Tensor(),
                       ones(DType::kBF16, 4, 3),
                       {dx.Rows(0, 4), false},
                       dw,
                       Tensor()});
  const auto expect = [&](const Tensor& tensor, float first_rows) {
    std::vector<uint16_t> bits(tensor.size());
    CopyOut(backend.get(), tensor, absl::MakeSpan(bits));
    for (int64_t i = 0; i < tensor.size(); ++i) {
      EXPECT_EQ(F32FromF16(bits[i]), i < tensor.size() / 2 ? first_rows : 1) << i;
    }
  };
  expect(y, 6);
  expect(dx, 3);
}

}  // namespace
}  // namespace satrap

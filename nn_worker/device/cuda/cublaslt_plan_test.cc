// Tests products by cuBLASLt, on a card. Without a card only NoCublasLtTest runs.

#include "nn_worker/device/cuda/cublaslt_plan.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/numeric/half.h"
#include "common/numeric/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nn_worker/device/cuda/cuda_device.h"

namespace satrap {
namespace {

using testing::HasSubstr;

constexpr int64_t kTimeoutMs = 60000;

TEST(NoCublasLtTest, AMissingLibraryIsNamed) {
  const absl::Status status = NewCublasLtPlanner(0, "libcublasLt.so.1").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("cannot load libcublasLt.so.1"));
}

TEST(NoCublasLtTest, ALibraryWithoutItsFunctionsIsNamed) {
  const absl::Status status = NewCublasLtPlanner(0, "libm.so.6").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("libm.so.6 has no cublasLtCreate"));
}

TEST(NoCublasLtTest, WithoutACardTheLibraryIsLoadedAndRefuses) {
  if (NewCudaDevice(0).ok()) GTEST_SKIP() << "this machine has a card";
  const absl::Status status = NewCublasLtPlanner(0).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("cuBLASLt: card 0: "));
}

// `value` as a float, after rounding to the type of the factors.
float Rounded(float value, ProductPrecision precision) {
  if (precision == ProductPrecision::kBf16) return F32FromBf16(Bf16FromF32(value));
  if (precision == ProductPrecision::kF16) return F32FromF16(F16FromF32(value));
  return value;
}

class CublasLtPlanTest : public testing::TestWithParam<ProductPrecision> {
 protected:
  void SetUp() override {
    auto device = NewCudaDevice(0);
    if (!device.ok()) GTEST_SKIP() << device.status().message();
    device_ = std::move(*device);
    stream_ = device_->NewStream().value();
    event_ = device_->NewEvent().value();
    auto planner = NewCublasLtPlanner(0);
    ASSERT_TRUE(planner.ok()) << planner.status();
    planner_ = std::move(*planner);
    workspace_ = Room(planner_->workspace_bytes());
  }

  void* Room(int64_t bytes) {
    memory_.push_back(device_->Allocate(bytes).value());
    return memory_.back()->data();
  }
  void Finish() {
    stream_->Record(event_.get());
    const absl::Status status = WaitForEvent(event_.get(), kTimeoutMs, [] { return false; });
    ASSERT_TRUE(status.ok()) << status;
  }
  // Copies values into device memory in the type of the factors, F32 or 16 bits.
  void* Put(const std::vector<float>& values, ProductPrecision precision) {
    const bool wide = precision == ProductPrecision::kF32 || precision == ProductPrecision::kTf32;
    const int64_t bytes = static_cast<int64_t>(values.size()) * (wide ? 4 : 2);
    memory_.push_back(device_->AllocatePinned(bytes).value());
    void* const pinned = memory_.back()->data();
    if (wide) {
      std::memcpy(pinned, values.data(), bytes);
    } else {
      for (size_t i = 0; i < values.size(); ++i) {
        static_cast<uint16_t*>(pinned)[i] =
            precision == ProductPrecision::kBf16 ? Bf16FromF32(values[i]) : F16FromF32(values[i]);
      }
    }
    void* const device = Room(bytes);
    stream_->CopyIn(pinned, device, bytes);
    return device;
  }
  std::vector<float> Get(const void* device, int64_t count) {
    memory_.push_back(device_->AllocatePinned(count * 4).value());
    const auto* const pinned = static_cast<const float*>(memory_.back()->data());
    stream_->CopyOut(device, memory_.back()->data(), count * 4);
    Finish();
    return std::vector<float>(pinned, pinned + count);
  }

  // Values of 16 bits.
  std::vector<float> GetHalves(const void* device, int64_t count) {
    memory_.push_back(device_->AllocatePinned(count * 2).value());
    const auto* const pinned = static_cast<const uint16_t*>(memory_.back()->data());
    stream_->CopyOut(device, memory_.back()->data(), count * 2);
    Finish();
    std::vector<float> values;
    for (int64_t i = 0; i < count; ++i) {
      values.push_back(GetParam() == ProductPrecision::kBf16 ? F32FromBf16(pinned[i])
                                                             : F32FromF16(pinned[i]));
    }
    return values;
  }

  std::unique_ptr<Device> device_;
  std::vector<std::unique_ptr<Memory>> memory_;
  std::unique_ptr<DeviceStream> stream_;
  std::unique_ptr<Event> event_;
  std::unique_ptr<CublasLtPlanner> planner_;
  void* workspace_ = nullptr;
};

std::vector<float> Random(int64_t count, uint64_t seed, ProductPrecision precision) {
  std::vector<float> values;
  for (int64_t i = 0; i < count; ++i) {
    const float uniform = UniformFloat(RandomBits(seed, static_cast<uint64_t>(i)));
    values.push_back(Rounded(2 * uniform - 1, precision));
  }
  return values;
}

// One value of the product by its definition, in double precision.
double SumAt(const ProductSpec& spec, int64_t terms, const std::vector<float>& a,
             const std::vector<float>& b, int64_t i, int64_t j) {
  double sum = 0;
  for (int64_t t = 0; t < terms; ++t) {
    sum +=
        static_cast<double>(a[spec.transpose_a ? t * spec.a_stride + i : i * spec.a_stride + t]) *
        b[spec.transpose_b ? j * spec.b_stride + t : t * spec.b_stride + j];
  }
  return sum;
}

// If two sums of `terms` random products differ only by rounding, their difference is below this.
double Tolerance(ProductPrecision precision, int64_t terms) {
  const double unit = precision == ProductPrecision::kTf32 ? 0x1p-10 : 0x1p-21;
  return unit * std::sqrt(static_cast<double>(terms)) * 8;
}

ProductSpec Square(int64_t rows, int64_t cols, int64_t terms, ProductPrecision precision) {
  ProductSpec spec;
  spec.rows = rows;
  spec.cols = cols;
  spec.terms = terms;
  spec.a_stride = terms;
  spec.b_stride = cols;
  spec.c_stride = cols;
  spec.precision = precision;
  return spec;
}

TEST_P(CublasLtPlanTest, EachProductOfALayerIsTheDefinitions) {
  for (const auto& [transpose_a, transpose_b] :
       {std::pair(false, false), std::pair(false, true), std::pair(true, false)}) {
    ProductSpec spec = Square(128, 64, 256, GetParam());
    spec.transpose_a = transpose_a;
    spec.transpose_b = transpose_b;
    spec.a_stride = (transpose_a ? spec.rows : spec.terms) + 8;
    spec.b_stride = (transpose_b ? spec.terms : spec.cols) + 8;
    const auto a = Random(40000, 1, GetParam()), b = Random(40000, 2, GetParam());
    ProductBuffers buffers;
    buffers.a = Put(a, GetParam());
    buffers.b = Put(b, GetParam());
    buffers.c = Put(std::vector<float>(spec.rows * spec.cols, 7), ProductPrecision::kF32);
    auto plan = planner_->Prepare(spec);
    ASSERT_TRUE(plan.ok()) << plan.status();
    // With fewer samples, fewer rows are written or fewer terms summed.
    for (const int64_t samples : {spec.samples(), int64_t{37}, int64_t{1}}) {
      (*plan)->Run(stream_.get(), samples, buffers, workspace_);
      const auto c = Get(buffers.c, spec.rows * spec.cols);
      const int64_t rows = transpose_a ? spec.rows : samples;
      const int64_t terms = transpose_a ? samples : spec.terms;
      for (int64_t i = 0; i < rows; ++i) {
        for (int64_t j = 0; j < spec.cols; ++j) {
          ASSERT_NEAR(c[i * spec.cols + j], SumAt(spec, terms, a, b, i, j),
                      Tolerance(GetParam(), terms))
              << transpose_a << transpose_b << " " << samples << " " << i << " " << j;
        }
      }
    }
  }
}

TEST_P(CublasLtPlanTest, TheSameArgumentsGiveTheSameBits) {
  const ProductSpec spec = Square(512, 400, 400, GetParam());
  ProductBuffers buffers;
  buffers.a = Put(Random(512 * 400, 1, GetParam()), GetParam());
  buffers.b = Put(Random(400 * 400, 2, GetParam()), GetParam());
  buffers.c = Room(512 * 400 * 4);
  auto plan = planner_->Prepare(spec);
  auto again = planner_->Prepare(spec);
  ASSERT_TRUE(plan.ok() && again.ok());
  (*plan)->Run(stream_.get(), 512, buffers, workspace_);
  const auto first = Get(buffers.c, 512 * 400);
  (*again)->Run(stream_.get(), 512, buffers, workspace_);
  EXPECT_EQ(Get(buffers.c, 512 * 400), first);
}

TEST_P(CublasLtPlanTest, AddGoesOnWithWhatIsThere) {
  const ProductSpec spec = Square(16, 32, 64, GetParam());
  const auto a = Random(16 * 64, 1, GetParam()), b = Random(64 * 32, 2, GetParam());
  ProductBuffers buffers;
  buffers.a = Put(a, GetParam());
  buffers.b = Put(b, GetParam());
  buffers.c = Put(std::vector<float>(16 * 32, 100), ProductPrecision::kF32);
  buffers.add = true;
  auto plan = planner_->Prepare(spec);
  ASSERT_TRUE(plan.ok()) << plan.status();
  (*plan)->Run(stream_.get(), 16, buffers, workspace_);
  EXPECT_NEAR(Get(buffers.c, 16 * 32)[33], 100 + SumAt(spec, 64, a, b, 1, 1), 1e-2);
}

// If the library refuses a fusion, our own kernels do the work. The test is then skipped with a
// message that names the fusion.
TEST_P(CublasLtPlanTest, BiasAndReluAreFusedWhereTheLibraryCan) {
  for (const ProductEpilogue epilogue : {ProductEpilogue::kBias, ProductEpilogue::kBiasRelu}) {
    ProductSpec spec = Square(64, 32, 16, GetParam());
    spec.epilogue = epilogue;
    const auto a = Random(64 * 16, 1, GetParam()), b = Random(16 * 32, 2, GetParam());
    const auto bias = Random(32, 3, GetParam());
    ProductBuffers buffers;
    buffers.a = Put(a, GetParam());
    buffers.b = Put(b, GetParam());
    buffers.bias = Put(bias, ProductPrecision::kF32);
    buffers.c = Room(64 * 32 * 4);
    auto plan = planner_->Prepare(spec);
    if (plan.status().code() == absl::StatusCode::kNotFound) GTEST_SKIP() << plan.status();
    ASSERT_TRUE(plan.ok()) << plan.status();
    (*plan)->Run(stream_.get(), 64, buffers, workspace_);
    const auto c = Get(buffers.c, 64 * 32);
    for (int64_t i = 0; i < 64 * 32; ++i) {
      double expected = SumAt(spec, 16, a, b, i / 32, i % 32) + bias[i % 32];
      if (epilogue == ProductEpilogue::kBiasRelu) expected = std::max(expected, 0.0);
      ASSERT_NEAR(c[i], expected, Tolerance(GetParam(), 16));
    }
  }
}

// Tests the sizes of a layer. With 16-bit factors the result has 16 bits, too, the bias has the
// type of the result, and the sum is rounded once.
TEST_P(CublasLtPlanTest, ALayerEndsWithABiasOfItsResultsType) {
  const bool f32 = GetParam() == ProductPrecision::kF32 || GetParam() == ProductPrecision::kTf32;
  for (const ProductEpilogue epilogue : {ProductEpilogue::kBias, ProductEpilogue::kBiasRelu}) {
    ProductSpec spec = Square(300, 64, 48, GetParam());
    spec.epilogue = epilogue;
    spec.f32_output = f32;
    const auto a = Random(300 * 48, 1, GetParam()), b = Random(48 * 64, 2, GetParam());
    const auto bias = Random(64, 3, GetParam());
    ProductBuffers buffers;
    buffers.a = Put(a, GetParam());
    buffers.b = Put(b, GetParam());
    buffers.bias = Put(bias, GetParam());
    buffers.c = Room(300 * 64 * 4);
    auto plan = planner_->Prepare(spec);
    ASSERT_TRUE(plan.ok()) << plan.status();
    for (const int64_t samples : {300, 299, 1}) {
      (*plan)->Run(stream_.get(), samples, buffers, workspace_);
      const auto c = f32 ? Get(buffers.c, 300 * 64) : GetHalves(buffers.c, 300 * 64);
      for (int64_t i = 0; i < samples * 64; ++i) {
        double expected = SumAt(spec, 48, a, b, i / 64, i % 64) + bias[i % 64];
        if (epilogue == ProductEpilogue::kBiasRelu) expected = std::max(expected, 0.0);
        const double rounding = f32 ? 0 : std::abs(expected) * 0x1p-8;
        ASSERT_NEAR(c[i], expected, Tolerance(GetParam(), 48) + rounding) << samples << " " << i;
      }
    }
  }
}

// Tests a weight gradient in pieces of 96 samples: 5 pieces, and a last one of 20 samples. c gets
// the product of each piece, and the memory after the products must not change.
TEST_P(CublasLtPlanTest, AWeightGradientHasAProductForEachPiece) {
  ProductSpec spec = Square(24, 32, 500, GetParam());
  spec.transpose_a = true;
  spec.a_stride = 32;
  spec.b_stride = 40;
  spec.piece = 96;
  const auto x = Random(500 * 32, 1, GetParam()), dz = Random(500 * 40, 2, GetParam());
  auto plan = planner_->Prepare(spec);
  ASSERT_TRUE(plan.ok()) << plan.status();
  for (const int64_t samples : {500, 480, 200, 97, 96, 20, 1}) {
    ProductBuffers buffers;
    buffers.a = Put(x, GetParam());
    buffers.b = Put(dz, GetParam());
    constexpr int64_t kSize = 24 * 32, kPieces = 7;
    buffers.c = Put(std::vector<float>(kPieces * kSize, 7), ProductPrecision::kF32);
    (*plan)->Run(stream_.get(), samples, buffers, workspace_);
    const auto c = Get(buffers.c, kPieces * kSize);
    for (int64_t piece = 0; piece < kPieces; ++piece) {
      const int64_t begin = piece * spec.piece, terms = std::min(samples - begin, spec.piece);
      for (int64_t i = 0; i < kSize; ++i) {
        double expected = terms > 0 ? 0 : 7;
        for (int64_t t = begin; t < begin + terms; ++t) {
          expected += static_cast<double>(x[t * 32 + i / 32]) * dz[t * 40 + i % 32];
        }
        ASSERT_NEAR(c[piece * kSize + i], expected, Tolerance(GetParam(), 96))
            << samples << " " << piece << " " << i;
      }
    }
  }
}

// The product has the size of a network's, for which the heuristic offers many algorithms.
TEST_P(CublasLtPlanTest, AMeasuredAlgorithmIsTakenFirst) {
  ProductSpec spec = Square(400, 400, 16384, GetParam());
  spec.transpose_a = true;
  spec.a_stride = 400;
  spec.piece = 1024;
  auto all = planner_->PrepareAll(spec);
  ASSERT_TRUE(all.ok()) << all.status();
  const MeasuredAlgorithm entry = {
      planner_->place(),    GetParam(), LayerProduct::kWeightGradient, 8192, 400, 400,
      all->back().algorithm};
  const std::vector<MeasuredAlgorithm> table = {entry};
  auto planner = NewCublasLtPlanner(0, kCublasLtLibrary, table);
  ASSERT_TRUE(planner.ok()) << planner.status();
  auto again = (*planner)->PrepareAll(spec);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->front().algorithm, all->back().algorithm);
  EXPECT_EQ(again->size(), all->size());
}

std::string NameOfPrecision(const testing::TestParamInfo<ProductPrecision>& info) {
  constexpr const char* kNames[] = {"F32", "TF32", "BF16", "F16"};
  return kNames[static_cast<int>(info.param)];
}

INSTANTIATE_TEST_SUITE_P(, CublasLtPlanTest,
                         testing::Values(ProductPrecision::kF32, ProductPrecision::kTf32,
                                         ProductPrecision::kBf16, ProductPrecision::kF16),
                         NameOfPrecision);

}  // namespace
}  // namespace satrap

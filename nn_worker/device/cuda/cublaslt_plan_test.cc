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

  std::unique_ptr<Device> device_;
  std::vector<std::unique_ptr<Memory>> memory_;
  std::unique_ptr<DeviceStream> stream_;
  std::unique_ptr<Event> event_;
  std::unique_ptr<ProductPlanner> planner_;
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
    buffers.bias = static_cast<const float*>(Put(bias, ProductPrecision::kF32));
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

TEST_P(CublasLtPlanTest, AWeightGradientGivesTheBiasGradientWhereTheLibraryCan) {
  ProductSpec spec = Square(24, 32, 500, GetParam());
  spec.transpose_a = true;
  spec.a_stride = 24;
  spec.epilogue = ProductEpilogue::kColumnSums;
  const auto x = Random(500 * 24, 1, GetParam()), dz = Random(500 * 32, 2, GetParam());
  ProductBuffers buffers;
  buffers.a = Put(x, GetParam());
  buffers.b = Put(dz, GetParam());
  buffers.c = Room(24 * 32 * 4);
  buffers.sums = static_cast<float*>(Room(32 * 4));
  auto plan = planner_->Prepare(spec);
  if (plan.status().code() == absl::StatusCode::kNotFound) GTEST_SKIP() << plan.status();
  ASSERT_TRUE(plan.ok()) << plan.status();
  (*plan)->Run(stream_.get(), 300, buffers, workspace_);
  const auto sums = Get(buffers.sums, 32);
  for (int64_t j = 0; j < 32; ++j) {
    double expected = 0;
    for (int64_t i = 0; i < 300; ++i) expected += dz[i * 32 + j];
    EXPECT_NEAR(sums[j], expected, Tolerance(GetParam(), 300));
  }
  EXPECT_NEAR(Get(buffers.c, 1)[0], SumAt(spec, 300, x, dz, 0, 0), Tolerance(GetParam(), 300));
}

TEST_P(CublasLtPlanTest, AMaskTellsTheGradientWhereReluWasPositive) {
  ProductSpec spec = Square(64, 128, 16, GetParam());
  spec.epilogue = ProductEpilogue::kBiasReluMask;
  ProductBuffers buffers;
  buffers.a = Put(Random(64 * 16, 1, GetParam()), GetParam());
  buffers.b = Put(Random(16 * 128, 2, GetParam()), GetParam());
  buffers.bias = static_cast<const float*>(Put(std::vector<float>(128, 0), ProductPrecision::kF32));
  buffers.mask = Room(64 * MaskStride(128) / 8);
  buffers.c = Room(64 * 128 * 4);
  auto forward = planner_->Prepare(spec);
  spec.epilogue = ProductEpilogue::kReluGrad;
  auto backward = planner_->Prepare(spec);
  for (const auto* plan : {&forward, &backward}) {
    if (plan->status().code() == absl::StatusCode::kNotFound) GTEST_SKIP() << plan->status();
    ASSERT_TRUE(plan->ok()) << plan->status();
  }
  (*forward)->Run(stream_.get(), 64, buffers, workspace_);
  const auto y = Get(buffers.c, 64 * 128);
  // The mask must let the same elements pass in another product.
  buffers.a = Put(Random(64 * 16, 9, GetParam()), GetParam());
  (*backward)->Run(stream_.get(), 64, buffers, workspace_);
  const auto dx = Get(buffers.c, 64 * 128);
  for (int64_t i = 0; i < 64 * 128; ++i) ASSERT_EQ(dx[i] == 0, y[i] == 0) << i;
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

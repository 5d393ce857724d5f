#include "nn_worker/backend/benchmark/operation.h"

#include <cmath>
#include <memory>
#include <string>

#include "gtest/gtest.h"
#include "nn_worker/backend/tensor_copy.h"
#include "nn_worker/backend/testing/host_device_backend.h"

namespace satrap {
namespace {

constexpr int64_t kSamples = 8;

// An operation that is prepared on a new backend, as in the benchmark.
class Prepared {
 public:
  Prepared(const std::string& name, const std::string& what, DType values)
      : backend_(NewHostDeviceBackend({})), workbench_(backend_.get(), kSamples, values) {
    for (const BenchmarkOperation& operation : BenchmarkOperations()) {
      if (name == operation.name && what == operation.what) work_ = operation.prepare(&workbench_);
    }
  }
  ~Prepared() { backend_->Sync(); }
  const BenchmarkWork& work() const { return work_; }
  Backend* backend() const { return backend_.get(); }

 private:
  const std::unique_ptr<Backend> backend_;
  Workbench workbench_;
  BenchmarkWork work_;
};

int64_t BytesOf(const std::string& name, const std::string& what, DType values) {
  return Prepared(name, what, values).work().bytes();
}

TEST(BenchmarkOperationTest, BytesAreThoseOfTheTensors) {
  // 26 inputs of 16 and an output of 1 for each sample; the sum of the inputs is F32 in any
  // precision.
  EXPECT_EQ(BytesOf("Fm", "26 of n x 16", DType::kF32), 8 * (26 * 16 * 4 + 16 * 4 + 4));
  EXPECT_EQ(BytesOf("Fm", "26 of n x 16", DType::kBF16), 8 * (26 * 16 * 2 + 16 * 4 + 2));
  // Gradient, w, m and v are read; w, m, v and the copy are written.
  EXPECT_EQ(BytesOf("OptimizerStep", "Adam, n x 512, with a copy in 16 bits", DType::kBF16),
            8 * 512 * (4 * 4 + 3 * 4 + 2));
  // For each of 26 features these are the bytes of two rows of 17 values, of eight ids of 4 bytes,
  // and of 17 output values for each of the eight samples.
  EXPECT_EQ(BytesOf("GatherRows", "26 of 16, and 1 for the linear part", DType::kF32),
            26 * (2 * 17 * 4 + 8 * 4 + 8 * 17 * 4));
  // These are the bytes of four arrays: 17 gradients for each id; the place where the ids of each
  // row begin; the positions of the ids; and 17 gradients for each row.
  EXPECT_EQ(BytesOf("ScatterGradients", "26 of 16, and 1 for the linear part", DType::kF32),
            26 * 8 * 17 * 4 + (26 * 2 + 1) * 4 + 26 * 8 * 4 + 26 * 2 * 17 * 4);
  // An operation that adds to a target also reads the target.
  EXPECT_EQ(BytesOf("Copy", "n x 416, adds", DType::kF32), 8 * 416 * 4 * 3);
}

TEST(BenchmarkOperationTest, ProductsAreCountedInOperations) {
  EXPECT_EQ(Prepared("LinearForward", "429 x 400, ReLU", DType::kF32).work().flops,
            2.0 * 8 * 429 * 400);
  EXPECT_EQ(Prepared("LinearBackward", "1024 x 512, ReLU", DType::kBF16).work().flops,
            4.0 * 8 * 1024 * 512);
}

// Layers are measured as in a network. The bias has the type of the product, because a library adds
// no other bias within a product of 16 bits. Widths are padded to multiples of 8, because a library
// is slow at other widths. The counted bytes are those without padding.
TEST(BenchmarkOperationTest, LayersHavePaddingAndABiasOfTheirPrecision) {
  const Prepared forward("LinearForward", "429 x 400, ReLU", DType::kBF16);
  const std::vector<Tensor>& reads = forward.work().reads;
  EXPECT_EQ(reads[0].padded_cols(), forward.backend()->PaddedWidth(429));
  EXPECT_EQ(reads[1].padded_rows(), forward.backend()->PaddedWidth(429));
  EXPECT_EQ(reads[2].dtype, DType::kBF16);
  EXPECT_EQ(forward.work().bytes(), 2 * (8 * 429 + 429 * 400 + 400 + 8 * 400));
  const Prepared logit("LinearForward", "400 x 1", DType::kBF16);
  EXPECT_EQ(logit.work().reads[2].dtype, DType::kF32);
}

// An optimizer step that does not apply would only read its control and return, which would not be
// worth measuring.
TEST(BenchmarkOperationTest, TheStepThatIsMeasuredApplies) {
  const Prepared adam("OptimizerStep", "Adam, 400 x 400", DType::kF32);
  const Tensor w = adam.work().writes[0];
  const std::vector<float> before = ReadFloats(adam.backend(), w);
  adam.work().enqueue();
  EXPECT_NE(ReadFloats(adam.backend(), w), before);
}

TEST(BenchmarkOperationTest, WhatIsWrittenIsFiniteWhereItIsF32) {
  for (const BenchmarkOperation& operation : BenchmarkOperations()) {
    // Products are tested elsewhere, and kBf16 operations have no F32 form. Each operation runs
    // only once, because a gradient that an operation adds to would grow with each run.
    if (operation.types == OperationTypes::kProducts) continue;
    if (operation.types == OperationTypes::kBf16) continue;
    const Prepared prepared(operation.name, operation.what, DType::kF32);
    ASSERT_FALSE(prepared.work().writes.empty()) << operation.name << " " << operation.what;
    prepared.work().enqueue();
    for (const Tensor& tensor : prepared.work().writes) {
      if (tensor.dtype != DType::kF32) continue;
      for (const float value : ReadFloats(prepared.backend(), tensor)) {
        ASSERT_TRUE(std::isfinite(value)) << operation.name << " " << operation.what;
      }
    }
  }
}

// There are 26 x 8 ids. For each of them, GatherRows reads 4 bytes and three sectors for a row of
// 68 bytes, and writes 36 bytes, because the linear part is F32. For each id, ScatterGradients
// reads 4 bytes, and one sector for each of the id's two gradients. It also reads 53 starts, and
// writes 52 rows of 68 bytes.
TEST(BenchmarkOperationTest, RowsOfSamplesMoveWholeSectors) {
  const std::string what = "26 of 16, and 1 for the linear part";
  EXPECT_EQ(Prepared("GatherRows", what, DType::kBF16).work().sector_bytes,
            26 * kSamples * (4 + 96 + 36));
  EXPECT_EQ(Prepared("ScatterGradients", what, DType::kBF16).work().sector_bytes,
            26 * kSamples * (4 + 64) + 53 * 4 + 52 * 68);
}

}  // namespace
}  // namespace satrap

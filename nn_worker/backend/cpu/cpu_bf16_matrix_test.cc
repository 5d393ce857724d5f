// Tests which of oneDNN's implementations is chosen. The names that oneDNN reports are faked.

#include "nn_worker/backend/cpu/cpu_bf16_matrix.h"

#include <string>
#include <vector>

#include "common/numeric/half.h"
#include "common/numeric/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nn_worker/backend/cpu/cpu_avx512_bf16.h"
#include "nn_worker/backend/cpu/cpu_half_backend.h"
#include "nn_worker/backend/tensor_copy.h"
#include "nn_worker/backend/testing/backend_conformance.h"

namespace satrap {
namespace {

using testing::ElementsAre;
using testing::Not;
using testing::SizeIs;
using testing::StartsWith;

TEST(OneDnnChoiceTest, AReferenceImplementationIsKnownByItsName) {
  for (const char* name : {"ref:any", "ref_int8:any", "gemm:ref", "ref"}) {
    EXPECT_TRUE(IsReferenceImplementation(name)) << name;
  }
  for (const char* name :
       {"gemm:jit", "brgemm:avx512_core_amx_bf16", "simple:any", "x64:prefetch", ""}) {
    EXPECT_FALSE(IsReferenceImplementation(name)) << name;
  }
}

// Computes a layer on rows with gaps, like the network's. `names` fakes the implementation names
// that oneDNN reports, one for each way; an empty name keeps the real one.
class OneDnnWaysTest : public testing::Test {
 protected:
  static constexpr int64_t kRows = 300, kIn = 40, kOut = 24, kStride = 64;

  void SetUp() override {
    if (!CpuBf16Matrix::IsSupported()) GTEST_SKIP() << "this CPU has no products of BF16 by oneDNN";
  }

  // Expects that y, dx and dw of the layer are right, also when the products exist already.
  void ExpectRight(const std::vector<std::string>& names) {
    OneDnnHooks hooks;
    hooks.believed_name = [names](OneDnnWay way, const std::string& name) {
      const std::string& faked = names[static_cast<size_t>(way)];
      return faked.empty() ? name : faked;
    };
    hooks.on_choice = [this](const ProductChoice& choice) { choices_.push_back(choice); };
    const auto backend = NewCpuHalfBackend(2, HalfProducts::kOneDnnBf16, hooks);
    const auto reference = NewCpuHalfBackend(2, HalfProducts::kF32);
    for (int i = 0; i < 2; ++i) {  // the second round reuses the products
      const std::vector<float> got = Layer(backend.get()), wanted = Layer(reference.get());
      ASSERT_EQ(got.size(), wanted.size());
      for (size_t v = 0; v < got.size(); ++v) ASSERT_NEAR(got[v], wanted[v], 1e-3) << v;
    }
  }

  std::vector<ProductChoice> choices_;

 private:
  static std::vector<float> Layer(Backend* backend) {
    const auto random = [&](int64_t rows, int64_t cols, uint64_t salt) {
      std::vector<uint16_t> bits;
      for (int64_t i = 0; i < rows * kStride; ++i) {
        bits.push_back(Bf16FromF32(static_cast<float>(UniformDouble(RandomBits(salt, i)) - 0.5)));
      }
      const Tensor whole = AllocateTensor(backend, DType::kBF16, rows, kStride).value();
      CopyIn(backend, bits, whole);
      return whole.Columns(0, cols);
    };
    const auto zeros = [&](int64_t rows, int64_t cols) {
      return AllocateTensor(backend, DType::kF32, rows, cols).value();
    };
    const Tensor x = random(kRows, kIn, 1), w = random(kIn, kOut, 2), dy = random(kRows, kOut, 3);
    const Tensor y = zeros(kRows, kOut), dx = zeros(kRows, kIn), dw = zeros(kIn, kOut);
    backend->Linear(x, w, Tensor(), Activation::kLinear, y);
    backend->LinearGrad({x, w, Activation::kLinear, y, dy, {dx, false}, dw, Tensor()});
    std::vector<float> all;
    for (const Tensor& tensor : {y, dx, dw}) {
      const std::vector<float> values = ReadFloats(backend, tensor);
      all.insert(all.end(), values.begin(), values.end());
    }
    return all;
  }
};

MATCHER_P3(Choice, product, by, because, "") {
  return testing::ExplainMatchResult(StartsWith(product), arg.product, result_listener) &&
         testing::ExplainMatchResult(by, arg.by, result_listener) &&
         testing::ExplainMatchResult(because, arg.because, result_listener);
}

TEST_F(OneDnnWaysTest, AFastInnerProductIsTaken) {
  ExpectRight({"jit:faked", "jit:faked"});
  const std::string by = "oneDNN inner product jit:faked";
  EXPECT_THAT(choices_, ElementsAre(Choice("y = x w of 40 x 24", by, ""),
                                    Choice("dw = x^T dz of 40 x 24", by, ""),
                                    Choice("dx = dz w^T of 24 x 40", by, "")));
}

TEST_F(OneDnnWaysTest, WhereTheInnerProductIsAReferenceTheMatmulIsTaken) {
  ExpectRight({"ref:any", "gemm:faked"});
  const std::string by = "oneDNN matmul gemm:faked", because = "oneDNN inner product is ref:any";
  EXPECT_THAT(choices_, ElementsAre(Choice("y = x w", by, because), Choice("dw", by, because),
                                    Choice("dx", by, because)));
}

TEST_F(OneDnnWaysTest, WhereBothAreReferencesTheProductsAreOurOwn) {
  ExpectRight({"ref:any", "ref:any"});
  const std::string by = CpuAvx512Bf16::IsSupported() ? "AVX512_BF16" : "F32";
  const std::string because = "oneDNN inner product is ref:any; oneDNN matmul is ref:any";
  EXPECT_THAT(choices_, ElementsAre(Choice("y = x w", by, because), Choice("dw", by, because)));
}

// The names are not faked here; the expectations hold on any CPU.
TEST_F(OneDnnWaysTest, WhatOneDnnSaysOfItselfIsAsked) {
  ExpectRight({"", ""});
  EXPECT_THAT(choices_, Not(SizeIs(0)));
  for (const ProductChoice& choice : choices_) {
    EXPECT_FALSE(IsReferenceImplementation(choice.by.substr(choice.by.rfind(' ') + 1)));
    printf("%s: by %s%s%s\n", choice.product.c_str(), choice.by.c_str(),
           choice.because.empty() ? "" : ", because ", choice.because.c_str());
  }
}

}  // namespace
}  // namespace satrap

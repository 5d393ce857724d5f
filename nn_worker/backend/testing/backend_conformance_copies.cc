// The part of BackendConformance that tests memory: allocations, copies, fills, and the gaps
// between the rows of a tensor.

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "common/base/check.h"
#include "nn_worker/backend/tensor_copy.h"
#include "nn_worker/backend/testing/half_conformance.h"

namespace satrap {
namespace {

// The bytes in the gaps between the rows of the n-th tensor. They are NaN as f32 and as f64, and
// they differ from those of other tensors, so that a gap which an operation copied is noticed.
std::vector<uint8_t> GapBytes(const Tensor& gaps, size_t n) {
  std::vector<uint8_t> bytes(gaps.size_bytes());
  for (size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = (i & 2) != 0 ? 0xff : static_cast<uint8_t>(n);
  }
  return bytes;
}

}  // namespace

Tensor BackendConformance::New(int64_t rows, int64_t cols, int64_t stride, DType dtype) {
  // If the stride is larger than the number of columns, the tensor is a view into wider rows, like
  // the tensors that layers pass to each other; most operations are tested with such tensors. The
  // values between the rows are NaN and must stay NaN, so that a result which depends on them is
  // noticed.
  const auto tensor = AllocateTensor(backend_.get(), dtype, rows, cols, stride);
  CHECK_OK(tensor.status());
  Tensor gaps = *tensor;
  gaps.cols = tensor->stride - cols;
  if (gaps.rows > 0 && gaps.cols > 0) {
    gaps.data = static_cast<char*>(gaps.data) + cols * DTypeBytes(dtype);
    backend_->CopyIn(GapBytes(gaps, gaps_.size()), gaps);
    gaps_.push_back(gaps);
  }
  return *tensor;
}

void BackendConformance::TearDown() {
  for (size_t n = 0; n < gaps_.size(); ++n) {
    std::vector<uint8_t> bytes(gaps_[n].size_bytes());
    backend_->CopyOut(gaps_[n], absl::MakeSpan(bytes));
    backend_->Sync();
    EXPECT_EQ(bytes, GapBytes(gaps_[n], n)) << "an operation wrote between rows";
  }
}

namespace {

TEST_P(BackendConformance, MemoryIsZeroedAndBeginsAtMultiplesOf64) {
  for (const int64_t bytes : {0, 4, 8, 100, 4096, 5000}) {
    const auto memory = backend_->Allocate(bytes);
    ASSERT_TRUE(memory.ok()) << memory.status();
    EXPECT_EQ(reinterpret_cast<uintptr_t>(*memory) % kAlignmentBytes, 0u) << bytes;
    // The bytes are not zero at first, so that a copy which does nothing is noticed.
    std::vector<uint8_t> values(bytes, 1);
    backend_->CopyOut({DType::kU8, *memory, 1, bytes, bytes}, absl::MakeSpan(values));
    backend_->Sync();
    EXPECT_EQ(values, std::vector<uint8_t>(bytes, 0)) << bytes;
  }
}

constexpr DType kDTypes[] = {DType::kF32,  DType::kF64, DType::kF16,
                             DType::kBF16, DType::kU32, DType::kU8};

// Tests rows with and without gaps, rows that begin at odd addresses, a single value, and no
// values.
TEST_P(BackendConformance, WhatIsCopiedInComesOutOfEveryDType) {
  struct Shape {
    int64_t rows, cols, stride, first_col;
  };
  for (const DType dtype : kDTypes) {
    for (const auto& [rows, cols, stride, first_col] : {Shape{7, 5, 5, 0},
                                                        {7, 5, 8, 0},
                                                        {7, 5, 9, 3},
                                                        {1, 1, 1, 0},
                                                        {1, 3, 6, 2},
                                                        {0, 5, 8, 0},
                                                        {7, 0, 4, 1},
                                                        {300, 33, 64, 1}}) {
      const Tensor whole = New(rows, stride, stride, dtype);
      const Tensor x = whole.Columns(first_col, cols);
      std::vector<uint8_t> in(x.size_bytes()), out(in.size(), 0xee);
      for (size_t i = 0; i < in.size(); ++i) in[i] = static_cast<uint8_t>(1 + i % 255);
      const std::vector<uint8_t> kept = in;
      backend_->CopyIn(in, x);
      in.assign(in.size(), 0);  // may be reused when CopyIn has returned
      backend_->CopyOut(x, absl::MakeSpan(out));
      std::vector<uint8_t> all(whole.size_bytes(), 0xee);
      backend_->CopyOut(whole, absl::MakeSpan(all));
      backend_->Sync();
      EXPECT_EQ(out, kept) << rows << " x " << cols << ", stride " << stride;
      const auto written = std::count_if(all.begin(), all.end(), [](uint8_t b) { return b != 0; });
      EXPECT_EQ(written, x.size_bytes()) << "the gaps between rows stay as they are";
    }
  }
}

TEST_P(BackendConformance, TypedCopiesKeepTheValues) {
  const auto round_trip = [this](const auto& values, DType dtype) {
    const Tensor x = New(2, 2, 3, dtype);
    auto out = values;
    out.assign(4, 0);
    CopyIn(backend_.get(), values, x);
    CopyOut(backend_.get(), x, absl::MakeSpan(out));
    backend_->Sync();
    EXPECT_EQ(out, values);
  };
  round_trip(std::vector<float>{1, -2, .5f, 3e38f}, DType::kF32);
  round_trip(std::vector<double>{1, -2, .1, 1e300}, DType::kF64);
  round_trip(std::vector<uint16_t>{0x3c00, 0xc000, 0x7bff, 1}, DType::kF16);
  round_trip(std::vector<uint16_t>{0x3f80, 0xc000, 0x7f7f, 1}, DType::kBF16);
  round_trip(std::vector<uint32_t>{0, 1, 1u << 31, 0xffffffff}, DType::kU32);
  round_trip(std::vector<uint8_t>{0, 1, 128, 255}, DType::kU8);
}

// An operation must see values that were copied in before it, but not those copied in after it.
TEST_P(BackendConformance, CopiesKeepTheirPlaceAmongOperations) {
  const Tensor x = Of({{1, 2}}), y = New(1, 2);
  backend_->Copy(x, y, /*add=*/false);
  std::vector<float> before(2);
  CopyOut(backend_.get(), y, absl::MakeSpan(before));
  CopyIn(backend_.get(), std::vector<float>{5, 6}, x);
  backend_->Copy(x, y, /*add=*/true);
  EXPECT_EQ(Values(y), (std::vector<float>{6, 8}));
  EXPECT_EQ(before, (std::vector<float>{1, 2}));
}

TEST_P(BackendConformance, CopyAssignsOrAdds) {
  const Tensor x = Random(200, 21, 1, 40);
  const Tensor y = New(200, 21, 33);
  backend_->Copy(x, y, /*add=*/false);
  EXPECT_EQ(Values(y), Values(x));
  backend_->Copy(x, y, /*add=*/true);
  for (size_t i = 0; i < Values(x).size(); ++i) ASSERT_EQ(Values(y)[i], 2 * Values(x)[i]);
}

TEST_P(BackendConformance, FillsBothTypes) {
  const Tensor x = New(2, 3), d = New(1, 2, 0, DType::kF64);
  backend_->Fill(x, 2.5f);
  backend_->Fill(d, -1);
  EXPECT_EQ(Values(x), std::vector<float>(6, 2.5f));
  EXPECT_EQ(Doubles(d)[1], -1);
}

TEST_P(HalfConformance, CopiesConvertBetweenDtypesAndAdd) {
  for (const DType from : {DType::kF32, DType::kF16, DType::kBF16}) {
    for (const DType to : {DType::kF32, DType::kF16, DType::kBF16}) {
      for (const bool add : {false, true}) {
        const Twin x =
            from == DType::kF32 ? TwinOf(Random(70, 9, 1)) : RandomTwin(from, 70, 9, 1, 32);
        const Twin y = to == DType::kF32 ? TwinOf(Random(70, 9, 2)) : RandomTwin(to, 70, 9, 2, 33);
        backend_->Copy(x.half, y.half, add);
        reference_->Copy(x.want, y.want, add);
        ExpectTwins(y);
      }
    }
  }
}

TEST_P(HalfConformance, CopiesRoundToNearestAndKeepWhatIsNotFinite) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  const Tensor x = Of({{0x1.002p0f, 0x1.006p0f, 1e6f, -kInf, 0x1p-25f}});
  const Tensor f16 = New(1, 5, 0, DType::kF16);
  backend_->Copy(x, f16, /*add=*/false);
  // Ties go to even; a value that is too large for an F16 becomes infinite, and one that is too
  // small becomes 0.
  EXPECT_EQ(HalfValues(f16), (std::vector<float>{1, 0x1.008p0f, kInf, -kInf, 0}));
  const Tensor bf16 = New(1, 5, 0, DType::kBF16);
  backend_->Copy(x, bf16, /*add=*/false);
  EXPECT_EQ(HalfValues(bf16), (std::vector<float>{1, 1, 999424, -kInf, 0x1p-25f}));
}

}  // namespace
}  // namespace satrap

#include "common/numeric/half.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "common/numeric/denormals.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

uint32_t BitsOf(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}

float FloatOf(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

// The value of a finite f16 by its definition in IEEE 754.
double ValueOfF16(uint16_t bits) {
  const int exponent = (bits >> 10) & 0x1f;
  const int mantissa = bits & 0x3ff;
  const double magnitude =
      exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(mantissa + 1024, exponent - 25);
  return (bits & 0x8000) != 0 ? -magnitude : magnitude;
}

TEST(HalfTest, EveryF16HasItsValueAndSurvivesTheRoundTrip) {
  for (uint32_t i = 0; i < 65536; ++i) {
    const uint16_t bits = static_cast<uint16_t>(i);
    const float value = F32FromF16(bits);
    if ((bits & 0x7c00) != 0x7c00) {
      ASSERT_EQ(value, ValueOfF16(bits)) << i;
      ASSERT_EQ(F16FromF32(value), bits) << i;
    } else if ((bits & 0x3ff) == 0) {
      ASSERT_TRUE(std::isinf(value));
      ASSERT_EQ(F16FromF32(value), bits);
    } else {
      ASSERT_TRUE(std::isnan(value));
      ASSERT_EQ(F16FromF32(value), bits | 0x200);
    }
  }
}

// For every pair of neighbouring f16 values, tests the f32 value halfway between them and its two
// neighbours.
TEST(HalfTest, F16RoundsToNearestEven) {
  for (uint16_t low = 0; low < 0x7bff; ++low) {
    const uint16_t high = low + 1;
    const float middle = static_cast<float>((ValueOfF16(low) + ValueOfF16(high)) / 2);
    const uint16_t even = (low & 1) == 0 ? low : high;
    ASSERT_EQ(F16FromF32(middle), even) << low;
    ASSERT_EQ(F16FromF32(std::nextafterf(middle, 0)), low) << low;
    ASSERT_EQ(F16FromF32(std::nextafterf(middle, 1e9f)), high) << low;
    ASSERT_EQ(F16FromF32(-middle), even | 0x8000) << low;
  }
}

TEST(HalfTest, F16OverflowsToInfinity) {
  EXPECT_EQ(F16FromF32(65504.0f), 0x7bff);
  EXPECT_EQ(F16FromF32(65519.99f), 0x7bff);
  EXPECT_EQ(F16FromF32(65520.0f), 0x7c00);
  EXPECT_EQ(F16FromF32(-std::numeric_limits<float>::infinity()), 0xfc00);
  EXPECT_EQ(F16FromF32(std::numeric_limits<float>::max()), 0x7c00);
}

TEST(HalfTest, SaturationReplacesInfinitiesAndNothingElse) {
  std::vector<uint16_t> values(65536);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<uint16_t>(i);
  EXPECT_EQ(SaturateF16(absl::MakeSpan(values)), 2u);
  for (size_t i = 0; i < values.size(); ++i) {
    const size_t want = i == 0x7c00 ? 0x7bff : i == 0xfc00 ? 0xfbff : i;
    ASSERT_EQ(values[i], want);
  }
  EXPECT_EQ(SaturateF16({}), 0u);
}

TEST(HalfTest, EveryBf16SurvivesTheRoundTrip) {
  for (uint32_t i = 0; i < 65536; ++i) {
    const uint16_t bits = static_cast<uint16_t>(i);
    const float value = F32FromBf16(bits);
    ASSERT_EQ(BitsOf(value), i << 16);
    ASSERT_EQ(Bf16FromF32(value), std::isnan(value) ? bits | 0x40 : bits);
  }
}

TEST(HalfTest, Bf16RoundsToNearestEven) {
  for (uint32_t low = 0; low < 0x7f7f; ++low) {
    const uint32_t even = (low & 1) == 0 ? low : low + 1;
    ASSERT_EQ(Bf16FromF32(FloatOf((low << 16) + 0x8000)), even);
    ASSERT_EQ(Bf16FromF32(FloatOf((low << 16) + 0x7fff)), low);
    ASSERT_EQ(Bf16FromF32(FloatOf((low << 16) + 0x8001)), low + 1);
  }
  EXPECT_EQ(Bf16FromF32(std::numeric_limits<float>::max()), 0x7f80);
}

// The vector instructions must give the same bits as scalar ones. Tests all 16-bit patterns, and
// f32 patterns at an odd stride, so that every lower half occurs. The lengths are not multiples of
// a vector.
TEST(HalfTest, BulkEqualsScalar) {
  constexpr size_t kCount = 4099;
  std::vector<float> values(kCount);
  std::vector<uint16_t> halves(kCount);
  uint32_t bits = 0;
  for (int round = 0; round < 500; ++round) {
    for (float& value : values) value = FloatOf(bits += 2097);
    F16FromF32(values, absl::MakeSpan(halves));
    for (size_t i = 0; i < kCount; ++i) ASSERT_EQ(halves[i], F16FromF32(values[i]));
    Bf16FromF32(values, absl::MakeSpan(halves));
    for (size_t i = 0; i < kCount; ++i) ASSERT_EQ(halves[i], Bf16FromF32(values[i]));
  }
  std::vector<uint16_t> all(65536);
  for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<uint16_t>(i);
  std::vector<float> back(all.size());
  F32FromF16(all, absl::MakeSpan(back));
  for (size_t i = 0; i < all.size(); ++i) ASSERT_EQ(BitsOf(back[i]), BitsOf(F32FromF16(all[i])));
  F32FromBf16(all, absl::MakeSpan(back));
  for (size_t i = 0; i < all.size(); ++i) ASSERT_EQ(BitsOf(back[i]), BitsOf(F32FromBf16(all[i])));
}

// Threads that flush subnormal f32 to zero must still keep subnormal 16-bit values. This is
// possible because a subnormal f32 is far below the smallest f16, and bf16 is rounded in integers.
TEST(HalfTest, GivesTheSameBitsWithFlushToZero) {
  std::vector<float> values;
  for (uint32_t bits : {0x1u, 0x8000u, 0x18000u, 0x7fffffu, 0x800000u, 0x33000001u, 0x38700000u}) {
    for (uint32_t sign : {0u, 0x80000000u}) values.push_back(FloatOf(bits | sign));
  }
  values.resize(40, 1.5f);
  std::vector<uint16_t> halves(values.size());
  for (bool f16 : {true, false}) {
    const auto convert = [&] {
      if (f16) {
        F16FromF32(values, absl::MakeSpan(halves));
      } else {
        Bf16FromF32(values, absl::MakeSpan(halves));
      }
      std::vector<float> back(halves.size());
      if (f16) {
        F32FromF16(halves, absl::MakeSpan(back));
      } else {
        F32FromBf16(halves, absl::MakeSpan(back));
      }
      std::vector<uint32_t> all(halves.begin(), halves.end());
      for (const float value : back) all.push_back(BitsOf(value));
      return all;
    };
    const std::vector<uint32_t> kept = convert();
    const ScopedFlushToZero flush_to_zero;
    EXPECT_EQ(convert(), kept);
  }
}

TEST(HalfTest, TheLargestFiniteMagnitudeIgnoresSignsAndWhatIsNotFinite) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  std::vector<float> values(70, 1.0f);
  values[3] = kInf;
  values[40] = std::numeric_limits<float>::quiet_NaN();
  values[69] = -2.5f;
  EXPECT_EQ(LargestFiniteMagnitude(values), 2.5f);
  EXPECT_EQ(LargestFiniteMagnitude(std::vector<float>{-kInf, -0.0f}), 0);
  EXPECT_EQ(LargestFiniteMagnitude({}), 0);
}

TEST(HalfTest, CountsTheValuesThatAreTooSmallForAnF16) {
  const std::vector<float> values = {0, -0.0f, 1, 0x1p-24f, 0x1p-25f, -0x1p-30f, 1e-38f};
  std::vector<uint16_t> halves(values.size());
  F16FromF32(values, absl::MakeSpan(halves));
  EXPECT_EQ(CountUnderflowedF16(values, halves), 3u);
}

TEST(HalfTest, BulkKeepsShortSpansInBounds) {
  for (size_t count = 0; count < 40; ++count) {
    std::vector<float> values(count, 1.5f);
    std::vector<uint16_t> halves(count + 1, 0xabcd);
    F16FromF32(values, absl::MakeSpan(halves).subspan(0, count));
    EXPECT_EQ(halves[count], 0xabcd);
    for (size_t i = 0; i < count; ++i) EXPECT_EQ(halves[i], 0x3e00);
    Bf16FromF32(values, absl::MakeSpan(halves).subspan(0, count));
    EXPECT_EQ(halves[count], 0xabcd);
    for (size_t i = 0; i < count; ++i) EXPECT_EQ(halves[i], 0x3fc0);
  }
}

}  // namespace
}  // namespace satrap

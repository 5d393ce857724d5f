#include "common/rpc/payload.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace satrap::rpc {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(PayloadBuilder, WhatIsFilledInIsReadBack) {
  Section keys, flags, values;
  PayloadBuilder builder;
  builder.Reserve<uint64_t>(3, &keys);
  builder.Reserve<uint8_t>(5, &flags);
  builder.Reserve(BF16, 2, &values);
  builder.Allocate();
  builder.Fill<uint64_t>(keys)[2] = 77;
  builder.Fill<uint8_t>(flags)[4] = 9;
  const std::vector<float> floats = {1.5f, -2.f};
  builder.Encode(floats, BF16, &values);
  const Buffer payload = builder.Take();

  EXPECT_EQ((*SectionView<uint64_t>(payload, keys, 3, "keys"))[2], 77u);
  EXPECT_EQ((*SectionView<uint8_t>(payload, flags, 5, "flags"))[4], 9);
  std::vector<float> decoded(2);
  DecodeWire(*WireView(payload, values, BF16, 2, "values"), absl::MakeSpan(decoded));
  EXPECT_THAT(decoded, ElementsAre(1.5f, -2.f));
}

TEST(PayloadBuilder, SectionsBeginAtMultiplesOf64AndGapsAreZero) {
  Section first, second;
  PayloadBuilder builder;
  builder.Reserve<uint8_t>(5, &first);
  builder.Reserve<uint32_t>(1, &second);
  EXPECT_EQ(builder.size_bytes(), 68u);
  builder.Allocate();
  builder.Fill<uint8_t>(first)[0] = 1;
  const Buffer payload = builder.Take();
  EXPECT_EQ(first.offset_bytes(), 0u);
  EXPECT_EQ(second.offset_bytes(), 64u);
  EXPECT_EQ(payload.size(), 68u);
  for (int i = 5; i < 64; ++i) EXPECT_EQ(payload.data()[i], 0) << i;
}

TEST(PayloadBuilder, EmptySectionsTakeNoBytes) {
  Section empty;
  PayloadBuilder builder;
  builder.Reserve<uint64_t>(0, &empty);
  builder.Allocate();
  const Buffer payload = builder.Take();
  EXPECT_TRUE(payload.empty());
  EXPECT_TRUE(SectionView<uint64_t>(payload, empty, 0, "keys")->empty());
  EXPECT_TRUE(SectionView<uint64_t>(payload, Section(), 0, "absent")->empty());
}

Section MakeSection(uint64_t offset_bytes, uint64_t size_bytes) {
  Section section;
  section.set_offset_bytes(offset_bytes);
  section.set_size_bytes(size_bytes);
  return section;
}

TEST(SectionView, RefusesWhatLiesOutsideThePayload) {
  const Buffer payload(128);
  EXPECT_TRUE(SectionView<uint64_t>(payload, MakeSection(64, 64), 8, "x").ok());
  constexpr uint64_t kMax = std::numeric_limits<uint64_t>::max();
  for (const Section& section :
       {MakeSection(64, 72), MakeSection(128, 8), MakeSection(192, 0), MakeSection(kMax - 63, 64),
        MakeSection(0, 136), MakeSection(64, kMax - 7)}) {
    const auto view =
        SectionView<uint64_t>(payload, section, section.size_bytes() / 8, "features[2].ids");
    ASSERT_FALSE(view.ok()) << section.ShortDebugString();
    EXPECT_EQ(view.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(view.status().message(), HasSubstr("features[2].ids"));
  }
}

TEST(SectionView, RefusesAnotherSizeThanTheCountsSay) {
  const Buffer payload(128);
  EXPECT_FALSE(SectionView<uint64_t>(payload, MakeSection(0, 64), 7, "x").ok());
  EXPECT_FALSE(SectionView<uint64_t>(payload, MakeSection(0, 63), 7, "x").ok());
  EXPECT_FALSE(SectionView<uint64_t>(payload, MakeSection(0, 63), 8, "x").ok());
  // This count times 8 bytes overflows 64 bits, and the result modulo 2^64 is the section's size.
  EXPECT_FALSE(
      SectionView<uint64_t>(payload, MakeSection(0, 8), (uint64_t{1} << 61) + 1, "x").ok());
}

TEST(SectionView, RefusesAMisalignedOffset) {
  const Buffer payload(128);
  EXPECT_FALSE(SectionView<uint8_t>(payload, MakeSection(8, 8), 8, "x").ok());
}

// `values` as they arrive after being sent in a section of `dtype`.
std::vector<float> SentAs(WireDtype dtype, const std::vector<float>& values, Section* section) {
  PayloadBuilder builder;
  builder.Reserve(dtype, values.size(), section);
  builder.Allocate();
  builder.Encode(values, dtype, section);
  const Buffer payload = builder.Take();
  std::vector<float> decoded(values.size());
  const auto view = WireView(payload, *section, dtype, values.size(), "values");
  EXPECT_TRUE(view.ok()) << view.status();
  if (view.ok()) DecodeWire(*view, absl::MakeSpan(decoded));
  return decoded;
}

TEST(PayloadBuilder, AnF16SectionHoldsValuesOfAnySize) {
  for (int exponent = -80; exponent <= 127; ++exponent) {
    // Values that need all 11 bits of an F16's significand, or fewer.
    const float unit = std::ldexp(1.0f, exponent);
    const std::vector<float> values = {unit, 0x1.ffcp0f * unit, -0x1.008p0f * unit, 0};
    Section section;
    EXPECT_EQ(SentAs(F16, values, &section), values) << exponent;
    // The largest value is scaled to just below 2^15, the largest magnitude that scaling allows.
    EXPECT_EQ(section.scale_exponent(), exponent - 14);
  }
}

TEST(PayloadBuilder, OnlyF16SectionsHaveAScale) {
  for (const WireDtype dtype : {F32, BF16}) {
    Section section;
    EXPECT_THAT(SentAs(dtype, {1e20f, -3e-9f}, &section)[0], testing::FloatNear(1e20f, 1e18f));
    EXPECT_FALSE(section.has_scale_exponent());
  }
  Section zeros;
  EXPECT_THAT(SentAs(F16, {0, 0}, &zeros), ElementsAre(0, 0));
  EXPECT_EQ(zeros.scale_exponent(), kLeastScaleExponent);
}

TEST(PayloadBuilder, WhatIsNotFiniteStaysSoAndDoesNotSpoilTheScale) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  Section section;
  const std::vector<float> values = SentAs(F16, {1e-6f, -kInf, NAN}, &section);
  EXPECT_THAT(values[0], testing::FloatNear(1e-6f, 1e-9f));
  EXPECT_EQ(values[1], -kInf);
  EXPECT_TRUE(std::isnan(values[2]));
}

TEST(WireView, RefusesAScaleOutOfRangeOrOfOtherValuesThanF16) {
  const Buffer payload(64);
  Section section = MakeSection(0, 4);
  for (const int good : {kLeastScaleExponent, 0, kLargestScaleExponent}) {
    section.set_scale_exponent(good);
    EXPECT_TRUE(WireView(payload, section, F16, 2, "x").ok()) << good;
  }
  section.set_scale_exponent(kLargestScaleExponent + 1);
  EXPECT_EQ(WireView(payload, section, F16, 2, "x").status().message(),
            "x: scale_exponent must be in [-100, 113], got 114");
  section.set_scale_exponent(kLeastScaleExponent - 1);
  EXPECT_FALSE(WireView(payload, section, F16, 2, "x").ok());
  section.set_scale_exponent(3);
  EXPECT_EQ(WireView(payload, section, BF16, 2, "x").status().message(),
            "x: scale_exponent is 3 in a section that is not F16");
  EXPECT_FALSE(WireView(payload, section, F32, 1, "x").ok());
  EXPECT_FALSE(SectionView<uint32_t>(payload, section, 1, "x").ok());
}

TEST(ConvertWire, GoesBetweenAnyTwoTypes) {
  std::vector<float> floats(3000);
  for (size_t i = 0; i < floats.size(); ++i) floats[i] = static_cast<float>(i % 256) - 100;
  for (WireDtype from : {F32, F16, BF16}) {
    for (WireDtype to : {F32, F16, BF16}) {
      std::vector<uint8_t> a(floats.size() * 4), b(floats.size() * 4);
      const int from_scale = from == F16 ? -5 : 0;
      EncodeWire(floats, from, from_scale, a.data());
      const WireValues values{from, floats.size(), a.data(), from_scale};
      for (const int scale : {-5, 0, 3}) {
        if (to != F16 && scale != 0) continue;
        ConvertWire(values, to, scale, b.data());
        std::vector<float> back(floats.size());
        DecodeWire(WireValues{to, floats.size(), b.data(), scale}, absl::MakeSpan(back));
        EXPECT_EQ(back, floats) << from << " to " << to << " scale " << scale;
      }
    }
  }
}

TEST(ConvertWire, AnF16KeepsItsScaleAndBitsAsTheScaleThatIsChosenForIt) {
  const std::vector<uint16_t> bits = {0x3c00, 0x0001};
  const WireValues values{F16, 2, reinterpret_cast<const uint8_t*>(bits.data()), 40};
  EXPECT_EQ(ScaleExponentFor(values, F16), 40);
  EXPECT_EQ(ScaleExponentFor(values, BF16), 0);
  std::vector<uint16_t> copy(2);
  ConvertWire(values, F16, 40, reinterpret_cast<uint8_t*>(copy.data()));
  EXPECT_EQ(copy, bits);
}

// The losses of converting `values` to F16, with the scale that suits them or without a scale.
WireLosses LossesOf(const std::vector<float>& values, bool scaled) {
  const WireValues view{F32, values.size(), reinterpret_cast<const uint8_t*>(values.data())};
  std::vector<uint8_t> bytes(values.size() * 2);
  return ConvertGradients(view, F16, scaled ? ScaleExponentFor(view, F16) : 0, bytes.data());
}

TEST(ConvertGradients, TheScaleSavesWhatAnF16CannotHold) {
  // `small` is like gradients of a mean over 64 K samples, `large` like sums over a large part.
  const std::vector<float> small = {1e-8f, -3e-9f, 2e-10f, 0}, large = {7e4f, -1e9f, 3.0f};
  EXPECT_EQ(LossesOf(small, /*scaled=*/false).underflowed, 3u);
  EXPECT_EQ(LossesOf(small, /*scaled=*/true).underflowed, 0u);
  EXPECT_EQ(LossesOf(large, /*scaled=*/false).saturated, 2u);
  EXPECT_EQ(LossesOf(large, /*scaled=*/true).saturated, 0u);
}

TEST(ConvertGradients, CountsWhatNoScaleCanSave) {
  EXPECT_EQ(LossesOf({1, 0x1p-38f, 0x1p-41f, -0x1p-60f}, /*scaled=*/true).underflowed, 2u);
  constexpr float kInf = std::numeric_limits<float>::infinity();
  const WireLosses infinite = LossesOf({1, kInf, -kInf}, /*scaled=*/true);
  EXPECT_EQ(infinite.saturated, 2u);
  EXPECT_EQ(infinite.underflowed, 0u);
}

TEST(ConvertGradients, OtherDtypesLoseNothing) {
  const std::vector<float> values = {1e-30f, 1e30f};
  for (const WireDtype dtype : {F32, BF16}) {
    std::vector<uint8_t> bytes(8);
    const WireLosses losses = ConvertGradients(
        {F32, 2, reinterpret_cast<const uint8_t*>(values.data())}, dtype, 0, bytes.data());
    EXPECT_EQ(losses.saturated + losses.underflowed, 0u);
    std::vector<float> back(2);
    DecodeWire({dtype, 2, bytes.data()}, absl::MakeSpan(back));
    EXPECT_THAT(back[0], testing::FloatNear(1e-30f, 1e-32f));
  }
}

TEST(WireValues, ASubrangeBeginsAtItsValue) {
  const std::vector<float> floats = {1, 2, 3, 4};
  std::vector<uint8_t> bytes(8);
  EncodeWire(floats, F16, 2, bytes.data());
  std::vector<float> back(2);
  DecodeWire(WireValues{F16, 4, bytes.data(), 2}.Subrange(1, 2), absl::MakeSpan(back));
  EXPECT_THAT(back, ElementsAre(2.f, 3.f));
}

}  // namespace
}  // namespace satrap::rpc

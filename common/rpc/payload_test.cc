#include "common/rpc/payload.h"

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
  EncodeWire(floats, BF16, builder.Fill<uint8_t>(values).data());
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
  // A count whose bytes overflow 64 bits to the section's size.
  EXPECT_FALSE(
      SectionView<uint64_t>(payload, MakeSection(0, 8), (uint64_t{1} << 61) + 1, "x").ok());
}

TEST(SectionView, RefusesAMisalignedOffset) {
  const Buffer payload(128);
  EXPECT_FALSE(SectionView<uint8_t>(payload, MakeSection(8, 8), 8, "x").ok());
}

TEST(ConvertWire, GoesBetweenAnyTwoTypes) {
  std::vector<float> floats(3000);
  for (size_t i = 0; i < floats.size(); ++i) floats[i] = static_cast<float>(i % 256) - 100;
  for (WireDtype from : {F32, F16, BF16}) {
    for (WireDtype to : {F32, F16, BF16}) {
      std::vector<uint8_t> a(floats.size() * 4), b(floats.size() * 4);
      EncodeWire(floats, from, a.data());
      ConvertWire(WireValues{from, floats.size(), a.data()}, to, b.data());
      std::vector<float> back(floats.size());
      DecodeWire(WireValues{to, floats.size(), b.data()}, absl::MakeSpan(back));
      EXPECT_EQ(back, floats) << from << " to " << to;
    }
  }
}

TEST(WireValues, ASubrangeBeginsAtItsValue) {
  const std::vector<float> floats = {1, 2, 3, 4};
  std::vector<uint8_t> bytes(8);
  EncodeWire(floats, F16, bytes.data());
  std::vector<float> back(2);
  DecodeWire(WireValues{F16, 4, bytes.data()}.Subrange(1, 2), absl::MakeSpan(back));
  EXPECT_THAT(back, ElementsAre(2.f, 3.f));
}

}  // namespace
}  // namespace satrap::rpc

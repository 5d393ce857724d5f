#include "common/numeric/crc32c.h"

#include <string>

#include "common/numeric/random.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

// The values are from RFC 3720, appendix B.4; the second is the CRC catalogue's check value.
TEST(Crc32cTest, KeepsItsGoldenValues) {
  EXPECT_EQ(Crc32c(""), 0u);
  EXPECT_EQ(Crc32c("123456789"), 0xe3069283u);
  EXPECT_EQ(Crc32c(std::string(32, '\0')), 0x8a9136aau);
  EXPECT_EQ(Crc32c(std::string(32, '\xff')), 0x62a8ab43u);
}

TEST(Crc32cTest, InstructionsAndTableAgreeAtEveryLengthAndAlignment) {
  std::string bytes(200, '\0');
  SplitMix64 random(2);
  for (char& c : bytes) c = static_cast<char>(random.Next());
  for (size_t start = 0; start < 9; ++start) {
    for (size_t length = 0; length < 150; ++length) {
      const absl::string_view view = absl::string_view(bytes).substr(start, length);
      ASSERT_EQ(ExtendCrc32c(17, view), internal::ExtendCrc32cByTable(17, view));
    }
  }
}

// The inputs are long enough to be computed as several streams side by side.
TEST(Crc32cTest, InstructionsAndTableAgreeOnLongInputs) {
  std::string bytes(20000, '\0');
  SplitMix64 random(3);
  for (char& c : bytes) c = static_cast<char>(random.Next());
  for (size_t length = 3000; length < bytes.size() - 8; length += 97) {
    const absl::string_view view = absl::string_view(bytes).substr(length % 8, length);
    ASSERT_EQ(ExtendCrc32c(17, view), internal::ExtendCrc32cByTable(17, view)) << length;
  }
}

TEST(Crc32cTest, ExtendsOverAnyCut) {
  const std::string text = "a row of an embedding table";
  for (size_t cut = 0; cut <= text.size(); ++cut) {
    EXPECT_EQ(ExtendCrc32c(Crc32c(text.substr(0, cut)), text.substr(cut)), Crc32c(text));
  }
}

}  // namespace
}  // namespace satrap

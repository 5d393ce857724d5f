#include "data_loader/parser/string_id.h"

#include <gtest/gtest.h>

#include <string>

#include "common/numeric/hash.h"

namespace satrap {
namespace {

TEST(StringIdTest, IsXxh64OfTheBytes) {
  EXPECT_EQ(StringId("68fd1e64"), 0x5d3ccd85c9c22fe4ULL);
  const std::string bytes("\xff\x00\x80\x01\x02\x03\x04\x05\x06", 9);
  for (size_t size = 0; size <= 9; ++size) {
    const absl::string_view text(bytes.data(), size);
    EXPECT_EQ(StringId(text), Xxh64(text)) << size;
  }
}

}  // namespace
}  // namespace satrap

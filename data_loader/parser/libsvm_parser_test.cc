#include "data_loader/parser/libsvm_parser.h"

#include <gtest/gtest.h>

namespace satrap {
namespace {

class LibsvmParserTest : public testing::Test {
 protected:
  LibsvmParserTest() : parser_(NewLibsvmParser()), block_(Schema()) {}
  static RecordSchema Schema() {
    DataConfig data;
    data.mutable_libsvm();
    return SchemaOf(data);
  }
  ParseResult::Kind Parse(absl::string_view line) { return parser_->Parse(line, &block_).kind; }
  const std::unique_ptr<Parser> parser_;
  RecordBlock block_;
};

TEST_F(LibsvmParserTest, IndicesAreNumbersAndValuesAreWeights) {
  ASSERT_EQ(Parse("+1 3:0.5  18446744073709551615:-2 \t7:1e2 "), ParseResult::kRecord);
  EXPECT_EQ(block_.label(0), 1.0f);
  EXPECT_EQ(block_.list_ids(0, 0), (std::vector<uint64_t>{3, ~uint64_t{0}, 7}));
  EXPECT_EQ(block_.list_values(0, 0), (std::vector<float>{0.5f, -2.0f, 100.0f}));
}

TEST_F(LibsvmParserTest, LabelsAreZeroOrOneOrMinusOne) {
  for (const char* line : {"0", "-1", "1", "+1"}) EXPECT_EQ(Parse(line), ParseResult::kRecord);
  EXPECT_EQ(block_.label(1), 0.0f);
  for (const char* line : {"2 1:1", "1.0 1:1", "x 1:1", "  ", "1:1"}) {
    EXPECT_EQ(Parse(line), ParseResult::kBad) << line;
  }
}

TEST_F(LibsvmParserTest, AnythingElseThanIndexAndValueIsBad) {
  for (const char* line : {"1 3", "1 3:", "1 :1", "1 -3:1", "1 a:1", "1 3:x", "1 3:1:2"}) {
    EXPECT_EQ(Parse(line), ParseResult::kBad) << line;
  }
  EXPECT_EQ(Parse(absl::string_view("1 3:1\0", 6)), ParseResult::kBad);
  EXPECT_EQ(Parse(""), ParseResult::kEmpty);
  EXPECT_EQ(block_.rows(), 0u);
}

}  // namespace
}  // namespace satrap

#include "data_loader/parser/libffm_parser.h"

#include <gtest/gtest.h>

namespace satrap {
namespace {

class LibffmParserTest : public testing::Test {
 protected:
  LibffmParserTest() : parser_(NewLibffmParser(Format().libffm())), block_(SchemaOf(Format())) {}
  static DataConfig Format() {
    DataConfig data;
    data.mutable_libffm()->set_num_fields(3);
    return data;
  }
  ParseResult::Kind Parse(absl::string_view line) { return parser_->Parse(line, &block_).kind; }
  const std::unique_ptr<Parser> parser_;
  RecordBlock block_;
};

TEST_F(LibffmParserTest, EachFieldIsAColumn) {
  ASSERT_EQ(Parse("1 2:9:0.5 0:7:1 2:8:2"), ParseResult::kRecord);
  EXPECT_EQ(block_.list_ids(0, 0), (std::vector<uint64_t>{7}));
  EXPECT_TRUE(block_.list_ids(0, 1).empty());
  EXPECT_EQ(block_.list_ids(0, 2), (std::vector<uint64_t>{9, 8}));
  EXPECT_EQ(block_.list_values(0, 2), (std::vector<float>{0.5f, 2.0f}));
}

TEST_F(LibffmParserTest, AFieldThatIsNotDeclaredIsBad) {
  EXPECT_EQ(Parse("1 0:1:1 3:9:0.5"), ParseResult::kBad);
  EXPECT_EQ(Parse("1 99999999999999999999:9:1"), ParseResult::kBad);
  EXPECT_EQ(block_.rows(), 0u);
}

TEST_F(LibffmParserTest, AnythingElseThanFieldIndexAndValueIsBad) {
  for (const char* line :
       {"1 0:1", "1 0:1:", "1 0::1", "1 :1:1", "1 0:x:1", "1 0:1:1:1", "3 0:1:1"}) {
    EXPECT_EQ(Parse(line), ParseResult::kBad) << line;
  }
}

}  // namespace
}  // namespace satrap

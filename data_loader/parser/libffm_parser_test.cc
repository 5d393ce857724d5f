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

TEST_F(LibffmParserTest, AReasonShowsTheTokenAndSaysWhatWouldDo) {
  EXPECT_EQ(std::string(parser_->Parse("1 0:x:1", &block_).reason),
            "expected FIELD:INDEX:VALUE (two whole numbers and a number, such as 0:3:0.5), got "
            "'0:x:1'");
  EXPECT_EQ(std::string(parser_->Parse("1 0:1:1 3:9:0.5", &block_).reason),
            "there is '3:9:0.5' of field 3, but fields are below 3 (data.libffm.num_fields)");
  EXPECT_EQ(std::string(parser_->Parse("2 0:1:1", &block_).reason),
            "expected a label at the beginning of the line, got '2'; valid labels: 1 "
            "(positive), 0 and -1 (negative); for other numbers, set data.libffm.numeric_label or "
            "data.libffm.classes");
}

TEST_F(LibffmParserTest, CommentsAndOtherLabelsAreThoseOfLibsvm) {
  EXPECT_EQ(Parse("# a comment"), ParseResult::kComment);
  ASSERT_EQ(Parse("1.0e0 0:1:1 # 0:x"), ParseResult::kRecord);
  EXPECT_EQ(block_.label(0), 1.0f);
  LibffmFormat format = Format().libffm();
  format.add_classes(1);
  format.add_classes(2);
  ASSERT_EQ(NewLibffmParser(format)->Parse("2 0:1:1", &block_).kind, ParseResult::kRecord);
  EXPECT_EQ(block_.label(1), 1.0f);
  const std::unique_ptr<Parser> before = NewLibffmParser(Format().libffm(), RecordRules::kFirst);
  EXPECT_EQ(before->Parse("1.0 0:1:1", &block_).kind, ParseResult::kBad);
  EXPECT_EQ(before->Parse("1 0:1:1 # a", &block_).kind, ParseResult::kBad);
}

TEST_F(LibffmParserTest, AnythingElseThanFieldIndexAndValueIsBad) {
  for (const char* line :
       {"1 0:1", "1 0:1:", "1 0::1", "1 :1:1", "1 0:x:1", "1 0:1:1:1", "3 0:1:1"}) {
    EXPECT_EQ(Parse(line), ParseResult::kBad) << line;
  }
}

}  // namespace
}  // namespace satrap

#include "data_loader/parser/criteo_tsv_parser.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "data_loader/parser/string_id.h"

namespace satrap {
namespace {

std::vector<std::string> GoodFields() {
  std::vector<std::string> fields = {"1"};
  for (int i = 0; i < 13; ++i) fields.push_back(std::to_string(i - 1));
  for (int i = 0; i < 26; ++i) fields.push_back("68fd1e" + std::to_string(10 + i));
  return fields;
}

class CriteoTsvParserTest : public testing::Test {
 protected:
  CriteoTsvParserTest() : parser_(NewCriteoTsvParser()), block_(Schema()) {}

  static RecordSchema Schema() {
    DataConfig data;
    data.mutable_criteo_tsv();
    return SchemaOf(data);
  }
  ParseResult Parse(const std::vector<std::string>& fields) {
    return parser_->Parse(absl::StrJoin(fields, "\t"), &block_);
  }
  ParseResult ParseWith(size_t column, const std::string& field) {
    std::vector<std::string> fields = GoodFields();
    fields[column] = field;
    return Parse(fields);
  }

  const std::unique_ptr<Parser> parser_;
  RecordBlock block_;
};

TEST_F(CriteoTsvParserTest, ReadsLabelNumericsAndHashedIds) {
  ASSERT_EQ(Parse(GoodFields()).kind, ParseResult::kRecord);
  ASSERT_EQ(block_.rows(), 1u);
  EXPECT_EQ(block_.label(0), 1.0f);
  EXPECT_EQ(block_.numerics(0)[0], -1.0f);
  EXPECT_EQ(block_.numerics(0)[12], 11.0f);
  EXPECT_EQ(block_.ids(0)[0], StringId("68fd1e10"));
  EXPECT_EQ(block_.ids(0)[25], StringId("68fd1e35"));
}

TEST_F(CriteoTsvParserTest, EmptyFieldsAreMissingTheLastOneToo) {
  ASSERT_EQ(ParseWith(1, "").kind, ParseResult::kRecord);
  ASSERT_EQ(ParseWith(14, "").kind, ParseResult::kRecord);
  ASSERT_EQ(ParseWith(39, "").kind, ParseResult::kRecord);
  EXPECT_TRUE(std::isnan(block_.numerics(0)[0]));
  EXPECT_FALSE(block_.IsMissing(0, 0));
  EXPECT_TRUE(block_.IsMissing(1, 0));
  EXPECT_TRUE(block_.IsMissing(2, 25));
  std::vector<std::string> empty(40);
  empty[0] = "0";
  EXPECT_EQ(Parse(empty).kind, ParseResult::kRecord);
}

TEST_F(CriteoTsvParserTest, IdsAreBytes) {
  EXPECT_EQ(ParseWith(20, "\xff\xfe\x80").kind, ParseResult::kRecord);
  EXPECT_EQ(block_.ids(0)[6], StringId("\xff\xfe\x80"));
}

TEST_F(CriteoTsvParserTest, AnotherNumberOfColumnsIsBad) {
  std::vector<std::string> fields = GoodFields();
  fields.pop_back();
  EXPECT_EQ(Parse(fields).kind, ParseResult::kBad);
  fields = GoodFields();
  fields.push_back("");
  EXPECT_EQ(Parse(fields).kind, ParseResult::kBad);
  EXPECT_EQ(parser_->Parse("1", &block_).kind, ParseResult::kBad);
  EXPECT_EQ(parser_->Parse(std::string(1000, '\t'), &block_).kind, ParseResult::kBad);
}

TEST_F(CriteoTsvParserTest, ALabelOtherThanZeroOrOneIsBad) {
  for (const char* label : {"", "2", "-1", "01", "1.0", "a", " 1"}) {
    EXPECT_EQ(ParseWith(0, label).kind, ParseResult::kBad) << label;
  }
}

TEST_F(CriteoTsvParserTest, LettersInANumericAreBad) {
  for (const char* number : {"a", "1a", "0x1f", "1e5", "nan", "-", "1 2"}) {
    EXPECT_EQ(ParseWith(1, number).kind, ParseResult::kBad) << number;
    EXPECT_EQ(ParseWith(13, number).kind, ParseResult::kBad) << number;
  }
}

TEST_F(CriteoTsvParserTest, ANulByteIsBadWhereverItStands) {
  for (size_t column = 14; column < 40; ++column) {
    EXPECT_EQ(ParseWith(column, std::string("a\0b", 3)).kind, ParseResult::kBad) << column;
  }
  EXPECT_EQ(ParseWith(39, std::string("\0", 1)).kind, ParseResult::kBad);
}

TEST_F(CriteoTsvParserTest, AReasonNamesTheColumnShowsItsTextAndSaysWhatWouldDo) {
  const auto reason_with = [this](size_t column, const std::string& field) {
    const ParseResult result = ParseWith(column, field);
    return std::string(result.kind == ParseResult::kBad ? result.reason : "");
  };
  EXPECT_EQ(reason_with(0, "1.0"),
            "column 'label' holds '1.0', but a label is expected: '0' or '1'");
  EXPECT_EQ(
      reason_with(5, "1e5"),
      "column 'I5' holds '1e5', but a number without exponent is expected, such as 12 or -0.5; "
      "the empty string means missing");
  EXPECT_THAT(
      reason_with(14, std::string("a\0b", 3)),
      testing::AllOf(testing::HasSubstr("a NUL byte at byte "),
                     testing::HasSubstr(" in column C1: "), testing::HasSubstr(R"(a\x00\x62)")));
  EXPECT_STREQ(parser_->Parse("1\t2", &block_).reason,
               R"('1\t2' has 2 columns between tabs instead of 40 (label, I1 .. I13, C1 .. C26))");
}

TEST_F(CriteoTsvParserTest, AnEmptyLineIsNoRecordAndABadOneLeavesNothing) {
  EXPECT_EQ(parser_->Parse("", &block_).kind, ParseResult::kEmpty);
  EXPECT_EQ(ParseWith(5, "x").kind, ParseResult::kBad);
  EXPECT_EQ(block_.rows(), 0u);
}

}  // namespace
}  // namespace satrap

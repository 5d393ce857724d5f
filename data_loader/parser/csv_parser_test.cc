#include "data_loader/parser/csv_parser.h"

#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "data_loader/parser/string_id.h"

namespace satrap {
namespace {

// A parser with its block, from a CsvFormat's text.
struct Csv {
  explicit Csv(const std::string& format_text, Stream stream = TRAIN_STREAM)
      : format(Format(format_text)), parser(NewCsvParser(format, stream)), block(Schema(format)) {}

  static CsvFormat Format(const std::string& text) {
    CsvFormat format;
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &format));
    return format;
  }
  static RecordSchema Schema(const CsvFormat& format) {
    DataConfig data;
    *data.mutable_csv() = format;
    return SchemaOf(data);
  }
  ParseResult::Kind Parse(absl::string_view line) { return parser->Parse(line, &block).kind; }

  const CsvFormat format;
  const std::unique_ptr<Parser> parser;
  RecordBlock block;
};

constexpr auto kRecord = ParseResult::kRecord;
constexpr auto kBad = ParseResult::kBad;

TEST(CsvParserTest, ReadsEveryKindOfColumn) {
  Csv csv(R"(columns { name: "y" kind: LABEL } columns { name: "user" kind: ID }
             columns { name: "skipped" } columns { name: "tags" kind: MULTI_ID }
             columns { name: "age" kind: NUMERIC } columns { name: "w" kind: WEIGHT }
             columns { name: "g" kind: GROUP } columns { name: "t" kind: TIME })");
  ASSERT_EQ(csv.Parse("1,279,anything,a|b||c,-2.5e1,0.5,session,1700000000"), kRecord);
  EXPECT_EQ(csv.block.label(0), 1.0f);
  EXPECT_EQ(csv.block.ids(0)[0], StringId("279"));  // digits are bytes too
  ASSERT_EQ(csv.block.list_ids(0, 0).size(), 3u);
  EXPECT_EQ(csv.block.list_ids(0, 0)[2], StringId("c"));
  EXPECT_EQ(csv.block.numerics(0)[0], -25.0f);
  EXPECT_EQ(csv.block.weight(0), 0.5f);
  EXPECT_EQ(csv.block.group(0), StringId("session"));
  EXPECT_EQ(csv.block.time(0), 1700000000);
}

TEST(CsvParserTest, ReadsAdultAsItLies) {
  const std::string format = R"(trim: true comment_prefix: "|"
      columns { name: "age" kind: NUMERIC }
      columns { name: "work" kind: ID missing_values: "?" vocabulary: "Private" vocabulary: "Gov" }
      columns { name: "income" kind: LABEL positive_values: ">50K" positive_values: ">50K."
                negative_values: "<=50K" negative_values: "<=50K." })";
  Csv csv(format);
  EXPECT_EQ(csv.Parse("|1x3 Cross validator"), ParseResult::kComment);
  EXPECT_EQ(csv.Parse(""), ParseResult::kEmpty);
  ASSERT_EQ(csv.Parse("39, Gov, <=50K"), kRecord);
  ASSERT_EQ(csv.Parse("50, ?, >50K."), kRecord);
  ASSERT_EQ(csv.Parse("50, Unheard-of, >50K"), kRecord);
  EXPECT_EQ(csv.Parse("50, Gov, 1"), kBad);
  EXPECT_EQ(csv.block.ids(0)[0], 1u);
  EXPECT_FALSE(csv.block.IsMissing(0, 0));
  EXPECT_TRUE(csv.block.IsMissing(1, 0));
  EXPECT_TRUE(csv.block.IsMissing(2, 0)) << "not in the vocabulary";
  EXPECT_EQ(csv.block.label(1), 1.0f);
}

TEST(CsvParserTest, ATestVocabularyServesTheTestStreamOnly) {
  const std::string format = R"(columns { name: "y" kind: LABEL }
      columns { name: "c" kind: ID vocabulary: "a" vocabulary: "b" test_vocabulary: "b" })";
  for (const Stream stream : {TRAIN_STREAM, VALID_STREAM, TEST_STREAM}) {
    Csv csv(format, stream);
    ASSERT_EQ(csv.Parse("0,b"), kRecord);
    EXPECT_EQ(csv.block.ids(0)[0], stream == TEST_STREAM ? 0u : 1u);
  }
}

TEST(CsvParserTest, AnotherNumberOfColumnsIsBadAndLeavesNothing) {
  Csv csv(R"(separator: "\t" columns { name: "tags" kind: MULTI_ID }
             columns { name: "y" kind: LABEL })");
  EXPECT_EQ(csv.Parse("a|b"), kBad);
  EXPECT_EQ(csv.Parse("a|b\t1\t"), kBad);
  EXPECT_EQ(csv.Parse(absl::string_view("a\0\t1", 4)), kBad);
  EXPECT_EQ(csv.Parse("c\t1"), kRecord);
  ASSERT_EQ(csv.block.rows(), 1u);
  EXPECT_EQ(csv.block.list_ids(0, 0).size(), 1u);
}

TEST(CsvParserTest, NumbersThatAreNoneAreBadButMissingOnesAreNot) {
  Csv csv(R"(columns { name: "x" kind: NUMERIC missing_values: "NA" }
             columns { name: "w" kind: WEIGHT } columns { name: "t" kind: TIME }
             columns { name: "y" kind: LABEL })");
  EXPECT_EQ(csv.Parse("NA,1,1,0"), kRecord);
  EXPECT_EQ(csv.Parse(",1,1,0"), kRecord);
  EXPECT_TRUE(std::isnan(csv.block.numerics(0)[0]) && std::isnan(csv.block.numerics(1)[0]));
  EXPECT_EQ(csv.Parse("nan,1,1,0"), kBad);
  EXPECT_EQ(csv.Parse("1,-1,1,0"), kBad);
  EXPECT_EQ(csv.Parse("1,,1,0"), kBad);
  EXPECT_EQ(csv.Parse("1,1,1.5,0"), kBad);
  EXPECT_EQ(csv.Parse("1,1,1,"), kBad);
}

TEST(CsvParserTest, IdsOfAListMayCarryValues) {
  Csv csv(R"(columns { name: "y" kind: LABEL }
             columns { name: "tags" kind: MULTI_ID separator: " " value_separator: ":" })");
  ASSERT_EQ(csv.Parse("1,a:0.5 b:2"), kRecord);
  EXPECT_EQ(csv.block.list_values(0, 0)[1], 2.0f);
  EXPECT_EQ(csv.block.list_ids(0, 0)[0], StringId("a"));
  ASSERT_EQ(csv.Parse("1,"), kRecord);
  EXPECT_TRUE(csv.block.list_ids(1, 0).empty());
  EXPECT_EQ(csv.Parse("1,a"), kBad);
  EXPECT_EQ(csv.Parse("1,a:x"), kBad);
}

TEST(CsvParserTest, TheHeaderMustNameTheColumnsInOrder) {
  Csv csv(R"(header: true columns { name: "y" kind: LABEL } columns {} columns { name: "u" })");
  EXPECT_TRUE(csv.parser->has_header());
  EXPECT_TRUE(csv.parser->CheckHeader("y,whatever,u").ok());
  EXPECT_FALSE(csv.parser->CheckHeader("y,u,whatever").ok());
  EXPECT_FALSE(csv.parser->CheckHeader("y,whatever").ok());
  EXPECT_NE(csv.parser->CheckHeader("a,b,c").message().find("y, (any), u"), std::string::npos);
}

TEST(CsvParserTest, AWrongHeaderIsToldWithTheFirstColumnThatDiffers) {
  Csv csv(R"(header: true columns { name: "y" kind: LABEL } columns { name: "u" })");
  EXPECT_EQ(csv.parser->CheckHeader("y,v").message(),
            "the header line names the columns y, v; the job y, u; the first that differs is "
            "column 2");
  for (const char* line : {"y", "y,u,v"}) {
    const std::string differs = absl::StrCat("differs is column ", line[1] == 0 ? 2 : 3);
    EXPECT_NE(csv.parser->CheckHeader(line).message().find(differs), std::string::npos) << line;
  }
}

TEST(CsvParserTest, OfAWrongHeaderOnlyAShortPrintableTextIsTold) {
  Csv csv(R"(header: true columns { name: "y" kind: LABEL } columns { name: "u" })");
  const std::string line = "\x1b[2J\r\x9b,\xe5" + std::string(5000, '\x01');
  const absl::Status status = csv.parser->CheckHeader(line);
  EXPECT_NE(status.message().find(R"(columns \x1b[2J\r\x9b, \xe5\x01)"), std::string::npos)
      << status;
  EXPECT_NE(status.message().find(R"(\x01...; the job)"), std::string::npos) << status;
  EXPECT_LT(status.message().size(), 320u);
  for (const char c : status.message()) ASSERT_TRUE(absl::ascii_isprint(c)) << status;
}

TEST(CsvParserTest, AByteOrderMarkBeforeTheHeaderIsNamed) {
  Csv csv(R"(header: true columns { name: "y" kind: LABEL } columns { name: "u" })");
  EXPECT_EQ(csv.parser->CheckHeader("\xef\xbb\xbfy,u").message(),
            "the header line names the columns \\xef\\xbb\\xbfy, u; the job y, u; the first that "
            "differs is column 1; the file begins with a UTF-8 byte order mark, which is taken for "
            "a part of the first name");
  EXPECT_EQ(csv.parser->CheckHeader("y,v").message().find("mark"), std::string::npos);
}

}  // namespace
}  // namespace satrap

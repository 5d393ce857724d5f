#include "data_loader/parser/csv_parser.h"

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "data_loader/parser/string_id.h"

namespace satrap {
namespace {

// A parser made from a CsvFormat in text format, with its block.
struct Csv {
  explicit Csv(const std::string& format_text, Stream stream = TRAIN_STREAM,
               RecordRules rules = RecordRules::kNewest)
      : format(Format(format_text)),
        parser(NewCsvParser(format, stream, rules)),
        block(Schema(format)) {}

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
  // The reason why the record is bad; empty if it is good.
  std::string ReasonOf(absl::string_view line) {
    const ParseResult result = parser->Parse(line, &block);
    return result.kind == ParseResult::kBad ? result.reason : "";
  }

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
  EXPECT_EQ(csv.Parse("1,1,x,0"), kBad);
  EXPECT_EQ(csv.Parse("1,1,,0"), kBad);
  EXPECT_EQ(csv.Parse("1,1,1,"), kBad);
}

TEST(CsvParserTest, SeveralLabelsMayBeClassesNumbersOrMissing) {
  Csv csv(R"(columns { name: "click" kind: LABEL missing_values: "?" }
             columns { name: "rating" kind: LABEL numeric_label: true }
             columns { name: "kind" kind: LABEL vocabulary: "a" vocabulary: "b" })");
  ASSERT_EQ(csv.Parse("1,-2.5,b"), kRecord);
  EXPECT_EQ(csv.block.labels(0)[0], 1.0f);
  EXPECT_EQ(csv.block.labels(0)[1], -2.5f);
  EXPECT_EQ(csv.block.labels(0)[2], 1.0f);
  ASSERT_EQ(csv.Parse("?,,a"), kRecord);
  EXPECT_TRUE(std::isnan(csv.block.labels(1)[0]) && std::isnan(csv.block.labels(1)[1]));
  EXPECT_EQ(csv.block.labels(1)[2], 0.0f);
  ASSERT_EQ(csv.Parse("0,,"), kRecord);
  EXPECT_EQ(csv.Parse("2,1,a"), kBad);
  EXPECT_EQ(csv.Parse("1,x,a"), kBad);
  EXPECT_EQ(csv.Parse("1,1,c"), kBad) << "a class that the vocabulary does not have";
  EXPECT_EQ(csv.Parse("?,,"), kBad) << "a record of which no label is known teaches nothing";
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
  EXPECT_EQ(
      csv.parser->CheckHeader("y,v").message(),
      "the header names the columns y, v; the job's columns are y, u; the first difference is in "
      "column 2");
  for (const char* line : {"y", "y,u,v"}) {
    const std::string differs = absl::StrCat("difference is in column ", line[1] == 0 ? 2 : 3);
    EXPECT_NE(csv.parser->CheckHeader(line).message().find(differs), std::string::npos) << line;
  }
}

TEST(CsvParserTest, OfAWrongHeaderOnlyAShortPrintableTextIsTold) {
  Csv csv(R"(header: true columns { name: "y" kind: LABEL } columns { name: "u" })");
  const std::string line = "\x1b[2J\r\x9b,\xe5" + std::string(5000, '\x01');
  const absl::Status status = csv.parser->CheckHeader(line);
  EXPECT_NE(status.message().find(R"(columns \x1b[2J\r\x9b, \xe5\x01)"), std::string::npos)
      << status;
  EXPECT_NE(status.message().find(R"(\x01...; the job's)"), std::string::npos) << status;
  EXPECT_LT(status.message().size(), 320u);
  for (const char c : status.message()) ASSERT_TRUE(absl::ascii_isprint(c)) << status;
}

TEST(CsvParserTest, AQuotedRecordHasTheValuesOfTheSameRecordWithoutQuotes) {
  const std::string format = R"(columns { name: "y" kind: LABEL } columns { name: "user" kind: ID }
      columns { name: "skipped" } columns { name: "tags" kind: MULTI_ID value_separator: ":" }
      columns { name: "age" kind: NUMERIC } columns { name: "w" kind: WEIGHT }
      columns { name: "g" kind: GROUP } columns { name: "t" kind: TIME })";
  Csv csv(format);
  ASSERT_EQ(csv.Parse(R"(1,279,anything,a:1|b:2,-2.5e1,0.5,session,1700000000)"), kRecord);
  ASSERT_EQ(csv.Parse(R"("1","279","any, thing","a:1|b:2","-2.5e1","0.5","session","1700000000")"),
            kRecord);
  EXPECT_EQ(csv.block.label(1), 1.0f);
  EXPECT_EQ(csv.block.ids(1)[0], csv.block.ids(0)[0]);
  EXPECT_EQ(csv.block.list_ids(1, 0), csv.block.list_ids(0, 0));
  EXPECT_EQ(csv.block.list_values(1, 0), csv.block.list_values(0, 0));
  EXPECT_EQ(csv.block.numerics(1)[0], -25.0f);
  EXPECT_EQ(csv.block.weight(1), 0.5f);
  EXPECT_EQ(csv.block.group(1), StringId("session"));
  EXPECT_EQ(csv.block.time(1), 1700000000);
}

TEST(CsvParserTest, QuotesHoldSeparatorsAndDoubledQuotes) {
  Csv csv(R"(columns { name: "y" kind: LABEL } columns { name: "a" kind: ID }
             columns { name: "b" kind: ID })");
  ASSERT_EQ(csv.Parse(R"(1,"Hello, world","say ""hi"", ""you""")"), kRecord);
  EXPECT_EQ(csv.block.ids(0)[0], StringId("Hello, world"));
  EXPECT_EQ(csv.block.ids(0)[1], StringId(R"(say "hi", "you")"));
  ASSERT_EQ(csv.Parse(R"(1,5" pipe,a"b")"), kRecord);
  EXPECT_EQ(csv.block.ids(1)[0], StringId(R"(5" pipe)")) << "a quote within an unquoted field";
  EXPECT_EQ(csv.block.ids(1)[1], StringId(R"(a"b")"));
}

TEST(CsvParserTest, AQuotedFieldIsMissingWhereTheSameStringIsWithoutQuotes) {
  Csv csv(R"(columns { name: "y" kind: LABEL }
             columns { name: "a" kind: ID missing_values: "?" }
             columns { name: "x" kind: NUMERIC missing_values: "NA" })");
  ASSERT_EQ(csv.Parse(R"(0,"","")"), kRecord);
  ASSERT_EQ(csv.Parse(R"(0,"?","NA")"), kRecord);
  for (const size_t row : {0, 1}) {
    EXPECT_TRUE(csv.block.IsMissing(row, 0));
    EXPECT_TRUE(std::isnan(csv.block.numerics(row)[0]));
  }
}

TEST(CsvParserTest, AQuoteThatIsNotClosedOrHasTextAfterItMakesABadRecord) {
  const std::string columns = R"(columns { name: "y" kind: LABEL } columns { name: "a" kind: ID })";
  Csv csv(columns);
  EXPECT_EQ(csv.ReasonOf(R"(1,"a)"),
            R"(a quote is not closed on its line in column 'a': '\"a'; only data.csv.multiline )"
            "allows that");
  EXPECT_EQ(csv.ReasonOf(R"(1,"a"")"),
            R"(a quote is not closed on its line in column 'a': '\"a\"\"'; only )"
            "data.csv.multiline allows that");
  EXPECT_EQ(csv.ReasonOf(R"(1,"a"b)"),
            R"(text after a closing quote in column 'a': '\"a\"b'; a quote within quotes is )"
            "written twice");
  EXPECT_EQ(csv.ReasonOf(R"(1,"a" )"),
            R"(text after a closing quote in column 'a': '\"a\" '; a quote within quotes is )"
            "written twice");
  EXPECT_EQ(csv.ReasonOf(R"("1")"),
            R"(too few columns: 1 of 2 between ',' (data.csv.separator), in '\"1\"'; column 'a' )"
            "is the first missing one");
  EXPECT_EQ(csv.ReasonOf(R"(1,"a,b",c)"),
            "too many columns: the job names 2, and after column 'a' there is 'c'");
  EXPECT_EQ(csv.block.rows(), 0u);
  Csv multiline("multiline: true " + columns);
  EXPECT_EQ(multiline.ReasonOf(R"(1,"a)"),
            R"(a quote is not closed by the end of the file or within 1 MiB in column 'a': '\"a')");
  EXPECT_EQ(multiline.Parse("1,\"a\nb\""), kRecord);
  EXPECT_EQ(multiline.block.ids(0)[0], StringId("a\nb"));
}

TEST(CsvParserTest, QuotesAreDataWhereTheFormatHasNone) {
  const std::string columns =
      R"( columns { name: "y" kind: LABEL } columns { name: "a" kind: ID })";
  const std::string tab = "separator: \"\\t\"";
  for (const std::string& format : {tab, std::string("separator: \"\\t\" quotes: false")}) {
    Csv csv(format + columns);
    ASSERT_EQ(csv.Parse("1\t\"cheap flights\""), kRecord) << format;
    EXPECT_EQ(csv.block.ids(0)[0], StringId("\"cheap flights\""));
    EXPECT_EQ(csv.Parse("1\t\"cheap"), kRecord);
  }
  Csv off("quotes: false" + columns);
  ASSERT_EQ(off.Parse("1,\"a\""), kRecord);
  EXPECT_EQ(off.block.ids(0)[0], StringId("\"a\""));
  Csv on(tab + " quotes: true" + columns);
  ASSERT_EQ(on.Parse("1\t\"a\tb\""), kRecord);
  EXPECT_EQ(on.block.ids(0)[0], StringId("a\tb"));
}

TEST(CsvParserTest, OnlyAFormatWithMultilineHasRecordsOfSeveralLines) {
  EXPECT_FALSE(Csv(R"(columns { name: "y" kind: LABEL })").parser->multiline().has_value());
  const Csv csv(R"(multiline: true separator: ";" trim: true comment_prefix: "#"
                   columns { name: "y" kind: LABEL })");
  const absl::optional<QuoteRules> rules = csv.parser->multiline();
  ASSERT_TRUE(rules.has_value());
  EXPECT_EQ(rules->separator, ';');
  EXPECT_TRUE(rules->trim);
  EXPECT_EQ(rules->comment_prefix, "#");
}

TEST(CsvParserTest, NamesInAHeaderMayBeQuoted) {
  Csv csv(R"(header: true columns { name: "y" kind: LABEL } columns { name: "a, b" })");
  EXPECT_TRUE(csv.parser->CheckHeader(R"(y,"a, b")").ok());
  EXPECT_TRUE(csv.parser->CheckHeader(R"("y","a, b")").ok());
  EXPECT_FALSE(csv.parser->CheckHeader("y,a, b").ok());
  EXPECT_EQ(csv.parser->CheckHeader(R"(y,"a, b)").message(),
            R"(the header cannot be read: a quote is not closed on its line in name 2: '\"a, b'; )"
            "only data.csv.multiline allows that");
}

TEST(CsvParserTest, AReasonNamesTheColumnShowsItsTextAndSaysWhatWouldDo) {
  Csv csv(R"(columns { name: "x" kind: NUMERIC }
             columns { name: "age" kind: NUMERIC missing_values: "?" missing_values: "-" }
             columns { name: "w" kind: WEIGHT } columns { name: "t" kind: TIME }
             columns { name: "tags" kind: MULTI_ID value_separator: ":" }
             columns { name: "y" kind: LABEL }
             columns { name: "rating" kind: LABEL numeric_label: true }
             columns { name: "kind" kind: LABEL vocabulary: "a" vocabulary: "b" vocabulary: "a" })");
  const std::string number = ", but a number is expected, such as 12, -0.5 or 1e3, at most 3.4e38";
  const std::string missing =
      "; if it stands for a missing value, add it to the column's missing_values";
  EXPECT_EQ(csv.ReasonOf("NA,1,1,1,,1,1,a"), "column 'x' holds 'NA'" + number + missing);
  EXPECT_EQ(csv.ReasonOf("1e60,1,1,1,,1,1,a"), "column 'x' holds '1e60'" + number + missing);
  EXPECT_EQ(csv.ReasonOf("1,NA,1,1,,1,1,a"),
            "column 'age' holds 'NA'" + number +
                "; a missing value is written as the empty string or '-', '?' (missing_values)");
  EXPECT_EQ(csv.ReasonOf("1,1,-1,1,,1,1,a"),
            "column 'w' holds '-1', but a weight is expected: a number >= 0, never missing");
  EXPECT_EQ(
      csv.ReasonOf("1,1,1,2026-11-26,,1,1,a"),
      "column 't' holds '2026-11-26', but a time is expected: milliseconds since 1970, such as "
      "1700000000000, never missing");
  EXPECT_EQ(csv.ReasonOf("1,1,1,1,u,1,1,a"),
            "column 'tags' holds 'u', but an id with its value is expected, such as 'ID:0.5' "
            "(value_separator)");
  EXPECT_EQ(csv.ReasonOf("1,1,1,1,u:x,1,1,a"),
            "column 'tags' holds 'x' as the value of an id" + number);
  EXPECT_EQ(
      csv.ReasonOf("1,1,1,1,,yes,1,a"),
      "column 'y' holds 'yes', but a label is expected: '1', '1.0' for 1 (positive_values), '0', "
      "'0.0' for 0 (negative_values), or any number with numeric_label" +
          missing);
  EXPECT_EQ(csv.ReasonOf("1,1,1,1,,1,five,a"), "column 'rating' holds 'five'" + number + missing);
  EXPECT_EQ(csv.ReasonOf("1,1,1,1,,1,1,c"),
            "column 'kind' holds 'c', which is not a class of its vocabulary: 'a', 'b'" + missing);
  EXPECT_EQ(csv.ReasonOf("1,1,1,1,,,,"),
            "no label is known: 'y', 'rating', 'kind' are all missing");
}

TEST(CsvParserTest, AReasonShowsFewBytesAndPrintsThemWhateverTheyAre) {
  Csv csv(R"(columns { name: "y" kind: LABEL } columns { name: "a\tb" kind: NUMERIC })");
  EXPECT_THAT(csv.ReasonOf("1,\t\x1b[2J\xff"),
              testing::StartsWith(R"(column 'a\tb' holds '\t\x1b[2J\xff', but)"));
  const std::string long_text(5000, 'z');
  EXPECT_THAT(csv.ReasonOf("1," + long_text),
              testing::HasSubstr("holds '" + long_text.substr(0, 40) + "...', but"));
}

TEST(CsvParserTest, ANulByteIsToldWithItsColumn) {
  const std::string columns = R"(columns { name: "y" kind: LABEL } columns { name: "a" kind: ID }
                                 columns { name: "b" kind: ID })";
  Csv csv(columns);
  using namespace std::string_literals;
  EXPECT_EQ(csv.ReasonOf("1,a,b\0c"s),
            R"(a NUL byte at byte 5 of the record, in column 'b': '1,a,b\x00\x63'; text has none)");
  EXPECT_THAT(csv.ReasonOf("1,\"a,\0b\",b"s),
              testing::HasSubstr("byte 5 of the record, in column 'a'"));
  EXPECT_THAT(csv.ReasonOf("\0"s), testing::HasSubstr("in column 'y'"));
  EXPECT_THAT(csv.ReasonOf("1,a,b,c,\0"s), testing::HasSubstr("in column 5"));
  Csv plain("quotes: false " + columns);
  EXPECT_THAT(plain.ReasonOf("1,\"a,\0b\",b"s), testing::HasSubstr("in column 'b'"));
}

TEST(CsvParserTest, LabelsAndTimesOfPandasAreThoseOfTheIntegers) {
  const std::string format =
      R"(columns { name: "y" kind: LABEL } columns { name: "t" kind: TIME })";
  Csv csv(format);
  ASSERT_EQ(csv.Parse("1.0,1700000000000.0"), kRecord);
  ASSERT_EQ(csv.Parse("0.0,1.7e12"), kRecord);
  EXPECT_EQ(csv.block.label(0), 1.0f);
  EXPECT_EQ(csv.block.label(1), 0.0f);
  EXPECT_EQ(csv.block.time(0), 1700000000000);
  EXPECT_EQ(csv.block.time(1), 1700000000000);
  EXPECT_EQ(csv.Parse("2.0,1"), kBad);
  Csv named(R"(columns { name: "y" kind: LABEL positive_values: "yes" negative_values: "no" })");
  EXPECT_EQ(named.Parse("1.0"), kBad) << "only the named ones count";
  Csv before(format, TRAIN_STREAM, RecordRules::kFirst);
  EXPECT_EQ(before.Parse("1.0,1"), kBad) << "a run that began before keeps its records";
  EXPECT_EQ(before.Parse("1,1.0"), kBad);
  EXPECT_EQ(before.Parse("1,1"), kRecord);
}

TEST(CsvParserTest, BlanksInListsAreTrimmedOnlyIfTheFormatSaysSo) {
  const std::string columns = R"(columns { name: "y" kind: LABEL }
      columns { name: "tags" kind: MULTI_ID separator: "," missing_values: "?" })";
  Csv csv("trim: true trim_lists: true " + columns);
  ASSERT_EQ(csv.Parse(R"(1,"a, b")"), kRecord);
  ASSERT_EQ(csv.Parse(R"(1,"b,a ")"), kRecord);
  ASSERT_EQ(csv.Parse("1,\" ?,\t,a\t\""), kRecord);
  EXPECT_EQ(csv.block.list_ids(0, 0), (std::vector<uint64_t>{StringId("a"), StringId("b")}));
  EXPECT_EQ(csv.block.list_ids(1, 0), (std::vector<uint64_t>{StringId("b"), StringId("a")}));
  EXPECT_EQ(csv.block.list_ids(2, 0), (std::vector<uint64_t>{StringId("a")}));
  Csv before("trim: true " + columns);
  ASSERT_EQ(before.Parse(R"(1,"a, b")"), kRecord);
  EXPECT_EQ(before.block.list_ids(0, 0), (std::vector<uint64_t>{StringId("a"), StringId(" b")}));
}

TEST(CsvParserTest, BlanksAroundValuesOfAListAreTrimmedButNoSeparator) {
  Csv csv(R"(trim_lists: true columns { name: "y" kind: LABEL }
             columns { name: "tags" kind: MULTI_ID value_separator: ":" }
             columns { name: "words" kind: MULTI_ID value_separator: " " })");
  ASSERT_EQ(csv.Parse("1, a : 0.5 |b:2 ,\ta 0.5|b 2\t"), kRecord);
  for (const size_t column : {0, 1}) {
    EXPECT_EQ(csv.block.list_ids(0, column), (std::vector<uint64_t>{StringId("a"), StringId("b")}));
    EXPECT_EQ(csv.block.list_values(0, column), (std::vector<float>{0.5f, 2.0f}));
  }
}

}  // namespace
}  // namespace satrap

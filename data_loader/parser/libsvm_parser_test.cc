#include "data_loader/parser/libsvm_parser.h"

#include <gtest/gtest.h>

#include "data_loader/parser/string_id.h"

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
  for (const char* line : {"2 1:1", "0.5 1:1", "x 1:1", "  ", "1:1"}) {
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

TEST_F(LibsvmParserTest, ReadsFilesAsTheyArePublished) {
  EXPECT_EQ(Parse("# made by svm_learn"), ParseResult::kComment);
  ASSERT_EQ(Parse("+1.000000e+00 3:1 # a comment with 4:x"), ParseResult::kRecord);
  ASSERT_EQ(Parse("-1.0 3:1#docid=GX029"), ParseResult::kRecord);
  ASSERT_EQ(Parse("0.0 qid:10 1:0.03 2:1 #docid = GX029-35-5894638 inc = 1"), ParseResult::kRecord);
  EXPECT_EQ(block_.label(0), 1.0f);
  EXPECT_EQ(block_.label(1), 0.0f);
  EXPECT_EQ(block_.list_ids(0, 0), (std::vector<uint64_t>{3}));
  EXPECT_EQ(block_.list_ids(2, 0), (std::vector<uint64_t>{1, 2}));
  EXPECT_EQ(block_.group(2), 0u) << "without data.libsvm.qid there are no groups";
}

TEST_F(LibsvmParserTest, ARunThatBeganBeforeKeepsItsRecords) {
  const std::unique_ptr<Parser> parser = NewLibsvmParser(LibsvmFormat(), RecordRules::kFirst);
  for (const char* line : {"1.0 3:1", "1 3:1 # a", "# a", "1 qid:1 3:1", "1e0 3:1"}) {
    EXPECT_EQ(parser->Parse(line, &block_).kind, ParseResult::kBad) << line;
  }
  EXPECT_EQ(parser->Parse("+1 3:1", &block_).kind, ParseResult::kRecord);
}

// A parser with its own format, and a block with the columns of that format.
struct Libsvm {
  explicit Libsvm(const LibsvmFormat& format)
      : parser(NewLibsvmParser(format)), block(SchemaOf(DataOf(format))) {}
  static DataConfig DataOf(const LibsvmFormat& format) {
    DataConfig data;
    *data.mutable_libsvm() = format;
    return data;
  }
  // The reason why the record is bad; empty if it is good.
  std::string ReasonOf(absl::string_view line) {
    const ParseResult result = parser->Parse(line, &block);
    return result.kind == ParseResult::kBad ? result.reason : "";
  }
  const std::unique_ptr<Parser> parser;
  RecordBlock block;
};

TEST(LibsvmFormatTest, TargetsMayBeAnyNumbers) {
  LibsvmFormat format;
  format.set_numeric_label(true);
  Libsvm libsvm(format);
  EXPECT_EQ(libsvm.ReasonOf("-2.5e1 1:1"), "");
  EXPECT_EQ(libsvm.ReasonOf("7 1:1"), "");
  EXPECT_EQ(libsvm.block.label(0), -25.0f);
  EXPECT_EQ(libsvm.block.label(1), 7.0f);
  EXPECT_EQ(libsvm.ReasonOf("1,3 1:1"),
            "expected a label at the beginning of the line, got '1,3'; valid labels: numbers "
            "(data.libsvm.numeric_label)");
}

TEST(LibsvmFormatTest, ClassesHaveTheirPlacesInTheList) {
  LibsvmFormat format;
  for (const float name : {2.0f, 4.0f, -1.0f, 7.0f}) format.add_classes(name);
  Libsvm libsvm(format);
  for (const char* line : {"2 1:1", "4.0 1:1", "-1 1:1", "7e0 1:1"}) {
    EXPECT_EQ(libsvm.ReasonOf(line), "") << line;
  }
  for (size_t row = 0; row < 4; ++row) {
    EXPECT_EQ(libsvm.block.label(row), static_cast<float>(row));
  }
  EXPECT_EQ(
      libsvm.ReasonOf("1 1:1"),
      "expected a label at the beginning of the line, got '1'; valid labels: '2', '4', '-1' and "
      "1 more (data.libsvm.classes)");
}

TEST(LibsvmFormatTest, TheQueryOfARankingFileIsTheGroup) {
  LibsvmFormat format;
  format.set_qid(true);
  format.set_numeric_label(true);
  Libsvm libsvm(format);
  EXPECT_EQ(libsvm.ReasonOf("2 qid:10 1:0.5"), "");
  EXPECT_EQ(libsvm.ReasonOf("0 qid:11 1:0.5 # docid = 7"), "");
  EXPECT_EQ(libsvm.block.group(0), StringId("10"));
  EXPECT_EQ(libsvm.block.group(1), StringId("11"));
  EXPECT_EQ(libsvm.ReasonOf("0 1:0.5"),
            "there is no qid:QUERY, which data.libsvm.qid expects in each record");
  EXPECT_EQ(
      libsvm.ReasonOf("0 qid:1 qid:2 1:0.5"),
      "there is 'qid:2', but a record has at most one token qid:QUERY, and QUERY is not empty");
  EXPECT_EQ(
      libsvm.ReasonOf("0 qid: 1:0.5"),
      "there is 'qid:', but a record has at most one token qid:QUERY, and QUERY is not empty");
}

TEST(LibsvmFormatTest, AReasonShowsTheTokenAndSaysWhatWouldDo) {
  Libsvm libsvm((LibsvmFormat()));
  EXPECT_EQ(
      libsvm.ReasonOf("1 3:x 4:1"),
      "expected INDEX:VALUE (a whole number up to 18446744073709551615, and a number, such as "
      "3:0.5), got '3:x'");
  EXPECT_EQ(libsvm.ReasonOf("2 3:1"),
            "expected a label at the beginning of the line, got '2'; valid labels: 1 "
            "(positive), 0 and -1 (negative); for other numbers, set data.libsvm.numeric_label or "
            "data.libsvm.classes");
  EXPECT_EQ(libsvm.ReasonOf(" # only a comment"),
            "expected a label at the beginning of the line, got nothing; valid labels: 1 "
            "(positive), 0 and -1 (negative); for other numbers, set data.libsvm.numeric_label or "
            "data.libsvm.classes");
}

}  // namespace
}  // namespace satrap

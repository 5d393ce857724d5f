#include "data_loader/parser/bad_text.h"

#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "absl/strings/ascii.h"
#include "common/numeric/random.h"
#include "data_loader/parser/parser.h"

namespace satrap {
namespace {

TEST(BadTextTest, ShowsAtMostFortyBytesAndSaysThatThereAreMore) {
  EXPECT_EQ(ShownText(""), "''");
  EXPECT_EQ(ShownText(std::string(40, 'a')), "'" + std::string(40, 'a') + "'");
  EXPECT_EQ(ShownText(std::string(41, 'a')), "'" + std::string(40, 'a') + "...'");
}

TEST(BadTextTest, WhateverTheBytesAreTheTextIsPrintable) {
  EXPECT_EQ(ShownText("a\tb\n\x1b\xff'"), R"('a\tb\n\x1b\xff\'')");
  std::string bytes;
  for (int byte = 0; byte < 256; ++byte) bytes.push_back(static_cast<char>(byte));
  for (size_t from = 0; from < bytes.size(); from += 40) {
    for (const char c : ShownText(bytes.substr(from, 40))) EXPECT_TRUE(absl::ascii_isprint(c));
  }
}

TEST(BadTextTest, OfManyTextsTheFirstThreeAreShown) {
  EXPECT_EQ(ShownTexts({"a"}), "'a'");
  EXPECT_EQ(ShownTexts({"a", "b", "c"}), "'a', 'b', 'c'");
  EXPECT_EQ(ShownTexts({"a", "b", "c", "d", "e"}), "'a', 'b', 'c' and 2 more");
}

DataConfig Parsed(const std::string& text) {
  DataConfig data;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &data));
  return data;
}

TEST(BadTextTest, WhateverALineHoldsTheReasonOfEachParserIsOneShortPrintableLine) {
  const DataConfig formats[] = {
      Parsed(R"(csv { columns { name: "y" kind: LABEL } columns { name: "x" kind: NUMERIC }
                      columns { name: "l" kind: MULTI_ID value_separator: ":" } })"),
      Parsed(R"(csv { multiline: true trim: true trim_lists: true separator: ";"
                      columns { name: "y" kind: LABEL numeric_label: true }
                      columns { name: "w" kind: WEIGHT } columns { name: "t" kind: TIME } }
                record_rules: 1)"),
      Parsed("criteo_tsv {}"), Parsed("libsvm { qid: true } record_rules: 1"),
      Parsed("libffm { num_fields: 2 classes: 1 classes: 2 } record_rules: 1")};
  // Bytes that have a meaning in some format occur often in this text.
  const std::string meaning("01.,;:|\t \"#-e\0\n", 15);
  for (const DataConfig& data : formats) {
    const std::unique_ptr<Parser> parser = NewParser(data, TRAIN_STREAM);
    RecordBlock block(SchemaOf(data));
    size_t good = 0, bad = 0;
    for (uint64_t round = 0; round < 20000; ++round) {
      std::string line(1 + RandomBits(round, 0) % 200, 0);
      for (size_t i = 0; i < line.size(); ++i) {
        const uint64_t bits = RandomBits(round, 1 + i);
        line[i] =
            bits % 4 == 0 ? static_cast<char>(bits >> 8) : meaning[(bits >> 8) % meaning.size()];
      }
      const ParseResult result = parser->Parse(line, &block);
      if (result.kind == ParseResult::kRecord) ++good;
      ASSERT_EQ(block.rows(), good);
      if (result.kind != ParseResult::kBad) continue;
      ++bad;
      const std::string reason = result.reason;
      EXPECT_LT(reason.size(), 600u) << reason;
      for (const char c : reason) ASSERT_TRUE(absl::ascii_isprint(c)) << reason;
    }
    EXPECT_GT(bad, 1000u);
  }
}

}  // namespace
}  // namespace satrap

#include "data_loader/parser/record_parser.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "common/numeric/random.h"
#include "data_loader/parser/string_id.h"
#include "proto/record.pb.h"

namespace satrap {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

RecordSchema Schema() {
  RecordSchema schema;
  schema.ids = {"user", "item", "shop"};
  schema.id_lists = {"history", "tags"};
  schema.weighted = {false, true};
  schema.numerics = {"age", "price"};
  schema.has_weight = true;
  schema.has_group = true;
  schema.has_time = true;
  return schema;
}

Record Good() {
  Record record;
  record.add_ids(7);
  record.add_ids(0);
  record.add_ids(~uint64_t{0});
  record.add_missing_ids(1);
  RecordIdList* const history = record.add_lists();
  history->add_ids(1);
  history->add_ids(2);
  RecordIdList* const tags = record.add_lists();
  tags->add_strings("red");
  tags->add_values(0.5f);
  record.add_numerics(-1.5f);
  record.add_numerics(kNan);
  record.add_labels(1);
  record.set_weight(2.5f);
  record.set_group(9);
  record.set_time(-3);
  return record;
}

class RecordParserTest : public testing::Test {
 protected:
  RecordParserTest() : parser_(NewRecordParser(Schema())), block_(Schema()) {}
  ParseResult Parse(const std::string& bytes) { return parser_->Parse(bytes, &block_); }
  ParseResult Parse(const Record& record) { return Parse(record.SerializeAsString()); }
  // Changes a good record by `change`, so that it is bad. Returns the reason.
  template <typename Change>
  std::string ReasonAfter(Change change) {
    Record record = Good();
    change(&record);
    const ParseResult result = Parse(record);
    return result.kind == ParseResult::kBad ? result.reason : "good";
  }

  const std::unique_ptr<Parser> parser_;
  RecordBlock block_;
};

TEST_F(RecordParserTest, EveryFieldReachesItsColumn) {
  ASSERT_EQ(Parse(Good()).kind, ParseResult::kRecord);
  ASSERT_EQ(block_.rows(), 1u);
  EXPECT_EQ(block_.ids(0)[0], 7u);
  EXPECT_EQ(block_.ids(0)[1], kMissingId);
  EXPECT_EQ(block_.ids(0)[2], ~uint64_t{0});
  EXPECT_FALSE(block_.IsMissing(0, 0));
  EXPECT_TRUE(block_.IsMissing(0, 1));
  EXPECT_EQ(block_.list_ids(0, 0), (std::vector<uint64_t>{1, 2}));
  EXPECT_EQ(block_.list_ids(0, 1), (std::vector<uint64_t>{StringId("red")}));
  EXPECT_EQ(block_.list_values(0, 1), (std::vector<float>{0.5f}));
  EXPECT_EQ(block_.numerics(0)[0], -1.5f);
  EXPECT_TRUE(std::isnan(block_.numerics(0)[1]));
  EXPECT_EQ(block_.label(0), 1.0f);
  EXPECT_EQ(block_.weight(0), 2.5f);
  EXPECT_EQ(block_.group(0), 9u);
  EXPECT_EQ(block_.time(0), -3);
}

TEST_F(RecordParserTest, StringsBecomeTheirHashesAndTheEmptyOneIsMissing) {
  Record record = Good();
  record.clear_ids();
  record.clear_missing_ids();
  for (const char* text : {"u", "", "42"}) record.add_strings(text);
  ASSERT_EQ(Parse(record).kind, ParseResult::kRecord);
  EXPECT_EQ(block_.ids(0)[0], StringId("u"));
  EXPECT_TRUE(block_.IsMissing(0, 1));
  EXPECT_EQ(block_.ids(0)[2], StringId("42"));
}

TEST_F(RecordParserTest, WhatIsNotGivenHasItsDefault) {
  Record record = Good();
  record.clear_weight();
  record.clear_group();
  record.clear_time();
  ASSERT_EQ(Parse(record).kind, ParseResult::kRecord);
  EXPECT_EQ(block_.weight(0), 1.0f);
  EXPECT_EQ(block_.group(0), 0u);
  EXPECT_EQ(block_.time(0), 0);
}

TEST_F(RecordParserTest, ARowKeepsNothingOfTheOneBefore) {
  ASSERT_EQ(Parse(Good()).kind, ParseResult::kRecord);
  Record record = Good();
  record.clear_missing_ids();
  record.mutable_lists(0)->clear_ids();
  ASSERT_EQ(Parse(record).kind, ParseResult::kRecord);
  EXPECT_FALSE(block_.IsMissing(1, 1));
  EXPECT_EQ(block_.ids(1)[1], 0u);
  EXPECT_TRUE(block_.list_ids(1, 0).empty());
}

TEST_F(RecordParserTest, ARecordOfOtherColumnsIsBadAndTheReasonSaysWhichKind) {
  EXPECT_EQ(ReasonAfter([](Record* r) { r->add_ids(1); }),
            "4 ids, but the job has 3 columns of kind ID: 'user', 'item', 'shop'");
  EXPECT_EQ(ReasonAfter([](Record* r) { r->add_strings("x"); }),
            "3 ids and 1 strings; a record must have only one kind, one for each ID column");
  EXPECT_EQ(ReasonAfter([](Record* r) {
              r->clear_ids();
              r->add_strings("x");
            }),
            "1 strings, but the job has 3 columns of kind ID: 'user', 'item', 'shop'");
  EXPECT_EQ(ReasonAfter([](Record* r) { r->add_missing_ids(3); }),
            "missing_ids has 3, but the job has 3 columns of kind ID, counted from 0");
  EXPECT_EQ(ReasonAfter([](Record* r) { r->add_lists(); }),
            "3 lists, but the job has 2 columns of kind MULTI_ID: 'history', 'tags'");
  EXPECT_EQ(ReasonAfter([](Record* r) { r->mutable_lists(0)->add_strings("x"); }),
            "list 'history' has 2 ids and 1 strings; a list must have only one kind");
  EXPECT_EQ(ReasonAfter([](Record* r) { r->mutable_lists(0)->add_values(1); }),
            "list 'history' has 1 values for 2 ids; without value_separator, ids have no values");
  EXPECT_EQ(ReasonAfter([](Record* r) { r->mutable_lists(1)->clear_values(); }),
            "list 'tags' has 0 values for 1 ids; each id must have one");
  EXPECT_EQ(ReasonAfter([](Record* r) { r->clear_numerics(); }),
            "0 numerics, but the job has 2 columns of kind NUMERIC: 'age', 'price'");
  EXPECT_EQ(ReasonAfter([](Record* r) { r->clear_labels(); }),
            "0 labels, but the job has 1 columns of kind LABEL: 'label'");
  EXPECT_EQ(ReasonAfter([](Record* r) { r->add_labels(0); }),
            "2 labels, but the job has 1 columns of kind LABEL: 'label'");
  EXPECT_EQ(block_.rows(), 0u);
}

TEST_F(RecordParserTest, NumbersOutsideTheirRangeAreBad) {
  const float inf = std::numeric_limits<float>::infinity();
  EXPECT_EQ(ReasonAfter([](Record* r) { r->set_labels(0, 0.5f); }),
            "label 'label' is 0.5; it must be 0 or 1 (numeric_label allows other numbers), or NaN "
            "where it is missing");
  EXPECT_EQ(ReasonAfter([](Record* r) { r->set_labels(0, kNan); }),
            "no label is known: 'label' is missing");
  EXPECT_EQ(ReasonAfter([=](Record* r) { r->set_numerics(0, -inf); }),
            "column 'age' has the value -inf; it must be finite, or NaN if it is missing");
  EXPECT_EQ(ReasonAfter([](Record* r) { r->mutable_lists(1)->set_values(0, kNan); }),
            "list 'tags' has the value nan; it must be finite");
  for (const float weight : {-1.0f, kNan, inf}) {
    EXPECT_EQ(ReasonAfter([=](Record* r) { r->set_weight(weight); }),
              absl::StrCat("the weight is ", weight, "; it must be finite and >= 0"));
  }
  EXPECT_EQ(ReasonAfter([](Record* r) { r->set_labels(0, 0); }), "good");
}

TEST(RecordParserLabelsTest, EachLabelColumnHasOneAndNanIsMissing) {
  RecordSchema schema;
  schema.labels = {"click", "rating"};
  schema.numeric_labels = {false, true};
  const std::unique_ptr<Parser> parser = NewRecordParser(schema);
  RecordBlock block(schema);
  const auto reason_of = [&](float click, float rating) {
    Record record;
    record.add_labels(click);
    record.add_labels(rating);
    const ParseResult result = parser->Parse(record.SerializeAsString(), &block);
    return std::string(result.kind == ParseResult::kBad ? result.reason : "good");
  };
  EXPECT_EQ(reason_of(1, -2.5f), "good");
  EXPECT_EQ(block.labels(0)[1], -2.5f);
  EXPECT_EQ(reason_of(kNan, 3), "good");
  EXPECT_TRUE(std::isnan(block.labels(1)[0]));
  EXPECT_EQ(reason_of(kNan, kNan), "no label is known: 'click', 'rating' are all missing");
  EXPECT_EQ(reason_of(.5f, 3),
            "label 'click' is 0.5; it must be 0 or 1 (numeric_label allows other numbers), or NaN "
            "where it is missing");
  EXPECT_EQ(reason_of(1, std::numeric_limits<float>::infinity()),
            "label 'rating' is inf; it must be finite, or NaN where it is missing");
}

TEST_F(RecordParserTest, TheExampleOfTheDocumentationReadsAsItSays) {
  const std::string bytes = absl::HexStringToBytes(
      "0a102a000000000000000000000000000000"
      "120101"
      "220a0a080700000000000000"
      "2a040000003f"
      "32040000803f"
      "4880e2cfaa06");
  RecordSchema schema;
  schema.ids = {"user", "item"};
  schema.id_lists = {"history"};
  schema.weighted = {false};
  schema.numerics = {"age"};
  schema.has_time = true;
  RecordBlock block(schema);
  ASSERT_EQ(NewRecordParser(schema)->Parse(bytes, &block).kind, ParseResult::kRecord);
  EXPECT_EQ(block.ids(0)[0], 42u);
  EXPECT_TRUE(block.IsMissing(0, 1));
  EXPECT_EQ(block.list_ids(0, 0), (std::vector<uint64_t>{7}));
  EXPECT_EQ(block.numerics(0)[0], 0.5f);
  EXPECT_EQ(block.label(0), 1.0f);
  EXPECT_EQ(block.time(0), 1700000000);
}

TEST_F(RecordParserTest, AnEmptyMessageIsEmptyAndEveryCutOffOneIsBad) {
  EXPECT_EQ(Parse(std::string()).kind, ParseResult::kEmpty);
  const std::string whole = Good().SerializeAsString();
  // A prefix that ends between two fields is a valid message, but it lacks fields. It is good if
  // only optional fields are missing.
  for (size_t size = 1; size < whole.size(); ++size) {
    const size_t rows = block_.rows();
    const ParseResult result = Parse(whole.substr(0, size));
    EXPECT_EQ(block_.rows(), rows + (result.kind == ParseResult::kRecord ? 1 : 0));
    if (result.kind == ParseResult::kRecord) {
      Record record;
      ASSERT_TRUE(record.ParseFromString(whole.substr(0, size)));
      EXPECT_EQ(record.labels_size(), 1);
    }
  }
}

TEST_F(RecordParserTest, ABlockStaysWholeWhateverTheBytesAre) {
  const std::string whole = Good().SerializeAsString();
  size_t good = 0;
  for (uint64_t round = 0; round < 200000; ++round) {
    std::string bytes;
    if (round % 2 == 0) {
      // A good record with some bytes changed.
      bytes = whole;
      const uint64_t changes = 1 + RandomBits(round, 0) % 3;
      for (uint64_t i = 1; i <= changes; ++i) {
        bytes[RandomBits(round, i) % bytes.size()] = static_cast<char>(RandomBits(round, 10 + i));
      }
    } else {
      bytes.resize(1 + RandomBits(round, 0) % 64);
      for (size_t i = 0; i < bytes.size(); ++i) {
        bytes[i] = static_cast<char>(RandomBits(round, 1 + i));
      }
    }
    const ParseResult result = Parse(bytes);
    if (result.kind == ParseResult::kRecord) {
      ++good;
    } else {
      ASSERT_EQ(result.kind, ParseResult::kBad);
      ASSERT_NE(result.reason, nullptr);
    }
    ASSERT_EQ(block_.rows(), good);
    if (good == 1000) {
      block_.Clear();
      good = 0;
    }
  }
  // The parser still works.
  EXPECT_EQ(Parse(Good()).kind, ParseResult::kRecord);
  EXPECT_EQ(block_.list_ids(block_.rows() - 1, 0), (std::vector<uint64_t>{1, 2}));
}

}  // namespace
}  // namespace satrap

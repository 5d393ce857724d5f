#include "common/config/record_schema.h"

#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

namespace satrap {
namespace {

TEST(SchemaTest, ColumnsOfMessagesComeAfterThoseOfTheText) {
  DataConfig data;
  data.mutable_criteo_tsv();
  KafkaColumn* const key = data.mutable_kafka()->add_columns();
  key->set_name("key");
  KafkaColumn* const time = data.mutable_kafka()->add_columns();
  time->set_name("sent");
  time->set_from(KafkaColumn::TIMESTAMP);
  *data.mutable_test_kafka()->add_columns() = *key;
  KafkaColumn* const header = data.mutable_test_kafka()->add_columns();
  header->set_name("device");
  header->set_from(KafkaColumn::HEADER);
  const RecordSchema schema = SchemaOf(data);
  EXPECT_EQ(schema.IndexOfId("key"), 26);
  EXPECT_EQ(schema.IndexOfId("device"), 27);
  EXPECT_EQ(schema.IndexOfNumeric("sent"), 13);
  EXPECT_EQ(schema.message_ids, 2u);
  EXPECT_EQ(schema.message_numerics, 1u);
  EXPECT_TRUE(schema.has_time) << "the broker has one, if the text has none";
  EXPECT_EQ(TextSchemaOf(data).ids.size(), 26u);
  EXPECT_FALSE(TextSchemaOf(data).has_time);
}

TEST(SchemaTest, ARecordHasTheColumnsThatTheFormatNames) {
  DataConfig data;
  for (const auto& [name, kind] :
       {std::pair("y", ColumnConfig::LABEL), std::pair("user", ColumnConfig::ID),
        std::pair("at", ColumnConfig::TIME)}) {
    ColumnConfig* const column = data.mutable_record()->add_columns();
    column->set_name(name);
    column->set_kind(kind);
  }
  EXPECT_EQ(SchemaOf(data).IndexOfId("user"), 0);
  EXPECT_TRUE(SchemaOf(data).has_time);
}

TEST(SchemaTest, NamesTheColumnsOfEachFormat) {
  DataConfig data;
  data.mutable_criteo_tsv();
  EXPECT_EQ(SchemaOf(data).IndexOfNumeric("I13"), 12);
  EXPECT_EQ(SchemaOf(data).IndexOfId("C26"), 25);
  EXPECT_EQ(SchemaOf(data).IndexOfId("I1"), -1);
  data.mutable_libffm()->set_num_fields(3);
  EXPECT_EQ(SchemaOf(data).IndexOfIdList("2"), 2);
  data.mutable_synthetic()->add_vocabulary_sizes(5);
  EXPECT_EQ(SchemaOf(data).ids, std::vector<std::string>{"C1"});
  EXPECT_TRUE(SchemaOf(DataConfig()).ids.empty());
}

TEST(SchemaTest, KnowsWhichFormatsAreText) {
  DataConfig data;
  data.mutable_csv();
  EXPECT_TRUE(SchemaOf(data).is_text);
  data.mutable_libsvm();
  EXPECT_TRUE(SchemaOf(data).is_text);
  data.mutable_record();
  EXPECT_FALSE(SchemaOf(data).is_text);
  data.mutable_synthetic();
  EXPECT_FALSE(SchemaOf(data).is_text);
}

// The validator reports a number of columns out of range, but it must not make that many names
// first.
TEST(SchemaTest, ANumberOfColumnsOutOfRangeMakesNoMoreThanThereMayBe) {
  DataConfig data;
  data.mutable_libffm()->set_num_fields(2000000000);
  EXPECT_EQ(SchemaOf(data).id_lists.size(), 65536u);
  data.mutable_libffm()->set_num_fields(-1);
  EXPECT_TRUE(SchemaOf(data).id_lists.empty());
}

}  // namespace
}  // namespace satrap

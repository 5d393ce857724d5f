#include "data_loader/parser/record_block.h"

#include <gtest/gtest.h>

#include <cmath>
#include <utility>

#include "common/numeric/hash.h"

namespace satrap {
namespace {

RecordSchema Schema() {
  RecordSchema schema;
  schema.ids = {"a", "b"};
  schema.id_lists = {"c"};
  schema.weighted = {true};
  schema.numerics = {"n"};
  return schema;
}

void Append(uint64_t id, int list_size, RecordBlock* block) {
  block->BeginRow();
  block->row_ids()[0] = id;
  block->row_ids()[1] = id + 1;
  block->row_numerics()[0] = static_cast<float>(id);
  for (int i = 0; i < list_size; ++i) block->AppendToList(0, id * 10 + i, 0.5f);
  block->set_label(1);
  block->CommitRow();
}

TEST(RecordBlockTest, KeepsRowsAcrossGrowth) {
  RecordBlock block(Schema());
  for (uint64_t i = 0; i < 5000; ++i) Append(i, static_cast<int>(i % 3), &block);
  ASSERT_EQ(block.rows(), 5000u);
  for (uint64_t i = 0; i < 5000; ++i) {
    EXPECT_EQ(block.ids(i)[1], i + 1);
    EXPECT_EQ(block.list_ids(i, 0).size(), i % 3);
    if (i % 3 == 2) {
      EXPECT_EQ(block.list_ids(i, 0)[1], i * 10 + 1);
      EXPECT_EQ(block.list_values(i, 0)[1], 0.5f);
    }
  }
}

TEST(RecordBlockTest, ANewRowHasNothingMissingAndWeightOne) {
  RecordBlock block(Schema());
  Append(1, 1, &block);
  block.DropLastRow();
  block.BeginRow();
  block.SetMissing(1);
  block.set_weight(2);
  block.CommitRow();
  block.Clear();
  Append(2, 0, &block);
  EXPECT_FALSE(block.IsMissing(0, 1));
  EXPECT_EQ(block.weight(0), 1.0f);
}

TEST(RecordBlockTest, AbandonedAndDroppedRowsLeaveNoIdsInLists) {
  RecordBlock block(Schema());
  Append(1, 2, &block);
  block.BeginRow();
  block.AppendToList(0, 77, 1);
  block.AbandonRow();
  Append(2, 3, &block);
  block.DropLastRow();
  Append(3, 1, &block);
  ASSERT_EQ(block.rows(), 2u);
  EXPECT_EQ(block.list_ids(0, 0).size(), 2u);
  ASSERT_EQ(block.list_ids(1, 0).size(), 1u);
  EXPECT_EQ(block.list_ids(1, 0)[0], 30u);
}

TEST(RecordBlockTest, AMissingIdIsTheHashOfNoBytes) {
  EXPECT_EQ(kMissingId, Xxh64(""));
  RecordBlock block(Schema());
  block.BeginRow();
  block.row_ids()[1] = 5;
  block.SetMissing(1);
  block.CommitRow();
  EXPECT_EQ(block.ids(0)[1], kMissingId);
  EXPECT_TRUE(block.IsMissing(0, 1));
  EXPECT_FALSE(block.IsMissing(0, 0));
}

TEST(RecordBlockTest, RowsHaveTheColumnsAndTheTimeOfTheirMessage) {
  RecordSchema schema = Schema();
  schema.ids.push_back("key");
  schema.numerics.push_back("time");
  schema.message_ids = 1;
  schema.message_numerics = 1;
  RecordBlock block(schema);
  Append(1, 0, &block);
  EXPECT_TRUE(block.IsMissing(0, 2)) << "no message has been given";
  EXPECT_TRUE(std::isnan(block.numerics(0)[1]));
  EXPECT_EQ(block.time(0), 0);
  block.SetMessageId(0, 77);
  block.SetMessageNumeric(0, 1.5f);
  block.set_message_time(42);
  Append(2, 0, &block);
  Append(3, 0, &block);
  block.SetMessageId(0, absl::nullopt);
  Append(4, 0, &block);
  for (size_t row : {1, 2}) {
    EXPECT_EQ(block.ids(row)[2], 77u);
    EXPECT_FALSE(block.IsMissing(row, 2));
    EXPECT_EQ(block.numerics(row)[1], 1.5f);
    EXPECT_EQ(block.time(row), 42);
  }
  EXPECT_EQ(block.ids(3)[0], 4u);
  EXPECT_EQ(block.ids(3)[2], kMissingId);
  EXPECT_TRUE(block.IsMissing(3, 2));
}

}  // namespace
}  // namespace satrap

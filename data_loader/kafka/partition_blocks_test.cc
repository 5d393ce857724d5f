#include "data_loader/kafka/partition_blocks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/numeric/hash.h"
#include "data_loader/parser/string_id.h"

namespace satrap {
namespace {

using Bounds = std::vector<std::pair<uint64_t, uint64_t>>;

DataConfig Data() {
  DataConfig data;
  for (const auto& [name, kind] :
       {std::pair("y", ColumnConfig::LABEL), std::pair("user", ColumnConfig::ID)}) {
    ColumnConfig* const column = data.mutable_csv()->add_columns();
    column->set_name(name);
    column->set_kind(kind);
  }
  data.mutable_kafka()->set_format(KafkaConfig::LINES);
  return data;
}

class PartitionBlocksTest : public testing::Test {
 protected:
  PartitionBlocksTest() : parser_(Data(), Data().kafka(), TRAIN_STREAM) {
    options_.split.partition.set_topic("clicks");
    options_.split.partition.set_partition(3);
    options_.split.partition.set_start(0);
    options_.block_rows = 10;
    options_.parser = &parser_;
    options_.consumed = {&ledger_, 0, 0};
    options_.report = [this](const BadLine& bad) {
      reported_.push_back(absl::StrCat(bad.path, "/", bad.offset, "/", bad.line, " ", bad.text));
      return absl::OkStatus();
    };
    options_.new_block = [] { return std::make_shared<Block>(SchemaOf(Data())); };
  }
  void Begin() { blocks_ = std::make_unique<PartitionBlocks>(options_); }
  void SetEnd(uint64_t end) { options_.split.partition.set_end(end); }

  // Passes messages of one line each at `offsets`, then reports that all offsets below `next` are
  // known. Closes blocks that become complete.
  void Give(const std::vector<int64_t>& offsets, uint64_t next) {
    MessageBatch batch;
    for (const int64_t offset : offsets) batch.Add(MessageAt(offset));
    GiveBatch(batch, next);
  }
  MessageBatch::Message MessageAt(int64_t offset) {
    MessageBatch::Message message;
    message.offset = offset;
    message.value = values_.count(offset) > 0 ? values_[offset] : absl::StrCat("1,u", offset);
    message.time_ms = 1000 + offset;
    return message;
  }
  void GiveBatch(const MessageBatch& batch, uint64_t next) {
    size_t at = 0;
    for (;;) {
      const absl::StatusOr<size_t> taken = blocks_->Take(batch, at);
      status_ = taken.status();
      if (!taken.ok()) return;
      at = *taken;
      if (at == batch.size()) blocks_->Reach(next);
      if (!blocks_->complete()) break;
      closed_.push_back(blocks_->Close());
    }
    EXPECT_EQ(at, batch.size());
  }
  static std::vector<int64_t> Offsets(int64_t from, int64_t to) {
    std::vector<int64_t> offsets;
    for (int64_t i = from; i < to; ++i) offsets.push_back(i);
    return offsets;
  }
  Bounds ClosedBounds() const {
    Bounds bounds;
    for (const auto& closed : closed_) bounds.emplace_back(closed.first, closed.end);
    return bounds;
  }
  // The ids of a block's records, sorted.
  static std::vector<uint64_t> IdsOf(const Block& block) {
    std::vector<uint64_t> ids;
    for (size_t row = 0; row < block.records.rows(); ++row)
      ids.push_back(block.records.ids(row)[0]);
    std::sort(ids.begin(), ids.end());
    return ids;
  }
  static std::vector<uint64_t> Ids(const std::vector<int64_t>& offsets) {
    std::vector<uint64_t> ids;
    for (const int64_t offset : offsets) ids.push_back(StringId(absl::StrCat("u", offset)));
    std::sort(ids.begin(), ids.end());
    return ids;
  }
  // Adds to the ledger that slots [from, to) of a block are consumed. The block's last message is
  // at `last_`, or at the block's end if that is not set.
  void Consume(uint64_t block, uint64_t end, uint32_t from, uint32_t to, uint32_t records) {
    ProvenanceRange range;
    range.set_split(0);
    range.set_block(block);
    range.set_block_end(end);
    range.set_from(from);
    range.set_to(to);
    range.set_records(records);
    if (records > 0) {
      const uint64_t last = last_.value_or(end - 1);
      range.set_last_offset(last);
      range.set_last_hash(Xxh64(absl::StrCat("1,u", last)));
    }
    const absl::Status added = ledger_.Add(0, range);
    ASSERT_TRUE(added.ok()) << added;
  }

  Ledger ledger_;
  MessageParser parser_;
  PartitionBlocks::Options options_;
  std::unique_ptr<PartitionBlocks> blocks_;
  std::map<int64_t, std::string> values_;  // values of messages that are not "1,uOFFSET"
  std::vector<PartitionBlocks::Closed> closed_;
  std::vector<std::string> reported_;
  absl::Status status_;
  absl::optional<uint64_t> last_;
};

TEST_F(PartitionBlocksTest, BlocksHaveTheirSizeAndTheLastOneEndsWithThePartition) {
  SetEnd(25);
  Begin();
  Give(Offsets(0, 13), 13);
  Give(Offsets(13, 30), 30);
  EXPECT_EQ(ClosedBounds(), Bounds({{0, 10}, {10, 20}, {20, 25}}));
  EXPECT_TRUE(blocks_->finished());
  EXPECT_EQ(IdsOf(*closed_[1].block), Ids(Offsets(10, 20)));
  EXPECT_EQ(IdsOf(*closed_[2].block), Ids(Offsets(20, 25)));
}

TEST_F(PartitionBlocksTest, SlotsWithoutAMessageAreConsumedWithTheirBlock) {
  SetEnd(20);
  Begin();
  Give({2, 3, 7, 11}, 12);
  EXPECT_EQ(ClosedBounds(), Bounds({{0, 10}}));
  EXPECT_EQ(IdsOf(*closed_[0].block), Ids({2, 3, 7}));
  EXPECT_EQ(closed_[0].block->size(), 10u);
  Give({}, 20);
  EXPECT_EQ(ClosedBounds(), Bounds({{0, 10}, {10, 20}})) << "the end is told by no message";
  EXPECT_TRUE(blocks_->finished());
}

TEST_F(PartitionBlocksTest, ALongGapIsOneBlockAndWhatFollowsKeepsItsBounds) {
  Begin();
  Give({3}, 4);
  Give({1'000'005}, 1'000'006);
  EXPECT_EQ(ClosedBounds(), Bounds({{0, 10}, {10, 1'000'000}}));
  EXPECT_EQ(closed_[1].block, nullptr);
  EXPECT_EQ(blocks_->block_first(), 1'000'000u);
}

TEST_F(PartitionBlocksTest, AShuffledBlockPermutesSlotsAndKeepsTheLinesOfEach) {
  options_.shuffled = true;
  options_.seed = 5;
  SetEnd(10);
  values_[4] = "1,a\nbad\n0,b\n";
  Begin();
  Give({1, 4, 5, 9}, 10);
  const Block& block = *closed_[0].block;
  ASSERT_EQ(block.order.size(), 5u);
  EXPECT_TRUE(std::is_sorted(block.positions.begin(), block.positions.end()));
  const std::vector<uint32_t> slots = SlotOrder(5, 0, 0, 0, 10, 10);
  for (size_t i = 0; i < 5; ++i) {
    const uint32_t slot = slots[block.positions[i].slot];
    const uint64_t id = block.records.ids(block.order[i])[0];
    if (slot == 4) {
      EXPECT_EQ(id, StringId(block.positions[i].line == 0 ? "a" : "b"));
      EXPECT_NE(block.positions[i].line, 1u) << "a bad line counts";
    } else {
      EXPECT_EQ(id, StringId(absl::StrCat("u", slot)));
    }
  }
}

TEST_F(PartitionBlocksTest, CountsAndReportsBadRecordsAndEmptyMessages) {
  SetEnd(10);
  values_[2] = "bad";
  values_[3] = "";
  values_[4] = "1,a\n\nworse\n";
  Begin();
  Give({1, 2, 3, 4}, 10);
  EXPECT_EQ(closed_[0].block->bad_records, 2u);
  EXPECT_EQ(closed_[0].block->empty_lines, 2u);
  EXPECT_EQ(reported_, std::vector<std::string>({"clicks/3/2/1 bad", "clicks/3/4/3 worse"}));
  EXPECT_EQ(blocks_->TakeNews().counts.empty_lines, 2u);
}

TEST_F(PartitionBlocksTest, BadRecordsOfABlockThatIsBegunAreNotReportedAgain) {
  SetEnd(20);
  Consume(0, 10, 0, 5, 4);
  values_[2] = "bad";
  values_[12] = "bad";
  Begin();
  Give(Offsets(0, 20), 20);
  EXPECT_EQ(reported_, std::vector<std::string>({"clicks/3/12/1 bad"}));
  EXPECT_EQ(closed_[0].block->bad_records, 1u) << "the block is the same in every life";
}

TEST_F(PartitionBlocksTest, TheLastMessageIsKeptWithItsHash) {
  SetEnd(20);
  Begin();
  Give({1, 6, 12}, 20);
  EXPECT_EQ(closed_[0].block->last_offset, 6u);
  EXPECT_EQ(closed_[0].block->last_hash, Xxh64("1,u6"));
  EXPECT_EQ(closed_[1].block->last_offset, 12u);
}

TEST_F(PartitionBlocksTest, ABlockClosedEarlyEndsWhereReadingStands) {
  Begin();
  EXPECT_FALSE(blocks_->may_close_early()) << "nothing is known of it";
  Give({0, 1}, 4);
  ASSERT_TRUE(blocks_->may_close_early());
  closed_.push_back(blocks_->Close());
  Give(Offsets(4, 14), 14);
  EXPECT_EQ(ClosedBounds(), Bounds({{0, 4}, {4, 14}}));
}

TEST_F(PartitionBlocksTest, ALaterLifeMakesOpenBlocksAgainAndTilesTheHolesBetween) {
  SetEnd(60);
  Consume(0, 10, 0, 10, 10);  // done: reading begins at 10
  Consume(20, 23, 1, 2, 1);   // open; was closed early
  last_ = 44;
  Consume(30, 45, 0, 15, 15);  // done
  last_ = absl::nullopt;
  Consume(48, 58, 9, 10, 0);  // open
  Begin();
  EXPECT_EQ(blocks_->read_from(), 10u);
  Give(Offsets(10, 60), 60);
  EXPECT_EQ(ClosedBounds(), Bounds({{10, 20}, {20, 23}, {23, 30}, {45, 48}, {48, 58}, {58, 60}}));
  for (const auto& closed : closed_) {
    EXPECT_EQ(IdsOf(*closed.block),
              Ids(Offsets(static_cast<int64_t>(closed.first), static_cast<int64_t>(closed.end))));
  }
  EXPECT_EQ(blocks_->TakeNews().counts.records, 35u) << "what is done is not parsed";
  EXPECT_TRUE(status_.ok()) << status_;
}

TEST_F(PartitionBlocksTest, AnOpenBlockIsNeitherClosedEarlyNorMergedIntoAGap) {
  Consume(10, 30, 0, 5, 5);
  Begin();
  Give({}, 12);
  EXPECT_EQ(ClosedBounds(), Bounds({{0, 10}}));
  EXPECT_FALSE(blocks_->may_close_early());
  Give({}, 100);
  EXPECT_EQ(ClosedBounds(), Bounds({{0, 10}, {10, 30}, {30, 100}}));
  ASSERT_NE(closed_[1].block, nullptr) << "what is left of it must be told";
  EXPECT_EQ(closed_[1].block->records.rows(), 0u);
}

TEST_F(PartitionBlocksTest, ABlockIsFullOfRecordsThoughItsMessagesAreFew) {
  SetEnd(30);
  for (int64_t offset = 0; offset < 6; ++offset) values_[offset] = "1,a\n1,b\n1,c\n";
  Begin();
  Give(Offsets(0, 20), 20);
  EXPECT_EQ(ClosedBounds(), Bounds({{0, 4}, {4, 10}, {10, 20}}));
  EXPECT_EQ(closed_[0].block->records.rows(), 12u);
  EXPECT_EQ(closed_[1].block->records.rows(), 10u) << "two messages of three, four of one";
  // A block that was begun before the restart keeps its bounds.
  last_ = absl::nullopt;
  Consume(0, 10, 0, 1, 0);
  closed_.clear();
  Begin();
  Give(Offsets(0, 20), 20);
  EXPECT_EQ(ClosedBounds(), Bounds({{0, 10}, {10, 20}}));
}

TEST_F(PartitionBlocksTest, TheLastConsumedMessageMustBeTheSame) {
  last_ = 7;
  Consume(0, 10, 0, 10, 10);
  Begin();
  EXPECT_EQ(blocks_->read_from(), 7u) << "so that it is read again";
  Give(Offsets(7, 12), 12);
  EXPECT_TRUE(status_.ok()) << status_;
  values_[7] = "1,another";
  Begin();
  Give(Offsets(7, 12), 12);
  EXPECT_EQ(status_.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_NE(status_.message().find("clicks/3, offset 7"), std::string::npos) << status_;
  Begin();
  Give(Offsets(8, 12), 12);
  EXPECT_TRUE(status_.ok()) << "compaction may have removed it: " << status_;
}

TEST_F(PartitionBlocksTest, ADonePartitionIsFinishedFromTheBegin) {
  SetEnd(10);
  Consume(0, 10, 0, 10, 10);
  Begin();
  EXPECT_TRUE(blocks_->finished()) << "only its end is not told yet";
  SetEnd(0);
  ledger_ = Ledger();
  Begin();
  EXPECT_TRUE(blocks_->finished()) << "an empty one";
}

TEST_F(PartitionBlocksTest, TellsTheTimesOfItsRecords) {
  SetEnd(10);
  Begin();
  blocks_->set_late_below(1003);
  Give({1, 2, 5}, 10);
  const PartitionBlocks::News news = blocks_->TakeNews();
  EXPECT_EQ(news.records, 3u);
  EXPECT_EQ(news.latest_ms, 1005);
  EXPECT_EQ(news.late, 2u);
  EXPECT_EQ(news.newest_ms, 1005);
  EXPECT_EQ(blocks_->TakeNews().records, 0u);
}

TEST_F(PartitionBlocksTest, CountsOfLostOffsetsOnlyThoseThatAreNotConsumed) {
  SetEnd(100);
  last_ = absl::nullopt;
  Consume(0, 10, 0, 10, 10);
  Consume(20, 30, 0, 10, 10);
  Begin();
  EXPECT_EQ(blocks_->CountUnconsumed(5, 10), 0u);
  EXPECT_EQ(blocks_->CountUnconsumed(5, 25), 10u);
  EXPECT_EQ(blocks_->CountUnconsumed(5, 200), 80u);
}

}  // namespace
}  // namespace satrap

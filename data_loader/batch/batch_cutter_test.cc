#include "data_loader/batch/batch_cutter.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/checkpoint/ledger/ledger.h"
#include "common/rpc/payload.h"

namespace satrap {
namespace {

constexpr uint64_t kShuffleRows = 8;

// Each record has a label and a number.
JobConfig Job() {
  JobConfig job;
  job.set_seed(5);
  DataConfig* data = job.mutable_data();
  ColumnConfig* column = data->mutable_csv()->add_columns();
  column->set_name("y");
  column->set_kind(ColumnConfig::LABEL);
  column = data->mutable_csv()->add_columns();
  column->set_name("x");
  column->set_kind(ColumnConfig::NUMERIC);
  data->add_numerics()->set_name("x");
  data->set_shuffle_rows(kShuffleRows);
  job.set_global_batch_size(5);
  job.mutable_nn_worker()->set_replicas(2);
  return job;
}

void AppendRecord(int number, Block* block) {
  block->records.BeginRow();
  block->records.row_numerics()[0] = static_cast<float>(number);
  block->records.set_label(static_cast<float>(number % 2));
  block->records.CommitRow();
}

std::vector<int> RecordsOf(const Part& part) {
  const PartDescription& description = part.header.part();
  const auto values = rpc::SectionView<float>(part.payload, description.numeric_values(),
                                              description.samples(), "x");
  EXPECT_TRUE(values.ok()) << values.status();
  return {values->begin(), values->end()};
}

// The messages of one partition by offset. A message is a list of lines, and a line is the number
// of a record, kBad or kEmpty. An offset that is not in the map has no message.
constexpr int kBad = -1;
constexpr int kEmpty = -2;
struct Messages {
  uint64_t start = 0;
  std::map<uint64_t, std::vector<int>> lines;  // by offset
  uint64_t end = 0;
};

class BatchCutterTest : public testing::Test {
 protected:
  BatchCutterTest()
      : spec_(std::make_shared<const StreamSpec>(Job(), TRAIN_STREAM, std::vector<Split>(),
                                                 &progress_)) {}

  std::shared_ptr<const Block> FileBlock(uint64_t index, int first, int records) const {
    auto block = std::make_shared<Block>(spec_->schema);
    block->index = index;
    for (int i = 0; i < records; ++i) AppendRecord(first + i, block.get());
    ShuffleBlock(spec_->job.seed(), 0, block.get());
    return block;
  }

  std::shared_ptr<const Block> TopicBlock(const Messages& messages, uint64_t first,
                                          uint64_t end) const {
    auto block = std::make_shared<Block>(spec_->schema);
    block->index = first;
    block->end_offset = end;
    std::vector<Position> places;
    for (auto at = messages.lines.lower_bound(first); at != messages.lines.end() && at->first < end;
         ++at) {
      for (size_t line = 0; line < at->second.size(); ++line) {
        const int number = at->second[line];
        block->bad_records += number == kBad ? 1 : 0;
        block->empty_lines += number == kEmpty ? 1 : 0;
        if (number < 0) continue;
        AppendRecord(number, block.get());
        places.push_back({static_cast<uint32_t>(at->first - first), static_cast<uint32_t>(line)});
      }
      block->last_offset = at->first;
      block->last_hash = at->first * 7;
    }
    const uint32_t slots = static_cast<uint32_t>(end - first);
    OrderBySlots(SlotOrder(spec_->job.seed(), 0, 0, first, kShuffleRows, slots), places,
                 block.get());
    return block;
  }

  ReadProgress progress_{ReadProgress::Options()};
  std::shared_ptr<const StreamSpec> spec_;
};

// Describes each range as "BLOCK+SLOTS FROM_SLOT.LINE-TO_SLOT.LINE=RECORDS".
std::string ProvenanceText(const Part& part) {
  std::string text;
  for (const ProvenanceRange& range : part.header.part().provenance()) {
    absl::StrAppend(&text, text.empty() ? "" : ", ", range.block(), "+",
                    range.block_end() - range.block(), " ", range.from(), ".", range.from_line(),
                    "-", range.to(), ".", range.to_line(), "=", range.records());
  }
  return text;
}

std::vector<std::string> TextsOf(const std::vector<Part>& parts) {
  std::vector<std::string> texts;
  for (const Part& part : parts) texts.push_back(ProvenanceText(part));
  return texts;
}

using Texts = std::vector<std::string>;

TEST_F(BatchCutterTest, AFileAndATopicWithTheSameRecordsGiveTheSameBytes) {
  Messages messages;
  for (int i = 0; i < 20; ++i) messages.lines[static_cast<uint64_t>(i)] = {i};
  BatchCutter of_file(*spec_), of_topic(*spec_);
  for (const auto& [first, records] : {std::pair(0, 8), std::pair(8, 8), std::pair(16, 4)}) {
    const uint64_t offset = static_cast<uint64_t>(first);
    ASSERT_TRUE(of_file.Queue(FileBlock(offset / kShuffleRows, first, records), {}).ok());
    ASSERT_TRUE(
        of_topic.Queue(TopicBlock(messages, offset, offset + static_cast<uint64_t>(records)), {})
            .ok());
  }
  for (int batch = 0; batch < 4; ++batch) {
    std::vector<Part> file = of_file.Cut(0, batch == 3);
    std::vector<Part> topic = of_topic.Cut(0, batch == 3);
    ASSERT_EQ(file.size(), topic.size());
    for (size_t p = 0; p < file.size(); ++p) {
      ASSERT_EQ(file[p].payload.size(), topic[p].payload.size());
      EXPECT_TRUE(std::equal(file[p].payload.data(),
                             file[p].payload.data() + file[p].payload.size(),
                             topic[p].payload.data()));
      file[p].header.mutable_part()->clear_provenance();
      topic[p].header.mutable_part()->clear_provenance();
      EXPECT_EQ(file[p].header.SerializeAsString(), topic[p].header.SerializeAsString());
    }
  }
  EXPECT_TRUE(of_file.empty() && of_topic.empty());
}

TEST_F(BatchCutterTest, APartMayEndWithinASlotAndEmptySlotsBelongToTheRangeAroundThem) {
  auto block = std::make_shared<Block>(spec_->schema);
  block->index = 100;
  block->end_offset = 106;
  for (int i = 0; i < 7; ++i) AppendRecord(i, block.get());
  block->last_offset = 105;
  block->bad_records = 2;
  block->empty_lines = 1;
  // Slots 0, 3 and 5 have no records.
  OrderBySlots({0, 1, 2, 3, 4, 5}, {{1, 0}, {1, 2}, {2, 0}, {2, 1}, {2, 2}, {4, 0}, {4, 1}},
               block.get());
  BatchCutter cutter(*spec_);
  ASSERT_TRUE(cutter.Queue(block, {}).ok());
  EXPECT_EQ(cutter.rows(), 7u);
  const std::vector<Part> first = cutter.Cut(0, false);
  EXPECT_EQ(TextsOf(first), (Texts{"100+6 0.0-2.0=2", "100+6 2.0-4.0=3"}));
  EXPECT_EQ(TextsOf(cutter.Cut(0, false)), (Texts{"100+6 4.0-4.1=1", "100+6 4.1-6.0=1"}));
  EXPECT_EQ(first[0].header.part().provenance(0).bad_records(), 2u);
  EXPECT_EQ(first[0].header.part().provenance(0).empty_lines(), 1u);
  EXPECT_FALSE(first[1].header.part().provenance(0).has_bad_records());
  EXPECT_EQ(first[1].header.part().provenance(0).last_offset(), 105u);
  EXPECT_FALSE(first[1].header.part().provenance(0).has_block_rows());
}

TEST_F(BatchCutterTest, WhatIsLeftOfABlockIsQueuedWithTheSlotsAroundIt) {
  Messages messages;
  for (uint64_t i = 0; i < 8; ++i) messages.lines[i] = {static_cast<int>(i), kBad};
  Ledger ledger;
  BatchCutter before(*spec_);
  ASSERT_TRUE(before.Queue(TopicBlock(messages, 0, 8), {&ledger, 0, 0}).ok());
  const std::vector<Part> batch = before.Cut(0, false);
  ASSERT_TRUE(ledger.Add(0, batch[1].header.part().provenance(0)).ok());  // records 2 to 4
  BatchCutter after(*spec_);
  ASSERT_TRUE(after.Queue(TopicBlock(messages, 0, 8), {&ledger, 0, 0}).ok());
  EXPECT_EQ(after.rows(), 5u);
  EXPECT_EQ(after.skipped_rows(), 3u);
  EXPECT_EQ(progress_.skipped(), 3u);
  EXPECT_EQ(TextsOf(after.Cut(0, false)), (Texts{"0+8 0.0-2.0=2", "0+8 5.0-8.0=3"}));
}

TEST_F(BatchCutterTest, SlotsWithoutRecordsRideWithTheNextPart) {
  Messages messages;
  messages.lines[9] = {kBad, kEmpty};
  messages.lines[16] = {1};
  BatchCutter cutter(*spec_);
  ASSERT_TRUE(cutter.Queue(TopicBlock(messages, 0, 8), {}).ok());
  ASSERT_TRUE(cutter.Queue(TopicBlock(messages, 8, 16), {}).ok());
  EXPECT_EQ(cutter.rows(), 0u);
  EXPECT_FALSE(cutter.empty());
  ASSERT_TRUE(cutter.Queue(TopicBlock(messages, 16, 24), {}).ok());
  cutter.QueueRider(EndOfPartition(0, 0, 24));
  const std::vector<Part> batch = cutter.Cut(0, false);
  ASSERT_EQ(batch.size(), 1u);
  const PartDescription& part = batch[0].header.part();
  ASSERT_EQ(part.provenance_size(), 4);
  Ledger ledger;
  for (const ProvenanceRange& range : part.provenance()) {
    ASSERT_TRUE(ledger.Add(0, range).ok()) << range.DebugString();
  }
  EXPECT_TRUE(ledger.IsSplitDone(0, 0));
  EXPECT_EQ(ledger.OfAll().rows, 1u);
  EXPECT_EQ(ledger.OfAll().bad_records, 1u);
  EXPECT_EQ(ledger.OfAll().empty_lines, 1u);
}

TEST_F(BatchCutterTest, RidersAloneAreABatchOfNoSamples) {
  BatchCutter cutter(*spec_);
  EXPECT_TRUE(cutter.Cut(0, false).empty()) << "unordered";
  cutter.QueueRider(EmptyOffsets(3, 10, 20));
  const std::vector<Part> batch = cutter.Cut(4, false);
  ASSERT_EQ(batch.size(), 1u);
  EXPECT_EQ(batch[0].header.part().samples(), 0u);
  EXPECT_EQ(batch[0].header.part().id().epoch(), 4u);
  EXPECT_EQ(TextsOf(batch), (Texts{"10+10 0.0-10.0=0"}));
  EXPECT_TRUE(cutter.empty());
}

TEST_F(BatchCutterTest, ABlockThatContradictsTheLedgerIsRefused) {
  Messages messages;
  for (uint64_t i = 0; i < 16; ++i) messages.lines[i] = {static_cast<int>(i)};
  Ledger ledger;
  BatchCutter before(*spec_);
  ASSERT_TRUE(before.Queue(TopicBlock(messages, 4, 12), {}).ok());
  ASSERT_TRUE(ledger.Add(0, before.Cut(0, false)[0].header.part().provenance(0)).ok());
  BatchCutter after(*spec_);
  const SplitConsumption consumed = {&ledger, 0, 0};
  EXPECT_EQ(after.Queue(TopicBlock(messages, 4, 11), consumed).code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(after.Queue(TopicBlock(messages, 0, 8), consumed).code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(after.Queue(TopicBlock(messages, 4, 12), consumed).ok());
}

// Simulates a run that reads a topic partition and is restarted several times. After each restart
// it resumes as a loader does, at the contiguous end: it reads open blocks again with the same
// bounds, and makes new blocks of the offsets between open blocks.
class Lives {
 public:
  explicit Lives(std::mt19937* random) : random_(random) {
    messages.start = messages.end = Below(50);
    int next = 0;
    for (uint64_t slots = Below(60); slots > 0; --slots, ++messages.end) {
      if (Below(4) == 0) continue;
      std::vector<int>& lines = messages.lines[messages.end];
      for (uint32_t line = Below(4); line > 0; --line) {
        lines.push_back(Below(6) == 0 ? kBad : next++);
      }
    }
  }

  uint32_t Below(uint32_t limit) { return static_cast<uint32_t>((*random_)() % limit); }

  // The bounds of the blocks to read after this restart.
  std::vector<Ledger::OpenBlock> BlocksToRead() {
    uint64_t at = ledger.ContiguousEnd(0, 0, messages.start);
    std::vector<Ledger::OpenBlock> known = ledger.OpenBlocks(0, 0);
    const std::set<uint64_t> open = [&known] {
      std::set<uint64_t> firsts;
      for (const Ledger::OpenBlock& block : known) firsts.insert(block.first);
      return firsts;
    }();
    for (const Ledger::OpenBlock& done : ledger.DoneBlocks(0, 0, at)) known.push_back(done);
    known.push_back({messages.end, messages.end});
    std::sort(known.begin(), known.end(),
              [](const auto& a, const auto& b) { return a.first < b.first; });
    std::vector<Ledger::OpenBlock> blocks;
    for (const Ledger::OpenBlock& next : known) {
      while (at < next.first) {
        const uint64_t slots = std::min<uint64_t>(1 + Below(kShuffleRows), next.first - at);
        blocks.push_back({at, at + slots});
        at += slots;
      }
      if (open.count(next.first) > 0) blocks.push_back(next);
      at = next.end;
    }
    return blocks;
  }

  // Adds some of the parts that `cutter` makes to the ledger, as trained. The others are lost.
  void Train(BatchCutter* cutter) {
    while (!cutter->empty()) {
      for (const Part& part : cutter->Cut(0, false)) {
        if (Below(3) == 0) continue;
        for (const int record : RecordsOf(part)) {
          EXPECT_TRUE(trained.insert(record).second) << "record " << record << " twice";
        }
        for (const ProvenanceRange& range : part.header.part().provenance()) {
          const absl::Status added = ledger.Add(0, range);
          ASSERT_TRUE(added.ok()) << added;
        }
      }
    }
  }

  // Removes some messages, as compaction would, but never the last one.
  void Compact() {
    for (auto at = messages.lines.begin(); at != messages.lines.end();) {
      at = std::next(at) != messages.lines.end() && Below(8) == 0 ? messages.lines.erase(at)
                                                                  : std::next(at);
    }
  }

  std::multiset<int> Numbers() const {
    std::multiset<int> numbers;
    for (const auto& [offset, lines] : messages.lines) numbers.insert(lines.begin(), lines.end());
    return numbers;
  }

  Messages messages;
  Ledger ledger;
  std::set<int> trained;

 private:
  std::mt19937* const random_;
};

TEST_F(BatchCutterTest, EveryRecordOfAPartitionIsTrainedOnceInHoweverManyLives) {
  std::mt19937 random(6);
  size_t lives_of_all = 0;
  for (int round = 0; round < 300; ++round) {
    Lives lives(&random);
    const bool compacts = round % 2 == 1;
    const std::multiset<int> all = lives.Numbers();
    while (!lives.ledger.IsSplitDone(0, 0)) {
      BatchCutter cutter(*spec_);
      for (const Ledger::OpenBlock& block : lives.BlocksToRead()) {
        const absl::Status queued =
            cutter.Queue(TopicBlock(lives.messages, block.first, block.end), {&lives.ledger, 0, 0});
        ASSERT_TRUE(queued.ok()) << queued;
      }
      if (!lives.ledger.IsSplitEndConsumed(0, 0)) {
        cutter.QueueRider(EndOfPartition(0, lives.messages.start, lives.messages.end));
      }
      lives.Train(&cutter);
      if (compacts) lives.Compact();
      ASSERT_LT(++lives_of_all, 100'000u);
    }
    for (const int record : lives.Numbers()) {
      EXPECT_TRUE(record < 0 || lives.trained.count(record) > 0) << record;
    }
    EXPECT_EQ(lives.ledger.OfAll().rows, lives.trained.size());
    if (!compacts) {
      EXPECT_EQ(lives.ledger.OfAll().bad_records, all.count(kBad));
      EXPECT_EQ(lives.trained.size(), all.size() - all.count(kBad));
    }
  }
}

}  // namespace
}  // namespace satrap

// PartitionBlocks makes blocks of the messages of one topic partition. A block covers the offsets
// [first, end), which are its slots. It has `block_rows` slots, unless one of these ends it
// earlier: the end of the partition, the beginning of a block from before a restart, the message
// with which it has `block_rows` records, or the caller, who may close it. Offsets without a
// message are slots without records.
//
// After a restart the ledger decides where blocks are. Reading begins at the first offset that is
// not completely consumed, blocks that are partly consumed are made again with the same bounds, and
// completely consumed messages are skipped without parsing. If the broker still has the last
// consumed message, it must be unchanged.
//
// Pure logic: the caller reads. Not thread-safe.

#ifndef SATRAP_DATA_LOADER_KAFKA_PARTITION_BLOCKS_H_
#define SATRAP_DATA_LOADER_KAFKA_PARTITION_BLOCKS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "common/checkpoint/ledger/ledger.h"
#include "common/kafka/message_batch.h"
#include "data_loader/batch/block.h"
#include "data_loader/batch/block_reader.h"
#include "data_loader/batch/read_progress.h"
#include "data_loader/check/value_watch.h"
#include "data_loader/kafka/message_parser.h"
#include "data_loader/kafka/partition_feed.h"

namespace satrap {

class PartitionBlocks {
 public:
  struct Options {
    TopicSplit split;
    uint64_t block_rows = kUnshuffledBlockRows;  // slots, or records, of a full block
    bool shuffled = false;
    uint64_t seed = 0;
    Stream stream = TRAIN_STREAM;
    // What is consumed of the split. The ledger in it must outlive this object.
    SplitConsumption consumed;
    // False in epochs and streams that do not count bad records and empty messages.
    bool counts_bad = true;
    MessageParser* parser = nullptr;  // outlives the object
    // Receives the records of the first epoch or pass, and the refused records that are reported.
    // May be null; must outlive this object.
    ValueWatch* watch = nullptr;
    // Receives the bad records of blocks that are made for the first time. If it fails, so does
    // Take.
    std::function<absl::Status(const BadLine&)> report;
    // Makes an empty block with the job's schema.
    std::function<std::shared_ptr<Block>()> new_block;
  };
  explicit PartitionBlocks(Options options);

  // The offset from which to read, which is at or before the first unconsumed offset.
  uint64_t read_from() const;
  // Whether no offset is left. Never true if the partition has no end.
  bool finished() const { return finished_; }
  // The first offset of the current block. REQUIRES: !finished()
  uint64_t block_first() const { return first_; }

  // What was read since the last TakeNews.
  struct News {
    ReadCounts counts;
    uint64_t records = 0;  // records with a time
    int64_t latest_ms = std::numeric_limits<int64_t>::min();
    uint64_t late = 0;
    int64_t newest_ms = -1;  // the broker's time of the newest message
  };
  News TakeNews();
  // Records with a time below `time_ms` count as late.
  void set_late_below(int64_t time_ms) { late_below_ = time_ms; }

  // Takes messages i, i + 1 ... of the batch up to the end of the current block. Returns the index
  // of the first message that was not taken, which is the size of the batch unless complete().
  // Offsets must ascend from call to call. FAILED_PRECONDITION, naming partition and offset, if a
  // consumed message has been replaced by another one. Otherwise fails as `report` does.
  absl::StatusOr<size_t> Take(const MessageBatch& batch, size_t i);
  // Tells this object that there is no message at any offset below `next` that was not taken.
  void Reach(uint64_t next);

  // Whether it is known what each offset of the current block holds.
  bool complete() const { return !finished_ && reached_ >= end_; }
  // Whether the current block may be closed now: at least one of its offsets is known, and its end
  // was not fixed before a restart.
  bool may_close_early() const { return !finished_ && !known_ && reached_ > first_; }
  bool has_begun() const { return !finished_ && reached_ > first_; }

  // A closed block. `block` is null if none of the offsets has a message, unless the bounds were
  // fixed before a restart: then `block` has no records, and its remaining slots must still be
  // consumed. If `block` is null, only the bounds are set.
  struct Closed {
    std::shared_ptr<Block> block;
    uint64_t first = 0;
    uint64_t end = 0;
  };
  // Closes the current block and begins the next one. If the block is not complete, it ends after
  // the latest known offset. Successive empty blocks are returned as one. REQUIRES: complete() or
  // may_close_early()
  Closed Close();

  // The number of offsets in [from, to) that belong to the run and are not consumed.
  uint64_t CountUnconsumed(uint64_t from, uint64_t to) const;

  const SplitConsumption& consumed() const { return options_.consumed; }
  const std::string& name() const { return name_; }  // "clicks/3"

 private:
  // Offsets [first, end) that the ledger knows. They belong to one open block, or to one or more
  // blocks that are done and have no gaps between them.
  struct Known {
    uint64_t first;
    uint64_t end;
    bool done;
  };
  // Sets the bounds of the next block, which begins at `first`, or later if blocks there are done.
  void BeginBlock(uint64_t first);
  // The current block must end at this offset at the latest.
  uint64_t Limit() const;
  absl::Status CheckLast(const MessageBatch& batch, size_t i);
  absl::Status TakeMessage(const MessageBatch& batch, size_t i);
  void NoteTimes(size_t from);

  const Options options_;
  const std::string name_;
  const uint64_t no_end_ = std::numeric_limits<uint64_t>::max();
  uint64_t partition_end_;
  std::vector<Known> known_offsets_;                   // ascending
  absl::optional<Ledger::LastMessage> last_consumed_;  // until it is checked
  bool finished_ = false;
  uint64_t first_ = 0;
  uint64_t end_ = 0;
  bool known_ = false;    // the bounds were fixed before a restart
  uint64_t reached_ = 0;  // all offsets below this are known
  bool reports_ = false;
  std::shared_ptr<Block> block_;  // null: no message yet
  std::vector<Position> places_;  // of each row: its line and its slot, counted from first_
  MessageParser::Found found_;
  int64_t late_below_ = std::numeric_limits<int64_t>::min();
  News news_;
};

}  // namespace satrap

#endif  // SATRAP_DATA_LOADER_KAFKA_PARTITION_BLOCKS_H_

#include "data_loader/kafka/topic_batch_maker.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "common/kafka/offset_errors.h"
#include "data_loader/batch/batch_cutter.h"
#include "data_loader/batch/block_pool.h"
#include "data_loader/kafka/message_parser.h"
#include "data_loader/kafka/partition_blocks.h"

namespace satrap {
namespace {

// The most messages that a Read returns: enough to hide its cost, and few enough for the cache.
constexpr size_t kReadMessages = 1000;
constexpr int64_t kWaitMs = 50;
// While the broker has further messages, a block may stay open for this many times max_wait_ms.
constexpr int64_t kWaitsWithLag = 10;
// Blocks without records wait for the next part, but if this many wait, a batch is made for them.
constexpr size_t kMaxRiders = 256;

class TopicBatchMaker final : public BatchMaker {
 public:
  explicit TopicBatchMaker(TopicBatchMakerOptions options)
      : options_(std::move(options)),
        spec_(*options_.spec),
        stream_(*options_.stream),
        trains_(spec_.stream == TRAIN_STREAM),
        max_wait_ms_(trains_ ? stream_.config.max_wait_ms() : 0),
        by_turns_(spec_.ordered && max_wait_ms_ == 0),
        // A lane that has an end returns a full batch only when one further record is known,
        // because that proves that the batch is not the last.
        needed_(static_cast<uint64_t>(spec_.job.global_batch_size()) +
                (spec_.ordered && !stream_.endless ? 1 : 0)),
        reads_first_(spec_.begin.epoch == 0),
        parser_(spec_.job.data(), stream_.config, spec_.stream, &spec_.check),
        blocks_(spec_.schema),
        cutter_(spec_) {
    if (reads_first_) spec_.AddReader();
    parser_.set_first_labels(stream_.first_labels.get());
  }

  void BeginEpoch(uint32_t epoch) override {
    CHECK(cutter_.empty());
    epoch_ = epoch;
    last_given_ = false;
    taken_ = 0;
    turn_ = 0;
    shared_by_ = 0;
    partitions_.clear();  // before the sources, whose messages they hold
    sources_.clear();
    emitted_ms_ = stream_.access.now_ms();
  }
  void AddSplit(uint32_t) override { CHECK(false) << "partitions come from the feed"; }
  void EndSplits() override {}

  absl::StatusOr<Result> MakeBatch(std::vector<Part>* parts) override {
    RETURN_IF_ERROR(TakeDealt());
    int64_t wait_until_ms = -1;
    while (cutter_.rows() < needed_) {
      if (!stream_.endless && AllFinished()) return Finish(parts);
      if (riders_ >= kMaxRiders) break;
      ASSIGN_OR_RETURN(const bool queued, ReadRound());
      if (queued) continue;
      const int64_t now_ms = stream_.access.now_ms();
      if (IsDue(now_ms)) break;
      if (wait_until_ms < 0) wait_until_ms = now_ms + kWaitMs;
      // Return after kWaitMs even if messages trickle in, in order not to hold this thread.
      if (now_ms >= wait_until_ms || !Wait(absl::Milliseconds(wait_until_ms - now_ms))) {
        NoteOpenBlocks();
        return Result::kNothingYet;
      }
    }
    Emit(false, parts);
    return Result::kBatch;
  }

 private:
  struct Partition {
    TopicSplit split;
    std::unique_ptr<PartitionBlocks> blocks;
    MessageSource* source = nullptr;
    size_t index = 0;  // in `source`
    MessageBatch batch;
    size_t at = 0;          // the first message of `batch` that is not taken
    int64_t begun_ms = -1;  // when the current block's first slot was known
    bool over = false;      // its end was reached and is queued, too
  };

  // Starts to read partitions that this maker has received but does not read yet.
  absl::Status TakeDealt() {
    bool any = false;
    for (TopicSplit& split : options_.feed->From(taken_, options_.maker, options_.makers)) {
      ++taken_;
      partitions_.push_back(std::make_unique<Partition>());
      Partition* const partition = partitions_.back().get();
      partition->split = std::move(split);
      partition->blocks = std::make_unique<PartitionBlocks>(BlockOptions(partition));
      if (partition->blocks->finished()) {
        End(partition);
      } else {
        stream_.progress.AddPartition(partition->split.split, partition->blocks->block_first());
        any = true;
      }
    }
    // A new partition reduces the others' shares of queue_bytes, even if another maker reads it.
    const bool shared_anew = shared_by_ != stream_.progress.partitions();
    return any || shared_anew ? OpenAll() : absl::OkStatus();
  }

  PartitionBlocks::Options BlockOptions(Partition* partition) {
    PartitionBlocks::Options options;
    options.split = partition->split;
    options.block_rows = spec_.block_rows;
    options.shuffled = spec_.shuffled;
    options.seed = spec_.job.seed();
    options.stream = spec_.stream;
    options.consumed = {&spec_.begin.consumed, epoch_, partition->split.split};
    options.counts_bad = spec_.reports_bad && epoch_ == 0;
    options.parser = &parser_;
    options.watch = spec_.watch.get();
    options.report = [this, partition](const BadLine& bad) { return ReportBad(partition, bad); };
    options.new_block = [this] { return blocks_.Take(); };
    return options;
  }

  // Opens one source for all partitions, each at the offset up to which it was read. Closes the old
  // sources first, to free memory, so the messages waiting in them are received again.
  absl::Status OpenAll() {
    shared_by_ = stream_.progress.partitions();
    std::vector<Partition*> all;
    std::vector<KafkaPlace> places;
    for (const auto& partition : partitions_) {
      if (!partition->over) {
        places.push_back(PlaceOf(*partition, NextOffset(*partition)));
        all.push_back(partition.get());
      }
      ForgetSource(partition.get());
    }
    sources_.clear();
    if (all.empty()) return absl::OkStatus();
    ASSIGN_OR_RETURN(MessageSource* const source, OpenSource(std::move(places)));
    for (size_t i = 0; i < all.size(); ++i) {
      all[i]->source = source;
      all[i]->index = i;
    }
    return absl::OkStatus();
  }

  // Opens a source whose queue has these partitions' shares of the loader's queue_bytes.
  absl::StatusOr<MessageSource*> OpenSource(std::vector<KafkaPlace> places) {
    KafkaConfig config = stream_.config;
    const int64_t all =
        static_cast<int64_t>(std::max(stream_.progress.partitions(), places.size()));
    config.set_queue_bytes(
        std::max<int64_t>(config.queue_bytes() / all * static_cast<int64_t>(places.size()), 1));
    ASSIGN_OR_RETURN(auto source, stream_.access.open_source(config, std::move(places), trains_));
    sources_.push_back(std::move(source));
    return sources_.back().get();
  }

  // The first offset that the partition's blocks have not seen yet.
  static uint64_t NextOffset(const Partition& partition) {
    if (partition.source == nullptr) return partition.blocks->read_from();
    return static_cast<uint64_t>(partition.at < partition.batch.size()
                                     ? partition.batch.offset(partition.at)
                                     : partition.source->next_offset(partition.index));
  }
  static void ForgetSource(Partition* partition) {
    partition->batch.Clear();
    partition->at = 0;
    partition->source = nullptr;
  }
  static KafkaPlace PlaceOf(const Partition& partition, uint64_t offset) {
    return {{partition.split.partition.topic(), partition.split.partition.partition()},
            static_cast<int64_t>(offset)};
  }

  bool AllFinished() const {
    return std::all_of(partitions_.begin(), partitions_.end(),
                       [](const auto& partition) { return partition->over; });
  }

  // Reads what has arrived, partition after partition, until a block is queued. So only one
  // complete block waits in addition to those being filled. Returns false if everything was read.
  absl::StatusOr<bool> ReadRound() {
    flush_tried_ = false;
    if (by_turns_) {
      Partition* const next = OfTurn();
      return next == nullptr ? false : ReadPartition(next);
    }
    for (size_t i = 0; i < partitions_.size(); ++i) {
      const size_t index = (turn_ + i) % partitions_.size();
      ASSIGN_OR_RETURN(const bool queued, ReadPartition(partitions_[index].get()));
      if (!queued) continue;
      turn_ = index + 1;
      return true;
    }
    return false;
  }

  // The partition to read next: the first of those whose current block has the lowest number.
  // Blocks are numbered from a partition's start, so the order is the same wherever reading begins.
  // Null if none.
  Partition* OfTurn() const {
    Partition* least = nullptr;
    uint64_t least_block = 0;
    for (const auto& partition : partitions_) {
      if (partition->over) continue;
      const uint64_t block =
          (partition->blocks->block_first() - partition->split.partition.start()) /
          spec_.block_rows;
      if (least != nullptr && block >= least_block) continue;
      least = partition.get();
      least_block = block;
    }
    return least;
  }

  // Reads until a block is queued, even one without records. False if there was nothing more to
  // read.
  absl::StatusOr<bool> ReadPartition(Partition* partition) {
    if (partition->over) return false;
    PartitionBlocks& blocks = *partition->blocks;
    for (bool full = true; full;) {
      if (partition->at == partition->batch.size()) {
        partition->at = 0;
        const absl::Status status =
            partition->source->Read(partition->index, kReadMessages, &partition->batch);
        if (!status.ok()) {
          RETURN_IF_ERROR(SkipLost(partition, status));
          continue;
        }
        full = partition->batch.size() == kReadMessages;
      }
      const int64_t now_ms = stream_.access.now_ms();
      blocks.set_late_below(stream_.progress.LateBelow());
      const absl::StatusOr<size_t> taken = blocks.Take(partition->batch, partition->at);
      if (!taken.ok()) RETURN_IF_ERROR(stream_.CheckFirstLabels());  // which may be the cause
      ASSIGN_OR_RETURN(partition->at, taken);
      if (partition->at == partition->batch.size()) {
        partition->batch.Clear();  // gives the memory back to the queue
        partition->at = 0;
        blocks.Reach(static_cast<uint64_t>(partition->source->next_offset(partition->index)));
      }
      NoteNews(partition, now_ms);
      if (partition->begun_ms < 0 && blocks.has_begun()) partition->begun_ms = now_ms;
      if (blocks.complete()) return CloseBlock(partition);
      full = full || partition->at < partition->batch.size();
    }
    if (!HasWaited(*partition) || !blocks.may_close_early()) return false;
    return CloseBlock(partition);
  }

  // Whether the current block must be closed although it is not full. Waits longer while the broker
  // has more messages, which may arrive more slowly than they are parsed. Closing blocks early
  // would not help then: messages are late because of the lag, and small blocks are shuffled badly.
  bool HasWaited(const Partition& partition) const {
    if (max_wait_ms_ == 0 || partition.begun_ms < 0) return false;
    const bool at_end = partition.source->at_end(partition.index);
    return stream_.access.now_ms() - partition.begun_ms >=
           max_wait_ms_ * (at_end ? 1 : kWaitsWithLag);
  }

  // Call after OUT_OF_RANGE: if the job allows it, continues after the lost messages.
  absl::Status SkipLost(Partition* partition, const absl::Status& status) {
    const absl::optional<MessageSource::Lost> lost = partition->source->lost(partition->index);
    const bool is_gap =
        absl::IsOutOfRange(status) && lost.has_value() && lost->found > lost->wanted;
    if (!is_gap) return status;
    const uint64_t count = partition->blocks->CountUnconsumed(static_cast<uint64_t>(lost->wanted),
                                                              static_cast<uint64_t>(lost->found));
    // It does not matter if only consumed messages have expired.
    if (count > 0 && stream_.config.on_lost_offsets() != KafkaConfig::SKIP) {
      // Reading may have begun at the last consumed message: name the first lost offset after it.
      const auto first = static_cast<int64_t>(partition->blocks->block_first());
      absl::optional<MessageSource::Lost> same;
      return OffsetRefused(PlaceOf(*partition, 0).partition, std::max(lost->wanted, first),
                           {lost->found, lost->found}, &same);
    }
    stream_.progress.AddLost(count);
    ForgetSource(partition);
    CloseUnused();
    ASSIGN_OR_RETURN(partition->source,
                     OpenSource({PlaceOf(*partition, static_cast<uint64_t>(lost->found))}));
    partition->index = 0;
    return absl::OkStatus();
  }

  // Closes sources that are not used by any partition.
  void CloseUnused() {
    sources_.erase(std::remove_if(sources_.begin(), sources_.end(),
                                  [this](const std::unique_ptr<MessageSource>& source) {
                                    return std::none_of(partitions_.begin(), partitions_.end(),
                                                        [&](const auto& partition) {
                                                          return partition->source == source.get();
                                                        });
                                  }),
                   sources_.end());
  }

  // Returns false and leaves the block open if the broker has not acknowledged all dead letters
  // yet: no cut may include bad records that are not written.
  absl::StatusOr<bool> CloseBlock(Partition* partition) {
    RETURN_IF_ERROR(stream_.CheckFirstLabels());
    ASSIGN_OR_RETURN(const bool flushed, FlushLetters());
    if (!flushed) return false;
    PartitionBlocks& blocks = *partition->blocks;
    const PartitionBlocks::Closed closed = blocks.Close();
    const bool was_empty = cutter_.empty();
    const int64_t begun_ms = std::exchange(partition->begun_ms, -1);
    if (closed.block == nullptr) {
      if (trains_) {
        cutter_.QueueRider(EmptyOffsets(partition->split.split, closed.first, closed.end));
        // If partitions take turns, do not count this rider: batches must then not depend on how
        // many blocks of a gap become one rider, because that depends on what has arrived.
        if (!by_turns_) ++riders_;
      }
    } else if (trains_ || closed.block->records.rows() > 0) {
      if (closed.block->records.rows() == 0) ++riders_;
      const absl::Status queued = cutter_.Queue(closed.block, blocks.consumed());
      if (!queued.ok()) return Changed(blocks, closed, queued);
    }
    if (was_empty) {
      pending_since_ms_ = begun_ms < 0 ? stream_.access.now_ms() : begun_ms;
    }
    if (blocks.has_begun()) partition->begun_ms = stream_.access.now_ms();
    if (blocks.finished()) End(partition);
    return true;
  }

  absl::StatusOr<bool> FlushLetters() {
    if (!unflushed_) return true;
    // Wait only once per round, although each partition may have a block to close.
    if (std::exchange(flush_tried_, true)) return false;
    ASSIGN_OR_RETURN(const bool flushed, stream_.dead_letters->Flush());
    unflushed_ = !flushed;
    return flushed;
  }

  static absl::Status Changed(const PartitionBlocks& blocks, const PartitionBlocks::Closed& closed,
                              const absl::Status& why) {
    return absl::FailedPreconditionError(absl::StrCat(
        blocks.name(), ", offsets ", closed.first, " to ", closed.end, ": ", why.message(),
        "; the topic has changed since the run began: messages at these offsets were added or ",
        "replaced. Begin a new run"));
  }

  // Call when the partition has been read to its end.
  void End(Partition* partition) {
    partition->over = true;
    ForgetSource(partition);
    const TopicPartition& of = partition->split.partition;
    const Ledger& consumed = spec_.begin.consumed;
    const uint32_t split = partition->split.split;
    stream_.progress.NoteFinished(split);
    if (!trains_ || consumed.IsSplitDone(epoch_, split) ||
        consumed.IsSplitEndConsumed(epoch_, split)) {
      return;
    }
    cutter_.QueueRider(EndOfPartition(split, of.start(), of.end()));
  }

  void NoteNews(Partition* partition, int64_t now_ms) {
    const PartitionBlocks::News read = partition->blocks->TakeNews();
    TopicProgress::News news;
    news.end_offset = partition->source->end_offset(partition->index);
    news.at_end = news.end_offset >= 0 && partition->at == partition->batch.size() &&
                  partition->source->next_offset(partition->index) >= news.end_offset;
    news.newest_ms = read.newest_ms;
    news.records = read.records;
    news.latest_ms = read.latest_ms;
    news.late = read.late;
    spec_.progress->Add(spec_.stream, read.counts);
    stream_.progress.Note(partition->split.split, news, now_ms);
  }

  absl::Status ReportBad(Partition* partition, const BadLine& bad) {
    // Add the good records read before this one, because they count for max_bad_fraction.
    NoteNews(partition, stream_.access.now_ms());
    if (stream_.dead_letters == nullptr) return spec_.progress->AddBad(bad);
    RETURN_IF_ERROR(stream_.dead_letters->Send(
        absl::StrCat(bad.path, "/", bad.offset, "/", bad.line), bad.text, bad.reason));
    unflushed_ = true;
    BadLine counted = bad;
    counted.dead_letter_topic = stream_.config.dead_letter_topic();
    return spec_.progress->AddBad(counted);
  }

  // Whether a batch must be made although it is not full.
  bool IsDue(int64_t now_ms) const {
    if (max_wait_ms_ == 0) return false;
    if (!cutter_.empty() && now_ms - pending_since_ms_ >= max_wait_ms_) return true;
    if (!spec_.ordered || now_ms - emitted_ms_ < max_wait_ms_) return false;
    // If the lane has messages, wait: the block that holds them is about to be closed.
    return std::none_of(partitions_.begin(), partitions_.end(),
                        [](const auto& partition) { return partition->blocks->may_close_early(); });
  }

  // Waits until a partition that is being read has news. False if none had.
  bool Wait(absl::Duration limit) {
    const Partition* const only = by_turns_ ? OfTurn() : nullptr;
    std::vector<std::pair<MessageSource*, std::vector<size_t>>> waits;
    for (const auto& source : sources_) {
      std::vector<size_t> indices;
      for (const auto& partition : partitions_) {
        if (partition->over || partition->source != source.get()) continue;
        if (only == nullptr || only == partition.get()) indices.push_back(partition->index);
      }
      if (!indices.empty()) waits.emplace_back(source.get(), std::move(indices));
    }
    if (waits.empty()) {
      // There is nothing to read, perhaps because the feed has no partition yet: wait for one.
      const size_t known = options_.feed->size();
      options_.feed->WaitForMore(known, limit);
      return false;
    }
    // Poll every source at least once. `limit` is for all of them together.
    bool any = false;
    for (const auto& [source, indices] : waits) {
      any = source->Wait(indices,
                         any ? absl::ZeroDuration() : limit / static_cast<int64_t>(waits.size())) ||
            any;
    }
    return any;
  }

  // Call when all partitions have ended. Makes a batch of what is left: records, and ends that no
  // record followed. An ordered lane always gets a last batch, because the ranks wait for it.
  absl::StatusOr<Result> Finish(std::vector<Part>* parts) {
    if (!cutter_.empty() || (spec_.ordered && !last_given_)) {
      Emit(true, parts);
      return Result::kBatch;
    }
    partitions_.clear();
    sources_.clear();
    NoteOpenBlocks();
    if (std::exchange(reads_first_, false)) RETURN_IF_ERROR(spec_.EndReader());
    return Result::kEnd;
  }

  void Emit(bool last, std::vector<Part>* parts) {
    last_given_ = last;
    *parts = cutter_.Cut(epoch_, last);
    riders_ = 0;
    emitted_ms_ = stream_.access.now_ms();
    pending_since_ms_ = emitted_ms_;
    for (const Part& part : *parts) {
      for (const ProvenanceRange& range : part.header.part().provenance()) {
        const bool whole = range.to_line() == 0 && range.to() == range.block_end() - range.block();
        stream_.progress.NoteCut(range.split(), whole ? range.block_end() : range.block());
      }
    }
    NoteOpenBlocks();
  }

  void NoteOpenBlocks() {
    const int64_t open = blocks_.in_use();
    stream_.progress.AddOpenBlocks(open - std::exchange(open_blocks_, open));
  }

  const TopicBatchMakerOptions options_;
  const StreamSpec& spec_;
  TopicStream& stream_;
  const bool trains_;
  const int64_t max_wait_ms_;  // 0: blocks and batches are always filled
  const bool by_turns_;
  const uint64_t needed_;
  bool reads_first_;  // true until epoch 0 is read
  MessageParser parser_;
  uint32_t epoch_ = 0;
  bool last_given_ = false;  // whether the epoch's last batch was made
  size_t taken_ = 0;         // partitions taken from the feed
  size_t turn_ = 0;          // the position of the partition that is read first
  size_t shared_by_ = 0;     // how many partitions the loader had when the source was opened
  BlockPool blocks_;
  std::vector<std::unique_ptr<MessageSource>> sources_;
  std::vector<std::unique_ptr<Partition>> partitions_;  // hold messages of the sources
  BatchCutter cutter_;
  size_t riders_ = 0;             // queued since the last batch
  int64_t pending_since_ms_ = 0;  // since when the cutter has had something
  int64_t emitted_ms_ = 0;        // when the last batch was made
  bool unflushed_ = false;        // dead letters are not acknowledged yet
  bool flush_tried_ = false;      // in this round of reading a flush was tried
  int64_t open_blocks_ = 0;
};

}  // namespace

std::unique_ptr<BatchMaker> NewTopicBatchMaker(TopicBatchMakerOptions options) {
  return std::make_unique<TopicBatchMaker>(std::move(options));
}

}  // namespace satrap

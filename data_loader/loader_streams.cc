#include "data_loader/loader_streams.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "common/config/data_streams.h"
#include "common/thread/wall_clock.h"
#include "data_loader/kafka/topic_batch_maker.h"
#include "data_loader/source/run_files.h"

namespace satrap {
namespace {

// The total size of all splits: bytes on disk, or rows of the synthetic log.
uint64_t SizeOf(const std::vector<Split>& splits) {
  uint64_t size = 0;
  for (const Split& split : splits) size += split.to - split.from;
  return size;
}

// Where the records of the job's streams come from: splits of files, or partitions of topics.
struct RunInput {
  std::map<Stream, std::vector<Split>> splits;  // none for topics
  std::map<Stream, StreamTopics> topics;
  absl::optional<FileIdentity> item_file;
};

absl::StatusOr<RunInput> ListInput(const JobConfig& job, const LoaderStreams::Begin& begin) {
  RunInput input;
  if (begin.fix_files) {
    ASSIGN_OR_RETURN(const SplitList listed, ListRunFiles(job));
    ASSIGN_OR_RETURN(const SplitList fixed, begin.fix_files(listed));
    RETURN_IF_ERROR(CheckRunFiles(job, fixed, listed));
    if (fixed.has_candidates()) input.item_file = fixed.candidates();
    for (const StreamFiles& files : fixed.streams()) {
      const Stream stream = static_cast<Stream>(files.stream());
      ASSIGN_OR_RETURN(input.splits[stream], SplitsOf(job, stream, files));
    }
    for (const StreamTopics& topics : fixed.topics()) {
      input.topics[static_cast<Stream>(topics.stream())] = topics;
    }
  } else {
    for (const Stream stream : {TRAIN_STREAM, VALID_STREAM, TEST_STREAM}) {
      if (job.action() != JobConfig::TRAIN && stream != TEST_STREAM) continue;
      ASSIGN_OR_RETURN(input.splits[stream], ListSplits(job, stream));
    }
  }
  for (const auto& [stream, splits] : input.splits) {
    if (TopicsOf(job.data(), stream) == nullptr || input.topics.count(stream) > 0) continue;
    return absl::InternalError(absl::StrCat("the coordinator gave no topic partitions of ",
                                            Stream_Name(stream),
                                            ", which the job reads from topics"));
  }
  return input;
}

// The number of records in an epoch, if all partitions end and each message is one record;
// otherwise 0.
uint64_t RowsOf(const KafkaConfig& kafka, const StreamTopics& topics) {
  uint64_t rows = 0;
  for (const TopicPartition& partition : topics.partitions()) {
    if (!partition.has_end() || kafka.format() == KafkaConfig::LINES) return 0;
    rows += partition.end() - partition.start();
  }
  return rows;
}

}  // namespace

LoaderStreams::LoaderStreams(const JobConfig& job, int index, const RunPosition& position)
    : job_(job), index_(static_cast<uint32_t>(index)), position_(position) {}

const LoaderStreams::Begin& LoaderStreams::DefaultBegin() {
  static const Begin* const begin = new Begin();
  return *begin;
}

absl::StatusOr<std::unique_ptr<LoaderStreams>> LoaderStreams::Make(
    const JobConfig& job, int index, std::function<void(const std::string&)> log,
    const Begin& begin) {
  ASSIGN_OR_RETURN(RunInput input, ListInput(job, begin));
  ASSIGN_OR_RETURN(const Ledger consumed, Ledger::FromState(begin.ledger));
  std::unique_ptr<LoaderStreams> streams(new LoaderStreams(job, index, begin.position));
  streams->item_file_ = input.item_file;
  ReadProgress::Options options;
  if (!job.run_dir().empty()) options.quarantine_dir = absl::StrCat(job.run_dir(), "/quarantine");
  options.loader_index = index;
  options.generation = begin.generation;
  options.max_bad_fraction = job.data().max_bad_fraction();
  const Ledger::Totals counted = consumed.OfEpoch(0);  // the epoch that counts bad records
  options.consumed_records = counted.rows;
  options.consumed_bad_records = counted.bad_records;
  options.log = std::move(log);
  // The size of an epoch is used to estimate the remaining time.
  if (input.topics.count(TRAIN_STREAM) > 0) {
    options.train_rows = RowsOf(job.data().kafka(), input.topics[TRAIN_STREAM]);
  } else if (input.splits.count(TRAIN_STREAM) > 0) {
    (job.data().has_synthetic() ? options.train_rows : options.train_disk_bytes) =
        SizeOf(input.splits[TRAIN_STREAM]);
  }
  streams->progress_ = std::make_unique<ReadProgress>(std::move(options));
  const TopicAccess access = begin.topics.has_value() ? *begin.topics : AccessToBrokers(Logger());
  for (auto& [stream, of_stream] : input.splits) {
    StreamBegin at;
    if (stream == TRAIN_STREAM) {
      // If training is over, no rank requests the train stream.
      if (begin.position.next() == RunPosition::FINISH) continue;
      at.epoch = begin.position.epoch();
      at.consumed = consumed;
    }
    streams->specs_[stream] = std::make_shared<const StreamSpec>(
        job, stream, std::move(of_stream), streams->progress_.get(), std::move(at));
    const auto topics = input.topics.find(stream);
    if (topics == input.topics.end()) continue;
    RETURN_IF_ERROR(streams->AddTopics(stream, topics->second, access,
                                       begin.judges_first_labels && stream == TRAIN_STREAM));
  }
  return streams;
}

// In an ordered stream, partition j belongs to lane j mod lanes; otherwise to loader j mod loaders.
absl::Status LoaderStreams::AddTopics(Stream stream, const StreamTopics& topics,
                                      const TopicAccess& access, bool judges_first_labels) {
  const StreamSpec& spec = *specs_[stream];
  const KafkaConfig& config = *TopicsOf(job_.data(), stream);
  topics_[stream] = std::make_shared<TopicStream>(config, access);
  TopicStream& to = *topics_[stream];
  if (judges_first_labels) {
    to.first_labels = std::make_unique<FirstLabels>(spec.check.labels());
  }
  if (!config.dead_letter_topic().empty()) {
    ASSIGN_OR_RETURN(to.dead_letters, access.open_dead_letters(config));
  }
  const uint32_t loaders = static_cast<uint32_t>(job_.data_loader().replicas());
  const uint32_t lanes = static_cast<uint32_t>(job_.lanes());
  std::map<uint32_t, std::shared_ptr<PartitionFeed>>& feeds = feeds_[stream];
  if (spec.ordered) {
    for (uint32_t lane = index_; lane < lanes; lane += loaders) {
      feeds[lane] = std::make_shared<PartitionFeed>();
    }
  } else {
    feeds[index_] = std::make_shared<PartitionFeed>();
  }
  for (int i = 0; i < topics.partitions_size(); ++i) {
    const TopicPartition& partition = topics.partitions(i);
    const uint32_t split = static_cast<uint32_t>(i);
    to.endless = to.endless || !partition.has_end();
    const auto feed = feeds.find(spec.ordered ? split % lanes : split % loaders);
    if (feed == feeds.end()) continue;  // belongs to another loader
    to.progress.AddPartition(split, partition.start());
    feed->second->Add({split, partition});
  }
  if (stream == TRAIN_STREAM) known_partitions_ = static_cast<uint32_t>(topics.partitions_size());
  return absl::OkStatus();
}

uint32_t LoaderStreams::known_partitions() const { return known_partitions_; }

void LoaderStreams::Deal(const DealtPartition& dealt) {
  uint32_t expected = dealt.split();
  if (topics_[TRAIN_STREAM] == nullptr ||
      !known_partitions_.compare_exchange_strong(expected, dealt.split() + 1)) {
    return;
  }
  // Only unordered streams can get further partitions, and such a stream has only one source.
  const auto feed = feeds_[TRAIN_STREAM].find(index_);
  if (dealt.loader() != index_ || feed == feeds_[TRAIN_STREAM].end()) return;
  topics_[TRAIN_STREAM]->progress.AddPartition(dealt.split(), dealt.partition().start());
  feed->second->Add({dealt.split(), dealt.partition()});
}

LoaderProgress LoaderStreams::Progress() const {
  LoaderProgress progress = progress_->Snapshot();
  for (const auto& spec : specs_) {
    if (spec != nullptr) spec->watch->Report(&progress);
  }
  uint64_t dead_letters = 0;
  bool any = false;
  for (const auto& topics : topics_) {
    if (topics == nullptr || topics->dead_letters == nullptr) continue;
    any = true;
    dead_letters += topics->dead_letters->acknowledged();
  }
  if (any) progress.set_dead_letters(dead_letters);
  const TopicStream* const train = topics();
  if (train != nullptr) train->progress.Report(train->access.now_ms(), UnixMs(), &progress);
  uint64_t lost = 0;
  for (const auto& topics : topics_) lost += topics == nullptr ? 0 : topics->progress.lost();
  if (lost > 0) progress.set_lost_messages(lost);
  return progress;
}

uint32_t LoaderStreams::num_train_splits() const {
  const auto& spec = specs_[TRAIN_STREAM];
  return spec == nullptr ? 0 : static_cast<uint32_t>(spec->splits.size());
}

bool LoaderStreams::needs_lease() const {
  return specs_[TRAIN_STREAM] != nullptr && !specs_[TRAIN_STREAM]->ordered && topics() == nullptr;
}

void LoaderStreams::AddSource(Stream stream, uint32_t lane, Executor* parse_executor,
                              SplitSupply* supply, LoaderEngine::StreamSources* to) {
  ParsedPartSource::Options options;
  options.lane = lane;
  if (to->ordered && static_cast<int>(lane) < position_.lanes_size()) {
    options.first_seq = position_.lanes(static_cast<int>(lane)).next_seq();
    options.has_left = position_.lanes(static_cast<int>(lane)).left();
  }
  // A lane must have one order, so it has only one maker. An unordered stream has one maker for
  // each parsing thread.
  options.num_makers = to->ordered ? 1 : std::max(1, job_.data_loader().threads());
  options.capacity_parts = static_cast<size_t>(std::max(1, job_.data_loader().prefetch_parts()));
  const auto feed = feeds_[stream].find(lane);
  if (feed != feeds_[stream].end()) {
    options.new_maker = [this, stream, feed = feed->second,
                         makers = options.num_makers](int maker) {
      return NewTopicBatchMaker({specs_[stream], topics_[stream], feed, static_cast<size_t>(maker),
                                 static_cast<size_t>(makers)});
    };
  }
  parts_.push_back(
      std::make_unique<ParsedPartSource>(specs_[stream], options, parse_executor, supply));
  to->sources.push_back(parts_.back().get());
}

size_t LoaderStreams::ready_parts() const {
  size_t parts = 0;
  for (const auto& source : parts_) parts += source->ready_parts();
  return parts;
}

void LoaderStreams::MakeSources(Executor* parse_executor, SplitSupply* lease) {
  CHECK(streams_.empty());
  const uint32_t loaders = static_cast<uint32_t>(job_.data_loader().replicas());
  for (const Stream stream : {TRAIN_STREAM, VALID_STREAM, TEST_STREAM}) {
    if (specs_[stream] == nullptr) continue;
    const uint32_t splits = static_cast<uint32_t>(specs_[stream]->splits.size());
    LoaderEngine::StreamSources sources;
    sources.stream = stream;
    sources.ordered = specs_[stream]->ordered;
    sources.epochs = stream == TRAIN_STREAM ? static_cast<uint32_t>(job_.epochs()) : 0;
    sources.first_epoch = specs_[stream]->begin.epoch;
    // Decide which loader reads which splits.
    //   - Ordered: split j belongs to lane j mod lanes, and each lane to one loader, so that the
    //     order of its batches does not depend on timing.
    //   - Train, unordered: the next loader that is free leases the next split.
    //   - Valid and test: split j belongs to loader j mod loaders, because each pass must read
    //     every split exactly once, without a coordinator.
    // Topics have no such splits: their batch makers take partitions from feeds.
    if (sources.ordered) {
      const uint32_t lanes = static_cast<uint32_t>(job_.lanes());
      for (uint32_t lane = index_; lane < lanes; lane += loaders) {
        supplies_.push_back(std::make_unique<StaticSplits>(lane, lanes, splits));
        AddSource(stream, lane, parse_executor, supplies_.back().get(), &sources);
      }
    } else if (stream == TRAIN_STREAM && needs_lease()) {
      CHECK(lease != nullptr);
      AddSource(stream, index_, parse_executor, lease, &sources);
    } else {
      supplies_.push_back(std::make_unique<StaticSplits>(index_, loaders, splits));
      AddSource(stream, index_, parse_executor, supplies_.back().get(), &sources);
    }
    streams_.push_back(std::move(sources));
  }
}

}  // namespace satrap

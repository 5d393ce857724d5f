#include "data_loader/loader_streams.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "data_loader/source/run_files.h"

namespace satrap {
namespace {

// The bytes of all splits on disk, or the rows of the synthetic log.
uint64_t SizeOf(const std::vector<Split>& splits) {
  uint64_t size = 0;
  for (const Split& split : splits) size += split.to - split.from;
  return size;
}

using SplitsByStream = std::map<Stream, std::vector<Split>>;

// Of the streams that the job reads.
absl::StatusOr<SplitsByStream> ListSplitsOfRun(const JobConfig& job,
                                               const LoaderStreams::Begin& begin) {
  SplitsByStream splits;
  if (begin.fix_files) {
    ASSIGN_OR_RETURN(const SplitList listed, ListRunFiles(job));
    ASSIGN_OR_RETURN(const SplitList fixed, begin.fix_files(listed));
    RETURN_IF_ERROR(CheckRunFiles(job, fixed, listed));
    for (const StreamFiles& files : fixed.streams()) {
      const Stream stream = static_cast<Stream>(files.stream());
      ASSIGN_OR_RETURN(splits[stream], SplitsOf(job, stream, files));
    }
    return splits;
  }
  for (const Stream stream : {TRAIN_STREAM, VALID_STREAM, TEST_STREAM}) {
    if (job.action() != JobConfig::TRAIN && stream != TEST_STREAM) continue;
    ASSIGN_OR_RETURN(splits[stream], ListSplits(job, stream));
  }
  return splits;
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
  SplitsByStream splits;
  ASSIGN_OR_RETURN(splits, ListSplitsOfRun(job, begin));
  ASSIGN_OR_RETURN(Ledger consumed, Ledger::FromState(begin.ledger));
  std::unique_ptr<LoaderStreams> streams(new LoaderStreams(job, index, begin.position));
  ReadProgress::Options options;
  if (!job.run_dir().empty()) options.quarantine_dir = absl::StrCat(job.run_dir(), "/quarantine");
  options.loader_index = index;
  options.generation = begin.generation;
  options.max_bad_fraction = job.data().max_bad_fraction();
  const Ledger::Totals counted = consumed.OfEpoch(0);  // the epoch that counts bad records
  options.consumed_records = counted.rows;
  options.consumed_bad_records = counted.bad_records;
  options.log = std::move(log);
  // The size of an epoch, from which the time left is estimated.
  if (splits.count(TRAIN_STREAM) > 0) {
    (job.data().has_synthetic() ? options.train_rows : options.train_disk_bytes) =
        SizeOf(splits[TRAIN_STREAM]);
  }
  streams->progress_ = std::make_unique<ReadProgress>(std::move(options));
  for (auto& [stream, of_stream] : splits) {
    StreamBegin at;
    if (stream == TRAIN_STREAM) {
      // When training is over, no rank asks for the train stream.
      if (begin.position.next() == RunPosition::FINISH) continue;
      at.epoch = begin.position.epoch();
      at.consumed = std::move(consumed);
    }
    streams->specs_[stream] = std::make_shared<const StreamSpec>(
        job, stream, std::move(of_stream), streams->progress_.get(), std::move(at));
  }
  return streams;
}

uint32_t LoaderStreams::num_train_splits() const {
  const auto& spec = specs_[TRAIN_STREAM];
  return spec == nullptr ? 0 : static_cast<uint32_t>(spec->splits.size());
}

bool LoaderStreams::needs_lease() const {
  return specs_[TRAIN_STREAM] != nullptr && !specs_[TRAIN_STREAM]->ordered;
}

void LoaderStreams::AddSource(Stream stream, uint32_t lane, Executor* parse_executor,
                              SplitSupply* supply, LoaderEngine::StreamSources* to) {
  ParsedPartSource::Options options;
  options.lane = lane;
  if (to->ordered && static_cast<int>(lane) < position_.lanes_size()) {
    options.first_seq = position_.lanes(static_cast<int>(lane)).next_seq();
    options.has_left = position_.lanes(static_cast<int>(lane)).left();
  }
  // A lane has one order, so one maker; another stream has a maker for each parsing thread.
  options.num_makers = to->ordered ? 1 : std::max(1, job_.data_loader().threads());
  options.capacity_parts = static_cast<size_t>(std::max(1, job_.data_loader().prefetch_parts()));
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
    // Who reads which splits. Ordered: split j belongs to lane j mod lanes, and a lane to one
    // loader, so that the order of its batches does not depend on timing. Train, unordered: whoever
    // is free leases the next split. Valid and test: split j belongs to loader j mod loaders,
    // because each pass must read every split exactly once, without a coordinator.
    if (sources.ordered) {
      const uint32_t lanes = static_cast<uint32_t>(job_.lanes());
      for (uint32_t lane = index_; lane < lanes; lane += loaders) {
        supplies_.push_back(std::make_unique<StaticSplits>(lane, lanes, splits));
        AddSource(stream, lane, parse_executor, supplies_.back().get(), &sources);
      }
    } else if (stream == TRAIN_STREAM) {
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

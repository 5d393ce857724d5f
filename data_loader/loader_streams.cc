#include "data_loader/loader_streams.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"

namespace satrap {
namespace {

// The bytes of all splits on disk, or the rows of the synthetic log.
uint64_t SizeOf(const std::vector<Split>& splits) {
  uint64_t size = 0;
  for (const Split& split : splits) size += split.to - split.from;
  return size;
}

}  // namespace

LoaderStreams::LoaderStreams(const JobConfig& job, int index)
    : job_(job), index_(static_cast<uint32_t>(index)) {}

absl::StatusOr<std::unique_ptr<LoaderStreams>> LoaderStreams::Make(
    const JobConfig& job, int index, std::function<void(const std::string&)> log) {
  std::unique_ptr<LoaderStreams> streams(new LoaderStreams(job, index));
  ReadProgress::Options options;
  if (!job.run_dir().empty()) options.quarantine_dir = absl::StrCat(job.run_dir(), "/quarantine");
  options.loader_index = index;
  options.max_bad_fraction = job.data().max_bad_fraction();
  options.log = std::move(log);
  const bool trains = job.action() == JobConfig::TRAIN;
  // The size of an epoch, from which the time left is estimated.
  if (trains) {
    ASSIGN_OR_RETURN(const std::vector<Split> splits, ListSplits(job, TRAIN_STREAM));
    (job.data().has_synthetic() ? options.train_rows : options.train_disk_bytes) = SizeOf(splits);
  }
  streams->progress_ = std::make_unique<ReadProgress>(std::move(options));
  for (const Stream stream : {TRAIN_STREAM, VALID_STREAM, TEST_STREAM}) {
    if (!trains && stream != TEST_STREAM) continue;
    ASSIGN_OR_RETURN(streams->specs_[stream],
                     StreamSpec::Make(job, stream, streams->progress_.get()));
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

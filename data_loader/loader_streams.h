// The streams of a real loader: what the job says of files, lanes and splits, as sources that the
// engine can send (engine/loader_engine.h).
//
// Not thread-safe; the sources it owns are.

#ifndef SATRAP_DATA_LOADER_LOADER_STREAMS_H_
#define SATRAP_DATA_LOADER_LOADER_STREAMS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/executor.h"
#include "data_loader/batch/batch_maker.h"
#include "data_loader/batch/parsed_part_source.h"
#include "data_loader/batch/read_progress.h"
#include "data_loader/engine/loader_engine.h"
#include "data_loader/engine/split_supply.h"
#include "proto/job.pb.h"

namespace satrap {

class LoaderStreams {
 public:
  // Lists the splits of all streams of `job` and opens quarantine of loader `index`. Bad records
  // are told to `log`. Errors as ListSplits.
  static absl::StatusOr<std::unique_ptr<LoaderStreams>> Make(
      const JobConfig& job, int index, std::function<void(const std::string&)> log);

  // Splits of an epoch, for SplitLease; 0 if the job does not train.
  uint32_t num_train_splits() const;
  // Whether the train stream takes its splits from a lease.
  bool needs_lease() const;

  // Makes the sources. `parse_executor` as in ParsedPartSource; `lease` may be null if
  // !needs_lease(). Neither is owned; both must outlive this object. REQUIRES: once
  void MakeSources(Executor* parse_executor, SplitSupply* lease);

  // For the engine, valid as long as this object. REQUIRES: after MakeSources
  const std::vector<LoaderEngine::StreamSources>& sources() const { return streams_; }

  LoaderProgress Progress() const { return progress_->Snapshot(); }

  // Parts of all streams that are made and have not been taken. REQUIRES: after MakeSources
  size_t ready_parts() const;

 private:
  LoaderStreams(const JobConfig& job, int index);

  void AddSource(Stream stream, uint32_t lane, Executor* parse_executor, SplitSupply* supply,
                 LoaderEngine::StreamSources* to);

  const JobConfig job_;
  const uint32_t index_;
  std::unique_ptr<ReadProgress> progress_;
  std::shared_ptr<const StreamPlan> plans_[3];  // by Stream; null: the job has no such stream
  std::vector<std::unique_ptr<SplitSupply>> supplies_;
  std::vector<std::unique_ptr<ParsedPartSource>> parts_;
  std::vector<LoaderEngine::StreamSources> streams_;
};

}  // namespace satrap

#endif  // SATRAP_DATA_LOADER_LOADER_STREAMS_H_

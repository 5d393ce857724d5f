// LoaderStreams makes the sources of a real loader from the files, lanes and splits of its job; the
// LoaderEngine sends their parts (engine/loader_engine.h).
//
// Not thread-safe, but the sources that it owns are.

#ifndef SATRAP_DATA_LOADER_LOADER_STREAMS_H_
#define SATRAP_DATA_LOADER_LOADER_STREAMS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/thread/executor.h"
#include "data_loader/batch/parsed_part_source.h"
#include "data_loader/batch/read_progress.h"
#include "data_loader/batch/stream_spec.h"
#include "data_loader/engine/loader_engine.h"
#include "data_loader/engine/split_supply.h"
#include "proto/job.pb.h"
#include "proto/position.pb.h"

namespace satrap {

class LoaderStreams {
 public:
  // What this generation of the run begins from; as it is, a run that begins.
  struct Begin {
    uint64_t generation = 1;
    RunPosition position;
    LedgerState ledger;
    // Gives the files of the run for the list of the files that are there (run_files.h). Null: the
    // latter are used, and no file's content is hashed.
    std::function<absl::StatusOr<SplitList>(const SplitList&)> fix_files;
  };

  // Lists the files of all streams of `job`, fixes them and lists their splits. The bad records of
  // loader `index` are reported to `log` and kept in its quarantine files. Reads files and may wait
  // for fix_files.
  // Fails as ListFiles, fix_files and CheckRunFiles do; DATA_LOSS if the ledger contradicts itself.
  static absl::StatusOr<std::unique_ptr<LoaderStreams>> Make(
      const JobConfig& job, int index, std::function<void(const std::string&)> log,
      const Begin& begin = DefaultBegin());

  // The number of splits of an epoch, for SplitLeaseClient; 0 if the job does not train, or its
  // training is over.
  uint32_t num_train_splits() const;
  // Whether the train stream leases its splits from the coordinator.
  bool needs_lease() const;

  // Makes the sources. For `parse_executor` see ParsedPartSource; `lease` may be null if
  // !needs_lease(). Neither is owned; both must outlive this object. REQUIRES: called once
  void MakeSources(Executor* parse_executor, SplitSupply* lease);

  // For the engine; valid as long as this object lives. REQUIRES: after MakeSources
  const std::vector<LoaderEngine::StreamSources>& sources() const { return streams_; }

  LoaderProgress Progress() const { return progress_->Snapshot(); }
  // Records that were left out because they are consumed.
  uint64_t skipped_records() const { return progress_->skipped(); }

  // Parts of all streams that are ready and not yet taken. REQUIRES: after MakeSources
  size_t ready_parts() const;

 private:
  LoaderStreams(const JobConfig& job, int index, const RunPosition& position);

  static const Begin& DefaultBegin();

  void AddSource(Stream stream, uint32_t lane, Executor* parse_executor, SplitSupply* supply,
                 LoaderEngine::StreamSources* to);

  const JobConfig job_;
  const uint32_t index_;
  const RunPosition position_;
  std::unique_ptr<ReadProgress> progress_;
  std::shared_ptr<const StreamSpec> specs_[3];  // by Stream; null: the job has no such stream
  std::vector<std::unique_ptr<SplitSupply>> supplies_;
  std::vector<std::unique_ptr<ParsedPartSource>> parts_;
  std::vector<LoaderEngine::StreamSources> streams_;
};

}  // namespace satrap

#endif  // SATRAP_DATA_LOADER_LOADER_STREAMS_H_

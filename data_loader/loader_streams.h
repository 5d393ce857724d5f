// LoaderStreams makes the sources of a real loader as its job asks: from files or topics, with the
// job's lanes and splits. The LoaderEngine sends the parts of these sources
// (engine/loader_engine.h).
//
// Not thread-safe. These exceptions are thread-safe: the sources that it owns, Deal,
// known_partitions, and all methods that report progress.

#ifndef SATRAP_DATA_LOADER_LOADER_STREAMS_H_
#define SATRAP_DATA_LOADER_LOADER_STREAMS_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "common/thread/executor.h"
#include "data_loader/batch/parsed_part_source.h"
#include "data_loader/batch/read_progress.h"
#include "data_loader/batch/stream_spec.h"
#include "data_loader/engine/loader_engine.h"
#include "data_loader/engine/split_supply.h"
#include "data_loader/kafka/partition_feed.h"
#include "data_loader/kafka/topic_stream.h"
#include "proto/control.pb.h"
#include "proto/job.pb.h"
#include "proto/position.pb.h"

namespace satrap {

class LoaderStreams {
 public:
  // Where this generation begins. The defaults are those of a new run.
  struct Begin {
    uint64_t generation = 1;
    RunPosition position;
    LedgerState ledger;
    // Returns the files of the run, given the list of the files that exist now (run_files.h). The
    // result also has the topic partitions of the streams that read topics. If this function is
    // null, the files that exist now are used, and their content is not hashed.
    std::function<absl::StatusOr<SplitList>(const SplitList&)> fix_files;
    // Whether the run begins from nothing, that is, without a cut. Only then may the first labels
    // of a topic end the run (check/first_labels.h).
    bool judges_first_labels = false;
    // How to read topics. By default, from brokers and without a log.
    absl::optional<TopicAccess> topics;
  };

  // Lists the files of all streams of `job`, fixes them (fix_files), and lists their splits. Bad
  // records are reported to `log` and kept in the quarantine files of loader `index`. Reads files,
  // and may wait for fix_files. Fails as ListFiles, fix_files and CheckRunFiles do; DATA_LOSS if
  // the ledger contradicts itself; INTERNAL if fix_files returns no partitions for a stream that
  // reads topics.
  static absl::StatusOr<std::unique_ptr<LoaderStreams>> Make(
      const JobConfig& job, int index, std::function<void(const std::string&)> log,
      const Begin& begin = DefaultBegin());

  // The number of splits in an epoch, for SplitLeaseClient; 0 if the job does not train or its
  // training is over.
  uint32_t num_train_splits() const;
  // Whether the train stream leases its splits from the coordinator.
  bool needs_lease() const;

  // The run's file of items (SplitList.candidates) as it was when the run began; absent if the run
  // has no such file.
  const absl::optional<FileIdentity>& item_file() const { return item_file_; }
  // How the train stream is read; null if nothing is left to train. It is needed to count the
  // stream's items and to check its first labels.
  const StreamSpec* train_spec() const { return specs_[TRAIN_STREAM].get(); }

  // The number of topic partitions of the train stream that are known, from fix_files or from Deal.
  uint32_t known_partitions() const;
  // Call for each partition that was added to the train stream. The coordinator sends a partition
  // again until the loader knows it, so a partition whose number is not known_partitions() is
  // ignored. If the partition belongs to another loader, it is only counted.
  void Deal(const DealtPartition& dealt);

  // Makes the sources. See ParsedPartSource about `parse_executor`; `lease` may be null if
  // !needs_lease(). Neither is owned; both must outlive this object. REQUIRES: called once
  void MakeSources(Executor* parse_executor, SplitSupply* lease);

  // The sources for the engine, valid as long as this object lives. REQUIRES: after MakeSources
  const std::vector<LoaderEngine::StreamSources>& sources() const { return streams_; }

  LoaderProgress Progress() const;
  // The number of records that were left out because they are consumed.
  uint64_t skipped_records() const { return progress_->skipped(); }

  // The number of parts of all streams that are ready but not yet taken. REQUIRES: after
  // MakeSources
  size_t ready_parts() const;

  // The topics of the train stream; null if it reads files.
  const TopicStream* topics() const { return topics_[TRAIN_STREAM].get(); }

 private:
  LoaderStreams(const JobConfig& job, int index, const RunPosition& position);

  static const Begin& DefaultBegin();

  // Prepares a stream that reads topics: decides which source reads which partitions.
  absl::Status AddTopics(Stream stream, const StreamTopics& topics, const TopicAccess& access,
                         bool judges_first_labels);
  void AddSource(Stream stream, uint32_t lane, Executor* parse_executor, SplitSupply* supply,
                 LoaderEngine::StreamSources* to);

  const JobConfig job_;
  const uint32_t index_;
  const RunPosition position_;
  std::unique_ptr<ReadProgress> progress_;
  absl::optional<FileIdentity> item_file_;
  std::shared_ptr<const StreamSpec> specs_[3];  // by Stream; null: the job has no such stream
  std::shared_ptr<TopicStream> topics_[3];      // by Stream; null: it comes from files
  std::map<uint32_t, std::shared_ptr<PartitionFeed>> feeds_[3];  // only for topics; by lane
  std::atomic<uint32_t> known_partitions_{0};
  std::vector<std::unique_ptr<SplitSupply>> supplies_;
  std::vector<std::unique_ptr<ParsedPartSource>> parts_;
  std::vector<LoaderEngine::StreamSources> streams_;
};

}  // namespace satrap

#endif  // SATRAP_DATA_LOADER_LOADER_STREAMS_H_

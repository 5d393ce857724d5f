// A BatchMaker turns splits into global batches and cuts each into parts, one per NN worker. One
// serves one lane of an ordered stream, or one thread of an unordered one.
//
// Batches run across blocks and splits: only the last batch of an epoch may be smaller than the
// global batch. The sizes of a batch's parts differ by at most one.
//
// Not thread-safe; reads files: for the loader's parsing threads only.

#ifndef SATRAP_DATA_LOADER_BATCH_BATCH_MAKER_H_
#define SATRAP_DATA_LOADER_BATCH_BATCH_MAKER_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "data_loader/batch/part_encoder.h"
#include "data_loader/batch/read_progress.h"
#include "data_loader/batch/record_filter.h"
#include "data_loader/engine/part.h"
#include "data_loader/source/split_list.h"
#include "data_loader/synthetic/click_log.h"
#include "proto/job.pb.h"

namespace satrap {

// What the batch makers of a stream share. Immutable, but for `progress`, which is thread-safe.
struct StreamPlan {
  // Makes the plan of a stream; `progress` is not owned and must outlive it. Fails as ListSplits.
  static absl::StatusOr<std::shared_ptr<const StreamPlan>> Make(const JobConfig& job, Stream stream,
                                                                ReadProgress* progress);
  StreamPlan(const JobConfig& job, Stream stream, std::vector<Split> splits,
             ReadProgress* progress);

  const JobConfig job;
  const Stream stream;
  const std::vector<Split> splits;
  const RecordSchema schema;
  const PartEncoder encoder;
  const RecordFilter filter;
  const bool ordered;  // train in sync mode
  const bool shuffled;
  const uint64_t block_rows;
  // Whether this stream is the one that counts the bad records of its files.
  const bool reports_bad;
  const std::unique_ptr<const ClickLog> click_log;  // null: a text format
  ReadProgress* const progress;
};

class BatchMaker {
 public:
  virtual ~BatchMaker() = default;

  enum class Result {
    kBatch,       // *parts is a batch
    kNeedsSplit,  // call AddSplit or EndSplits, then MakeBatch again
    kEnd,         // the epoch is over
  };

  // REQUIRES: the first call, or the last MakeBatch said kEnd
  virtual void BeginEpoch(uint32_t epoch) = 0;
  // REQUIRES: split < the plan's number of splits
  virtual void AddSplit(uint32_t split) = 0;
  // There are no more splits in this epoch.
  virtual void EndSplits() = 0;

  // On kBatch, `parts` is replaced by the batch's parts, from part 0 on; stream, epoch and part are
  // set in each, and last_of_lane if ordered; lane and seq are the caller's to set. Parts of zero
  // samples are given only if ordered. Errors name the file.
  virtual absl::StatusOr<Result> MakeBatch(std::vector<Part>* parts) = 0;
};

// The maker for the plan's format.
std::unique_ptr<BatchMaker> NewBatchMaker(std::shared_ptr<const StreamPlan> plan);

// The two kinds there are: one reads records; the other keeps cycle_batches batches of the
// synthetic format encoded and gives them again and again.
std::unique_ptr<BatchMaker> NewRecordBatchMaker(std::shared_ptr<const StreamPlan> plan);
std::unique_ptr<BatchMaker> NewCyclingBatchMaker(std::shared_ptr<const StreamPlan> plan);

// Cuts a batch into its parts, as the makers do.
std::vector<Part> CutBatch(const StreamPlan& plan, absl::Span<const BlockRange> batch,
                           uint32_t epoch, bool last);
// Part 0 of a batch without samples.
Part EmptyPart(const StreamPlan& plan, uint32_t epoch);

}  // namespace satrap

#endif  // SATRAP_DATA_LOADER_BATCH_BATCH_MAKER_H_

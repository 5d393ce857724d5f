// A BatchMaker reads splits, makes global batches of their records, and cuts each batch into parts,
// one per NN worker. An ordered stream has one maker for each lane; an unordered stream has one for
// each parsing thread. Implementations: record_batch_maker.h, cycling_batch_maker.h.
//
// Batches run across the borders of blocks and splits: only the last batch of an epoch may be
// smaller than the global batch.
//
// If no records have arrived, MakeBatch of an endless stream waits for records, but for at most
// about 50 ms. So a quiet stream neither holds a thread nor keeps it busy.
//
// Not thread-safe. It reads files, so it runs on the loader's parsing threads only.

#ifndef SATRAP_DATA_LOADER_BATCH_BATCH_MAKER_H_
#define SATRAP_DATA_LOADER_BATCH_BATCH_MAKER_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "data_loader/batch/stream_spec.h"
#include "data_loader/engine/part.h"

namespace satrap {

class BatchMaker {
 public:
  virtual ~BatchMaker() = default;

  enum class Result {
    kBatch,       // *parts is a batch
    kNeedsSplit,  // call AddSplit or EndSplits, then MakeBatch again
    kNothingYet,  // no record has come for a while; call MakeBatch again
    kEnd,         // the epoch is over
  };

  // REQUIRES: this is the first call, or the last call of MakeBatch returned kEnd
  virtual void BeginEpoch(uint32_t epoch) = 0;
  // REQUIRES: split < the spec's number of splits
  virtual void AddSplit(uint32_t split) = 0;
  // Call when no more splits follow in this epoch.
  virtual void EndSplits() = 0;

  // If the result is kBatch, `parts` is replaced by the batch's parts, in order from part 0, as
  // CutBatch makes them. The caller sets lane and seq. Errors name the file.
  virtual absl::StatusOr<Result> MakeBatch(std::vector<Part>* parts) = 0;
};

// The batch maker for the spec's format.
std::unique_ptr<BatchMaker> NewBatchMaker(std::shared_ptr<const StreamSpec> spec);

}  // namespace satrap

#endif  // SATRAP_DATA_LOADER_BATCH_BATCH_MAKER_H_

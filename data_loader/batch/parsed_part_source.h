// A ParsedPartSource is the PartSource of a real loader. It runs batch makers on the loader's
// parsing threads and queues their parts until Next takes them. It reads ahead within the epoch,
// and starts no further batch once `capacity_parts` parts are queued. A maker that has nothing yet
// is called again after the tasks that are already waiting for a thread.
//
// Thread-safe.

#ifndef SATRAP_DATA_LOADER_BATCH_PARSED_PART_SOURCE_H_
#define SATRAP_DATA_LOADER_BATCH_PARSED_PART_SOURCE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "common/thread/executor.h"
#include "data_loader/batch/batch_maker.h"
#include "data_loader/engine/part_source.h"
#include "data_loader/engine/split_supply.h"

namespace satrap {

class ParsedPartSource final : public PartSource {
 public:
  struct Options {
    uint32_t lane = 0;   // PartId.lane of all parts
    int num_makers = 1;  // batch makers that run at the same time; 1 if the stream is ordered
    size_t capacity_parts = 8;
    // These two apply only to the stream's first epoch (StreamSpec.begin): the seq of the lane's
    // first batch in it, and whether the lane has left. A lane that has left has no more parts in
    // that epoch.
    uint64_t first_seq = 0;
    bool has_left = false;
    // Makes batch maker number `maker`, counted from 0. If null, NewBatchMaker of the spec is used.
    std::function<std::unique_ptr<BatchMaker>(int maker)> new_maker;
  };
  // Tasks on `parse_executor` wait for the disk, so it must not be the executor of an engine. It
  // and `supply` are not owned and must outlive this object and its tasks.
  ParsedPartSource(std::shared_ptr<const StreamSpec> spec, const Options& options,
                   Executor* parse_executor, SplitSupply* supply);
  // Stops reading after the batch that is being made. If a Next is open, its callback is never
  // called.
  ~ParsedPartSource() override;

  void Next(Callback done) override;

  // The number of parts in the queue.
  size_t ready_parts() const;

 private:
  struct Rep;
  const std::shared_ptr<Rep> rep_;
};

}  // namespace satrap

#endif  // SATRAP_DATA_LOADER_BATCH_PARSED_PART_SOURCE_H_

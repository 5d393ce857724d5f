#include "data_loader/batch/batch_maker.h"

#include <utility>

#include "data_loader/batch/cycling_batch_maker.h"
#include "data_loader/batch/record_batch_maker.h"

namespace satrap {

std::unique_ptr<BatchMaker> NewBatchMaker(std::shared_ptr<const StreamSpec> spec) {
  const bool cycles =
      spec->stream == TRAIN_STREAM && spec->job.data().synthetic().cycle_batches() > 0;
  return cycles ? NewCyclingBatchMaker(std::move(spec)) : NewRecordBatchMaker(std::move(spec));
}

}  // namespace satrap

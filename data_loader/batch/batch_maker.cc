#include "data_loader/batch/batch_maker.h"

#include <utility>

#include "data_loader/batch/cycling_batch_maker.h"
#include "data_loader/batch/record_batch_maker.h"

namespace satrap {

std::unique_ptr<BatchMaker> NewBatchMaker(std::shared_ptr<const StreamSpec> plan) {
  const bool cycles =
      plan->stream == TRAIN_STREAM && plan->job.data().synthetic().cycle_batches() > 0;
  return cycles ? NewCyclingBatchMaker(std::move(plan)) : NewRecordBatchMaker(std::move(plan));
}

}  // namespace satrap

// A rank's passes over validation and test sets: it requests parts from all embedding workers,
// scores one part at a time, acknowledges each part, and merges the metrics of all ranks when no
// worker has a part left. The merge is a collective, so it is the barrier at the end of a pass.
//
// Used on one serial executor. It owns none of the objects that are passed to it. They must outlive
// it, and it must outlive the callbacks of its calls.

#ifndef SATRAP_NN_WORKER_RANK_EVALUATION_PASSES_H_
#define SATRAP_NN_WORKER_RANK_EVALUATION_PASSES_H_

#include <cstdint>
#include <functional>
#include <memory>

#include "nn_worker/rank/embedding_worker_client.h"
#include "nn_worker/rank/failure_latch.h"
#include "nn_worker/rank/part_pipeline.h"
#include "nn_worker/rank/rank_options.h"
#include "nn_worker/rank/staleness_permit.h"
#include "nn_worker/rank/step_trainer.h"

namespace satrap {

class EvaluationPasses {
 public:
  using Done = std::function<void(const MetricValues&)>;

  EvaluationPasses(const RankOptions& options, int num_workers, EmbeddingWorkerClient* client,
                   StepTrainer* trainer, FailureLatch* failure);

  // Makes pass number `pass` over `stream`. When the pass has ended, `done` gets the metrics, which
  // are the same on every rank. After a failure `done` does not run. REQUIRES: the previous pass is
  // done, and nothing changes the tables
  void Begin(Stream stream, uint32_t pass, Done done);

 private:
  void Continue();
  void Acknowledge(uint64_t entry, int worker, uint64_t handle);

  const int num_workers_;
  const uint32_t park_ms_;
  EmbeddingWorkerClient* const client_;
  StepTrainer* const trainer_;
  FailureLatch* const failure_;
  StalenessPermits permits_;

  // The current pass.
  std::unique_ptr<PartPipeline> pipeline_;
  Stream stream_ = VALID_STREAM;
  Done done_;
  bool scoring_ = false;
  bool merging_ = false;
};

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_RANK_EVALUATION_PASSES_H_

// The files and topics of a run, as its loaders see them. All loaders of a generation must see the
// same files. The first list of a run stays its list (splits/split_files.h), and this list must
// order the samples as they were ordered when the cut was made.
//
// Only tasks of the coordinator's disk may use it; they run one at a time. It holds the state's
// mutex only briefly.

#ifndef SATRAP_DEPLOY_COORDINATOR_RUN_FILES_H_
#define SATRAP_DEPLOY_COORDINATOR_RUN_FILES_H_

#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "common/file/file_system.h"
#include "common/rpc/rpc.h"
#include "deploy/coordinator/log/generation_log.h"
#include "deploy/coordinator/state/coordinator_state.h"
#include "deploy/coordinator/topics/run_topics.h"
#include "proto/control.pb.h"
#include "proto/job.pb.h"
#include "proto/position.pb.h"

namespace satrap {

class RunFiles {
 public:
  struct Start {
    std::string cut_folder;  // of the cut that the generation began from; empty: none
    absl::optional<uint64_t> order_fingerprint;  // that of the cut
    uint64_t writer = 0;                         // as in CoordinatorOptions
  };
  // Owns none of the pointers.
  RunFiles(CoordinatorState* state, const JobConfig* job, Start start, const GenerationLog* log,
           RunTopics* topics, FileSystem* file_system)
      : state_(state),
        job_(job),
        start_(std::move(start)),
        log_(log),
        topics_(topics),
        file_system_(file_system) {}

  // Answers FixSplits, once the topics are known.
  void Fix(const FixSplitsRequest& request, rpc::Callback respond) EXCLUDES(state_->mutex);

 private:
  absl::StatusOr<SplitList> ListFor(const FixSplitsRequest& request) EXCLUDES(state_->mutex);

  CoordinatorState* const state_;
  const JobConfig* const job_;
  const Start start_;
  const GenerationLog* const log_;
  RunTopics* const topics_;
  FileSystem* const file_system_;
  absl::optional<SplitList> splits_;        // the run's
  absl::optional<FixSplitsRequest> first_;  // of this generation
};

}  // namespace satrap

#endif  // SATRAP_DEPLOY_COORDINATOR_RUN_FILES_H_

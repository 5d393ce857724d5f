// The saved models of a run:
//
//     RUN/models/step_N/        a model, N in ten digits
//       table_*.rows            rows, by the embedding PSs (docs/formats.md, "Saved rows")
//       dense.bin               the dense network (nn_worker/graph/dense_checkpoint.h)
//       manifest                what the model is made of (common/checkpoint/manifest.h)
//     RUN/models/best           a link to the newest of them
//
// The rename of the manifest is the commit: a folder without one is no model. The link is replaced
// after that, and the older model is removed last. Each of these is made durable before the next
// begins, so from the first save on `best` is a whole model at every moment, also after a power
// failure.
//
// Rank 0 and all embedding PSs must see the same folder. Calls block. Not thread-safe.

#ifndef SATRAP_NN_WORKER_CHECKPOINT_MODEL_STORE_H_
#define SATRAP_NN_WORKER_CHECKPOINT_MODEL_STORE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/checkpoint/file_system.h"
#include "common/rpc/rpc.h"
#include "proto/checkpoint.pb.h"
#include "proto/control.pb.h"
#include "proto/job.pb.h"

namespace satrap {

class ModelStore {
 public:
  // `embedding_ps` are the PSs by index. Neither they nor `file_system` are owned.
  ModelStore(const JobConfig& job, const Envelope& envelope,
             std::vector<rpc::Channel*> embedding_ps, FileSystem* file_system = DiskFileSystem());

  // Saves tables and `dense` (Network::Save()) as the run's model. After a failure, whose message
  // begins with "saving the model: ", the model before it is still there. REQUIRES: no Update is
  // running
  absl::Status Save(uint64_t step, const MetricValues& valid, absl::string_view dense);

  // The folder of the last Save that succeeded; empty before one has.
  const std::string& last_saved() const { return last_saved_; }

  // Replaces the tables of all PSs by those of the model in `directory`, and returns its dense
  // network. NOT_FOUND without a manifest, DATA_LOSS naming what is damaged, FAILED_PRECONDITION if
  // the tables are not those of this job.
  absl::StatusOr<std::string> Load(const std::string& directory);

  // Rows and bytes of each table, summed over the PSs.
  absl::StatusOr<std::vector<TableStats>> Stats();

 private:
  absl::Status SaveWhole(uint64_t step, const MetricValues& valid, absl::string_view dense);
  absl::StatusOr<CheckpointManifest> WriteFiles(const std::string& directory,
                                                absl::string_view dense);
  absl::Status Publish(const std::string& models, const std::string& name);
  void RemoveOthers(const std::string& models, const std::string& keep);
  // Sends each PS the same request, all at once, and waits for the answers.
  absl::StatusOr<std::vector<std::string>> CallAll(const rpc::Method& method,
                                                   const google::protobuf::MessageLite& request);

  const JobConfig job_;
  const Envelope envelope_;
  const std::vector<rpc::Channel*> embedding_ps_;
  FileSystem* const file_system_;
  std::string last_saved_;
};

// The folder of the model at `path`, which is a run folder or the model's own. NOT_FOUND if there
// is no whole model.
absl::StatusOr<std::string> FindSavedModel(const std::string& path);

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_CHECKPOINT_MODEL_STORE_H_

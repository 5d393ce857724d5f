// Reads cuts as models: where one is, and its dense network. docs/formats.md, "Cut".
//
// Thread-safe: functions of their arguments and the disk.

#ifndef SATRAP_NN_WORKER_CHECKPOINT_SAVED_MODEL_H_
#define SATRAP_NN_WORKER_CHECKPOINT_SAVED_MODEL_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/checkpoint/file_system.h"
#include "proto/checkpoint.pb.h"

namespace satrap {

// The file of the dense network in the folder of a cut.
inline constexpr char kDenseFile[] = "dense.bin";

// The folder of the cut at `path`: `path` itself, or for the folder of a run, or its `checkpoints`,
// the best cut if there is one and the newest otherwise. Links are resolved, so the answer stays
// the same cut. NOT_FOUND, saying what was looked for, or that the cut was removed, if there is
// none; errors as ReadManifest.
absl::StatusOr<std::string> FindSavedModel(const std::string& path);

// The dense network (nn_worker/graph/dense_checkpoint.h) of the cut in `directory`. Errors as
// ReadManifest; DATA_LOSS, naming the file, if it is missing or damaged.
absl::StatusOr<std::string> ReadDense(const std::string& directory,
                                      FileSystem* file_system = DiskFileSystem());

// What rank 0 reads before it is ready, so that a damaged file is found before the run goes on.
struct StartModel {
  std::string directory;  // of the cut or model; empty: the run begins from nothing
  std::string init_from;  // that it was found by; empty for the run's own cut
  // Keeps another run's cut on the disk (common/checkpoint/cut_pin.h) until all roles have loaded
  // it; null: the run's own, or locks do not reach.
  std::shared_ptr<FileLock> pin;
  std::string dense;  // its dense network, checked
  uint64_t step = 0;  // the steps that it was trained
  std::vector<std::string> tables;
  CheckpointManifest manifest;  // of its tables and features alone
};

// That of the cut in `cut_folder`; without one that of the model at `init_from` (FindSavedModel),
// pinned; without either an empty one. A model that vanishes while it is read, because its run goes
// on and locks do not reach, is looked for again (kReadsOfVanishingCuts). Errors as FindSavedModel
// and ReadDense, with what to do about them (common/checkpoint/start_cut.h) if they are the cut's;
// DATA_LOSS or FAILED_PRECONDITION, naming the file, if it holds no dense network that this program
// reads.
absl::StatusOr<StartModel> ReadStartModel(const std::string& cut_folder,
                                          const std::string& init_from,
                                          FileSystem* file_system = DiskFileSystem());

// Returns load(*model), and does that again with what `model->init_from` then stands for, in the
// place of *model, as long as its cut has vanished (kReadsOfVanishingCuts). Errors of the last
// load, and as ReadStartModel.
absl::Status LoadOrLookAgain(StartModel* model,
                             absl::FunctionRef<absl::Status(const StartModel& model)> load,
                             FileSystem* file_system = DiskFileSystem());

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_CHECKPOINT_SAVED_MODEL_H_

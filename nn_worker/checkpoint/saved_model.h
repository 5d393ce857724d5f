// Reads the dense network of a cut that is used as a model. docs/formats.md, "Cut".
//
// Thread-safe: the functions depend only on their arguments and on the disk.

#ifndef SATRAP_NN_WORKER_CHECKPOINT_SAVED_MODEL_H_
#define SATRAP_NN_WORKER_CHECKPOINT_SAVED_MODEL_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/file/file_system.h"
#include "proto/checkpoint.pb.h"

namespace satrap {

// The file of the dense network in the folder of a cut.
inline constexpr char kDenseFile[] = "dense.bin";

// The dense network (nn_worker/graph/saved/dense_checkpoint.h) of the cut in `directory`. Errors
// are those of ReadManifest; DATA_LOSS, naming the file, if it is missing or damaged.
absl::StatusOr<std::string> ReadDense(const std::string& directory,
                                      FileSystem* file_system = DiskFileSystem());

// The model that rank 0 reads before it is ready, so that a damaged file is found before the run
// continues.
struct StartModel {
  std::string directory;  // of the cut or model; empty: the run begins from nothing
  std::string init_from;  // the path it was found by; empty for the run's own cut
  // Keeps another run's cut on the disk (common/checkpoint/cut_pin.h) until all roles have loaded
  // it. Null for the run's own cut, and on file systems where locks have no effect.
  std::shared_ptr<FileLock> pin;
  std::string dense;  // its dense network, checked
  uint64_t step = 0;  // the steps that it was trained
  std::vector<std::string> tables;
  CheckpointManifest manifest;  // only its tables and features
};

// Reads the start model from the cut in `cut_folder`. If that is empty, reads it from the model at
// `init_from` (FindSavedModel in common/checkpoint/model_folder.h) and pins that model; if both are
// empty, so is the result. If a model vanishes while it is read, because its run is still training
// and locks have no effect on its file system, `init_from` is searched again
// (kReadsOfVanishingCuts). Errors are those of FindSavedModel and ReadDense; errors about the cut
// also say what to do about them (common/checkpoint/start_cut.h). DATA_LOSS or FAILED_PRECONDITION,
// naming the file, if it holds no dense network that this program can read.
absl::StatusOr<StartModel> ReadStartModel(const std::string& cut_folder,
                                          const std::string& init_from,
                                          FileSystem* file_system = DiskFileSystem());

// Returns load(*model). If the model's cut has vanished meanwhile, replaces *model by the model
// that `model->init_from` then names, and loads again, with at most kReadsOfVanishingCuts loads in
// all. Returns the error of the last load, or that of ReadStartModel.
absl::Status LoadOrLookAgain(StartModel* model,
                             absl::FunctionRef<absl::Status(const StartModel& model)> load,
                             FileSystem* file_system = DiskFileSystem());

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_CHECKPOINT_SAVED_MODEL_H_

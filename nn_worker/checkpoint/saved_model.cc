#include "nn_worker/checkpoint/saved_model.h"

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/cut_pin.h"
#include "common/checkpoint/manifest.h"
#include "common/checkpoint/model_folder.h"
#include "common/checkpoint/start_cut.h"
#include "common/numeric/crc32c.h"
#include "nn_worker/graph/saved/dense_checkpoint.h"

namespace satrap {
namespace {

// The checksum shows that the file is what was written. Decoding shows that it is a dense network:
// a file of another program would pass the checksum if it had a matching manifest.
absl::StatusOr<std::string> ReadChecked(const std::string& directory, FileSystem* file_system) {
  ASSIGN_OR_RETURN(std::string dense, ReadDense(directory, file_system));
  const absl::Status status = DecodeArrays(dense).status();
  if (status.ok()) return dense;
  return absl::Status(status.code(),
                      absl::StrCat(directory, "/", kDenseFile, ": ", status.message()));
}

// Pins the cut in `directory` and reads its start model. The result holds the pin.
absl::StatusOr<StartModel> ReadPinned(const std::string& directory, FileSystem* file_system) {
  StartModel model;
  model.directory = directory;
  ASSIGN_OR_RETURN(model.pin, PinCut(directory, file_system));
  ASSIGN_OR_RETURN(model.dense, ReadChecked(directory, file_system));
  return model;
}

absl::Status Describe(FileSystem* file_system, StartModel* model) {
  ASSIGN_OR_RETURN(const CheckpointManifest manifest, ReadManifest(model->directory, file_system));
  model->step = manifest.step();
  for (const SavedTable& table : manifest.tables()) model->tables.push_back(table.name());
  *model->manifest.mutable_tables() = manifest.tables();
  *model->manifest.mutable_features() = manifest.features();
  return absl::OkStatus();
}

absl::StatusOr<StartModel> ReadModelOf(const std::string& init_from, FileSystem* file_system) {
  for (int read = 1;; ++read) {
    ASSIGN_OR_RETURN(const std::string directory, FindSavedModel(init_from));
    absl::StatusOr<StartModel> model = ReadPinned(directory, file_system);
    absl::Status status = model.status();
    if (status.ok()) status = Describe(file_system, &*model);
    if (status.ok()) {
      model->init_from = init_from;
      return model;
    }
    const bool removed = absl::IsNotFound(status) || HasVanished(directory, file_system);
    if (!removed || read == kReadsOfVanishingCuts) return status;
  }
}

}  // namespace

absl::StatusOr<std::string> ReadDense(const std::string& directory, FileSystem* file_system) {
  ASSIGN_OR_RETURN(const CheckpointManifest manifest, ReadManifest(directory, file_system));
  const std::string path = absl::StrCat(directory, "/", manifest.dense_file());
  absl::StatusOr<std::string> dense = ReadFile(path, file_system);
  if (!dense.ok()) return absl::DataLossError(dense.status().message());
  if (dense->size() != manifest.dense_bytes() || Crc32c(*dense) != manifest.dense_crc32c()) {
    return absl::DataLossError(absl::StrCat(path, " is damaged: size or checksum do not match"));
  }
  return dense;
}

absl::StatusOr<StartModel> ReadStartModel(const std::string& cut_folder,
                                          const std::string& init_from, FileSystem* file_system) {
  if (cut_folder.empty() && init_from.empty()) return StartModel();
  if (cut_folder.empty()) return ReadModelOf(init_from, file_system);
  StartModel model;
  model.directory = cut_folder;
  absl::StatusOr<std::string> dense = ReadChecked(cut_folder, file_system);
  if (!dense.ok()) return MarkAsStartCutError(dense.status());
  model.dense = *std::move(dense);
  RETURN_IF_ERROR(Describe(file_system, &model));
  return model;
}

absl::Status LoadOrLookAgain(StartModel* model,
                             absl::FunctionRef<absl::Status(const StartModel& model)> load,
                             FileSystem* file_system) {
  for (int read = 1;; ++read) {
    const absl::Status status = load(*model);
    if (status.ok() || model->init_from.empty() || read == kReadsOfVanishingCuts ||
        !HasVanished(model->directory, file_system)) {
      return status;
    }
    ASSIGN_OR_RETURN(*model, ReadStartModel("", model->init_from, file_system));
  }
}

}  // namespace satrap

#include "nn_worker/checkpoint/model_store.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/types/optional.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/durable_file.h"
#include "common/checkpoint/manifest.h"
#include "common/config/text_format.h"
#include "common/file/file_error.h"
#include "common/numeric/crc32c.h"
#include "common/rpc/control_methods.h"
#include "common/thread/mutex.h"

namespace satrap {
namespace {

namespace fs = std::filesystem;

constexpr char kDenseFile[] = "dense.bin";
constexpr char kStepPrefix[] = "step_";
// Saving or loading tables may move terabytes, for which an hour is enough. A PS that dies in the
// meantime is noticed sooner, by its connection and by the coordinator.
constexpr int64_t kControlTimeoutMs = 3'600'000;

// Collects the answers of calls that run at the same time.
class Answers {
 public:
  explicit Answers(size_t count) : answers_(count), missing_(count) {}

  void Set(size_t i, absl::StatusOr<rpc::Message> answer) {
    MutexLock lock(&mutex_);
    answers_[i] = std::move(answer);
    if (--missing_ == 0) changed_.NotifyAll();
  }
  std::vector<absl::optional<absl::StatusOr<rpc::Message>>> Wait() {
    MutexLock lock(&mutex_);
    while (missing_ > 0) changed_.Wait(&mutex_);
    return std::move(answers_);
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  std::vector<absl::optional<absl::StatusOr<rpc::Message>>> answers_ GUARDED_BY(mutex_);
  size_t missing_ GUARDED_BY(mutex_);
};

fs::path ModelsDir(const std::string& run_dir) { return fs::path(run_dir) / "models"; }

void DescribeTables(const JobConfig& job, CheckpointManifest* manifest) {
  for (const TableConfig& table : job.tables()) {
    SavedTable* saved = manifest->add_tables();
    saved->set_name(table.name());
    saved->set_id(table.id());
    saved->set_fingerprint(TableFingerprint(table));
    uint64_t rows = 0;
    for (const SavedFile& file : manifest->table_files()) {
      if (file.table() == table.id()) rows += file.rows();
    }
    saved->set_rows(rows);
  }
}

}  // namespace

ModelStore::ModelStore(const JobConfig& job, const Envelope& envelope,
                       std::vector<rpc::Channel*> embedding_ps, FileSystem* file_system)
    : job_(job),
      envelope_(envelope),
      embedding_ps_(std::move(embedding_ps)),
      file_system_(file_system) {}

absl::StatusOr<std::vector<std::string>> ModelStore::CallAll(
    const rpc::Method& method, const google::protobuf::MessageLite& request) {
  auto answers = std::make_shared<Answers>(embedding_ps_.size());
  for (size_t i = 0; i < embedding_ps_.size(); ++i) {
    embedding_ps_[i]->Call(
        method, rpc::Message{request.SerializeAsString(), Buffer()}, kControlTimeoutMs,
        [answers, i](absl::StatusOr<rpc::Message> answer) { answers->Set(i, std::move(answer)); });
  }
  std::vector<std::string> headers;
  const auto all = answers->Wait();
  for (size_t i = 0; i < all.size(); ++i) {
    const absl::Status& status = all[i]->status();
    if (!status.ok()) {
      return absl::Status(status.code(), absl::StrCat(method.path, " at embedding_ps ", i, ": ",
                                                      std::string(status.message())));
    }
    headers.push_back((*all[i])->header);
  }
  return headers;
}

absl::Status ModelStore::Save(uint64_t step, const MetricValues& valid, absl::string_view dense) {
  const absl::Status status = SaveWhole(step, valid, dense);
  if (status.ok()) return status;
  return absl::Status(status.code(), absl::StrCat("saving the model: ", status.message()));
}

absl::Status ModelStore::SaveWhole(uint64_t step, const MetricValues& valid,
                                   absl::string_view dense) {
  const std::string models = ModelsDir(job_.run_dir()).string();
  const std::string name = absl::StrFormat("%s%010d", kStepPrefix, step);
  const std::string directory = absl::StrCat(models, "/", name);
  RETURN_IF_ERROR(file_system_->Remove(directory));  // of a save that failed
  RETURN_IF_ERROR(file_system_->CreateFolders(directory));
  ASSIGN_OR_RETURN(CheckpointManifest manifest, WriteFiles(directory, dense));
  manifest.set_step(step);
  *manifest.mutable_valid() = valid;
  RETURN_IF_ERROR(WriteManifest(directory, manifest, file_system_));
  // The files are durable, but the folder's name in `models` may not be, nor, after the first save,
  // the name `models` in the run's folder. Without these two syncs a power failure could leave the
  // link without its target.
  RETURN_IF_ERROR(file_system_->SyncFolder(models));
  RETURN_IF_ERROR(file_system_->SyncFolder(job_.run_dir()));
  RETURN_IF_ERROR(Publish(models, name));
  last_saved_ = directory;
  RemoveOthers(models, name);
  return absl::OkStatus();
}

// Writes everything but the manifest, which it returns without the fields that only Save knows.
absl::StatusOr<CheckpointManifest> ModelStore::WriteFiles(const std::string& directory,
                                                          absl::string_view dense) {
  CheckpointManifest manifest;
  manifest.set_version(kManifestVersion);
  manifest.set_job_name(job_.name());

  SaveTablesRequest request;
  *request.mutable_envelope() = envelope_;
  request.set_directory(directory);
  ASSIGN_OR_RETURN(const std::vector<std::string> answers, CallAll(rpc::kSaveTables, request));
  for (const std::string& bytes : answers) {
    SaveTablesAnswer answer;
    if (!answer.ParseFromString(bytes)) return absl::InternalError("SaveTables: bad answer");
    for (const SavedFile& file : answer.files()) *manifest.add_table_files() = file;
  }
  DescribeTables(job_, &manifest);

  ASSIGN_OR_RETURN(const std::unique_ptr<DurableFile> file,
                   DurableFile::Create(absl::StrCat(directory, "/", kDenseFile), file_system_));
  RETURN_IF_ERROR(file->Append(dense));
  RETURN_IF_ERROR(file->Commit());
  manifest.set_dense_file(kDenseFile);
  manifest.set_dense_bytes(file->size_bytes());
  manifest.set_dense_crc32c(file->crc32c());
  return manifest;
}

// Points `best` at the model `name`. A link cannot be changed in place, so a new one is made and
// renamed over the old one.
absl::Status ModelStore::Publish(const std::string& models, const std::string& name) {
  const std::string link = models + "/best.new";
  RETURN_IF_ERROR(file_system_->Remove(link));  // of a save that failed
  RETURN_IF_ERROR(file_system_->CreateLink(name, link));
  RETURN_IF_ERROR(file_system_->Rename(link, models + "/best"));
  return file_system_->SyncFolder(models);
}

// Removes all models but `keep`, and what failed saves have left. REQUIRES: `best` names `keep`
// durably, or a power failure could leave a link to a removed model
void ModelStore::RemoveOthers(const std::string& models, const std::string& keep) {
  const auto names = file_system_->List(models);
  if (!names.ok()) return;
  for (const std::string& name : *names) {
    if (!absl::StartsWith(name, kStepPrefix) || name == keep) continue;
    // A model that cannot be removed costs space and nothing else.
    file_system_->Remove(absl::StrCat(models, "/", name)).IgnoreError();
  }
}

absl::StatusOr<std::string> ModelStore::Load(const std::string& directory) {
  ASSIGN_OR_RETURN(const CheckpointManifest manifest, ReadManifest(directory));
  const std::string path = absl::StrCat(directory, "/", manifest.dense_file());
  absl::StatusOr<std::string> dense = ReadWholeFile(path);
  if (!dense.ok()) return absl::DataLossError(dense.status().message());
  if (dense->size() != manifest.dense_bytes() || Crc32c(*dense) != manifest.dense_crc32c()) {
    return absl::DataLossError(absl::StrCat(path, " is damaged: size or checksum do not match"));
  }
  LoadTablesRequest request;
  *request.mutable_envelope() = envelope_;
  request.set_directory(directory);
  RETURN_IF_ERROR(CallAll(rpc::kLoadTables, request).status());
  return dense;
}

absl::StatusOr<std::vector<TableStats>> ModelStore::Stats() {
  TableStatsRequest request;
  *request.mutable_envelope() = envelope_;
  ASSIGN_OR_RETURN(const std::vector<std::string> answers, CallAll(rpc::kTableStats, request));
  std::vector<TableStats> sums;
  for (const std::string& bytes : answers) {
    TableStatsAnswer answer;
    if (!answer.ParseFromString(bytes)) return absl::InternalError("TableStats: bad answer");
    for (const TableStats& stats : answer.tables()) {
      auto sum = std::find_if(sums.begin(), sums.end(),
                              [&](const TableStats& s) { return s.name() == stats.name(); });
      if (sum == sums.end()) {
        sums.push_back(stats);
      } else {
        sum->set_rows(sum->rows() + stats.rows());
        sum->set_bytes(sum->bytes() + stats.bytes());
      }
    }
  }
  return sums;
}

absl::StatusOr<std::string> FindSavedModel(const std::string& path) {
  for (const fs::path& directory : {fs::path(path), ModelsDir(path) / "best"}) {
    const absl::Status status = ReadManifest(directory.string()).status();
    if (absl::IsNotFound(status)) continue;
    RETURN_IF_ERROR(status);
    std::error_code error;
    const fs::path canonical = fs::canonical(directory, error);
    if (error) return FileError("read", directory.string(), error.value());
    return canonical.string();
  }
  return absl::NotFoundError(absl::StrCat("no saved model in ", path));
}

}  // namespace satrap

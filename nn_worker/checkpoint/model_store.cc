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
#include "common/checkpoint/durable_file.h"
#include "common/checkpoint/manifest.h"
#include "common/config/text_format.h"
#include "common/crc32c.h"
#include "common/mutex.h"
#include "common/rpc/control_methods.h"
#include "common/status_macros.h"

namespace satrap {
namespace {

namespace fs = std::filesystem;

constexpr char kDenseFile[] = "dense.bin";
constexpr char kStepPrefix[] = "step_";
// A save or a load of tables moves as many bytes as there are: an hour is enough for terabytes. A
// PS that dies meanwhile is noticed sooner, by its connection and by the coordinator.
constexpr int64_t kControlTimeoutMs = 3'600'000;

// Answers of calls that are made at the same time.
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

// Points `best` at the model in `directory`, in one step.
absl::Status Publish(const fs::path& directory) {
  const fs::path link = directory.parent_path() / "best.new";
  std::error_code error;
  fs::remove(link, error);
  fs::create_directory_symlink(directory.filename(), link, error);
  if (!error) fs::rename(link, directory.parent_path() / "best", error);
  if (error) {
    return absl::UnavailableError(
        absl::StrCat("cannot link ", directory.string(), ": ", error.message()));
  }
  return absl::OkStatus();
}

// Removes all models but `keep`, and what saves that failed have left.
void RemoveOthers(const fs::path& keep) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(keep.parent_path(), error)) {
    const bool is_model = absl::StartsWith(entry.path().filename().string(), kStepPrefix);
    std::error_code ignored;  // what stays costs space and nothing else
    if (is_model && entry.path() != keep) fs::remove_all(entry.path(), ignored);
  }
}

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
                       std::vector<rpc::Channel*> embedding_ps)
    : job_(job), envelope_(envelope), embedding_ps_(std::move(embedding_ps)) {}

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
  const std::string directory =
      (ModelsDir(job_.run_dir()) / absl::StrFormat("%s%010d", kStepPrefix, step)).string();
  std::error_code error;
  fs::remove_all(directory, error);
  fs::create_directories(directory, error);
  if (error) {
    return absl::UnavailableError(absl::StrCat("cannot make ", directory, ": ", error.message()));
  }
  CheckpointManifest manifest;
  manifest.set_version(kManifestVersion);
  manifest.set_job_name(job_.name());
  manifest.set_step(step);
  *manifest.mutable_valid() = valid;

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
                   DurableFile::Create(absl::StrCat(directory, "/", kDenseFile)));
  RETURN_IF_ERROR(file->Append(dense));
  RETURN_IF_ERROR(file->Commit());
  manifest.set_dense_file(kDenseFile);
  manifest.set_dense_bytes(file->size_bytes());
  manifest.set_dense_crc32c(file->crc32c());
  RETURN_IF_ERROR(WriteManifest(directory, manifest));
  RETURN_IF_ERROR(Publish(directory));
  last_saved_ = directory;
  RemoveOthers(directory);
  return absl::OkStatus();
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
    return fs::canonical(directory, error).string();
  }
  return absl::NotFoundError(absl::StrCat("no saved model in ", path));
}

}  // namespace satrap

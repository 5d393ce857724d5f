#include "common/file/durable_file.h"

#include <utility>

#include "absl/strings/str_replace.h"
#include "common/base/status_macros.h"
#include "common/numeric/crc32c.h"

namespace satrap {
namespace {

std::string PartialOf(const std::string& path) { return path + ".partial"; }

std::string FolderOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash + 1);
}

// Turns an error about the partial file into one about `path`, the name that the caller knows.
absl::Status ErrorOfPath(const std::string& path, const absl::Status& status) {
  if (status.ok()) return status;
  return absl::Status(status.code(),
                      absl::StrReplaceAll(status.message(), {{PartialOf(path), path}}));
}

}  // namespace

absl::StatusOr<std::unique_ptr<DurableFile>> DurableFile::Create(const std::string& path,
                                                                 FileSystem* file_system) {
  absl::StatusOr<std::unique_ptr<WritableFile>> file = file_system->Create(PartialOf(path));
  if (!file.ok()) return ErrorOfPath(path, file.status());
  return std::unique_ptr<DurableFile>(new DurableFile(path, *std::move(file), file_system));
}

DurableFile::DurableFile(std::string path, std::unique_ptr<WritableFile> file,
                         FileSystem* file_system)
    : path_(std::move(path)),
      partial_path_(PartialOf(path_)),
      file_system_(file_system),
      file_(std::move(file)) {}

DurableFile::~DurableFile() {
  if (file_ == nullptr) return;
  file_.reset();
  // A partial file that cannot be removed costs space, but the next attempt replaces it.
  file_system_->Remove(partial_path_).IgnoreError();
}

absl::Status DurableFile::Append(absl::string_view bytes) {
  RETURN_IF_ERROR(ErrorOfPath(path_, file_->Append(bytes)));
  size_bytes_ += bytes.size();
  crc32c_ = ExtendCrc32c(crc32c_, bytes);
  return absl::OkStatus();
}

absl::Status DurableFile::Commit() {
  // The bytes must be on disk before the name points at them: a crash in between must leave the old
  // file or the new one, not an empty one.
  RETURN_IF_ERROR(ErrorOfPath(path_, file_->Sync()));
  RETURN_IF_ERROR(file_system_->Rename(partial_path_, path_));
  // Then the name itself must be durable: otherwise a crash may bring the old file back.
  file_.reset();
  return file_system_->SyncFolder(FolderOf(path_));
}

}  // namespace satrap

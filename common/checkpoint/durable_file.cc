#include "common/checkpoint/durable_file.h"

#include <utility>

#include "common/base/status_macros.h"
#include "common/numeric/crc32c.h"

namespace satrap {
namespace {

std::string PartialOf(const std::string& path) { return path + ".partial"; }

std::string FolderOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash + 1);
}

}  // namespace

absl::StatusOr<std::unique_ptr<DurableFile>> DurableFile::Create(const std::string& path,
                                                                 FileSystem* file_system) {
  ASSIGN_OR_RETURN(std::unique_ptr<WritableFile> file, file_system->Create(PartialOf(path)));
  return std::unique_ptr<DurableFile>(new DurableFile(path, std::move(file), file_system));
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
  // A partial file that cannot be removed costs space, and is replaced by the next attempt.
  file_system_->Remove(partial_path_).IgnoreError();
}

absl::Status DurableFile::Append(absl::string_view bytes) {
  RETURN_IF_ERROR(file_->Append(bytes));
  size_bytes_ += bytes.size();
  crc32c_ = ExtendCrc32c(crc32c_, bytes);
  return absl::OkStatus();
}

absl::Status DurableFile::Commit() {
  // The bytes must be on disk before the name points at them: a crash in between must leave the old
  // file or the new one, not an empty one.
  RETURN_IF_ERROR(file_->Sync());
  RETURN_IF_ERROR(file_system_->Rename(partial_path_, path_));
  // Then the name itself: without this a crash may bring the old file back.
  file_.reset();
  return file_system_->SyncFolder(FolderOf(path_));
}

}  // namespace satrap

#include "deploy/launcher/kept_data_warnings.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/checked_text.h"
#include "common/file/durable_file.h"
#include "common/thread/clock.h"

namespace satrap {
namespace {

absl::Status Replace(const std::string& path, const LoaderProgress& kept, FileSystem* disk) {
  ASSIGN_OR_RETURN(const std::unique_ptr<DurableFile> file, DurableFile::Create(path, disk));
  RETURN_IF_ERROR(file->Append(CheckedText(kept)));
  return file->Commit();
}

}  // namespace

struct KeptDataWarnings::Saved {
  Mutex mutex;
  uint64_t version GUARDED_BY(mutex) = 0;
  absl::Status last GUARDED_BY(mutex);  // status of the last attempt
};

KeptDataWarnings::KeptDataWarnings(const std::string& run_dir, bool has_begun, FileSystem* disk)
    : path_(run_dir + kDataWarningsFile),
      disk_(disk),
      saved_(std::make_shared<Saved>()),
      thread_(/*most=*/1) {
  {
    MutexLock lock(&saved_->mutex);
    saved_->last =
        absl::UnavailableError(absl::StrCat(path_, ": no thread could be started to write it"));
  }
  LoaderProgress kept;
  const absl::Status read = ReadCheckedText(path_, disk_, &kept);
  if (!read.ok()) {
    if (!absl::IsNotFound(read)) problem_ = read;
    // Earlier reports are unknown: the file is damaged, or an earlier build began the run.
    if (has_begun) warnings_ = DataWarnings(/*since_begin=*/false);
    return;
  }
  warnings_.Restore(kept);
  if (kept.labels_size() == 0) return;
  // If the disk is too full to write the file, remove it, which is still possible. Then the next
  // command does not know the warnings. It would be worse if that command believed that the old
  // file has all labels.
  if (!Replace(path_, warnings_.Kept(), disk_).ok()) disk_->Remove(path_).IgnoreError();
}

std::vector<std::string> KeptDataWarnings::TakeNew(const StatusAnswer& status) {
  std::vector<std::string> fresh = warnings_.TakeNew(status);
  if (!fresh.empty()) ++version_;
  Save(warnings_.Kept());
  return fresh;
}

absl::Status KeptDataWarnings::Close(bool at_end, int64_t timeout_ms) {
  const int64_t deadline_ms = MonotonicMs() + timeout_ms;
  const auto await = [&] {
    return thread_.Await(std::max<int64_t>(deadline_ms - MonotonicMs(), 0));
  };
  const absl::Status late = absl::DeadlineExceededError(
      absl::StrCat(path_, ": it was not written within ", timeout_ms, " ms; does the disk hang?"));
  if (!await()) return late;
  if (at_end) ++version_;
  Save(at_end ? warnings_.KeptAtEnd() : warnings_.Kept());
  if (!await()) return late;
  MutexLock lock(&saved_->mutex);
  return saved_->version == version_ ? absl::OkStatus() : saved_->last;
}

void KeptDataWarnings::Save(LoaderProgress kept) {
  {
    MutexLock lock(&saved_->mutex);
    if (saved_->version == version_) return;
  }
  // If the thread is busy, or cannot be started, this saves nothing; the next call saves the state
  // as it is by then.
  thread_.Post(
      [path = path_, disk = disk_, saved = saved_, version = version_, kept = std::move(kept)] {
        absl::Status written = Replace(path, kept, disk);
        MutexLock lock(&saved->mutex);
        if (written.ok()) saved->version = version;
        saved->last = std::move(written);
      });
}

}  // namespace satrap

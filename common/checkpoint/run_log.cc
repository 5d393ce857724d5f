#include "common/checkpoint/run_log.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/checked_text.h"

namespace satrap {
namespace {

constexpr size_t kEntryDigits = 8;

std::string LogDir(const std::string& run_dir) { return run_dir + "/log"; }

std::string EntryPath(const std::string& run_dir, size_t number) {
  return absl::StrFormat("%s/%0*d", LogDir(run_dir), kEntryDigits, number);
}

// The numbers of the folder's entries, ascending. Entries under other names were never linked.
std::vector<size_t> EntryNumbers(const std::vector<std::string>& names) {
  std::vector<size_t> numbers;
  for (const std::string& name : names) {
    if (name.size() != kEntryDigits || name.find_first_not_of("0123456789") != std::string::npos) {
      continue;
    }
    numbers.push_back(std::stoul(name));
  }
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

template <typename Entries>
auto FindLast(const Entries& entries, RunLogEntry::KindCase kind) {
  return std::find_if(entries.rbegin(), entries.rend(),
                      [kind](const RunLogEntry& entry) { return entry.kind_case() == kind; });
}

}  // namespace

absl::StatusOr<RunLog> RunLog::Open(const std::string& run_dir, FileSystem* file_system,
                                    uint64_t writer) {
  RunLog log(run_dir, file_system, writer);
  const auto names = file_system->List(LogDir(run_dir));
  if (absl::IsNotFound(names.status())) return log;
  RETURN_IF_ERROR(names.status());
  for (const size_t number : EntryNumbers(*names)) {
    const std::string path = EntryPath(run_dir, number);
    if (number != log.entries_.size() + 1) {
      return absl::DataLossError(absl::StrCat("the log of the run has no entry ",
                                              EntryPath(run_dir, log.entries_.size() + 1), " but ",
                                              path, ": restore the log folder as a whole"));
    }
    RunLogEntry entry;
    RETURN_IF_ERROR(ReadCheckedText(path, file_system, &entry));
    if (entry.kind_case() == RunLogEntry::KIND_NOT_SET) {
      return absl::DataLossError(absl::StrCat(path, " holds no entry that this build knows"));
    }
    log.entries_.push_back(std::move(entry));
  }
  return log;
}

absl::Status RunLog::Append(const RunLogEntry& entry) {
  const std::string folder = LogDir(run_dir_);
  if (entries_.empty()) {
    RETURN_IF_ERROR(file_system_->CreateFolders(folder));
    RETURN_IF_ERROR(file_system_->SyncFolder(run_dir_));
  }
  // The process that linked the last entry may have died before it synced the folder. Without this
  // a loss of power could keep the next entry and lose that one.
  if (!synced_) RETURN_IF_ERROR(file_system_->SyncFolder(folder));
  synced_ = true;
  const std::string path = EntryPath(run_dir_, entries_.size() + 1);
  // A name of this writer's own: another coordinator may write its entry at the same time.
  const std::string draft =
      absl::StrCat(path, ".", absl::Hex(writer_, absl::kZeroPad16), ".partial");
  const std::string text = CheckedText(entry);
  ASSIGN_OR_RETURN(std::unique_ptr<WritableFile> file, file_system_->Create(draft));
  absl::Status status = file->Append(text);
  if (status.ok()) status = file->Sync();
  file.reset();
  if (status.ok()) status = file_system_->HardLink(draft, path);
  // Only the link counts, and a draft that cannot be removed costs a few bytes.
  file_system_->Remove(draft).IgnoreError();
  RETURN_IF_ERROR(status);
  RETURN_IF_ERROR(file_system_->SyncFolder(folder));
  entries_.push_back(entry);
  return absl::OkStatus();
}

const GenerationEntry* RunLog::last_generation() const {
  const auto entry = FindLast(entries_, RunLogEntry::kGeneration);
  return entry == entries_.rend() ? nullptr : &entry->generation();
}

const CutEntry* RunLog::last_cut() const {
  const auto entry = FindLast(entries_, RunLogEntry::kCut);
  return entry == entries_.rend() ? nullptr : &entry->cut();
}

const EndEntry* RunLog::end() const {
  const auto entry = FindLast(entries_, RunLogEntry::kEnd);
  return entry == entries_.rend() ? nullptr : &entry->end();
}

int RunLog::generations_without_cut() const {
  int generations = 0;
  for (auto entry = entries_.rbegin(); entry != entries_.rend() && !entry->has_cut(); ++entry) {
    generations += entry->has_generation() ? 1 : 0;
  }
  return generations;
}

std::string CutName(uint64_t generation, uint64_t cut) {
  return absl::StrFormat("cut_%04d_%06d", generation, cut);
}

std::string CheckpointsDir(const std::string& run_dir) { return run_dir + "/checkpoints"; }

}  // namespace satrap

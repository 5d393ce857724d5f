#include "common/checkpoint/run_log.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/checked_text.h"
#include "common/checkpoint/entries/old_phrases.h"
#include "common/checkpoint/entries/run_end.h"
#include "common/checkpoint/log_compaction.h"

namespace satrap {
namespace {

constexpr size_t kEntryDigits = 8;

constexpr char kDraftSuffix[] = ".partial";

// How many times a reader lists the folder again because a file that it wants to read has been
// removed. Each time another coordinator has compacted the log, so even a few times are unusual.
constexpr int kMostListings = 100;

std::string LogDir(const std::string& run_dir) { return run_dir + "/log"; }

std::string EntryPath(const std::string& run_dir, size_t number) {
  return absl::StrFormat("%s/%0*d", LogDir(run_dir), kEntryDigits, number);
}

// The numbers of the folder's entries, ascending. Files with other names are not entries.
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

// Syncs the folders above `path`, so that a power failure cannot lose the names on the way to it.
// The process that made the run's folder, and perhaps some folders above it, has not synced these
// names.
absl::Status SyncFoldersAbove(std::string path, FileSystem* file_system) {
  bool is_parent = true;
  for (size_t slash = path.rfind('/'); slash != std::string::npos && path.size() > 1;
       slash = path.rfind('/')) {
    path.resize(std::max<size_t>(slash, 1));  // "/" stays
    const absl::Status status = file_system->SyncFolder(path);
    // This process is not allowed to read the folder, so it cannot have made the run's folder in
    // it.
    if (absl::IsPermissionDenied(status)) break;
    // Ignores errors of the folders further up: they most likely existed before, and not every file
    // system can sync a folder.
    if (is_parent) RETURN_IF_ERROR(status);
    is_parent = false;
  }
  return absl::OkStatus();
}

// Adds the partitions of an entry to those of earlier entries. If it cannot, returns the reason and
// changes nothing.
absl::Status AddTopics(const TopicsEntry& entry, std::vector<StreamTopics>* topics) {
  std::vector<StreamTopics> merged = *topics;
  for (const StreamTopics& added : entry.topics()) {
    auto stream = std::find_if(merged.begin(), merged.end(), [&added](const StreamTopics& each) {
      return each.stream() == added.stream();
    });
    if (stream == merged.end()) {
      stream = merged.emplace(stream);
      stream->set_stream(added.stream());
      stream->set_cluster_id(added.cluster_id());
    }
    if (stream->cluster_id() != added.cluster_id()) {
      return absl::DataLossError(absl::StrCat("names the cluster ", added.cluster_id(),
                                              ", but an earlier entry names ",
                                              stream->cluster_id()));
    }
    for (const TopicPartition& partition : added.partitions()) {
      for (const TopicPartition& known : stream->partitions()) {
        if (known.topic() != partition.topic() || known.partition() != partition.partition()) {
          continue;
        }
        return absl::DataLossError(absl::StrCat("adds partition ", partition.partition(),
                                                " of topic ", partition.topic(), " a second time"));
      }
      *stream->add_partitions() = partition;
    }
  }
  *topics = std::move(merged);
  return absl::OkStatus();
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
  absl::optional<size_t> missing_before;
  for (int listing = 0; listing < kMostListings; ++listing) {
    const auto names = file_system->List(LogDir(run_dir));
    if (absl::IsNotFound(names.status())) return log;
    RETURN_IF_ERROR(names.status());
    const std::vector<size_t> numbers = EntryNumbers(*names);
    absl::optional<size_t> missing;
    absl::StatusOr<std::vector<RunLogEntry>> read = log.ReadDown(numbers, &missing);
    if (missing.has_value() && missing != missing_before) {
      missing_before = missing;
      continue;
    }
    RETURN_IF_ERROR(read.status());
    log.number_ = numbers.empty() ? 0 : numbers.back() - read->size();
    // ReadDown returned the entries from the highest number down.
    for (size_t left = read->size(); left > 0; --left) {
      ++log.number_;
      if (const absl::Status taken = log.Take(std::move((*read)[left - 1])); !taken.ok()) {
        return absl::DataLossError(
            absl::StrCat(EntryPath(run_dir, log.number_), " ", taken.message()));
      }
    }
    return log;
  }
  return absl::UnavailableError(
      absl::StrCat("the log in ", LogDir(run_dir), " was read ", kMostListings,
                   " times, and each time some of its files were removed meanwhile"));
}

absl::StatusOr<std::vector<RunLogEntry>> RunLog::ReadDown(const std::vector<size_t>& numbers,
                                                          absl::optional<size_t>* missing) const {
  std::vector<RunLogEntry> entries;
  size_t expected = numbers.empty() ? 0 : numbers.back();
  for (auto number = numbers.rbegin(); expected > 0; ++number, --expected) {
    const std::string path = EntryPath(run_dir_, expected);
    // The entry above the gap is number `expected` + 1. Listing a folder takes time, so a removal
    // that has just begun can also show as a gap.
    if (number == numbers.rend() || *number != expected) {
      *missing = expected;
      return absl::DataLossError(absl::StrCat("the log of the run lacks the entry ", path,
                                              ", but has ", EntryPath(run_dir_, expected + 1),
                                              ": restore the log folder as a whole"));
    }
    RunLogEntry entry;
    const absl::Status status = ReadCheckedText(path, file_system_, &entry);
    if (absl::IsNotFound(status)) *missing = expected;
    RETURN_IF_ERROR(status);
    if (entry.kind_case() == RunLogEntry::KIND_NOT_SET) {
      return absl::DataLossError(absl::StrCat(path, " holds no entry that this build knows"));
    }
    if (entry.has_generation()) ReadOldCause(entry.mutable_generation());
    entries.push_back(std::move(entry));
    if (entries.back().has_compacted()) break;
  }
  return entries;
}

// Adds the next entry. A COMPACTED one replaces all entries so far.
absl::Status RunLog::Take(RunLogEntry entry) {
  if (entry.has_compacted()) {
    entries_.clear();
    topics_.clear();
    compacted_number_ = number_;
    left_out_cuts_ = entry.compacted().left_out_cuts();
    for (RunLogEntry& kept : *entry.mutable_compacted()->mutable_entries()) {
      RETURN_IF_ERROR(Take(std::move(kept)));
    }
    return absl::OkStatus();
  }
  RETURN_IF_ERROR(AddTopics(entry.topics(), &topics_));
  entries_.push_back(std::move(entry));
  return absl::OkStatus();
}

absl::Status RunLog::Append(const RunLogEntry& entry) {
  std::vector<StreamTopics> topics = topics_;  // only checks whether they can be added
  if (const absl::Status added = AddTopics(entry.topics(), &topics); !added.ok()) {
    return absl::InvalidArgumentError(absl::StrCat("a log entry ", added.message()));
  }
  const std::string folder = LogDir(run_dir_);
  if (number_ == 0) {
    RETURN_IF_ERROR(file_system_->CreateFolders(folder));
    RETURN_IF_ERROR(file_system_->SyncFolder(run_dir_));
    RETURN_IF_ERROR(SyncFoldersAbove(run_dir_, file_system_));
  }
  // The process that linked the last entry may have died before it synced the folder. Without this
  // sync a power failure could keep the next entry and lose the last one.
  RETURN_IF_ERROR(Sync());
  const std::string path = EntryPath(run_dir_, number_ + 1);
  // Each writer has its own name, because another coordinator may write its entry at the same time.
  const std::string draft =
      absl::StrCat(path, ".", absl::Hex(writer_, absl::kZeroPad16), kDraftSuffix);
  RETURN_IF_ERROR(WriteCheckedText(draft, entry, file_system_));
  absl::Status status = file_system_->HardLink(draft, path);
  // The draft is gone. Only a coordinator that owns a later number removes drafts, so this number
  // is taken, too.
  if (absl::IsNotFound(status)) {
    status = absl::AlreadyExistsError(absl::StrCat(path, ": another coordinator was faster"));
  }
  // Only the link counts. A draft that cannot be removed costs a few bytes.
  file_system_->Remove(draft).IgnoreError();
  RETURN_IF_ERROR(status);
  RETURN_IF_ERROR(file_system_->SyncFolder(folder));
  // Perhaps the number was free only because a later COMPACTED entry has replaced the entry that
  // had this number.
  ASSIGN_OR_RETURN(const size_t highest, HighestNumber());
  if (highest > number_ + 1) {
    return absl::AbortedError(absl::StrCat(path, ": another coordinator has written ",
                                           EntryPath(run_dir_, highest),
                                           ", and continues the run"));
  }
  ++number_;
  return Take(entry);
}

absl::Status RunLog::Sync() {
  if (!synced_) RETURN_IF_ERROR(file_system_->SyncFolder(LogDir(run_dir_)));
  synced_ = true;
  return absl::OkStatus();
}

absl::Status RunLog::Compact(uint64_t unix_ms) {
  const auto folders = file_system_->List(CheckpointsDir(run_dir_));
  if (!absl::IsNotFound(folders.status())) RETURN_IF_ERROR(folders.status());
  std::set<std::string> cuts;
  if (folders.ok()) cuts.insert(folders->begin(), folders->end());
  RunLogEntry entry;
  entry.set_unix_ms(unix_ms);
  *entry.mutable_compacted() = Compacted(entries_, cuts, left_out_cuts_);
  return Append(entry);
}

absl::Status RunLog::RemoveCompacted(size_t most, const std::function<void()>& begins) {
  ASSIGN_OR_RETURN(const std::vector<std::string> names, file_system_->List(LogDir(run_dir_)));
  for (const size_t number : EntryNumbers(names)) {
    if (number >= compacted_number_ || most-- == 0) break;
    if (begins) begins();
    RETURN_IF_ERROR(file_system_->Remove(EntryPath(run_dir_, number)));
  }
  return absl::OkStatus();
}

absl::StatusOr<size_t> RunLog::HighestNumber() const {
  ASSIGN_OR_RETURN(const std::vector<std::string> names, file_system_->List(LogDir(run_dir_)));
  const std::vector<size_t> numbers = EntryNumbers(names);
  return numbers.empty() ? 0 : numbers.back();
}

absl::StatusOr<bool> RunLog::HasForeignEntry() const {
  ASSIGN_OR_RETURN(const size_t highest, HighestNumber());
  return highest > number_;
}

absl::Status RunLog::RemoveDrafts() {
  ASSIGN_OR_RETURN(const std::vector<std::string> names, file_system_->List(LogDir(run_dir_)));
  for (const std::string& name : names) {
    if (!absl::EndsWith(name, kDraftSuffix)) continue;
    // Numbers have a fixed width, so names compare as numbers do. A draft of the next number may
    // belong to a living coordinator that is about to link it.
    const std::string number = name.substr(0, kEntryDigits);
    if (number > absl::StrFormat("%0*d", kEntryDigits, number_)) continue;
    RETURN_IF_ERROR(file_system_->Remove(absl::StrCat(LogDir(run_dir_), "/", name)));
  }
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

const EndEntry* RunLog::end() const { return EndOf(entries_); }

const CutEntry* RunLog::FindCut(absl::string_view name) const {
  const auto entry = std::find_if(
      entries_.begin(), entries_.end(),
      [name](const RunLogEntry& each) { return each.has_cut() && each.cut().cut() == name; });
  return entry == entries_.end() ? nullptr : &entry->cut();
}

int RunLog::restarts_without_cut() const {
  int restarts = 0;
  for (size_t i = entries_.size(); i > 0 && !entries_[i - 1].has_cut(); --i) {
    if (!entries_[i - 1].has_generation()) continue;
    // A move does not count as a restart, and it does not reset the count.
    if (entries_[i - 1].generation().began() == BEGAN_MOVED) continue;
    // A user's start or resume, or a change of the run's size, resets the count of restarts.
    if (entries_[i - 1].generation().began() != BEGAN_RESTART) break;
    // These restarts do not follow a failure: the previous generation left with its cut because it
    // was asked to, or its job was dropped.
    if (i >= 2 && (entries_[i - 2].cut().leave() || entries_[i - 2].has_dropped())) break;
    ++restarts;
  }
  return restarts;
}

bool RunLog::has_left() const { return !entries_.empty() && entries_.back().cut().leave(); }

std::string RunLog::next_start() const {
  for (auto entry = entries_.rbegin(); entry != entries_.rend(); ++entry) {
    if (entry->has_cut()) return entry->cut().cut();
    if (entry->has_generation()) return entry->generation().cut();
  }
  return "";
}

}  // namespace satrap

// The log of a run: RUN/log/00000001, 00000002, ... Each file is one entry (proto/run_log.proto),
// text with a checksum as its last line, like a manifest.
//
//   GENERATION  a coordinator has claimed the next generation
//   TOPICS      topic partitions that the run reads, with their offsets
//   RUNNING     a generation has begun to train, and its job differs from the one before
//   COMPLETE    in pods: a generation has all its members
//   DROPPED     a changed job cannot begin; the next generation has the earlier one (job_of_run.h)
//   CUT         a cut is committed: a later generation begins from it
//   END         the run has ended (run_end.h)
//   COMPACTED   replaces all entries before it, and keeps what may still be needed of them
//               (log_compaction.h); their files are removed
//
// An entry is written to a draft with a name of its own, synced, and hard-linked to the next
// number; then the folder is synced. The link is the commit: if two coordinators append at once,
// one gets ALREADY_EXISTS, must not act on its entry, and ends. If the folder could not be synced
// after the link, Append fails, too, but its outcome is unknown: the coordinator ends, and the next
// one sees what the disk holds.
//
// When a file is removed, its number is free again. A coordinator that was held up may then link an
// entry under this number, but that entry does not count. So a coordinator that has linked an entry
// looks for a higher number before it acts. If there is one, another coordinator has taken over the
// run, and only that coordinator knows whether the entry counts (ABORTED). A COMPACTED entry is
// durable before files are removed, so a power failure can bring back only files below it, which
// are ignored. Files are removed from the lowest number up, but read from the highest down to the
// newest COMPACTED entry. So if a reader finds its last file, no file was removed while it read. A
// reader that does not find a listed file lists the folder again.
//
// The first Append also syncs the names of RUN/log and RUN and of the folders above, so that a run
// whose first entry is durable is also found by its path after a power failure.
//
// The names of drafts differ from those of entries, so readers ignore them. The folder of a run:
//     RUN/log/NNNNNNNN                the entries
//     RUN/checkpoints/cut_GGGG_NNNNNN/   a cut: number N of generation G; whole if the log names it
//     RUN/checkpoints/best, latest    links, for people, --from and --init_from
//
// Not thread-safe: a coordinator appends one entry at a time.

#ifndef SATRAP_COMMON_CHECKPOINT_RUN_LOG_H_
#define SATRAP_COMMON_CHECKPOINT_RUN_LOG_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "common/checkpoint/cut_name.h"
#include "common/file/file_system.h"
#include "proto/run_log.pb.h"

namespace satrap {

class RunLog {
 public:
  // Reads the log of the run in `run_dir`; a run without a log folder has no entries. DATA_LOSS,
  // naming the file, if an entry is damaged, a number is missing, or a TOPICS entry names a
  // partition a second time, or another cluster than an earlier entry did. UNAVAILABLE if files
  // disappear faster than they can be read. Entries of older builds are converted to those of this
  // build (old_phrases.h). `writer` is a random number in the names of Append's drafts, so that no
  // other process uses the same names; readers may leave it 0. `file_system` is not owned.
  static absl::StatusOr<RunLog> Open(const std::string& run_dir, FileSystem* file_system,
                                     uint64_t writer = 0);

  // Appends `entry` under the next number. If Append returns OK, the entry survives a power
  // failure. INVALID_ARGUMENT, with nothing written, if Open would refuse the entry's topics.
  // ALREADY_EXISTS if another process has appended since Open or the last Append; the entry is not
  // in the log, and never will be. ABORTED if another process has taken over the run; that process
  // may or may not have read this entry. Other errors are those of FileSystem. After one of these,
  // call HasForeignEntry to find out what to do. If HasForeignEntry returns false, the entry is not
  // in the log, and Append may be called again: the next entry is written under the same number
  // into a new file. If HasForeignEntry returns true or fails, the entry may be in the log, or may
  // still be lost in a power failure, and the process must not append again.
  absl::Status Append(const RunLogEntry& entry);

  // Appends a COMPACTED entry. Afterwards entries() returns what that entry holds. Errors are those
  // of Append; if RUN/checkpoints cannot be listed, an error of FileSystem.
  absl::Status Compact(uint64_t unix_ms);
  // Removes at most `most` of the files whose entries the newest COMPACTED entry replaces. Calls
  // `begins`, if it is not null, before each removal. Errors are those of FileSystem.
  absl::Status RemoveCompacted(size_t most, const std::function<void()>& begins = nullptr);
  // The numbers of the newest entry and of the newest COMPACTED entry; 0 if there is none.
  size_t number() const { return number_; }
  size_t compacted_number() const { return compacted_number_; }
  // The number of CUT entries that the run has written but entries() no longer has.
  uint64_t left_out_cuts() const { return left_out_cuts_; }

  // The entries of the log, in order. Where the log has a COMPACTED entry, they begin with the
  // entries that the newest such entry holds.
  const std::vector<RunLogEntry>& entries() const { return entries_; }
  // The topic partitions of each stream, collected from all entries, in the order in which they
  // were added: partition j is split j. There is one element for each stream that reads topics.
  const std::vector<StreamTopics>& topics() const { return topics_; }
  // The newest entry of its kind; null if there is none.
  const GenerationEntry* last_generation() const;
  const CutEntry* last_cut() const;
  const EndEntry* end() const;  // how the run has ended; null if a generation has begun since
  // The cut of that name; null if none was committed.
  const CutEntry* FindCut(absl::string_view name) const;
  // The number of generations that were begun because the generation before them had failed. Counts
  // back from the newest entry, and stops at the last CUT entry or at the last generation that
  // began for another reason: a user's start or resume, a change of the run's size, ranks that left
  // because they had been asked to, or a job that was dropped.
  int restarts_without_cut() const;
  // Whether the newest entry is a generation's last cut, that is, the cut after which the ranks
  // exited because they had been asked to.
  bool has_left() const;
  // The cut from which a generation would begin if it were claimed now: the last one committed
  // since the last GENERATION entry, or else the one from which that generation began. So a run
  // that was taken back to an older cut continues from there. Empty if the generation would begin
  // without a cut.
  std::string next_start() const;

  // Whether the log has an entry for which no Append of this object returned OK: an entry of
  // another process, or one whose Append failed. Errors are those of FileSystem.
  absl::StatusOr<bool> HasForeignEntry() const;
  // Removes the drafts that processes left when they died during an Append. Keeps a draft whose
  // number no entry has yet. Errors are those of FileSystem.
  absl::Status RemoveDrafts();
  // Makes entries durable that other processes have linked. Call this before telling anyone what
  // such an entry says. Errors are those of FileSystem.
  absl::Status Sync();

 private:
  RunLog(std::string run_dir, FileSystem* file_system, uint64_t writer)
      : run_dir_(std::move(run_dir)), file_system_(file_system), writer_(writer) {}

  // The entries from the newest COMPACTED one on, the newest first. DATA_LOSS if an entry is
  // damaged, or if `numbers` lacks a number; NOT_FOUND if a listed file is gone. If a file is
  // missing, sets `*missing` to its number.
  absl::StatusOr<std::vector<RunLogEntry>> ReadDown(const std::vector<size_t>& numbers,
                                                    absl::optional<size_t>* missing) const;
  absl::Status Take(RunLogEntry entry);
  absl::StatusOr<size_t> HighestNumber() const;

  std::string run_dir_;
  FileSystem* file_system_;
  uint64_t writer_;
  size_t number_ = 0;
  size_t compacted_number_ = 0;
  uint64_t left_out_cuts_ = 0;
  std::vector<RunLogEntry> entries_;
  std::vector<StreamTopics> topics_;
  bool synced_ = false;  // the folder is synced, with all of entries_
};

}  // namespace satrap

#endif  // SATRAP_COMMON_CHECKPOINT_RUN_LOG_H_

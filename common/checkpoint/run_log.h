// The log of a run: RUN/log/00000001, 00000002, ... Each file is one entry (proto/run_log.proto),
// text with a checksum as its last line, like a manifest.
//
//   GENERATION  a coordinator has claimed the next generation
//   CUT         a cut is committed: a later generation begins from it
//   END         the run has finished
//
// An entry is written under a name of its own, synced, and hard-linked to the next number; then the
// folder is synced. The link is the commit: of two coordinators that append at once one gets
// ALREADY_EXISTS, must not act on its entry, and ends. An append after which the folder could not be
// synced is an error too, and its outcome is not known: the coordinator ends, and the next one sees
// what the disk holds.
//
// The folder of a run:
//     RUN/log/NNNNNNNN                the entries
//     RUN/checkpoints/cut_GGGG_NNNNNN/   a cut: number N of generation G; whole if the log names it
//     RUN/checkpoints/best, latest    links, for people and for --init_from
//
// Not thread-safe: a coordinator appends one entry at a time.

#ifndef SATRAP_COMMON_CHECKPOINT_RUN_LOG_H_
#define SATRAP_COMMON_CHECKPOINT_RUN_LOG_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/checkpoint/file_system.h"
#include "proto/run_log.pb.h"

namespace satrap {

class RunLog {
 public:
  // Reads the log of the run in `run_dir`; one without a log folder has no entries. DATA_LOSS,
  // naming the file, if an entry is damaged or a number is missing. `writer` is random and names
  // the drafts of Append, so that no other process has the same; readers may leave it 0.
  // `file_system` is not owned.
  static absl::StatusOr<RunLog> Open(const std::string& run_dir, FileSystem* file_system,
                                     uint64_t writer = 0);

  // Appends `entry` as the next number. ALREADY_EXISTS if another process has appended since Open
  // or the last Append. Errors as FileSystem.
  absl::Status Append(const RunLogEntry& entry);

  const std::vector<RunLogEntry>& entries() const { return entries_; }
  // The newest of each kind; null if there is none.
  const GenerationEntry* last_generation() const;
  const CutEntry* last_cut() const;
  const EndEntry* end() const;
  // GENERATION entries after the last CUT entry.
  int generations_without_cut() const;

 private:
  RunLog(std::string run_dir, FileSystem* file_system, uint64_t writer)
      : run_dir_(std::move(run_dir)), file_system_(file_system), writer_(writer) {}

  std::string run_dir_;
  FileSystem* file_system_;
  uint64_t writer_;
  std::vector<RunLogEntry> entries_;
  bool synced_ = false;  // the folder, with all of entries_
};

// "cut_0003_000012"
std::string CutName(uint64_t generation, uint64_t cut);
// RUN/checkpoints
std::string CheckpointsDir(const std::string& run_dir);

}  // namespace satrap

#endif  // SATRAP_COMMON_CHECKPOINT_RUN_LOG_H_

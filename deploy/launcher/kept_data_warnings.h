// Keeps in RUN/data_warnings.textproto what the loaders of a run have reported about its data.
// Several commands may run the run, one after another, and each continues with this file.
//
// While a command runs, the file has only the warnings. The labels are added once the command has
// seen the end of its last generation. So if a command is killed, the next command does not assume
// that it knows all labels.
//
// Not thread-safe: only the launcher's main thread may use it. TakeNew does not block that thread.
// The file is written by a thread that may outlive this object (side_thread.h).

#ifndef SATRAP_DEPLOY_LAUNCHER_KEPT_DATA_WARNINGS_H_
#define SATRAP_DEPLOY_LAUNCHER_KEPT_DATA_WARNINGS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/file/file_system.h"
#include "deploy/launcher/process/side_thread.h"
#include "deploy/report/data_warnings.h"
#include "proto/control.pb.h"
#include "proto/job.pb.h"

namespace satrap {

inline constexpr char kDataWarningsFile[] = "/data_warnings.textproto";

class KeptDataWarnings {
 public:
  // Reads what earlier commands have saved, and marks in the file that this command has not ended;
  // waits for the disk. `has_begun`: the run already has a generation. `disk` is not owned and must
  // live as long as the program.
  KeptDataWarnings(const std::string& run_dir, bool has_begun, FileSystem* disk);

  // If not OK, the reason why it is not known what earlier commands have saved.
  const absl::Status& problem() const { return problem_; }

  // Returns the warnings that are new in `status`, and starts to save them. If the disk is still
  // busy, or has refused them, the next call tries again.
  std::vector<std::string> TakeNew(const StatusAnswer& status);
  std::vector<std::string> All(const JobConfig& job) const { return warnings_.All(job); }

  // Saves what is not saved yet. `at_end`: the last status belongs to a generation that has
  // finished, or has stopped as it was asked to, so all its labels are known. Errors are those of
  // FileSystem; DEADLINE_EXCEEDED if writing takes longer than `timeout_ms`.
  absl::Status Close(bool at_end, int64_t timeout_ms);

 private:
  struct Saved;
  void Save(LoaderProgress kept);

  const std::string path_;
  FileSystem* const disk_;
  absl::Status problem_;
  DataWarnings warnings_;
  uint64_t version_ = 0;                // version of what is to be saved
  const std::shared_ptr<Saved> saved_;  // shared with the thread
  SideThread thread_;
};

}  // namespace satrap

#endif  // SATRAP_DEPLOY_LAUNCHER_KEPT_DATA_WARNINGS_H_

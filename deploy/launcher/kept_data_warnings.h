// What the loaders of a run have reported about its data, over all commands that have run it: kept
// in RUN/data_warnings.textproto.
//
// While a command runs, the file has the warnings alone. The labels are added when the command has
// seen the end of its last generation. So a command that follows one that was killed does not
// believe that it knows all labels.
//
// Not thread-safe: for the launcher's main thread, which TakeNew does not hold up. The file is
// written by a thread that may outlive this object (side_thread.h).

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
  // Reads what earlier commands have kept, and notes in the file that this one has not ended; waits
  // for the disk. `has_begun`: the run has a generation already. `disk` is not owned and must live
  // as long as the program.
  KeptDataWarnings(const std::string& run_dir, bool has_begun, FileSystem* disk);

  // Not OK: why it is not known what earlier commands have kept.
  const absl::Status& problem() const { return problem_; }

  // Returns the warnings that are new. Has them saved; if the disk does not take them now, the next
  // call tries again.
  std::vector<std::string> TakeNew(const StatusAnswer& status);
  std::vector<std::string> All(const JobConfig& job) const { return warnings_.All(job); }

  // Saves what is not saved yet. `at_end`: the last status was that of a generation that has
  // finished, or has stopped as it was asked to, so that the labels are known. Errors as
  // FileSystem; DEADLINE_EXCEEDED if the disk has not taken it within `timeout_ms`.
  absl::Status Close(bool at_end, int64_t timeout_ms);

 private:
  struct Saved;
  void Save(LoaderProgress kept);

  const std::string path_;
  FileSystem* const disk_;
  absl::Status problem_;
  DataWarnings warnings_;
  uint64_t version_ = 0;                // of what is to be saved
  const std::shared_ptr<Saved> saved_;  // shared with the thread
  SideThread thread_;
};

}  // namespace satrap

#endif  // SATRAP_DEPLOY_LAUNCHER_KEPT_DATA_WARNINGS_H_

// Shows and checks the saved cuts of a run for the command line.
//
// Thread-safe: the functions depend only on their arguments and on the files.

#ifndef SATRAP_DEPLOY_CLI_SHOW_CUT_FILES_H_
#define SATRAP_DEPLOY_CLI_SHOW_CUT_FILES_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/checkpoint/run_log.h"
#include "common/file/file_system.h"
#include "proto/checkpoint.pb.h"
#include "proto/job.pb.h"
#include "proto/run_log.pb.h"

namespace satrap {

// A table of the cuts in RUN/checkpoints, the oldest first: name, generation, step, bytes, age at
// `now_unix_ms`, marks (best, latest, last); then the folders that no entry of the log commits. If
// a cut is damaged, or is missing although it should exist, its marks include what is wrong
// (cut_check.h). DATA_LOSS as RunLog::Open returns it.
absl::StatusOr<std::string> ListCuts(const std::string& run_dir, int64_t now_unix_ms);

// Describes the contents of a cut; every line ends with a line feed. Unless `job` is null, the text
// includes the segments and optimizers of the tables.
std::string DescribeCut(const std::string& folder, const CheckpointManifest& manifest,
                        const JobConfig* job);

// Reads every file that the manifest of the cut in `folder` names. The cut is pinned during that
// time. Returns a line with the number of files and bytes. NOT_FOUND if there is no manifest, or if
// the cut disappears meanwhile. DATA_LOSS with a line for each file that is missing or does not
// have the size and checksum with which it was written. If `log` is given and commits another cut
// under the folder's name, DATA_LOSS also has a line for that. FAILED_PRECONDITION if the log
// commits no cut of that name.
absl::StatusOr<std::string> VerifyCut(const std::string& folder, FileSystem* file_system,
                                      const RunLog* log = nullptr);

// The committed cut that a user refers to by `typed` (NameOfCut in
// common/checkpoint/cut_identity.h). NOT_FOUND if the run has no such cut, DATA_LOSS if the cut is
// missing or not as it was committed. The message is one line.
absl::StatusOr<CutEntry> FindCutOfRun(const std::string& run_dir, const std::string& typed);

// The folder of a cut that a user names. `typed` is a cut's own folder, a link to one, or a run's
// folder, which stands for the run's newest cut. NOT_FOUND if `typed` is none of these.
absl::StatusOr<std::string> FindCutFolder(const std::string& typed);

}  // namespace satrap

#endif  // SATRAP_DEPLOY_CLI_SHOW_CUT_FILES_H_

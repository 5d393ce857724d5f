// The saved cuts of a run, as the command line shows and checks them.
//
// Thread-safe: functions of their arguments and of the files.

#ifndef SATRAP_DEPLOY_CLI_CUT_FILES_H_
#define SATRAP_DEPLOY_CLI_CUT_FILES_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/checkpoint/file_system.h"
#include "proto/checkpoint.pb.h"
#include "proto/job.pb.h"

namespace satrap {

// A table of the cuts in RUN/checkpoints, the oldest first: name, generation, step, bytes, age at
// `now_unix_ms`, marks (best, latest, pinned by name); and which folders no entry of the log
// commits. DATA_LOSS as RunLog::Open.
absl::StatusOr<std::string> ListCuts(const std::string& run_dir, int64_t now_unix_ms);

// What a cut holds, as text; every line ends with a line feed. `job`, if not null, adds segments
// and optimizers of the tables.
std::string DescribeCut(const std::string& folder, const CheckpointManifest& manifest,
                        const JobConfig* job);

// Reads every file that the manifest of the cut in `folder` names. Returns a line that says how
// many and how much. NOT_FOUND if there is no manifest; DATA_LOSS with a line for each file that is
// missing, or has another size or checksum than it was written with.
absl::StatusOr<std::string> VerifyCut(const std::string& folder, FileSystem* file_system);

// What `resume --from CUT` gives the coordinator: the name of a committed cut in RUN/checkpoints,
// or the absolute path of another cut's folder. NOT_FOUND if there is no such cut;
// FAILED_PRECONDITION if it was not committed, or if its samples or their order are not the run's.
absl::StatusOr<std::string> FindCutOfRun(const std::string& run_dir, const std::string& cut);

// The folder of a cut that a user names: a cut's own folder or a link to it, or a run's folder,
// which stands for the run's newest cut. NOT_FOUND if it is neither.
absl::StatusOr<std::string> FindCutFolder(const std::string& typed);

}  // namespace satrap

#endif  // SATRAP_DEPLOY_CLI_CUT_FILES_H_

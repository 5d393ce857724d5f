// Finds where a run is that a user names: in a folder on this machine or in a namespace of a
// cluster.
//
// `satrap submit` notes the namespace of each run that it makes in RUNS_DIR/.in_cluster/RUN, so
// that later commands that are given in the same folder need no --namespace. The notes only save
// typing: the cluster knows which runs exist, and the context of kubectl decides which cluster that
// is.
//
// Blocking. Thread-safe: the functions depend only on their arguments and on the disk.

#ifndef SATRAP_DEPLOY_SUBMIT_COMMAND_RUN_PLACE_H_
#define SATRAP_DEPLOY_SUBMIT_COMMAND_RUN_PLACE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace satrap {

// Notes that the run `run` is in the namespace `space`. Runs of the same name may be noted in
// several namespaces. Errors are those of FileSystem.
absl::Status NoteNamespace(const std::string& runs_dir, const std::string& run,
                           const std::string& space);
// Removes that note. If this fails, a later command reports that the run does not exist.
void ForgetNamespace(const std::string& runs_dir, const std::string& run, const std::string& space);

// The namespace of the run: `given` (the value of --namespace) unless that is empty, otherwise the
// one that is noted. "" if none is noted; then `run` is a folder. INVALID_ARGUMENT, with the
// question which run is meant, if the run is noted in several namespaces, or if a folder has the
// name, too (FindRun in run_folder.h). Other errors are those of FileSystem.
absl::StatusOr<std::string> NamespaceOf(const std::string& run, const std::string& given,
                                        const std::string& runs_dir);

}  // namespace satrap

#endif  // SATRAP_DEPLOY_SUBMIT_COMMAND_RUN_PLACE_H_

// Where a run is that a user names: in a folder of this machine, or in a namespace of a cluster.
//
// `satrap submit` notes the namespace of each run that it makes in RUNS_DIR/.in_cluster/RUN, so
// that other commands of the same user, in the same current folder, need no --namespace. The notes
// only save typing: what runs in the cluster is what the cluster shows. Which cluster it is, is for
// the context of kubectl to say.
//
// Blocking. Thread-safe: the functions depend only on their arguments and on the disk.

#ifndef SATRAP_DEPLOY_SUBMIT_COMMAND_RUN_PLACE_H_
#define SATRAP_DEPLOY_SUBMIT_COMMAND_RUN_PLACE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace satrap {

// Notes that there is a run `run` in the namespace `space`. A run of the same name may be noted in
// several namespaces. Errors are those of FileSystem.
absl::Status NoteNamespace(const std::string& runs_dir, const std::string& run,
                           const std::string& space);
// Takes the note back. If that fails, a later command says that the run is not there.
void ForgetNamespace(const std::string& runs_dir, const std::string& run, const std::string& space);

// The namespace of the run: `given`, that of --namespace, if it is not empty; else the one that is
// noted; "" if there is none, so that `run` is a folder. INVALID_ARGUMENT asks for the place if the
// run is noted in several namespaces, or if there is a folder of the name, too (FindRun in
// run_folder.h). Other errors are those of FileSystem.
absl::StatusOr<std::string> NamespaceOf(const std::string& run, const std::string& given,
                                        const std::string& runs_dir);

}  // namespace satrap

#endif  // SATRAP_DEPLOY_SUBMIT_COMMAND_RUN_PLACE_H_

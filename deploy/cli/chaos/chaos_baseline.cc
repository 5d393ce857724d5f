#include "deploy/cli/chaos/chaos_baseline.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/status_macros.h"
#include "deploy/cli/chaos/child_run.h"
#include "deploy/launcher/process/run_progress.h"

namespace satrap {

absl::StatusOr<RunResult> TrainUndisturbed(const std::string& install_dir, const std::string& job,
                                           const std::vector<std::string>& sets,
                                           const std::string& run_dir) {
  std::vector<std::string> args = {"satrap", "--install_dir=" + install_dir, "train", job,
                                   "--run_dir=" + run_dir};
  for (const std::string& set : sets) args.push_back("--set=" + set);
  std::vector<char*> argv;
  for (std::string& arg : args) argv.push_back(arg.data());
  argv.push_back(nullptr);
  const std::string name = absl::StrCat("the undisturbed run in ", run_dir);
  RETURN_IF_ERROR(RunInChild(name, [&argv] {
    execv("/proc/self/exe", argv.data());
    fprintf(stderr, "satrap: satrap cannot be started: %s\n", strerror(errno));
    return 1;
  }));
  ASSIGN_OR_RETURN(const RunProgress progress, ReadRunProgress(run_dir));
  // A run that ended without a result was stopped with `satrap stop`.
  if (!progress.result.has_value()) return absl::AbortedError(name + " did not finish");
  return *progress.result;
}

absl::StatusOr<std::string> CompareRuns(const JobConfig& job, const RunResult& disturbed,
                                        const std::vector<RunResult>& undisturbed) {
  if (undisturbed.empty()) return absl::FailedPreconditionError("no run to compare with");
  if (job.reproducible()) {
    for (const RunResult& run : undisturbed) {
      if (run.model_digest() == disturbed.model_digest()) continue;
      return absl::DataLossError(
          absl::StrFormat("the model's digest is %016x, but that of an undisturbed run is %016x",
                          disturbed.model_digest(), run.model_digest()));
    }
    return absl::StrFormat("the model's digest is %016x, as that of each of %d undisturbed runs",
                           disturbed.model_digest(), undisturbed.size());
  }
  std::vector<double> aucs;
  double sum = 0;
  for (const RunResult& run : undisturbed) {
    if (!run.has_test()) return absl::FailedPreconditionError("the job has no test data");
    aucs.push_back(run.test().auc());
    sum += aucs.back();
  }
  std::sort(aucs.begin(), aucs.end());
  return absl::StrFormat("test AUC %.5f; %d undisturbed runs had %.5f to %.5f, mean %.5f",
                         disturbed.test().auc(), aucs.size(), aucs.front(), aucs.back(),
                         sum / static_cast<double>(aucs.size()));
}

}  // namespace satrap

// The commands `evaluate` and `predict`, which use the model of an earlier run.

#include <cstdio>
#include <filesystem>
#include <set>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"
#include "common/config/text_format.h"
#include "data_loader/source/split_list.h"
#include "deploy/cli/command_flags.h"
#include "deploy/cli/commands.h"
#include "deploy/cli/job_preparation.h"
#include "deploy/cli/run_job.h"
#include "deploy/launcher/process/run_folder.h"

namespace satrap {
namespace {

// The job of an earlier run, changed to perform `action` with that run's model. `sets` override the
// settings of the run, and the overrides of the command line override `sets`.
absl::StatusOr<JobConfig> JobOfRun(const CommandCall& call, const std::string& run,
                                   const RunFlags& flags, const std::string& action,
                                   std::vector<std::string> sets) {
  ASSIGN_OR_RETURN(const std::string run_dir, FindRun(run, kRunsDir));
  ASSIGN_OR_RETURN(const std::string model, FindModel(run_dir));
  sets.push_back(absl::StrCat("action=", action));
  sets.push_back(absl::StrCat("init_from=", model));
  sets.push_back("run_dir=");
  const std::string path = run_dir + "/job.textproto";
  JobConfig trained;
  RETURN_IF_ERROR(ParseTextFile(path, &trained));
  const std::vector<std::string> rows = RowsAsIn(trained);
  sets.insert(sets.end(), rows.begin(), rows.end());
  sets.insert(sets.end(), flags.sets.begin(), flags.sets.end());
  ASSIGN_OR_RETURN(JobConfig job, PrepareJob(path, sets, call.install_dir));
  RETURN_IF_ERROR(CheckOutputs(job, path, {flags.report, flags.output_file}));
  PrintWarnings(ModelWarnings(job));
  job.set_name(absl::StrCat(job.name(), "-", call.name));
  return job;
}

// The absolute path of a file to predict.
absl::StatusOr<std::string> FileToPredict(const std::string& typed) {
  std::error_code error;
  if (!std::filesystem::exists(typed, error)) {
    return absl::NotFoundError(absl::StrCat("cannot read ", typed, ": there is no such file"));
  }
  const std::string file = std::filesystem::absolute(typed, error).string();
  if (file.find_first_of(",\n") != std::string::npos) {
    // Refuse such a path, because --set would read it as a list of files.
    return absl::InvalidArgumentError(absl::StrCat(
        "cannot predict ", file,
        ": the path has a comma or a newline; make a link to the file whose path has neither, "
        "and predict the link"));
  }
  return file;
}

absl::StatusOr<JobConfig> PredictionJob(const CommandCall& call, PredictFlags* flags) {
  ASSIGN_OR_RETURN(const std::vector<std::string> arguments, ParseArguments(call, flags->Table()));
  std::vector<std::string> globs;
  std::set<std::string> files;
  for (size_t i = 1; i < arguments.size(); ++i) {
    ASSIGN_OR_RETURN(const std::string file, FileToPredict(arguments[i]));
    // A file named twice would be read only once, so the lines of the output after it would belong
    // to other records.
    if (!files.insert(file).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("cannot predict ", file, " twice: name each file once"));
    }
    globs.push_back(GlobOf(file));
  }
  std::vector<std::string> sets = {absl::StrCat("data.test_files=", absl::StrJoin(globs, ","))};
  if (!flags->outputs.empty()) {
    sets.push_back(absl::StrCat("predict_outputs=", absl::StrJoin(flags->outputs, ",")));
  }
  ASSIGN_OR_RETURN(JobConfig job,
                   JobOfRun(call, arguments[0], flags->run, "PREDICT", std::move(sets)));
  if (job.data().has_synthetic()) {
    return absl::InvalidArgumentError(
        absl::StrCat("cannot predict ", arguments[1], ": run ", arguments[0],
                     " was trained on the synthetic log, so no file has its format"));
  }
  return job;
}

}  // namespace

int EvaluateCommand(const CommandCall& call) {
  RunFlags flags;
  const auto arguments = ParseArguments(call, flags.Table());
  if (!arguments.ok()) return PrintError(arguments.status());
  const auto job = JobOfRun(call, (*arguments)[0], flags, "EVALUATE", {});
  if (!job.ok()) return PrintError(job.status());
  return RunJobAndReport(*job, flags);
}

int PredictCommand(const CommandCall& call) {
  PredictFlags flags;
  const auto job = PredictionJob(call, &flags);
  if (!job.ok()) return PrintError(job.status());
  const absl::StatusOr<JobRun> run = RunJob(*job, flags.run);
  if (!run.ok()) return PrintError(run.status());
  const int code = PrintEnd(run->end);
  if (code != 0) return code;
  if (run->report->quarantined > 0) {
    const uint64_t bad = run->report->quarantined;
    fprintf(stderr, "satrap: %s the line nan in the output\n",
            Counted(bad, "bad record has", "bad records have").c_str());
  }
  const absl::Status copied =
      CopyFileAtomically(run->report->run_dir + "/predictions.txt",
                         flags.run.output_file.empty() ? "/dev/stdout" : flags.run.output_file);
  if (!copied.ok()) return PrintError(copied);
  return run->report_written.ok() ? 0 : PrintError(run->report_written);
}

}  // namespace satrap

// evaluate, predict: the commands that start from the model of an earlier run.

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
#include "deploy/cli/commands.h"
#include "deploy/cli/job_preparation.h"
#include "deploy/cli/run_job.h"
#include "deploy/launcher/run_folder.h"

namespace satrap {
namespace {

// The job of a run with `action` and the run's model. `sets` override the run's own settings, and
// the command line's override those.
absl::StatusOr<JobConfig> JobOfRun(const CommandLine& line, const std::string& action,
                                   std::vector<std::string> sets) {
  ASSIGN_OR_RETURN(const std::string run_dir, FindRun(line.arguments[0], kRunsDir));
  ASSIGN_OR_RETURN(const std::string model, FindModel(run_dir));
  sets.push_back(absl::StrCat("action=", action));
  sets.push_back(absl::StrCat("init_from=", model));
  sets.push_back("run_dir=");
  const std::string path = run_dir + "/job.textproto";
  JobConfig trained;
  RETURN_IF_ERROR(ParseTextFile(path, &trained));
  const std::vector<std::string> rows = RowsAsIn(trained);
  sets.insert(sets.end(), rows.begin(), rows.end());
  sets.insert(sets.end(), line.sets.begin(), line.sets.end());
  ASSIGN_OR_RETURN(JobConfig job, PrepareJob(path, sets, line.install_dir));
  RETURN_IF_ERROR(CheckOutputs(job, path, {line.report, line.output_file}));
  PrintWarnings(ModelWarnings(job));
  job.set_name(absl::StrCat(job.name(), "-", line.command_name));
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
    // --set would take the path for a list of files.
    return absl::InvalidArgumentError(absl::StrCat(
        "cannot predict ", file, ": the path has a comma or a newline; give a link to the file"));
  }
  return file;
}

absl::StatusOr<JobConfig> PredictionJob(const CommandLine& line) {
  std::vector<std::string> globs;
  std::set<std::string> files;
  for (size_t i = 1; i < line.arguments.size(); ++i) {
    ASSIGN_OR_RETURN(const std::string file, FileToPredict(line.arguments[i]));
    // It would be read once, and the lines after it would be those of other records.
    if (!files.insert(file).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("cannot predict ", file, " twice: name each file once"));
    }
    globs.push_back(GlobOf(file));
  }
  std::vector<std::string> sets = {absl::StrCat("data.test_files=", absl::StrJoin(globs, ","))};
  if (!line.outputs.empty()) {
    sets.push_back(absl::StrCat("predict_outputs=", absl::StrJoin(line.outputs, ",")));
  }
  ASSIGN_OR_RETURN(JobConfig job, JobOfRun(line, "PREDICT", std::move(sets)));
  if (job.data().has_synthetic()) {
    return absl::InvalidArgumentError(
        absl::StrCat("cannot predict ", line.arguments[1], ": run ", line.arguments[0],
                     " was trained on the synthetic log, which is not the format of any file"));
  }
  return job;
}

}  // namespace

int EvaluateCommand(const CommandLine& line) {
  const auto job = JobOfRun(line, "EVALUATE", {});
  if (!job.ok()) return PrintError(job.status());
  return RunJobAndReport(*job, line);
}

int PredictCommand(const CommandLine& line) {
  const auto job = PredictionJob(line);
  if (!job.ok()) return PrintError(job.status());
  const absl::StatusOr<JobRun> run = RunJob(*job, line);
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
                         line.output_file.empty() ? "/dev/stdout" : line.output_file);
  if (!copied.ok()) return PrintError(copied);
  return run->report_written.ok() ? 0 : PrintError(run->report_written);
}

}  // namespace satrap

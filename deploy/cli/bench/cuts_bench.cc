// The command `bench cuts`: trains without cuts and with them, in turn, and compares the speeds.

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <system_error>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/cpu_name.h"
#include "common/base/status_macros.h"
#include "common/file/file_error.h"
#include "common/json/json.h"
#include "deploy/cli/bench/bench_job.h"
#include "deploy/cli/bench/bench_runs.h"
#include "deploy/cli/bench/cut_figures.h"
#include "deploy/cli/chaos/child_run.h"
#include "deploy/cli/command_flags.h"
#include "deploy/cli/run_job.h"
#include "proto/benchmark.pb.h"

namespace satrap {
namespace {

// Trains in this process until enough is measured. Returns the exit code, and, if that is 0, sets
// `*run_dir` to the run's folder.
absl::StatusOr<int> Train(const std::string& install_dir, const CutsFlags& options,
                          int64_t every_steps, std::string* run_dir) {
  std::vector<std::string> sets = {"checkpoint.every_seconds=0",
                                   absl::StrCat("checkpoint.every_steps=", every_steps)};
  sets.insert(sets.end(), options.sets.begin(), options.sets.end());
  ASSIGN_OR_RETURN(const JobConfig job, JobOfTwos(install_dir, sets, options.rows));
  std::string metrics;
  ASSIGN_OR_RETURN(
      const JobRun run,
      RunJob(job, RunFlags(), [&](const StatusAnswer& /*status*/, Launcher* launcher) {
        std::ostringstream text;
        text << std::ifstream(launcher->run_dir() + "/metrics.jsonl").rdbuf();
        metrics = text.str();
        return ReadCutFigures(metrics, options.warmup_seconds, options.seconds).seconds <
               options.seconds;
      }));
  // If somebody stopped the run, keep its cuts: PrintEnd says how to resume from them.
  const int code = PrintEnd(run.end);
  if (code != 0) return code;
  if (run.end.kind != RunEnd::DISMISSED) {
    return absl::AbortedError("the training ended before it was measured");
  }
  std::error_code error;
  std::filesystem::remove_all(run.run_dir + "/checkpoints", error);
  *run_dir = run.run_dir;
  return 0;
}

// Calls Train in a child process (child_run.h), because this process must not use gRPC before it
// forks the next child.
absl::StatusOr<CutFigures> Measure(const std::string& install_dir, const CutsFlags& options,
                                   int64_t every_steps) {
  int report[2];
  if (pipe2(report, O_CLOEXEC) != 0) return FileError("make", "a pipe");
  const absl::string_view name =
      every_steps == 0 ? "the benchmark's run without cuts" : "the benchmark's run with cuts";
  const absl::Status trained = RunInChild(name, [&] {
    std::string run_dir;
    const absl::StatusOr<int> code = Train(install_dir, options, every_steps, &run_dir);
    if (!code.ok()) return PrintError(code.status());
    const auto size = static_cast<ssize_t>(run_dir.size());
    if (write(report[1], run_dir.data(), run_dir.size()) == size) return *code;
    return PrintError(FileError("write", "a pipe"));
  });
  close(report[1]);
  // The child can write its path and end before this read, because a path fits into the pipe's
  // buffer.
  std::string run_dir(4096, '\0');
  const ssize_t size = trained.ok() ? read(report[0], run_dir.data(), run_dir.size()) : 0;
  close(report[0]);
  RETURN_IF_ERROR(trained);
  if (size <= 0) {
    return absl::AbortedError(absl::StrCat(name, " ended without reporting its run folder"));
  }
  run_dir.resize(static_cast<size_t>(size));
  std::ostringstream text;
  text << std::ifstream(run_dir + "/metrics.jsonl").rdbuf();
  return ReadCutFigures(text.str(), options.warmup_seconds, options.seconds);
}

void AddPair(const CutFigures& without, const CutFigures& with, CutsLine* line) {
  CutsLine::Pair* const pair = line->add_samples_per_second();
  pair->set_without(without.samples_per_second);
  pair->set_with(with.samples_per_second);
  pair->set_cost_percent(100 * (1 - with.samples_per_second / without.samples_per_second));
  for (const double seconds : with.writing_seconds) pair->add_writing_seconds(seconds);
  for (const double bytes : with.copied_bytes) pair->add_copied_bytes(bytes);
  pair->set_abandoned(with.abandoned);
}

void AddPauses(const std::vector<CutFigures>& runs, CutsLine* line) {
  std::vector<double> seconds, steps;
  for (const CutFigures& run : runs) {
    for (const CutFigures::Pause& pause : run.pauses) {
      seconds.push_back(pause.seconds);
      steps.push_back(pause.seconds / pause.usual_seconds);
    }
  }
  line->set_pauses(static_cast<int64_t>(seconds.size()));
  line->set_median_pause_seconds(MedianOf(seconds));
  line->set_median_pause_steps(MedianOf(steps));
  if (seconds.empty()) return;
  line->set_max_pause_seconds(*std::max_element(seconds.begin(), seconds.end()));
  line->set_max_pause_steps(*std::max_element(steps.begin(), steps.end()));
}

}  // namespace

absl::StatusOr<int> BenchCuts(const CommandCall& call) {
  CutsFlags options;
  RETURN_IF_ERROR(ParseOnlyFlags(call.args, options.Table()));
  ASSIGN_OR_RETURN(const JobConfig job, JobOfTwos(call.install_dir, options.sets, options.rows));
  CutsLine line;
  line.set_bench("cuts");
  line.set_rows(options.rows);
  line.set_every_seconds(options.every_seconds);
  std::vector<CutFigures> with_cuts;
  for (int pair = 0; pair < options.pairs; ++pair) {
    ASSIGN_OR_RETURN(const CutFigures without, Measure(call.install_dir, options, 0));
    // Schedule cuts by steps: a schedule by time would leave at least four times a cut's writing
    // time between two cuts.
    const double step_seconds =
        static_cast<double>(job.global_batch_size()) / without.samples_per_second;
    const auto every_steps =
        static_cast<int64_t>(std::max(1.0, std::round(options.every_seconds / step_seconds)));
    ASSIGN_OR_RETURN(const CutFigures with, Measure(call.install_dir, options, every_steps));
    AddPair(without, with, &line);
    with_cuts.push_back(with);
  }
  AddPauses(with_cuts, &line);
  line.set_cpu(CpuName());
  PrintJson(line, kShortestNumbers);
  return 0;
}

}  // namespace satrap

// The command `bench recovery`: kills processes of a run and measures how soon the run trains
// again.

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <sstream>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/cpu_name.h"
#include "common/base/status_macros.h"
#include "common/json/json.h"
#include "common/role/role_flags.h"
#include "common/thread/wall_clock.h"
#include "deploy/cli/bench/bench_job.h"
#include "deploy/cli/bench/bench_runs.h"
#include "deploy/cli/bench/recovery_times.h"
#include "deploy/cli/command_flags.h"
#include "deploy/cli/run_job.h"
#include "proto/benchmark.pb.h"

namespace satrap {
namespace {

constexpr Role kVictims[] = {NN_WORKER, EMBEDDING_PS, COORDINATOR, DATA_LOADER, EMBEDDING_WORKER};

struct Death {
  Role role = COORDINATOR;
  int index = 0;
  uint64_t generation = 0;  // the generation in which the process died
  int64_t unix_ms = 0;
};

// Kills the processes in turn: one of each role, then the other replica of each role.
class Killer {
 public:
  explicit Killer(const RecoveryFlags& options) : options_(options) {}

  // Returns false, which ends the run, once the generation after the last death is training.
  bool Watch(const StatusAnswer& status, Launcher* launcher) {
    // Kill only while no cut is being written, so that each recovery begins at the same point, and
    // only after a cut is committed, so that no restart has to pause.
    const bool is_quiet = status.state() == RUNNING && status.cuts().committed() > 0 &&
                          !status.cuts().writing() && status.train().samples_per_second() > 0;
    if (!is_quiet || (!deaths_.empty() && status.generation() <= deaths_.back().generation)) {
      return true;
    }
    restarts_ = launcher->restart_times();
    if (deaths_.size() >= static_cast<size_t>(options_.kills)) return false;
    Death death;
    const size_t n = deaths_.size();
    death.role = kVictims[n % std::size(kVictims)];
    death.index = death.role == COORDINATOR ? 0 : static_cast<int>(n / std::size(kVictims) % 2);
    death.generation = status.generation();
    death.unix_ms = UnixMs();
    const int signal = options_.stop > 0 ? SIGSTOP : SIGKILL;
    if (launcher->Signal(death.role, death.index, signal).ok()) deaths_.push_back(death);
    return true;
  }

  const std::vector<Death>& deaths() const { return deaths_; }
  const std::vector<RestartTimes>& restarts() const { return restarts_; }

 private:
  const RecoveryFlags options_;
  std::vector<Death> deaths_;
  std::vector<RestartTimes> restarts_;
};

std::string ReadAll(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

std::vector<std::pair<Role, std::string>> LogsOf(const JobConfig& job, const std::string& run_dir) {
  std::vector<std::pair<Role, std::string>> logs;
  for (const Role role : kVictims) {
    for (int i = 0; i < ReplicasOf(role, job); ++i) {
      logs.emplace_back(role,
                        ReadAll(absl::StrCat(run_dir, "/logs/", RoleName(role), "_", i, ".log")));
    }
  }
  return logs;
}

void Print(const RecoveryFlags& options, const Killer& killer,
           const std::vector<RecoveryTimes>& all, const std::string& run_dir) {
  std::vector<double> totals;
  for (const RecoveryTimes& times : all) {
    totals.push_back(static_cast<double>(std::accumulate(times.begin(), times.end(), int64_t{0})) *
                     1e-3);
  }
  RecoveryLine line;
  line.set_bench("recovery");
  line.set_rows(options.rows);
  line.set_signal(options.stop > 0 ? "SIGSTOP" : "SIGKILL");
  line.set_median_seconds(MedianOf(totals));
  line.set_max_seconds(*std::max_element(totals.begin(), totals.end()));
  for (size_t i = 0; i < kNumRecoveryPhases; ++i) {
    std::vector<double> phase;
    for (const RecoveryTimes& times : all) phase.push_back(static_cast<double>(times[i]));
    NamedNumber* const median = line.add_median_phase_ms();
    median->set_name(kRecoveryPhaseNames[i]);
    median->set_value(MedianOf(phase));
  }
  for (size_t i = 0; i < totals.size(); ++i) {
    const Death& death = killer.deaths()[i];
    RecoveryLine::Death* const each = line.add_each();
    each->set_process(MemberName(death.role, death.index));
    each->set_seconds(totals[i]);
  }
  line.set_cpu(CpuName());
  line.set_run_dir(run_dir);
  PrintJson(line, kShortestNumbers);
}

}  // namespace

absl::StatusOr<int> BenchRecovery(const CommandCall& call) {
  RecoveryFlags options;
  RETURN_IF_ERROR(ParseOnlyFlags(call.args, options.Table()));
  options.sets.insert(options.sets.begin(), "checkpoint.every_seconds=2");
  ASSIGN_OR_RETURN(const JobConfig job, JobOfTwos(call.install_dir, options.sets, options.rows));
  Killer killer(options);
  ASSIGN_OR_RETURN(
      const JobRun run,
      RunJob(job, RunFlags(), [&killer](const StatusAnswer& status, Launcher* launcher) {
        return killer.Watch(status, launcher);
      }));
  const int code = PrintEnd(run.end);
  if (code != 0) return code;
  if (run.end.kind != RunEnd::DISMISSED || killer.restarts().size() < killer.deaths().size()) {
    return absl::AbortedError(
        absl::StrCat("the run ended before ", options.kills, " deaths were measured"));
  }
  std::vector<RecoveryTimes> all;
  const auto logs = LogsOf(job, run.run_dir);
  for (size_t i = 0; i < killer.deaths().size(); ++i) {
    const Death& death = killer.deaths()[i];
    ASSIGN_OR_RETURN(
        const RecoveryTimes times,
        ReadRecoveryTimes(logs, death.generation + 1, death.unix_ms, killer.restarts()[i]));
    all.push_back(times);
  }
  Print(options, killer, all, run.run_dir);
  // The cuts are large and no longer needed; if they cannot be removed, they only cost space.
  std::error_code error;
  std::filesystem::remove_all(run.run_dir + "/checkpoints", error);
  return 0;
}

}  // namespace satrap

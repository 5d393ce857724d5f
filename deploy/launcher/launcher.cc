#include "deploy/launcher/launcher.h"

#include <poll.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "common/base/shortage.h"
#include "common/base/status_macros.h"
#include "common/config/job_config.h"
#include "common/role/cause_table.h"
#include "common/role/ending.h"
#include "common/role/process_limits.h"
#include "common/thread/clock.h"
#include "common/thread/wall_clock.h"
#include "deploy/launcher/coordinator_watch.h"
#include "deploy/launcher/job_file.h"
#include "deploy/launcher/pause_server.h"
#include "deploy/launcher/process/generation.h"
#include "deploy/launcher/process/generation_cause.h"
#include "deploy/launcher/process/process_starter.h"
#include "deploy/launcher/process/restart_count.h"
#include "deploy/launcher/process/run_progress.h"
#include "deploy/launcher/process/stop_signals.h"
#include "deploy/launcher/stop_request.h"

namespace satrap {
namespace {

constexpr int64_t kTickMs = 100;
// After the first sign of a failure, the launcher waits this long for the cause to become known.
constexpr int64_t kSettleMs = 700;
// How long the coordinator may take to write the run's end (CoordinatorTimeouts::end_limit_ms).
constexpr int64_t kWriteEndMs = 12000;
// How long roles may take to exit by themselves after FINISHED or STOPPED.
constexpr int64_t kFinishMs = 20000;
// How long killed processes may take to disappear; the kernel must free their memory first.
constexpr int64_t kKillMs = 60000;
// During a pause a command may wish to stop the run. Once the wish is accepted, the command has
// this long to ask for the status, which tells it that the run has stopped.
constexpr int64_t kTellMs = 2000;
constexpr char kCameTooLate[] =
    " came too late to stop the run, which has finished; its result is complete";

}  // namespace

struct Launcher::Rep {
  Rep(const JobConfig& job, const RunFolder& folder, const LaunchOptions& options);
  absl::Status Begin(const std::string& bin_dir);
  // `drops_change`: the job in the log cannot be started, for the reason in `next_cause`.
  absl::Status StartGeneration(bool drops_change = false);
  // Like StartGeneration, but if the job in the log cannot be started here, goes back to the
  // earlier job (run_progress.h) and returns a text that says so; otherwise returns "".
  absl::StatusOr<std::string> StartGenerationOrGoBack(bool drops_change = false);
  RunEnd Run(absl::FunctionRef<bool(const StatusAnswer&)> on_status,
             absl::FunctionRef<void(const std::string&)> on_message);
  // Waits until a process ends, a signal arrives, or `ms` have passed.
  void WaitForEvent(int64_t ms);
  // Handles a signal. Returns the run's end if the run must end at once.
  absl::optional<RunEnd> OnSignal(int signal,
                                  absl::FunctionRef<void(const std::string&)> on_message);
  // Whether the generation may have trained since the cut that it began from.
  bool MayHaveTrained();
  // Waits for at most kSettleMs until the coordinator says how the generation ended.
  void Settle();
  // Returns why the generation ended. REQUIRES: the generation is over
  Cause FindCauseOfEnd();
  bool IsOver() const;
  bool IsScaled() const;  // REQUIRES: as TakeWish
  // Whether the generation has ended without a failure: because somebody asked for this end, or
  // because the log says that the next generation has another job. Returns true only once for each
  // entry that says so: if a generation is announced but never begins, that counts as a failure.
  // REQUIRES: `progress` was read after the generation's end
  bool TakeWish(bool is_new_cut);
  // Kills the generation and starts the next one. Returns the run's end if there is no next one.
  absl::optional<RunEnd> Restart(const Cause& cause,
                                 absl::FunctionRef<void(const std::string&)> on_message);
  // The run's end, which its log has as `last`. `seen` is the cause that the launcher itself has
  // found.
  RunEnd EndInLog(StatusAnswer last, const Cause& seen);
  // Waits for `pause_ms`, and accepts a wish to stop meanwhile. Returns the run's end if the run
  // ends during the pause.
  absl::optional<RunEnd> Pause(int64_t pause_ms, const Ending& last);
  RunEnd Finish(RunEnd::Kind kind);
  RunEnd EndOf(RunEnd::Kind kind);  // of a run that ended as its coordinator says
  RunEnd Failed(std::string message, const Ending& ending = Ending());
  // `why` says why there is no last cut; it is empty if no last cut was asked for.
  RunEnd Interrupted(const std::string& why);
  // A text about what is lost and how to continue. `saved`: nothing is lost.
  std::string Outlook(bool saved) const;
  void EndAll();

  JobConfig job;  // the job of the current generation
  const RunFolder* const folder;
  const LaunchOptions options;
  std::unique_ptr<ProcessStarter> starter;
  std::unique_ptr<Generation> generation;
  RunProgress progress;             // read when the newest generation was started
  uint64_t generations_before = 0;  // number in the log when the launcher started
  RestartCount restarts;
  uint64_t wish_taken = 0;            // the generation of the last wish taken
  absl::optional<Ending> next_cause;  // how the current generation ended; for the next one
  std::vector<RestartTimes> restart_times;

  CoordinatorWatch watch;

  StopSignals signals;
  StopRequest stop;  // the wish for a last cut
  std::vector<std::string> warnings;
};

Launcher::Rep::Rep(const JobConfig& first_job, const RunFolder& run_folder,
                   const LaunchOptions& launch_options)
    : job(first_job), folder(&run_folder), options(launch_options) {}

absl::Status Launcher::Rep::Begin(const std::string& bin_dir) {
  // Fork the starter first, while there is only one thread.
  ASSIGN_OR_RETURN(starter, ProcessStarter::Fork());
  RETURN_IF_ERROR(CheckProcessLimits(/*needs_loopback=*/true));
  generation = std::make_unique<Generation>(starter.get(), folder, bin_dir);
  ASSIGN_OR_RETURN(progress, ReadRunProgress(folder->path()));
  generations_before = progress.generation;
  ASSIGN_OR_RETURN(const std::string dropped, StartGenerationOrGoBack());
  if (!dropped.empty()) warnings.push_back(dropped);
  return absl::OkStatus();
}

absl::StatusOr<std::string> Launcher::Rep::StartGenerationOrGoBack(bool drops_change) {
  const absl::Status started = StartGeneration(drops_change);
  if (started.ok()) return "";
  // Do not go back to the earlier job in two cases: after a shortage, which is not the job's fault,
  // and if the user has named a cut, because the earlier job would begin from another one.
  const bool names_cut = !options.from_cut.empty() && progress.generation == generations_before;
  if (ShortageOf(started) != Shortage::kNone || names_cut) return started;
  ASSIGN_OR_RETURN(const std::string why, GoBack(started, job, &progress));
  next_cause = EndingOf(Ending::OTHER, std::string(started.message()));
  RETURN_IF_ERROR(StartGeneration(/*drops_change=*/true));
  return why;
}

// REQUIRES: `progress` is up to date
absl::Status Launcher::Rep::StartGeneration(bool drops_change) {
  // The launcher's own job is the next one until a coordinator has claimed a generation with it.
  const bool is_next_job =
      !drops_change && options.next_job && progress.generation == generations_before;
  if (!is_next_job && progress.job.has_value()) job = *progress.job;
  ASSIGN_OR_RETURN(const std::string warning,
                   WriteJobFile(folder->JobPath(), job, is_next_job || progress.generation == 0));
  if (!warning.empty()) warnings.push_back(warning);
  std::vector<std::string> flags = {
      absl::StrCat("--config=", folder->JobPath()),
      absl::StrCat("--listen=", generation->coordinator_address()),
  };
  // In a resume the job comes from the user, so the cause of an earlier end does not matter.
  if (next_cause.has_value() && !is_next_job) AddFlagsOf(*next_cause, &flags);
  if (is_next_job && !options.from_cut.empty()) {
    flags.push_back(absl::StrCat("--from=", options.from_cut));
  }
  if (is_next_job || drops_change) flags.push_back("--next_job");
  RETURN_IF_ERROR(generation->Start(job, progress.generation + 1, flags));
  return watch.Begin(generation->coordinator_address());
}

void Launcher::Rep::WaitForEvent(int64_t ms) {
  pollfd waited[] = {{signals.fd(), POLLIN, 0}, {starter->fd(), POLLIN, 0}};
  poll(waited, 2, static_cast<int>(ms));
}

bool Launcher::Rep::IsOver() const {
  return generation->AnyEnded() || watch.SaysGenerationIsOver() || watch.IsSilent();
}

bool Launcher::Rep::MayHaveTrained() {
  if (job.action() != JobConfig::TRAIN) return false;
  if (!generation->coordinator().ended) watch.Ask();
  if (watch.has_answered()) return true;
  // A busy coordinator may not answer for a while. So read the log: the coordinator claims its
  // generation there before any process may begin.
  const auto newest = ReadRunProgress(folder->path());
  return !newest.ok() || newest->generation > progress.generation;
}

absl::optional<RunEnd> Launcher::Rep::OnSignal(
    int signal, absl::FunctionRef<void(const std::string&)> on_message) {
  if (stop.begun() || !MayHaveTrained()) return Interrupted("");
  stop.Begin(job.stop_seconds());
  const bool taken = watch.answers() && watch.TryStop(&stop);
  watch.AskSoon();
  std::string text =
      absl::StrCat(strsignal(signal), ": the run takes a last cut and stops, within ",
                   job.stop_seconds(), " s; a second signal stops it at once");
  if (!taken) absl::StrAppend(&text, "\n  it waits: ", stop.waits_for());
  on_message(text);
  return absl::nullopt;
}

void Launcher::Rep::Settle() {
  const int64_t begun_ms = MonotonicMs();
  int64_t deadline_ms = begun_ms + kSettleMs;
  // In any other state the coordinator has already said how the generation ended.
  while ((watch.state() == STARTING || watch.state() == RUNNING) && MonotonicMs() < deadline_ms) {
    if (!generation->Reap().ok() || generation->coordinator().ended) break;
    watch.Ask();
    // The run's end is decided. The coordinator reports it once the log has it, or soon after.
    if (watch.status().writes_end()) deadline_ms = std::max(deadline_ms, begun_ms + kWriteEndMs);
    WaitForEvent(20);
  }
  // Wait for the roles that end because of the first failure. Do this before any signal is sent:
  // how a process exits after a signal says nothing about the cause.
  if (watch.state() == FAILED) generation->WaitForRoles(kSettleMs).IgnoreError();
}

Cause Launcher::Rep::FindCauseOfEnd() {
  const auto was_killed = [](const RoleProcess& process) { return process.was_killed(); };
  if (generation->FirstEnded(was_killed) == nullptr && !watch.IsSilent()) Settle();
  Cause cause = FindCause(*generation, watch.view());
  if (!watch.has_run() && !cause.ending.has_before_ready()) cause.ending.set_before_ready(true);
  return cause;
}

bool Launcher::Rep::IsScaled() const {
  return watch.state() == RESTARTING && progress.generation > watch.status().generation() &&
         progress.began == BEGAN_SCALE_ANNOUNCED;
}

bool Launcher::Rep::TakeWish(bool is_new_cut) {
  if (is_new_cut && progress.cut->leave() && watch.state() == RESTARTING) return true;
  if (!IsScaled() && !progress.drops_newest) return false;
  return std::exchange(wish_taken, progress.generation) != progress.generation;
}

absl::optional<RunEnd> Launcher::Rep::Restart(
    const Cause& cause, absl::FunctionRef<void(const std::string&)> on_message) {
  RestartTimes times;
  times.seen_unix_ms = UnixMs();
  const absl::Status killed = generation->End(SIGKILL, kKillMs);
  if (!killed.ok()) return Failed(std::string(killed.message()));
  if (!generation->AllEnded()) {
    return Failed(absl::StrCat(cause.full, "\n  and a process could not be killed within ",
                               kKillMs / 1000, " s"),
                  cause.ending);
  }
  times.ended_unix_ms = UnixMs();
  const absl::optional<CutEntry> cut_before = progress.cut;
  const auto read = ReadRunProgress(folder->path());
  if (!read.ok()) {
    return Failed(absl::StrCat(cause.full, "\n  ", read.status().message()), cause.ending);
  }
  progress = *read;
  StatusAnswer last = watch.status();
  // Until a resume has begun a generation, the log still has the previous submission's end.
  const bool has_begun = !options.next_job || progress.generation > generations_before;
  if (has_begun && SetEndOfLog(progress, &last)) return EndInLog(std::move(last), cause);
  const bool is_new_cut = progress.cut.has_value() &&
                          (!cut_before.has_value() || progress.cut->cut() != cut_before->cut());
  if (is_new_cut) restarts.OnCut();
  int64_t pause_ms = 0;
  bool drops_change = false;
  const bool is_wished = TakeWish(is_new_cut);
  if (is_wished) {
    restarts.AddWish();
  } else if (const auto pause = restarts.AddFailure(cause.ending, job.max_restarts()); pause.ok()) {
    pause_ms = *pause;
  } else {
    const absl::Status end =
        absl::FailedPreconditionError(absl::StrCat(cause.full, pause.status().message()));
    // If no restart helps, the cause may be a changed job that has not run yet.
    const auto went_back = restarts.repeated() ? GoBack(end, job, &progress) : end;
    if (!went_back.ok()) return Failed(std::string(end.message()), cause.ending);
    on_message(*went_back);
    drops_change = true;
    restarts.AddWish();
    pause_ms = RuleOf(cause.ending).pause_ms;
  }
  const bool is_scaled = is_wished && IsScaled();
  on_message(RestartText(cause, is_scaled, pause_ms, progress, watch.status()));
  next_cause.reset();
  if (!is_scaled) next_cause = cause.ending;
  absl::optional<RunEnd> end = Pause(pause_ms, cause.ending);
  if (end.has_value()) return end;
  const auto dropped = StartGenerationOrGoBack(drops_change);
  // Try again, because that may succeed: a lost starter is replaced, and memory, processes or
  // descriptors may be available again.
  if (ShortageOf(dropped.status()) != Shortage::kNone || absl::IsAborted(dropped.status())) {
    return Restart(CauseOf(dropped.status()), on_message);
  }
  if (!dropped.ok()) return Failed(std::string(dropped.status().message()));
  if (!dropped->empty()) on_message(*dropped);
  times.started_unix_ms = UnixMs();
  restart_times.push_back(times);
  return absl::nullopt;
}

absl::optional<RunEnd> Launcher::Rep::Pause(int64_t pause_ms, const Ending& last) {
  const int64_t resume_ms = MonotonicMs() + pause_ms;
  std::unique_ptr<PauseServer> server;
  // If the server cannot be started, the wish has to wait for the next coordinator, which accepts
  // it.
  if (pause_ms > 0) server = PauseServer::ForRun(*generation, watch.status(), last, progress);
  while (MonotonicMs() < resume_ms) {
    WaitForEvent(std::clamp<int64_t>(resume_ms - MonotonicMs(), 0, kTickMs));
    // No process runs, so there is nothing to save.
    if (signals.Take() != 0) return Interrupted("");
    const absl::Status starter_status = generation->Reap();
    if (!starter_status.ok()) return Failed(std::string(starter_status.message()));
    if (server == nullptr || !server->stop_wished()) continue;
    server->AwaitTold(kTellMs);
    watch.SetStatus(server->status());
    return EndOf(RunEnd::STOPPED);
  }
  return absl::nullopt;
}

// SIGKILL loses nothing of value: everything that counts is on the disk. After SIGTERM a role would
// first ask for a last cut.
void Launcher::Rep::EndAll() {
  if (generation == nullptr || generation->AllEnded()) return;
  generation->End(SIGKILL, kKillMs).IgnoreError();
}

std::string Launcher::Rep::Outlook(bool saved) const {
  if (job.action() != JobConfig::TRAIN) return "";
  return OutlookText(folder->path(), progress, watch.status(),
                     {saved, watch.has_run(), watch.has_answered()});
}

RunEnd Launcher::Rep::Finish(RunEnd::Kind kind) {
  // If the run was stopped while it was starting, do not wait for roles that still load: they save
  // nothing.
  const bool roles_end = kind == RunEnd::FINISHED || watch.has_run();
  // An error means that the starter is gone, and with it the roles. It is ignored, because the
  // run's end is already known.
  if (roles_end) generation->WaitForRoles(kFinishMs).IgnoreError();
  for (const RoleProcess& process : generation->processes()) {
    if (!roles_end || process.role == COORDINATOR || process.ended_well() || process.was_killed()) {
      continue;
    }
    warnings.push_back(process.ended
                           ? absl::StrCat("after the run had finished, ", CauseOf(process).full)
                           : absl::StrCat(process.name, " did not end by itself; its log is ",
                                          ShownPath(process.log_path)));
  }
  // Fetches the loaders' final counts.
  if (!generation->coordinator().ended) watch.Ask();
  EndAll();
  if (kind != RunEnd::FINISHED) {
    const auto after = ReadRunProgress(folder->path());
    // Report a dropped job here, because there is no next generation that would report it.
    if (after.ok() && after->drops_newest && after->generation == watch.status().generation()) {
      warnings.push_back(DroppedText(after->dropped.back()));
    }
  }
  return EndOf(kind);
}

RunEnd Launcher::Rep::EndOf(RunEnd::Kind kind) {
  RunEnd end;
  end.kind = kind;
  if (kind == RunEnd::INTERRUPTED) end.message = strsignal(signals.first());
  if (kind != RunEnd::FINISHED) {
    const Ending& ending = watch.status().ending();
    const bool saved = ending.loss() == Ending::NOTHING;
    if (!saved && ending.has_text()) warnings.push_back(ending.text());
    end.outlook = Outlook(saved);
  }
  end.warnings = std::move(warnings);
  return end;
}

RunEnd Launcher::Rep::EndInLog(StatusAnswer last, const Cause& seen) {
  const Cause cause = CauseOfEndInLog(last.ending(), seen);
  watch.SetStatus(std::move(last));
  if (watch.state() == FINISHED) return Finish(RunEnd::FINISHED);
  if (watch.state() == FAILED) return Failed(cause.full, cause.ending);
  return EndOf(signals.first() != 0 ? RunEnd::INTERRUPTED : RunEnd::STOPPED);
}

RunEnd Launcher::Rep::Failed(std::string message, const Ending& ending) {
  RunEnd end;
  end.message = std::move(message);
  end.ending = ending;
  EndAll();
  // With any other advice, the newest cut may itself be the problem; the message then says what to
  // do.
  if (ending.advice() == Ending::RESUME) end.outlook = Outlook(/*saved=*/false);
  end.warnings = std::move(warnings);
  return end;
}

RunEnd Launcher::Rep::Interrupted(const std::string& why) {
  RunEnd end;
  end.kind = RunEnd::INTERRUPTED;
  end.message = strsignal(signals.first());
  EndAll();
  const auto newest = ReadRunProgress(folder->path());
  const bool saved = newest.ok() && IsSavedAtStop(*newest, watch.status().generation());
  if (!why.empty() && !saved) warnings.push_back(why);
  end.outlook = Outlook(saved);
  end.warnings = std::move(warnings);
  return end;
}

RunEnd Launcher::Rep::Run(absl::FunctionRef<bool(const StatusAnswer&)> on_status,
                          absl::FunctionRef<void(const std::string&)> on_message) {
  while (true) {
    WaitForEvent(kTickMs);
    const absl::Status starter_status = generation->Reap();
    if (!starter_status.ok()) return Failed(std::string(starter_status.message()));
    if (const int signal = signals.Take(); signal != 0) {
      absl::optional<RunEnd> end = OnSignal(signal, on_message);
      if (end.has_value()) return *std::move(end);
    }
    if (watch.IsDue() && !generation->coordinator().ended) {
      watch.Ask();
      if (watch.has_answered() && !on_status(watch.status())) {
        RunEnd end;
        end.kind = RunEnd::DISMISSED;
        EndAll();
        return end;
      }
    }
    const bool may_wish = watch.state() == STARTING || watch.state() == RUNNING;
    if (stop.begun() && !stop.taken() && watch.answers() && may_wish && watch.TryStop(&stop)) {
      on_message("the run takes its last cut now");
      watch.AskSoon();
    }
    absl::optional<Cause> cause;
    // If the run has finished, a role may exit before the launcher learns of it; that is no
    // failure.
    if (watch.state() != FINISHED && watch.state() != STOPPED && IsOver()) cause = FindCauseOfEnd();
    if (watch.state() == FINISHED) return Finish(RunEnd::FINISHED);
    if (watch.state() == STOPPED) {
      return Finish(signals.first() != 0 ? RunEnd::INTERRUPTED : RunEnd::STOPPED);
    }
    // If a stop was asked for, a failure ends the run without a restart: the next generation would
    // begin from the newest cut, so it could not save more than that.
    if (stop.begun() && cause.has_value()) {
      // If processes have ended because the run is over, the coordinator's last answer may still be
      // missing.
      if (!generation->coordinator().ended) watch.Ask();
      if (watch.state() == FINISHED) return Finish(RunEnd::FINISHED);
      if (watch.state() == STOPPED) return Finish(RunEnd::INTERRUPTED);
      return Interrupted(absl::StrCat("there is no last cut: ", cause->full));
    }
    if (stop.IsLate()) return Interrupted(stop.LateText());
    if (!cause.has_value()) continue;
    if (watch.state() == FAILED || generation->coordinator().exited_with(kExitFailed)) {
      return Failed(cause->full, cause->ending);
    }
    absl::optional<RunEnd> end = Restart(*cause, on_message);
    if (end.has_value()) return *std::move(end);
  }
}

absl::StatusOr<std::unique_ptr<Launcher>> Launcher::Start(const JobConfig& job,
                                                          const RunFolder& folder,
                                                          const std::string& bin_dir,
                                                          const LaunchOptions& options) {
  auto rep = std::make_unique<Rep>(job, folder, options);
  const absl::Status status = rep->Begin(bin_dir);
  if (!status.ok()) {
    rep->EndAll();
    return status;
  }
  return std::unique_ptr<Launcher>(new Launcher(std::move(rep)));
}

Launcher::Launcher(std::unique_ptr<Rep> rep) : rep_(std::move(rep)) {}

Launcher::~Launcher() { rep_->EndAll(); }

RunEnd Launcher::Wait(absl::FunctionRef<bool(const StatusAnswer&)> on_status,
                      absl::FunctionRef<void(const std::string&)> on_message) {
  RunEnd end = rep_->Run(on_status, on_message);
  end.last_status = rep_->watch.status();
  return end;
}

absl::Status Launcher::Signal(Role role, int index, int signal) {
  return rep_->generation->Signal(role, index, signal);
}

const std::string& Launcher::run_dir() const { return rep_->folder->path(); }

const std::vector<RestartTimes>& Launcher::restart_times() const { return rep_->restart_times; }

std::string Launcher::LateSignalText() {
  rep_->signals.Take();
  if (rep_->signals.first() == 0) return "";
  // It is not known whether the signal came before or after the run's end.
  return absl::StrCat(strsignal(rep_->signals.first()), kCameTooLate);
}

pid_t Launcher::starter_pid() const { return rep_->starter->pid(); }

}  // namespace satrap

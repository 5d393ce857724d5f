// The coordinator's process. It checks the storage of the run (common/checkpoint/storage_check.h),
// claims the next generation, serves it, and exits when that generation is over. Each generation
// has a new coordinator process.
//
// It exits once every member has been told of the end. If the run continues with the next
// generation, or another coordinator has claimed the same generation, it then exits at once, with
// code 75 (kExitStartAgain). Otherwise it first gives the launcher or `satrap status` time to ask
// for the last status. Its code is then 1 if the run has failed or the generation could not be
// claimed, and 0 if the run has finished or stopped. If the run had already ended before this
// process started, the process says so when asked, and exits in the same way. The process writes
// the Ending of the generation, or its own, to the file of --ending (common/role/ending.h). If it
// cannot claim a generation for lack of memory, processes or descriptors, it exits with 75, because
// they may be available when it is started again.
//
// Before it exits for any reason, it waits up to 2 s for file work that is under way, and up to 2 s
// for the last commit of a group's offsets. It waits no longer, because a disk or a broker may
// hang. Then the process ends in the middle of the work, as if killed by SIGKILL, which does no
// harm (common/checkpoint/run_log.h). Old cuts that it has not removed yet are left to the next
// coordinator.
//
// If the log has a later submission than the coordinator (--submission), the coordinator tells
// everybody to wait until a signal ends it. It does the same if its pod (--holder) has begun a
// generation but another pod has begun the newest one. In that case, once processes have asked it
// for a place for 8 s, it claims the next generation.
//
// In pods a coordinator checks the files of the job before it begins a submission
// (claim/job_files.h). A cause that no restart cures (common/role/cause_table.h) may keep it from
// claiming a generation. Then it prints the cause, and serves it to whoever asks until a signal
// ends it (refusing_coordinator.h). If the submission has begun, an END in the log records the
// cause instead.
//
// Signals. The first SIGTERM asks the run to stop. In pods (--submission) it means instead that
// this process leaves its machine, as for any role (role_runtime.h). After a second SIGTERM, a
// SIGINT, or any signal after the end, the process no longer waits for members.

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "absl/types/variant.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/cut_identity.h"
#include "common/checkpoint/entries/run_end.h"
#include "common/checkpoint/run_log.h"
#include "common/checkpoint/storage_check.h"
#include "common/file/file_system.h"
#include "common/file/mount_name.h"
#include "common/life/life_sign.h"
#include "common/log/log.h"
#include "common/metrics/metrics.h"
#include "common/refusal/refusal.h"
#include "common/role/cause_table.h"
#include "common/role/coordinator_client.h"
#include "common/role/ending.h"
#include "common/role/kill_points.h"
#include "common/role/process_end.h"
#include "common/role/process_limits.h"
#include "common/role/random_id.h"
#include "common/role/role_flags.h"
#include "common/rpc/grpc_server.h"
#include "common/rpc/header.h"
#include "common/thread/clock.h"
#include "common/thread/thread_pool_executor.h"
#include "common/thread/wall_clock.h"
#include "deploy/coordinator/claim/generation_claim.h"
#include "deploy/coordinator/claim/job_files.h"
#include "deploy/coordinator/coordinator_engine.h"
#include "deploy/coordinator/refusing_coordinator.h"
#include "deploy/coordinator/topics/kafka_topic_source.h"
#include "deploy/coordinator/topics/topic_resolution.h"
#include "deploy/coordinator/waiting_coordinator.h"

namespace satrap {
namespace {

// How long the coordinator still answers Status after every member has learned of the end.
constexpr int64_t kLingerMs = 10000;
// How long members that send no heartbeat may delay the next generation. If they send one later,
// the next coordinator refuses it.
constexpr int64_t kTellMs = 2000;
// How long running file work may delay the exit, and with it the next generation. Removing old cuts
// usually takes less.
constexpr int64_t kFileWorkMs = 2000;
// How often the file with a refusal is written again. A process that waits for a refusal ignores a
// file that was there before the wait, because it may be from an earlier attempt (RefusalWatch).
constexpr int64_t kLeaveAgainMs = 2000;
// A claim may fail once because the storage was not back yet after an outage. So a coordinator in a
// pod refuses only if a second claim after this pause fails, too.
constexpr int64_t kClaimAgainMs = 5000;
constexpr int64_t kPollMs = 100;
constexpr int64_t kBrokerMs = 2000;

constexpr rpc::Method kMethods[] = {kRegister,  kHeartbeat, kLeaseSplit, kStoreSet,
                                    kStoreGet,  kFinish,    kFail,       kStatus,
                                    kFixSplits, kCommitCut, kWish};

sigset_t StopSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  return signals;
}

// The next signal; 0 if none comes within `timeout_ms`.
int NextSignal(const sigset_t& signals, int64_t timeout_ms = kPollMs) {
  const timespec period = {timeout_ms / 1000, timeout_ms % 1000 * 1000000};
  return std::max(sigtimedwait(&signals, nullptr, &period), 0);
}

absl::StatusOr<ClaimedGeneration> Claim(const CoordinatorFlags& flags, uint64_t writer,
                                        bool is_asked) {
  ClaimRequest request;
  ASSIGN_OR_RETURN(request.job, ReadJobToClaim(flags.config, DiskFileSystem()));
  request.submission = static_cast<uint64_t>(flags.submission);
  request.holder = flags.holder;
  request.is_asked = is_asked;
  // A launcher that gives both --next_job and a cause could not start the job that the log has.
  request.drops_change = flags.submission == 0 && flags.next_job && !flags.ended.text().empty();
  request.next_job = flags.next_job && !request.drops_change;
  if (!flags.from.empty()) {
    ASSIGN_OR_RETURN(const RunLog log, RunLog::Open(request.job.run_dir(), DiskFileSystem()));
    // Once the submission has begun, --from has no effect any more, and the cut may be gone.
    const bool has_begun = SubmissionOf(log.entries()) >= request.submission;
    if (request.submission == 0 || !has_begun) {
      ASSIGN_OR_RETURN(request.from, NameOfCut(log, request.job.run_dir(), flags.from));
    }
  }
  request.ended = flags.ended;
  request.writer = writer;
  request.run_id = RandomId();
  request.unix_ms = UnixMs();
  const std::string& run_dir = request.job.run_dir();
  request.check_storage = [&run_dir, writer] {
    return CheckStorage(run_dir, MountNameOf(run_dir), writer, DiskFileSystem());
  };
  request.check_files = CheckFilesOfPods;
  ASSIGN_OR_RETURN(ClaimedGeneration claimed, ClaimGeneration(request, DiskFileSystem()));
  if (claimed.log.end() == nullptr && !claimed.superseded && !claimed.waits_to_be_asked) {
    RETURN_IF_ERROR(LeaveRunId(run_dir, claimed.run_id, DiskFileSystem()));
  }
  return claimed;
}

// Does what the first SIGTERM asks for.
void AskToLeave(CoordinatorEngine* engine, bool in_pods, const Logger& logger) {
  if (in_pods) return engine->Move();
  WishRequest request;
  request.set_kind(WishRequest::STOP);
  engine->Handle(kWish, rpc::MessageOf(request), [&logger](absl::StatusOr<rpc::Message> answer) {
    if (!answer.ok()) logger.Warning(answer.status().message());
  });
}

// Serves until the generation is over and all members know it, or until a signal ends it. Returns
// the last state.
RunState ServeGeneration(CoordinatorEngine* engine, bool in_pods, const LifeSign& life,
                         const Logger& logger) {
  const sigset_t signals = StopSignals();
  bool asked_to_leave = false;
  RunState state = STARTING;
  int64_t ended_ms = 0;
  int64_t known_ms = 0;
  while (true) {
    const int signal = NextSignal(signals);
    // Give the sign of life only after a call of the engine: if the engine hangs, this process is
    // of no use.
    const StatusAnswer status = engine->Status();
    life.Give();
    if (status.state() != state) {
      logger.Info("the run has changed its state",
                  {{"state", RunState_Name(status.state())}, {"reason", status.ending().text()}});
    }
    state = status.state();
    const bool ended = state != STARTING && state != RUNNING;
    if (signal == SIGINT || (signal != 0 && (ended || asked_to_leave))) return state;
    if (signal != 0) {
      asked_to_leave = true;
      AskToLeave(engine, in_pods, logger);
    }
    const int64_t now_ms = MonotonicMs();
    if (ended && ended_ms == 0) ended_ms = now_ms;
    const bool known = engine->EveryoneKnowsTheEnd();
    if (known && known_ms == 0) known_ms = now_ms;
    if (state == RESTARTING && (known || now_ms - ended_ms > kTellMs)) return state;
    if (known && now_ms - known_ms > kLingerMs) return state;
  }
}

// Waits up to kFileWorkMs for file work. Returns false if some is still under way.
bool WaitForFileWork(const CoordinatorEngine& engine, const Logger& logger) {
  if (!engine.DiskIsBusy()) return true;
  logger.Info("waiting for file work that is in progress", {{"limit_ms", kFileWorkMs}});
  const int64_t until_ms = MonotonicMs() + kFileWorkMs;
  while (engine.DiskIsBusy()) {
    if (MonotonicMs() >= until_ms) return false;
    poll(nullptr, 0, kPollMs);
  }
  return true;
}

// How the process ends.
struct Exit {
  int code = 0;
  absl::optional<Ending> ending;  // the Ending to write; none if the run has finished
};

// Serves while another coordinator has the run. Returns nullopt once this coordinator may claim.
absl::StatusOr<absl::optional<Exit>> ServeWaiting(const ClaimedGeneration& last,
                                                  const CoordinatorFlags& flags,
                                                  const LifeSign& life, const Logger& logger) {
  WaitingCoordinator waiting(last, MonotonicMs);
  ASSIGN_OR_RETURN(auto server,
                   rpc::GrpcServer::Start(flags.listen, rpc::EndpointOptions(),
                                          {rpc::GrpcServer::Service{kMethods, &waiting}}));
  logger.Info(waiting.why().text());
  const sigset_t signals = StopSignals();
  bool asked_to_leave = false;
  while (!asked_to_leave && !waiting.MayClaim()) {
    life.Give();
    asked_to_leave = NextSignal(signals) != 0;
  }
  server->Shutdown(/*deadline_ms=*/200);
  if (asked_to_leave) return Exit{0, waiting.why()};
  logger.Info("processes ask for a place here, so this coordinator claims a generation");
  return absl::nullopt;
}

// Tells whoever asks that no generation of this submission can begin. Such a coordinator never
// reports that it is ready; whoever waits for that learns of the refusal from Job RUN.
absl::StatusOr<Exit> ServeRefusal(const Ending& why, const CoordinatorFlags& flags,
                                  const LifeSign& life, const Logger& logger) {
  // Only file operations in the run's folder may hang here, and the refusal is served even if they
  // do. So a thread gives the signs of life.
  const LifeSignThread meanwhile(&life);
  RefusingCoordinator refusing(static_cast<uint64_t>(flags.submission), why);
  ASSIGN_OR_RETURN(auto server,
                   rpc::GrpcServer::Start(flags.listen, rpc::EndpointOptions(),
                                          {rpc::GrpcServer::Service{kMethods, &refusing}}));
  MetricsRegistry metrics("coordinator", 0);
  std::unique_ptr<MetricsServer> metrics_server;
  if (!flags.metrics.empty()) {
    ASSIGN_OR_RETURN(metrics_server, MetricsServer::Start(&metrics, flags.metrics));
  }
  fprintf(stderr, "error: %s\n", why.text().c_str());
  logger.Info("claims no generation, and serves the reason until a signal ends it",
              {{"address", server->address()}});
  // If the job cannot be read, the run's folder is not known either. Then only this server tells of
  // the refusal.
  const absl::StatusOr<JobConfig> job = ReadJobWithFolder(flags.config);
  const sigset_t signals = StopSignals();
  do {
    if (job.ok()) LeaveRefusal(job->run_dir(), static_cast<uint64_t>(flags.submission), why);
  } while (NextSignal(signals, kLeaveAgainMs) == 0);
  server->Shutdown(/*deadline_ms=*/200);
  return Exit{kExitFailed, why};
}

// How to exit after serving a generation.
Exit ExitOf(RunState state, const CoordinatorEngine& engine) {
  const Ending ending = engine.Status().ending();
  if (state == RESTARTING) return {kExitStartAgain, ending};
  if (state == FAILED) return {kExitFailed, ending};
  if (state == STOPPED) return {0, ending};
  return {};
}

// Prints why the run has failed, writes the ending, and returns the exit code.
int CodeOf(const Exit& exit, const CoordinatorFlags& flags) {
  if (exit.code == kExitFailed) fprintf(stderr, "error: %s\n", exit.ending->text().c_str());
  if (exit.ending.has_value()) LeaveEnding(flags.ending, *exit.ending);
  return exit.code;
}

// Waits for the last commit of a group's offsets, but only if the run has finished or stopped. Only
// tools use these offsets, so they must not delay the next generation or the message of a failure.
void AwaitBrokers(const CoordinatorEngine& engine, RunState state) {
  const int64_t limit_ms = state == FINISHED || state == STOPPED ? kBrokerMs : 0;
  const int64_t deadline_ms = MonotonicMs() + limit_ms;
  const sigset_t signals = StopSignals();
  while (engine.AsksBroker() && MonotonicMs() < deadline_ms && NextSignal(signals) == 0) {
  }
}

// Claims a generation. If none can be claimed, serves the reason, and then returns how the process
// ends.
absl::StatusOr<absl::variant<ClaimedGeneration, Exit>> ClaimOrServeWhyNot(
    const CoordinatorFlags& flags, const CoordinatorOptions& options, const LifeSign& life,
    const Logger& logger) {
  const auto claim = [&](bool is_asked) {
    // Reading a log and its cuts may take long.
    const LifeSignThread meanwhile(&life);
    return Claim(flags, options.writer, is_asked);
  };
  const auto refusal_of = [&](const absl::Status& status) -> absl::optional<Ending> {
    if (status.ok() || !options.in_pods) return absl::nullopt;
    Ending refusal = FailureOf(COORDINATOR, 0, status);
    if (!NoRestartCures(refusal, Ending())) return absl::nullopt;
    return refusal;
  };
  absl::StatusOr<ClaimedGeneration> claimed = claim(/*is_asked=*/false);
  if (const auto refusal = refusal_of(claimed.status())) {
    logger.Warning(
        absl::StrCat("a claim has failed, and is tried once more in 5 s: ", refusal->text()));
    {
      const LifeSignThread meanwhile(&life);
      if (NextSignal(StopSignals(), kClaimAgainMs) != 0) return Exit{kExitFailed, *refusal};
    }
    claimed = claim(/*is_asked=*/false);
  }
  while (claimed.ok() && (claimed->superseded || claimed->waits_to_be_asked)) {
    ASSIGN_OR_RETURN(const absl::optional<Exit> exit, ServeWaiting(*claimed, flags, life, logger));
    if (exit.has_value()) return *exit;
    claimed = claim(/*is_asked=*/true);
  }
  if (absl::IsAlreadyExists(claimed.status()) || absl::IsAborted(claimed.status())) {
    const std::string text = absl::StrCat("another coordinator has claimed the generation: ",
                                          claimed.status().message());
    logger.Warning(text);
    return Exit{kExitStartAgain, EndingOf(Ending::SUPERSEDED, COORDINATOR, 0, text)};
  }
  if (const auto refusal = refusal_of(claimed.status())) {
    ASSIGN_OR_RETURN(Exit exit, ServeRefusal(*refusal, flags, life, logger));
    return exit;
  }
  RETURN_IF_ERROR(claimed.status());
  for (const std::string& warning : claimed->warnings) logger.Warning(warning);
  if (!claimed->judged_anew.empty()) logger.Info(claimed->judged_anew);
  return *std::move(claimed);
}

absl::StatusOr<Exit> Run(const CoordinatorFlags& flags) {
  const sigset_t signals = StopSignals();
  CHECK(pthread_sigmask(SIG_BLOCK, &signals, nullptr) == 0);
  // A write beyond the file size limit, or to a log that nobody reads, must return an error instead
  // of raising a signal.
  signal(SIGXFSZ, SIG_IGN);
  signal(SIGPIPE, SIG_IGN);

  RETURN_IF_ERROR(CheckProcessLimits(/*needs_loopback=*/false));
  NowDoing("claims a generation");
  ASSIGN_OR_RETURN(const Logger logger, Logger::Create("coordinator/0", LogLevel::kInfo, ""));
  CoordinatorOptions options;
  options.writer = RandomId();
  options.in_pods = flags.submission > 0;
  options.build = flags.build;
  const LifeSign life(flags.alive);
  ASSIGN_OR_RETURN(auto claimed_or_exit, ClaimOrServeWhyNot(flags, options, life, logger));
  if (const Exit* exit = absl::get_if<Exit>(&claimed_or_exit)) return *exit;
  ClaimedGeneration& claimed = absl::get<ClaimedGeneration>(claimed_or_exit);

  ThreadPoolExecutor executor(1);
  ThreadPoolExecutor disk_executor(1);
  const bool has_topics = !TopicInputsOf(claimed.job).empty();
  KafkaTopicSource topics(KafkaTopicSource::kLimit, logger);
  ThreadPoolExecutor topic_executor(1);
  KillPoints kill_points(claimed.job, /*replica=*/0, claimed.generation, KillThisProcess);
  options.executor = &executor;
  options.disk_executor = &disk_executor;
  options.file_system = DiskFileSystem();
  options.topics = &topics;
  options.topic_executor = &topic_executor;
  options.kill_points = &kill_points;
  options.unix_ms = UnixMs;
  options.warn = [&logger](const std::string& warning) { logger.Warning(warning); };
  const bool has_ended = claimed.log.end() != nullptr;
  logger.Info(has_ended ? "the run has ended; serves its end" : "has claimed a generation",
              {{"job", claimed.job.name()},
               {"run", absl::StrCat(absl::Hex(claimed.run_id, absl::kZeroPad16))},
               {"generation", claimed.generation},
               {"cut", claimed.cut_folder}});
  if (options.in_pods && claimed.job.has_kubernetes()) {
    // Pods may have to wait for nodes and images.
    options.timeouts.start_timeout_ms =
        static_cast<int64_t>(claimed.job.kubernetes().start_seconds() * 1000);
  }
  MetricsRegistry metrics("coordinator", 0);
  metrics.AddGauge("satrap_generation", "The generation that the coordinator serves")
      ->Set(static_cast<double>(claimed.generation));
  NowDoing("serves its generation");
  CoordinatorEngine engine(std::move(claimed), options);
  ASSIGN_OR_RETURN(auto server,
                   rpc::GrpcServer::Start(flags.listen, rpc::EndpointOptions(),
                                          {rpc::GrpcServer::Service{kMethods, &engine}}));
  std::unique_ptr<MetricsServer> metrics_server;
  if (!flags.metrics.empty()) {
    ASSIGN_OR_RETURN(metrics_server, MetricsServer::Start(&metrics, flags.metrics));
    metrics_server->ShowReady();
  }
  logger.Info("waiting for members", {{"address", server->address()}});
  const RunState state = ServeGeneration(&engine, options.in_pods, life, logger);
  const Exit exit = ExitOf(state, engine);
  const bool disk_is_idle = WaitForFileWork(engine, logger);
  if (!disk_is_idle) {
    logger.Warning(
        "exiting while file work is still in progress; nothing is damaged by that, and the next "
        "coordinator of the run finishes what has to be finished");
  } else if (has_topics) {
    // Wait for the brokers only after the file work, because a task of the file work starts the
    // commit of offsets.
    AwaitBrokers(engine, state);
  }
  // Skip stopping and destroying these objects if that would block: the disk's thread may hang for
  // ever, and connections to brokers take a second to close.
  if (!disk_is_idle) _exit(CodeOf(exit, flags));
  // Let the answers that report the end reach the wire. This does not wait for brokers.
  server->Shutdown(/*deadline_ms=*/200);
  if (has_topics) _exit(CodeOf(exit, flags));
  executor.Stop();
  disk_executor.Stop();
  return exit;
}

int RunMain(const std::vector<std::string>& args) {
  const absl::StatusOr<CoordinatorFlags> flags = ParseCoordinatorFlags(args);
  if (!flags.ok()) {
    fprintf(stderr, "error: %s\n", std::string(flags.status().message()).c_str());
    return kExitFailed;
  }
  ReportUnexpectedEnd(COORDINATOR, 0, flags->ending);
  const absl::StatusOr<Exit> exit = Run(*flags);
  if (exit.ok()) return CodeOf(*exit, *flags);
  const Ending failure = FailureOf(COORDINATOR, 0, exit.status());
  // Some failures end the run only if the previous attempt ended from the same cause. This process
  // cannot know whether its own failure is such a repetition, but the process that starts it again
  // can. So it exits as if a restart may help.
  if (RuleOf(failure).follows != Follows::kRunEndsIfRepeated) {
    return CodeOf({kExitFailed, failure}, *flags);
  }
  fprintf(stderr, "error: %s\n", failure.text().c_str());
  return CodeOf({kExitStartAgain, failure}, *flags);
}

}  // namespace
}  // namespace satrap

int main(int argc, char** argv) {
  return satrap::RunMain(std::vector<std::string>(argv + 1, argv + argc));
}

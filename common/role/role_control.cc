#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "common/base/check.h"
#include "common/base/process_memory.h"
#include "common/base/status_macros.h"
#include "common/role/cause_table.h"
#include "common/role/protocol_fingerprint.h"
#include "common/role/role_rep.h"
#include "common/rpc/header.h"
#include "common/rpc/lost_call.h"
#include "common/thread/clock.h"

namespace satrap {
namespace {

// Roles start in any order, and the coordinator may be the last.
constexpr int64_t kRegisterTimeoutMs = 60000;
// A process that asks for a place and gets no answer for this long makes a new connection. The old
// connection may be dead, as after the loss of the coordinator's node, but this would show only
// after a minute.
constexpr int64_t kOneConnectionMs = 4000;
// The longest pause of a process in a pod before it asks for a place again.
constexpr int64_t kAskAgainMs = 1000;
// How long a role that has failed tries to report its failure to the coordinator before it exits.
constexpr int64_t kFailTimeoutMs = 2000;
constexpr int64_t kHeartbeatAttemptMs = 3000;
// The period is short while roles are starting, so that the run begins soon after the last role is
// ready.
constexpr int64_t kStartingHeartbeatPeriodMs = 100;
// After FINISHED a role has this long to call WaitForFinish.
constexpr int64_t kFinishGraceMs = 10000;
// After stop_seconds the coordinator has this long to say that the run has stopped.
constexpr int64_t kStopGraceMs = 2000;
// While heartbeats run, the control thread wakes up at least this often. If it wakes up late by
// more than this, the process was suspended, and the time of the suspension does not count as the
// coordinator's silence.
constexpr int64_t kMaxWaitMs = 1000;

}  // namespace

RoleRuntime::Rep::~Rep() {
  {
    MutexLock lock(&mutex);
    stopping = true;
  }
  if (control.joinable()) {
    Wake();
    control.join();
  }
  if (server != nullptr) server->Shutdown(0);
  if (executor != nullptr) executor->Stop();
  coordinator_channel.reset();
  if (signal_fd >= 0) close(signal_fd);
  if (wake_fd >= 0) close(wake_fd);
}

void RoleRuntime::Rep::ExitNow(int code, absl::string_view message, const Ending& ending) {
  if (code == 0) {
    logger.Info(message);
  } else {
    logger.Error(message);
  }
  LeaveEnding(flags.ending, ending);
  _exit(code);
}

void RoleRuntime::Rep::ExitNow(int code, Ending::Why why, absl::string_view message) {
  ExitNow(code, message, EndingOf(why, role, flags.role_index, message));
}

// Registers again and again, until a generation has a place for this process. Between the end of
// one generation and the beginning of the next, the process waits here: if it ended at once, it
// would be started again many times a second. A process of a pod also waits here while another
// process has its place, for as long as the coordinator answers.
absl::StatusOr<RegisterAnswer> RoleRuntime::Rep::AwaitPlace(const RegisterRequest& request) {
  const bool is_in_pod = !flags.holder.empty();
  int64_t deadline_ms = MonotonicMs() + kRegisterTimeoutMs;
  std::string why;
  for (int waits = 1;;) {
    const int64_t asked_ms = MonotonicMs();
    const int64_t limit_ms = std::clamp<int64_t>(deadline_ms - asked_ms, 1, kOneConnectionMs);
    CoordinatorClient client(coordinator_channel.get(), Envelope(), limit_ms);
    absl::StatusOr<RegisterAnswer> answer = client.Register(request);
    if (rpc::IsLost(answer.status())) {
      // The time for which this process was suspended does not count.
      deadline_ms += std::max<int64_t>(0, MonotonicMs() - asked_ms - limit_ms - kMaxWaitMs);
      if (MonotonicMs() >= deadline_ms) return answer.status();
      RETURN_IF_ERROR(ConnectAnew());
      continue;
    }
    if (!answer.ok() || !answer->wait()) return answer;
    if (is_in_pod) deadline_ms = MonotonicMs() + kRegisterTimeoutMs;
    const int64_t pause_ms =
        std::min(PauseBeforeReadyMs(waits++), is_in_pod ? kAskAgainMs : kRegisterTimeoutMs);
    if (MonotonicMs() + pause_ms >= deadline_ms) {
      return absl::UnavailableError(absl::StrCat(
          "the generation at ", flags.coordinator,
          " is over, and no other generation has begun within ", kRegisterTimeoutMs / 1000, " s"));
    }
    if (answer->why_wait() != why) {
      why = answer->why_wait();
      logger.Info(absl::StrCat(why, "; waiting for a place"));
    }
    poll(nullptr, 0, static_cast<int>(pause_ms));
    // The old connection still leads to the old coordinator.
    RETURN_IF_ERROR(ConnectAnew());
  }
}

absl::Status RoleRuntime::Rep::ConnectAnew() {
  ASSIGN_OR_RETURN(coordinator_channel,
                   rpc::GrpcChannel::Create(flags.coordinator, rpc::EndpointOptions()));
  return absl::OkStatus();
}

absl::Status RoleRuntime::Rep::Register() {
  RegisterRequest request;
  Member* member = request.mutable_member();
  member->set_role(role);
  member->set_index(flags.role_index);
  member->set_address(flags.advertise);
  member->set_metrics_address(metrics_server->address());
  member->set_pid(getpid());
  request.set_incarnation(incarnation);
  request.set_protocol(ProtocolFingerprint());
  request.set_holder(flags.holder);
  request.set_build(flags.build);
  if (flags.before.has_text()) *request.mutable_before() = flags.before;
  ASSIGN_OR_RETURN(const RegisterAnswer answer, AwaitPlace(request));
  if (answer.envelope().run_id() == 0) {
    return absl::InternalError(
        absl::StrCat("the coordinator at ", flags.coordinator, " has not named its run"));
  }
  envelope = answer.envelope();
  registration = answer;
  const JobConfig& job = registration.job();
  kill_points =
      std::make_unique<KillPoints>(job, flags.role_index, envelope.generation(), KillThisProcess);
  endpoint_options.max_message_bytes = job.max_message_bytes();
  executor = std::make_unique<ThreadPoolExecutor>(ThreadsOf(role, job));
  coordinator = std::make_unique<CoordinatorClient>(coordinator_channel.get(), envelope);
  {
    // The control thread reads the envelope only after it has seen that `registered` is true.
    MutexLock lock(&mutex);
    registered = true;
  }
  Wake();
  logger.Info("registered", {{"run", absl::StrCat(absl::Hex(envelope.run_id(), absl::kZeroPad16))},
                             {"generation", absl::StrCat(envelope.generation())},
                             {"cut", registration.cut()},
                             {"coordinator", flags.coordinator},
                             {"metrics", metrics_server->address()}});
  return absl::OkStatus();
}

void RoleRuntime::Rep::Wake() {
  const uint64_t one = 1;
  CHECK(write(wake_fd, &one, sizeof(one)) == sizeof(one)) << std::strerror(errno);
}

bool RoleRuntime::Rep::ReportFailure(absl::Status status) {
  CHECK(!status.ok());
  {
    MutexLock lock(&mutex);
    if (!failure.ok()) return true;
    if (state == FINISHED) return false;
    failure = std::move(status);
  }
  Wake();
  return true;
}

// How long the control thread may wait for a signal or a Wake; -1 if there is no limit, because the
// thread only has to give signs of life meanwhile.
int64_t RoleRuntime::Rep::WaitMs(int64_t now_ms) {
  MutexLock lock(&mutex);
  if (state == FINISHED) {
    if (waiting_for_finish) return -1;
    return std::max<int64_t>(finished_ms + kFinishGraceMs + 1 - now_ms, 0);
  }
  if (!registered) return -1;
  if (heartbeat_in_flight) return kMaxWaitMs;
  return std::clamp<int64_t>(next_heartbeat_ms - now_ms, 0, kMaxWaitMs);
}

void RoleRuntime::Rep::Control() {
  int64_t before_ms = MonotonicMs();
  while (true) {
    // The signs of life come from this thread and not from a separate one, because a process whose
    // control thread hangs is of no use.
    life.Give();
    const int64_t wait_ms = WaitMs(before_ms);
    pollfd fds[] = {{signal_fd, POLLIN, 0}, {wake_fd, POLLIN, 0}};
    const bool waits_long = wait_ms < 0 || wait_ms > kLifeSignPeriodMs;
    poll(fds, 2, static_cast<int>(waits_long ? kLifeSignPeriodMs : wait_ms));
    const int64_t now_ms = MonotonicMs();
    if (wait_ms < 0) {
      last_answer_ms = now_ms;  // no answer was due
    } else {
      // The time for which this process was suspended does not count as the coordinator's silence.
      last_answer_ms += std::max<int64_t>(0, now_ms - before_ms - wait_ms - kMaxWaitMs);
    }
    if (fds[0].revents != 0) HandleSignal();
    if (fds[1].revents != 0) {
      uint64_t count;
      CHECK(read(wake_fd, &count, sizeof(count)) == sizeof(count)) << std::strerror(errno);
    }
    // Handles failures before the coordinator's answer: if there are both, this role's own failure
    // explains more, and the coordinator does not know it yet.
    HandleFailure();
    absl::optional<absl::StatusOr<rpc::Message>> answer;
    {
      MutexLock lock(&mutex);
      if (stopping) return;
      answer.swap(heartbeat_answer);
    }
    if (answer.has_value()) {
      heartbeat_in_flight = false;
      HandleHeartbeat(*answer);
      if (failed_ms > 0) HandleFailure();
    }
    bool heartbeats_run;
    {
      MutexLock lock(&mutex);
      heartbeats_run = registered && state != FINISHED;
    }
    if (!heartbeats_run) last_answer_ms = now_ms;
    CheckSilence(now_ms);
    if (stop_deadline_ms > 0) HandleStopWish();
    if (heartbeats_run && !heartbeat_in_flight && now_ms >= next_heartbeat_ms) SendHeartbeat();
    // Does not read the clock again, because the time of a suspension since `now_ms` must not count
    // either.
    before_ms = now_ms;
  }
}

void RoleRuntime::Rep::HandleSignal() {
  signalfd_siginfo info;
  if (read(signal_fd, &info, sizeof(info)) != sizeof(info)) return;
  const std::string signal = strsignal(static_cast<int>(info.ssi_signo));
  bool in_run;
  {
    MutexLock lock(&mutex);
    in_run = registered && state != FINISHED;
  }
  if (!in_run || info.ssi_signo != SIGTERM || stop_deadline_ms > 0) {
    ExitNow(0, Ending::ASKED, absl::StrCat("stopped by ", signal));
  }
  const auto stop_ms = static_cast<int64_t>(registration.job().stop_seconds() * 1000);
  stop_deadline_ms = MonotonicMs() + stop_ms + kStopGraceMs;
  if (registration.leaves()) {
    leaving = true;
    next_heartbeat_ms = 0;
    logger.Info(absl::StrCat(
        signal, ": leaving the run, and serving until the coordinator lets this process end"));
    return;
  }
  stop_wish_open = true;
  logger.Info(absl::StrCat(signal, ": asking the run to stop, and serving until it has stopped"));
  SendStopWish();
}

void RoleRuntime::Rep::SendStopWish() {
  WishRequest request;
  request.set_run_id(envelope.run_id());
  request.set_kind(WishRequest::STOP);
  rpc::Message message;
  message.header = request.SerializeAsString();
  stop_wish_in_flight = true;
  coordinator_channel->Call(kWish, std::move(message), kHeartbeatAttemptMs,
                            [this](const absl::StatusOr<rpc::Message>& answer) {
                              {
                                MutexLock lock(&mutex);
                                stop_wish_answer = answer.status();
                              }
                              Wake();
                            });
}

void RoleRuntime::Rep::HandleStopWish() {
  absl::optional<absl::Status> answer;
  {
    MutexLock lock(&mutex);
    answer.swap(stop_wish_answer);
  }
  if (answer.has_value()) {
    stop_wish_in_flight = false;
    const bool lost = rpc::IsLost(*answer) || absl::IsCancelled(*answer);
    // A refusal means that the run is ending or restarting already, which heartbeats will report.
    if (!lost) stop_wish_open = false;
    if (!lost && !answer->ok()) logger.Warning(answer->message());
  }
  const int64_t now_ms = MonotonicMs();
  if (now_ms > stop_deadline_ms) {
    ExitNow(kExitStartAgain, leaving ? Ending::MOVED : Ending::ASKED,
            absl::StrCat(leaving ? "the generation did not end" : "the run did not stop",
                         " within stop_seconds; exiting without waiting"));
  }
  // If the wish was lost, it is sent again with the next heartbeat.
  if (stop_wish_open && !stop_wish_in_flight && now_ms >= next_heartbeat_ms) SendStopWish();
}

// Logs the failure of this process once. Call it before anything else may end the process.
void RoleRuntime::Rep::LogFailure(const absl::Status& status) {
  if (std::exchange(failure_is_logged, true)) return;
  logger.Error(status.message(), {{"code", absl::StatusCodeToString(status.code())}});
}

void RoleRuntime::Rep::HandleFailure() {
  absl::Status status;
  bool tell;
  {
    MutexLock lock(&mutex);
    status = failure;
    tell = registered;
  }
  if (status.ok()) return;
  // A peer of a later generation has refused a call, so the generation of this process has ended.
  // The failure must not be reported to the coordinator of that later generation.
  if (rpc::IsOfAnotherRun(status)) {
    ExitNow(kExitStartAgain, Ending::SUPERSEDED, status.message());
  }
  LogFailure(status);
  // The coordinator counts only a member's failure, and this process becomes a member by its first
  // heartbeat. Therefore the failure is reported only after the first heartbeat was answered.
  if (tell && !is_heard) {
    if (failed_ms == 0) failed_ms = MonotonicMs();
    if (MonotonicMs() - failed_ms < kFailTimeoutMs) return;
  }
  const Ending own = FailureOf(role, flags.role_index, status);
  if (!tell) {
    // A role that never registered is not part of the run, so only the process that started it
    // learns of the failure.
    LeaveEnding(flags.ending, own);
    _exit(kExitFailed);
  }
  CoordinatorClient client(coordinator_channel.get(), envelope, kFailTimeoutMs);
  const absl::StatusOr<FailAnswer> answer =
      client.Fail(role, flags.role_index, incarnation, status);
  if (!answer.ok()) ExitNow(kExitStartAgain, answer.status().message(), own);
  ExitAfterFailure(*answer, own);
}

// Call this after this role's failure (`own`) was reported to the coordinator. The failure may be
// only a consequence: a peer that fails first breaks its connections. The coordinator knows which
// failure came first.
void RoleRuntime::Rep::ExitAfterFailure(const FailAnswer& answer, const Ending& own) {
  const Ending& told = answer.has_ending() ? answer.ending() : own;
  const int code = ExitCodeOf(answer.state(), told, role, flags.role_index);
  switch (answer.state()) {
    case FINISHED:
    case STOPPED:
      ExitNow(code, absl::StrCat("the run had already ended: ", told.text()), told);
    case FAILED:
      if (code == kExitFailed) break;
      ExitNow(code, absl::StrCat("the run has failed: ", told.text()), told);
    default:
      if (code == kExitStartAgain) break;
      ExitNow(code, absl::StrCat("this generation is over: ", told.text()), told);
  }
  // This role failed first. Its failure is logged already.
  LeaveEnding(flags.ending, told);
  _exit(code);
}

void RoleRuntime::Rep::SendHeartbeat() {
  HeartbeatRequest request;
  int64_t period_ms;
  {
    MutexLock lock(&mutex);
    period_ms = state == STARTING ? kStartingHeartbeatPeriodMs : kHeartbeatPeriodMs;
    request.set_ready(ready);
    request.set_knows_members(!members.empty());
  }
  {
    // Stays locked during the call, so that ~ProgressRegistration waits for the call. Once that
    // destructor has returned, the objects that the source refers to may be destroyed.
    MutexLock lock(&progress_mutex);
    if (progress_source) progress_source(&request);
  }
  *request.mutable_envelope() = envelope;
  request.set_role(role);
  request.set_index(flags.role_index);
  request.set_incarnation(incarnation);
  if (leaving) request.set_leaving(true);
  const absl::optional<uint64_t> memory = ResidentBytes(getpid());
  if (memory.has_value()) request.set_memory_bytes(*memory);
  rpc::Message message;
  message.header = request.SerializeAsString();
  heartbeat_in_flight = true;
  next_heartbeat_ms = MonotonicMs() + period_ms;
  coordinator_channel->Call(kHeartbeat, std::move(message), kHeartbeatAttemptMs,
                            [this](absl::StatusOr<rpc::Message> answer) {
                              {
                                MutexLock lock(&mutex);
                                heartbeat_answer = std::move(answer);
                              }
                              Wake();
                            });
}

void RoleRuntime::Rep::HandleHeartbeat(const absl::StatusOr<rpc::Message>& message) {
  if (rpc::IsLost(message.status()) || absl::IsCancelled(message.status())) {
    return;  // CheckSilence decides how long this may continue
  }
  if (!message.ok()) {
    const bool again = absl::IsFailedPrecondition(message.status());
    ExitNow(again ? kExitStartAgain : kExitFailed,
            again ? Ending::SUPERSEDED : Ending::MEMBER_FAILED,
            absl::StrCat("the coordinator at ", flags.coordinator, " refuses ", name, ": ",
                         message.status().message()));
  }
  HeartbeatAnswer answer;
  if (!answer.ParseFromString(message->header)) {
    ExitNow(kExitFailed, Ending::MEMBER_FAILED, "the coordinator's heartbeat answer is malformed");
  }
  last_answer_ms = MonotonicMs();
  if (answer.wait()) ExitWithoutPlace(answer.ending().text());
  is_heard = true;
  ExitIfOver(answer);
  {
    MutexLock lock(&mutex);
    // The members do not change. The coordinator sends them until this process says that it has
    // them.
    if (members.empty()) members.assign(answer.members().begin(), answer.members().end());
  }
  {
    MutexLock lock(&progress_mutex);
    if (answer.wish().number() > 0 && wish_sink) wish_sink(answer.wish());
    for (const DealtPartition& dealt : answer.dealt()) {
      if (dealt_sink) dealt_sink(dealt);
    }
  }
  MutexLock lock(&mutex);
  if (answer.state() == FINISHED && state != FINISHED) finished_ms = MonotonicMs();
  if (answer.has_order_fingerprint()) order_fingerprint = answer.order_fingerprint();
  state = answer.state();
  changed.NotifyAll();
}

// This process has no place in the generation, so what it has begun is of no use. It exits, and the
// process that is started instead waits for a place when it registers. If this process has failed
// before, only its starter learns of the failure, not the coordinator.
void RoleRuntime::Rep::ExitWithoutPlace(const std::string& why) {
  absl::Status failed;
  {
    MutexLock lock(&mutex);
    failed = failure;
  }
  if (failed.ok()) ExitNow(kExitStartAgain, Ending::OTHER, why);
  LogFailure(failed);
  ExitNow(kExitStartAgain, why, FailureOf(role, flags.role_index, failed));
}

void RoleRuntime::Rep::ExitIfOver(const HeartbeatAnswer& answer) {
  const Ending& ending = answer.ending();
  const int code = ExitCodeOf(answer.state(), ending, role, flags.role_index);
  switch (answer.state()) {
    case FAILED:
      ExitNow(code, absl::StrCat("the run has failed: ", ending.text()), ending);
    case RESTARTING:
      ExitNow(code, absl::StrCat("this generation is over: ", ending.text()), ending);
    case STOPPED:
      ExitNow(code, absl::StrCat("the run has stopped: ", ending.text()), ending);
    default:
      break;
  }
}

void RoleRuntime::Rep::CheckSilence(int64_t now_ms) {
  if (now_ms - last_answer_ms > kHeartbeatTimeoutMs) {
    ExitNow(kExitStartAgain, Ending::COORDINATOR_SILENT,
            absl::StrCat("the coordinator at ", flags.coordinator, " has not answered for ",
                         kHeartbeatTimeoutMs / 1000, " s"));
  }
  MutexLock lock(&mutex);
  if (state == FINISHED && !waiting_for_finish && now_ms - finished_ms > kFinishGraceMs) {
    ExitNow(0, Ending::OTHER,
            "the run has finished; exiting without waiting for work that still runs here");
  }
}

}  // namespace satrap

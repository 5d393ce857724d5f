#include "common/role/role_runtime.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <map>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "common/base/check.h"
#include "common/base/process_memory.h"
#include "common/base/status_macros.h"
#include "common/metrics/metrics.h"
#include "common/numeric/denormals.h"
#include "common/role/protocol_fingerprint.h"
#include "common/role/random_id.h"
#include "common/rpc/endpoints.h"
#include "common/rpc/grpc_channel.h"
#include "common/rpc/header.h"
#include "common/thread/clock.h"
#include "common/thread/mutex.h"
#include "common/thread/thread_pool_executor.h"

namespace satrap {
namespace {

// Roles start in any order, and the coordinator may be the last.
constexpr int64_t kRegisterTimeoutMs = 60000;
// How long a role that fails tries to tell the coordinator before it exits.
constexpr int64_t kFailTimeoutMs = 2000;
constexpr int64_t kHeartbeatAttemptMs = 3000;
// Short while roles are starting, so that the run begins soon after the last one is ready.
constexpr int64_t kStartingHeartbeatPeriodMs = 100;
// After FINISHED a role has this long to call WaitForFinish.
constexpr int64_t kFinishGraceMs = 10000;
// After stop_seconds the coordinator has this long to say that the run has stopped.
constexpr int64_t kStopGraceMs = 2000;
constexpr int64_t kServerDrainMs = 500;
// While heartbeats run, the control thread wakes up at least this often. A wake-up that is late by
// as much means that this process was suspended, so the coordinator's silence does not count.
constexpr int64_t kMaxWaitMs = 1000;

}  // namespace

struct RoleRuntime::Rep {
  Rep(Role role, const RoleFlags& flags, Logger logger)
      : role(role),
        flags(flags),
        name(MemberName(role, flags.role_index)),
        logger(std::move(logger)),
        metrics(std::string(RoleName(role)), flags.role_index) {}
  ~Rep();

  absl::Status Register();
  // Ends the process without destructors, because other threads may be using anything.
  [[noreturn]] void ExitNow(int code, absl::string_view message);
  // Returns false and does nothing if the run has finished: peers then go away, and calls to them
  // fail, in any order.
  bool ReportFailure(absl::Status status);
  void Wake();

  // The control thread: signals, failures, heartbeats, the end.
  void Control();
  int64_t WaitMs(int64_t now_ms);
  void HandleSignal();
  void HandleFailure();
  void ExitAfterFailure(const FailAnswer& answer);
  void SendStopWish();
  void HandleStopWish();
  void SendHeartbeat();
  void HandleHeartbeat(const absl::StatusOr<rpc::Message>& message);
  void ExitIfOver(const HeartbeatAnswer& answer);
  void CheckSilence(int64_t now_ms);

  const Role role;
  const RoleFlags flags;
  const std::string name;
  const Logger logger;
  MetricsRegistry metrics;
  std::unique_ptr<MetricsServer> metrics_server;
  const uint64_t incarnation = RandomId();
  // Set by Register, before `registered`; constant afterwards.
  Envelope envelope;
  RegisterAnswer registration;
  std::unique_ptr<KillPoints> kill_points;
  rpc::EndpointOptions endpoint_options;
  std::unique_ptr<ThreadPoolExecutor> executor;
  std::unique_ptr<rpc::GrpcServer> server;

  int signal_fd = -1;
  int wake_fd = -1;
  std::thread control;

  // Touched by the control thread alone.
  int64_t last_answer_ms = 0;
  int64_t next_heartbeat_ms = 0;
  int64_t finished_ms = 0;
  bool heartbeat_in_flight = false;
  int64_t stop_deadline_ms = 0;  // 0: nobody has asked this process to stop
  bool stop_wish_open = false;   // the coordinator does not know it yet
  bool stop_wish_in_flight = false;

  Mutex mutex;
  CondVar changed;
  bool stopping GUARDED_BY(mutex) = false;
  bool registered GUARDED_BY(mutex) = false;
  bool ready GUARDED_BY(mutex) = false;
  bool waiting_for_finish GUARDED_BY(mutex) = false;
  RunState state GUARDED_BY(mutex) = STARTING;
  absl::Status failure GUARDED_BY(mutex);
  absl::optional<absl::StatusOr<rpc::Message>> heartbeat_answer GUARDED_BY(mutex);
  absl::optional<absl::Status> stop_wish_answer GUARDED_BY(mutex);
  std::vector<Member> members GUARDED_BY(mutex);
  uint64_t order_fingerprint GUARDED_BY(mutex) = 0;
  std::map<std::string, std::unique_ptr<rpc::GrpcChannel>> channels GUARDED_BY(mutex);

  Mutex progress_mutex;
  ProgressSource progress_source GUARDED_BY(progress_mutex);
  std::function<void(const CutWish&)> wish_sink GUARDED_BY(progress_mutex);

  // Last, so that they are destroyed first: their callbacks use the members above.
  std::unique_ptr<rpc::GrpcChannel> coordinator_channel;
  std::unique_ptr<CoordinatorClient> coordinator;
};

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

void RoleRuntime::Rep::ExitNow(int code, absl::string_view message) {
  if (code == 0) {
    logger.Info(message);
  } else {
    logger.Error(message);
  }
  _exit(code);
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
  CoordinatorClient client(coordinator_channel.get(), Envelope(), kRegisterTimeoutMs);
  ASSIGN_OR_RETURN(const RegisterAnswer answer, client.Register(request));
  if (answer.envelope().run_id() == 0) {
    return absl::InternalError(
        absl::StrCat("the coordinator at ", flags.coordinator, " names no run"));
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
    // The control thread reads the envelope only once it has seen `registered`.
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

// How long the control thread may wait for a signal or a Wake; -1 if it has nothing else to do.
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
    const int64_t wait_ms = WaitMs(before_ms);
    pollfd fds[] = {{signal_fd, POLLIN, 0}, {wake_fd, POLLIN, 0}};
    poll(fds, 2, static_cast<int>(wait_ms));
    const int64_t now_ms = MonotonicMs();
    if (wait_ms < 0) {
      last_answer_ms = now_ms;  // no answer was due
    } else {
      // Time in which this process was suspended does not count as the coordinator's silence.
      last_answer_ms += std::max<int64_t>(0, now_ms - before_ms - wait_ms - kMaxWaitMs);
    }
    if (fds[0].revents != 0) HandleSignal();
    if (fds[1].revents != 0) {
      uint64_t count;
      CHECK(read(wake_fd, &count, sizeof(count)) == sizeof(count)) << std::strerror(errno);
    }
    // Failures before the coordinator's answer: if both are there, this role's own failure is the
    // better message, and the coordinator has not heard of it yet.
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
    // Not read from the clock again: a suspension since `now_ms` must be discounted, too.
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
    ExitNow(0, absl::StrCat("stopped by ", signal));
  }
  const auto stop_ms = static_cast<int64_t>(registration.job().stop_seconds() * 1000);
  stop_deadline_ms = MonotonicMs() + stop_ms + kStopGraceMs;
  stop_wish_open = true;
  logger.Info(absl::StrCat(signal, ": asking the run to stop, and serving until it has"));
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
    const bool lost = absl::IsUnavailable(*answer) || absl::IsDeadlineExceeded(*answer) ||
                      absl::IsCancelled(*answer);
    // A refusal means that the run ends or restarts anyhow, which heartbeats will tell.
    if (!lost) stop_wish_open = false;
    if (!lost && !answer->ok()) logger.Warning(answer->message());
  }
  const int64_t now_ms = MonotonicMs();
  if (now_ms > stop_deadline_ms) {
    ExitNow(kExitStartAgain, "the run did not stop within stop_seconds; exiting without waiting");
  }
  // A lost wish goes out again with the next heartbeat.
  if (stop_wish_open && !stop_wish_in_flight && now_ms >= next_heartbeat_ms) SendStopWish();
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
  // A peer of a later generation: this process is what is left of one that is over, and its failure
  // must not reach that peer's coordinator.
  if (rpc::IsOfAnotherRun(status)) ExitNow(kExitStartAgain, status.message());
  logger.Error(status.message(), {{"code", absl::StatusCodeToString(status.code())}});
  // A role that never registered is not part of the run: whoever started it sees its exit.
  if (!tell) _exit(1);
  CoordinatorClient client(coordinator_channel.get(), envelope, kFailTimeoutMs);
  const absl::StatusOr<FailAnswer> answer = client.Fail(role, flags.role_index, status);
  if (!answer.ok()) ExitNow(kExitStartAgain, answer.status().message());
  ExitAfterFailure(*answer);
}

// The coordinator was told of this role's failure.
void RoleRuntime::Rep::ExitAfterFailure(const FailAnswer& answer) {
  const std::string& cause = answer.stop_reason();
  // A peer that fails first breaks its connections, and this failure may be no more than that.
  const bool echo = !cause.empty() && !absl::StartsWith(cause, absl::StrCat(name, ":"));
  switch (answer.state()) {
    case FAILED:
      if (echo) logger.Error(absl::StrCat(kRunHasFailed, cause));
      _exit(1);
    case FINISHED:
    case STOPPED:
      ExitNow(0, absl::StrCat("the run had ended before: ", cause));
    default:
      if (echo) logger.Error(absl::StrCat(kGenerationIsOver, cause));
      _exit(kExitStartAgain);
  }
}

void RoleRuntime::Rep::SendHeartbeat() {
  HeartbeatRequest request;
  int64_t period_ms;
  {
    MutexLock lock(&mutex);
    period_ms = state == STARTING ? kStartingHeartbeatPeriodMs : kHeartbeatPeriodMs;
    request.set_ready(ready);
  }
  {
    // Locked during the call, so that ~ProgressRegistration waits for it: the objects that the
    // source refers to may be destroyed right after.
    MutexLock lock(&progress_mutex);
    if (progress_source) progress_source(&request);
  }
  *request.mutable_envelope() = envelope;
  request.set_role(role);
  request.set_index(flags.role_index);
  request.set_incarnation(incarnation);
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
  if (absl::IsUnavailable(message.status()) || absl::IsDeadlineExceeded(message.status()) ||
      absl::IsCancelled(message.status())) {
    return;  // CheckSilence decides how long that may go on
  }
  if (!message.ok()) {
    const int code = absl::IsFailedPrecondition(message.status()) ? kExitStartAgain : 1;
    ExitNow(code, absl::StrCat("the coordinator at ", flags.coordinator, " refuses ", name, ": ",
                               message.status().message()));
  }
  HeartbeatAnswer answer;
  if (!answer.ParseFromString(message->header)) {
    ExitNow(1, "the coordinator's heartbeat answer is malformed");
  }
  last_answer_ms = MonotonicMs();
  ExitIfOver(answer);
  if (answer.wish().number() > 0) {
    MutexLock lock(&progress_mutex);
    if (wish_sink) wish_sink(answer.wish());
  }
  MutexLock lock(&mutex);
  if (answer.state() == FINISHED && state != FINISHED) finished_ms = MonotonicMs();
  if (state == STARTING) members.assign(answer.members().begin(), answer.members().end());
  if (answer.has_order_fingerprint()) order_fingerprint = answer.order_fingerprint();
  state = answer.state();
  changed.NotifyAll();
}

void RoleRuntime::Rep::ExitIfOver(const HeartbeatAnswer& answer) {
  switch (answer.state()) {
    case FAILED:
      ExitNow(1, absl::StrCat(kRunHasFailed, answer.stop_reason()));
    case RESTARTING:
      ExitNow(kExitStartAgain, absl::StrCat(kGenerationIsOver, answer.stop_reason()));
    case STOPPED:
      ExitNow(0, absl::StrCat("the run has stopped: ", answer.stop_reason()));
    default:
      break;
  }
}

void RoleRuntime::Rep::CheckSilence(int64_t now_ms) {
  if (now_ms - last_answer_ms > kHeartbeatTimeoutMs) {
    ExitNow(kExitStartAgain, absl::StrCat("the coordinator at ", flags.coordinator,
                                          kCoordinatorIsSilent, kHeartbeatTimeoutMs / 1000, " s"));
  }
  MutexLock lock(&mutex);
  if (state == FINISHED && !waiting_for_finish && now_ms - finished_ms > kFinishGraceMs) {
    ExitNow(0, "the run has finished; exiting without waiting for work that still runs here");
  }
}

absl::StatusOr<std::unique_ptr<RoleRuntime>> RoleRuntime::Start(Role role, const RoleFlags& flags) {
  // All threads inherit this mask, so that only the control thread receives these signals.
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  CHECK(pthread_sigmask(SIG_BLOCK, &signals, nullptr) == 0);
  signal(SIGPIPE, SIG_IGN);

  ASSIGN_OR_RETURN(Logger logger,
                   Logger::Create(absl::StrCat(RoleName(role), "/", flags.role_index),
                                  LogLevel::kInfo, /*file=*/""));
  auto rep = std::make_unique<Rep>(role, flags, std::move(logger));
  ASSIGN_OR_RETURN(rep->metrics_server, MetricsServer::Start(&rep->metrics));
  ASSIGN_OR_RETURN(rep->coordinator_channel,
                   rpc::GrpcChannel::Create(flags.coordinator, rep->endpoint_options));
  rep->signal_fd = signalfd(-1, &signals, SFD_CLOEXEC);
  rep->wake_fd = eventfd(0, EFD_CLOEXEC);
  CHECK(rep->signal_fd >= 0 && rep->wake_fd >= 0) << std::strerror(errno);
  rep->last_answer_ms = MonotonicMs();
  rep->control = std::thread([raw = rep.get()] { raw->Control(); });
  // After the control thread, so that a signal ends a process that waits for its coordinator.
  RETURN_IF_ERROR(rep->Register());
  return std::unique_ptr<RoleRuntime>(new RoleRuntime(std::move(rep)));
}

RoleRuntime::RoleRuntime(std::unique_ptr<Rep> rep) : rep_(std::move(rep)) {}
RoleRuntime::~RoleRuntime() = default;

const JobConfig& RoleRuntime::job() const { return rep_->registration.job(); }
const RoleFlags& RoleRuntime::flags() const { return rep_->flags; }
int RoleRuntime::index() const { return rep_->flags.role_index; }
const Envelope& RoleRuntime::envelope() const { return rep_->envelope; }
const std::string& RoleRuntime::cut_folder() const { return rep_->registration.cut(); }
const RunPosition& RoleRuntime::position() const { return rep_->registration.position(); }
const LedgerState& RoleRuntime::ledger() const { return rep_->registration.ledger(); }
KillPoints* RoleRuntime::kill_points() { return rep_->kill_points.get(); }
uint64_t RoleRuntime::order_fingerprint() const {
  MutexLock lock(&rep_->mutex);
  return rep_->order_fingerprint;
}
void RoleRuntime::SetWishSink(std::function<void(const CutWish&)> sink) {
  MutexLock lock(&rep_->progress_mutex);
  rep_->wish_sink = std::move(sink);
}
const Logger& RoleRuntime::logger() const { return rep_->logger; }
MetricsRegistry* RoleRuntime::metrics() { return &rep_->metrics; }
Executor* RoleRuntime::executor() { return rep_->executor.get(); }
rpc::Channel* RoleRuntime::coordinator_channel() { return rep_->coordinator_channel.get(); }
CoordinatorClient* RoleRuntime::coordinator() { return rep_->coordinator.get(); }

std::function<void(absl::Status)> RoleRuntime::failure_sink() {
  return [rep = rep_.get()](absl::Status status) { rep->ReportFailure(std::move(status)); };
}

void RoleRuntime::ExitUnlessOk(const absl::Status& status) {
  if (status.ok()) return;
  if (!rep_->ReportFailure(status)) rep_->ExitNow(1, status.message());
  // The control thread tells the coordinator and ends the process.
  while (true) pause();
}

absl::Status RoleRuntime::Serve(std::initializer_list<rpc::GrpcServer::Service> services) {
  CHECK(rep_->server == nullptr) << "Serve is called once";
  if (rep_->flags.listen.empty()) return absl::InvalidArgumentError("--listen is missing");
  ASSIGN_OR_RETURN(rep_->server,
                   rpc::GrpcServer::Start(rep_->flags.listen, rep_->endpoint_options, services));
  return absl::OkStatus();
}

RoleRuntime::ProgressRegistration RoleRuntime::SetProgressSource(ProgressSource source) {
  MutexLock lock(&rep_->progress_mutex);
  rep_->progress_source = std::move(source);
  return ProgressRegistration(rep_.get());
}

RoleRuntime::ProgressRegistration::~ProgressRegistration() {
  MutexLock lock(&rep_->progress_mutex);
  rep_->progress_source = nullptr;
}

absl::Status RoleRuntime::Join() {
  bool over;
  {
    MutexLock lock(&rep_->mutex);
    CHECK(!rep_->ready) << "Join is called once";
    rep_->ready = true;  // the next heartbeat says so
    while (rep_->state == STARTING) rep_->changed.Wait(&rep_->mutex);
    over = rep_->state == FINISHED;
  }
  // The coordinator was started again, or this role, after the end.
  if (over) rep_->ExitNow(0, "the run has finished already");
  rep_->logger.Info("every role is ready");
  return absl::OkStatus();
}

std::string RoleRuntime::AddressOf(Role role, int index) const {
  MutexLock lock(&rep_->mutex);
  for (const Member& member : rep_->members) {
    if (member.role() == role && static_cast<int>(member.index()) == index) {
      return member.address();
    }
  }
  CHECK(false) << MemberName(role, index) << " is no member of the run";
  return "";
}

rpc::Channel* RoleRuntime::ChannelTo(Role role, int index) {
  const std::string address = AddressOf(role, index);
  MutexLock lock(&rep_->mutex);
  std::unique_ptr<rpc::GrpcChannel>& channel = rep_->channels[MemberName(role, index)];
  if (channel == nullptr) {
    auto created = rpc::GrpcChannel::Create(address, rep_->endpoint_options);
    CHECK(created.ok()) << MemberName(role, index) << " at '" << address
                        << "': " << created.status().ToString();
    channel = *std::move(created);
  }
  return channel.get();
}

absl::Status RoleRuntime::Finish(const RunResult& result) {
  RETURN_IF_ERROR(rep_->coordinator->Finish(result));
  return absl::OkStatus();
}

void RoleRuntime::WaitForFinish(const std::function<void()>& stop_engine) {
  {
    MutexLock lock(&rep_->mutex);
    rep_->waiting_for_finish = true;
    while (rep_->state != FINISHED) rep_->changed.Wait(&rep_->mutex);
  }
  if (stop_engine) stop_engine();
  std::map<std::string, std::unique_ptr<rpc::GrpcChannel>> channels;
  {
    MutexLock lock(&rep_->mutex);
    channels.swap(rep_->channels);
  }
  if (rep_->server != nullptr) rep_->server->Shutdown(kServerDrainMs);
  rep_->executor->Stop();
  channels.clear();
}

int RunRole(Role role, int argc, char** argv,
            absl::FunctionRef<absl::Status(RoleRuntime& runtime)> body) {
  KeepFreedMemory();
  SetFlushToZero();  // the main thread makes model values too: rows, initial weights
  const auto flags = ParseRoleFlags(std::vector<std::string>(argv + 1, argv + argc));
  // To stderr, because Start may fail before there is a log.
  const auto start_failed = [role](const absl::Status& status) {
    fprintf(stderr, "error: %s: %s\n", std::string(RoleName(role)).c_str(),
            std::string(status.message()).c_str());
    // There is no coordinator, or it is another generation's: the next one may be right.
    const bool again = absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status) ||
                       absl::IsFailedPrecondition(status);
    return again ? kExitStartAgain : 1;
  };
  if (!flags.ok()) return start_failed(flags.status());
  auto runtime = RoleRuntime::Start(role, *flags);
  if (!runtime.ok()) return start_failed(runtime.status());
  (*runtime)->ExitUnlessOk(body(**runtime));
  return 0;
}

}  // namespace satrap

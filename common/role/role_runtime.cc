#include "common/role/role_runtime.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/process_memory.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/storage_check.h"
#include "common/chunk/chunked_channel.h"
#include "common/file/file_system.h"
#include "common/numeric/denormals.h"
#include "common/role/cause_table.h"
#include "common/role/process_end.h"
#include "common/role/process_limits.h"
#include "common/role/role_rep.h"
#include "common/rpc/timeouts.h"
#include "common/thread/clock.h"

namespace satrap {
namespace {

constexpr int64_t kServerDrainMs = 500;
// How long a role waits until it sees what the coordinator has written to the run's folder. A
// network file system may answer from a cache for a while.
constexpr int64_t kSeesRunMs = 30000;
constexpr int kSeesRunPauseMs = 100;

}  // namespace

absl::StatusOr<std::unique_ptr<RoleRuntime>> RoleRuntime::Start(Role role, const RoleFlags& flags) {
  // All threads inherit this mask, so that only the control thread receives these signals.
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  CHECK(pthread_sigmask(SIG_BLOCK, &signals, nullptr) == 0);
  signal(SIGPIPE, SIG_IGN);
  // With this, a write to a file that has reached its size limit fails instead of ending the
  // process. A cut is then abandoned, as when the disk is full.
  signal(SIGXFSZ, SIG_IGN);

  ASSIGN_OR_RETURN(Logger logger,
                   Logger::Create(absl::StrCat(RoleName(role), "/", flags.role_index),
                                  LogLevel::kInfo, /*file=*/""));
  auto rep = std::make_unique<Rep>(role, flags, std::move(logger));
  ASSIGN_OR_RETURN(
      rep->metrics_server,
      MetricsServer::Start(&rep->metrics, flags.metrics.empty() ? kLocalMetrics : flags.metrics));
  ASSIGN_OR_RETURN(rep->coordinator_channel,
                   rpc::GrpcChannel::Create(flags.coordinator, rep->endpoint_options));
  rep->signal_fd = signalfd(-1, &signals, SFD_CLOEXEC);
  rep->wake_fd = eventfd(0, EFD_CLOEXEC);
  CHECK(rep->signal_fd >= 0 && rep->wake_fd >= 0) << std::strerror(errno);
  rep->last_answer_ms = MonotonicMs();
  rep->control = std::thread([raw = rep.get()] { raw->Control(); });
  // The control thread runs before this, so that a signal can end a process that still waits for
  // its coordinator.
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
void RoleRuntime::SetDealtSink(std::function<void(const DealtPartition&)> sink) {
  MutexLock lock(&rep_->progress_mutex);
  rep_->dealt_sink = std::move(sink);
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
  if (!rep_->ReportFailure(status)) {
    const Ending failure = FailureOf(rep_->role, rep_->flags.role_index, status);
    rep_->ExitNow(kExitFailed, status.message(), failure);
  }
  // Waits for the control thread, which reports the error to the coordinator and ends the process.
  while (true) pause();
}

absl::Status RoleRuntime::Serve(absl::Span<const rpc::Method> methods, rpc::Handler* handler) {
  CHECK(rep_->server == nullptr) << "Serve is called once";
  if (rep_->flags.listen.empty()) return absl::InvalidArgumentError("--listen is missing");
  rpc::ChunkedHandler::Options options;
  options.limits.max_message_bytes = rep_->endpoint_options.max_message_bytes;
  options.envelope = rep_->envelope;
  options.name = rep_->name;
  options.memory = rep_->chunk_memory;
  // A transfer is kept for as long as a sender waits for a sign of life, plus the time of one
  // chunk.
  const auto chunk_bytes = static_cast<size_t>(options.limits.max_message_bytes);
  options.deadline_us =
      (rpc::RpcTimeouts().silence_timeout_ms + rpc::RpcTimeouts::TransferMs(chunk_bytes)) * 1000;
  options.first_transfer = RandomId();
  rep_->handler = std::make_unique<rpc::ChunkedHandler>(handler, methods, rep_->executor.get(),
                                                        std::move(options));
  const rpc::GrpcServer::Service services[] = {{methods, rep_->handler.get()},
                                               {rpc::kChunkMethods, rep_->handler.get()}};
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

absl::Status RoleRuntime::AwaitRunFolder() {
  const std::string& run_dir = job().run_dir();
  if (run_dir.empty()) return absl::OkStatus();
  NowDoing("looks for the folder of the run");
  const int64_t deadline_ms = MonotonicMs() + kSeesRunMs;
  while (true) {
    const absl::Status seen = SeesRun(run_dir, envelope().run_id(), DiskFileSystem());
    if (!absl::IsFailedPrecondition(seen) || MonotonicMs() >= deadline_ms) return seen;
    poll(nullptr, 0, kSeesRunPauseMs);
  }
}

absl::Status RoleRuntime::Join() {
  bool over;
  {
    MutexLock lock(&rep_->mutex);
    CHECK(!rep_->ready) << "Join is called once";
    NowDoing("waits until every role is ready");
    rep_->ready = true;  // the next heartbeat says so
    rep_->metrics_server->ShowReady();
    while (rep_->state == STARTING) rep_->changed.Wait(&rep_->mutex);
    over = rep_->state == FINISHED;
  }
  // The run had finished before this role joined it: the coordinator or this role was started again
  // afterwards.
  if (over) rep_->ExitNow(0, Ending::OTHER, "the run has finished already");
  NowDoing("takes part in the run");
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
  CHECK(false) << MemberName(role, index) << " is not a member of the run";
  return "";
}

rpc::Channel* RoleRuntime::ChannelTo(Role role, int index,
                                     std::shared_ptr<BufferAllocator> allocator) {
  const std::string address = AddressOf(role, index);
  MutexLock lock(&rep_->mutex);
  std::unique_ptr<rpc::Channel>& channel = rep_->channels[MemberName(role, index)];
  if (channel == nullptr) {
    rpc::EndpointOptions options = rep_->endpoint_options;
    options.payload_allocator = allocator;
    auto created = rpc::GrpcChannel::Create(address, options);
    CHECK(created.ok()) << MemberName(role, index) << " at '" << address
                        << "': " << created.status().ToString();
    rpc::ChunkedChannel::Options chunks;
    chunks.limits.max_message_bytes = options.max_message_bytes;
    chunks.memory = rep_->chunk_memory;
    chunks.first_transfer = RandomId();
    chunks.payload_allocator = std::move(allocator);
    chunks.clock = rep_->executor.get();
    channel = std::make_unique<rpc::ChunkedChannel>(*std::move(created), std::move(chunks));
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
  std::map<std::string, std::unique_ptr<rpc::Channel>> channels;
  {
    MutexLock lock(&rep_->mutex);
    channels.swap(rep_->channels);
  }
  if (rep_->server != nullptr) rep_->server->Shutdown(kServerDrainMs);
  rep_->executor->Stop();
  channels.clear();
}

int RunRole(Role role, int argc, char** argv,
            absl::FunctionRef<absl::Status(RoleRuntime& runtime)> body,
            const std::vector<Flag>& own) {
  KeepFreedMemory();
  SetFlushToZero();  // the main thread also computes model values: rows, initial weights
  const auto flags = ParseRoleFlags(std::vector<std::string>(argv + 1, argv + argc), own);
  // Prints to stderr, because Start may fail before there is a log.
  const auto start_failed = [role, &flags](const absl::Status& status) {
    fprintf(stderr, "error: %s: %s\n", std::string(RoleName(role)).c_str(),
            std::string(status.message()).c_str());
    if (flags.ok()) LeaveEnding(flags->ending, FailureOf(role, flags->role_index, status));
    // If there is no coordinator, or it belongs to another generation (FAILED_PRECONDITION), a
    // later start may find the right coordinator.
    const Ending failure = FailureOf(role, 0, status);
    const bool again =
        absl::IsFailedPrecondition(status) || !NoRestartCures(failure, /*before=*/Ending());
    return again ? kExitStartAgain : kExitFailed;
  };
  if (!flags.ok()) return start_failed(flags.status());
  ReportUnexpectedEnd(role, flags->role_index, flags->ending);
  const absl::Status limits = CheckProcessLimits(/*needs_loopback=*/true);
  if (!limits.ok()) return start_failed(limits);
  auto runtime = RoleRuntime::Start(role, *flags);
  if (!runtime.ok()) return start_failed(runtime.status());
  // Called before the body, which reads cuts and models in the folder.
  (*runtime)->ExitUnlessOk((*runtime)->AwaitRunFolder());
  (*runtime)->ExitUnlessOk(body(**runtime));
  return 0;
}

}  // namespace satrap

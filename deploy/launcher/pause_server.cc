#include "deploy/launcher/pause_server.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/role/coordinator_client.h"
#include "common/role/ending.h"
#include "common/rpc/header.h"
#include "common/thread/clock.h"

namespace satrap {
namespace {

constexpr rpc::Method kMethods[] = {kStatus, kWish};
// Time for answers that are still being sent.
constexpr int64_t kDrainMs = 200;

}  // namespace

absl::StatusOr<std::unique_ptr<PauseServer>> PauseServer::Start(const std::string& address,
                                                                StatusAnswer status,
                                                                Ending stopped) {
  std::unique_ptr<PauseServer> server(new PauseServer(std::move(status), std::move(stopped)));
  ASSIGN_OR_RETURN(server->server_,
                   rpc::GrpcServer::Start(address, rpc::EndpointOptions(),
                                          {rpc::GrpcServer::Service{kMethods, server.get()}}));
  return server;
}

std::unique_ptr<PauseServer> PauseServer::ForRun(const Generation& generation, StatusAnswer status,
                                                 const Ending& last, const RunProgress& progress) {
  const bool saved = LosesNoWork(progress, status);
  Ending stopped = EndingOf(
      Ending::ASKED,
      saved ? absl::StrCat("stopped on request between two generations; ", kNoWorkIsLost)
            : absl::StrCat("stopped on request between two generations; the run continues from ",
                           BeginningText(progress), ", and ", LossText(progress, status)));
  if (saved) stopped.set_loss(Ending::NOTHING);
  status.set_state(RESTARTING);
  *status.mutable_ending() = last;
  auto server = Start(generation.coordinator_address(), std::move(status), std::move(stopped));
  return server.ok() ? *std::move(server) : nullptr;
}

PauseServer::PauseServer(StatusAnswer status, Ending stopped)
    : status_(std::move(status)), stopped_(std::move(stopped)) {}

PauseServer::~PauseServer() {
  if (server_ != nullptr) server_->Shutdown(kDrainMs);
}

bool PauseServer::stop_wished() const {
  MutexLock lock(&mutex_);
  return stop_wished_;
}

StatusAnswer PauseServer::status() const {
  MutexLock lock(&mutex_);
  return status_;
}

void PauseServer::AwaitTold(int64_t timeout_ms) {
  const int64_t deadline_ms = MonotonicMs() + timeout_ms;
  MutexLock lock(&mutex_);
  while (!told_ && MonotonicMs() < deadline_ms) {
    changed_.WaitFor(&mutex_, std::max<int64_t>(deadline_ms - MonotonicMs(), 1));
  }
}

absl::StatusOr<WishAnswer> PauseServer::Wish(const WishRequest& request) {
  MutexLock lock(&mutex_);
  if (request.has_run_id() && request.run_id() != status_.run_id()) {
    return absl::FailedPreconditionError("the wish is for another run");
  }
  if (request.kind() != WishRequest::STOP) {
    return absl::UnavailableError("the run is between two generations");
  }
  stop_wished_ = true;
  status_.set_state(STOPPED);
  *status_.mutable_ending() = stopped_;
  WishAnswer answer;
  answer.set_number(1);
  return answer;
}

void PauseServer::Handle(const rpc::Method& method, rpc::Message request, rpc::Callback respond) {
  if (method == kStatus) {
    StatusAnswer status;
    {
      MutexLock lock(&mutex_);
      status = status_;
    }
    respond(rpc::MessageOf(status));
    // Set `told_` only after the answer, because the server is closed once a client has received
    // STOPPED.
    if (status.state() != STOPPED) return;
    MutexLock lock(&mutex_);
    told_ = true;
    changed_.NotifyAll();
    return;
  }
  if (!(method == kWish)) {
    respond(absl::UnimplementedError(absl::StrCat("nobody serves ", method.path, " here")));
    return;
  }
  const auto wish = rpc::ParseHeader<WishRequest>(request.header);
  if (!wish.ok()) return respond(wish.status());
  const absl::StatusOr<WishAnswer> answer = Wish(*wish);
  respond(answer.ok() ? absl::StatusOr<rpc::Message>(rpc::MessageOf(*answer)) : answer.status());
}

}  // namespace satrap

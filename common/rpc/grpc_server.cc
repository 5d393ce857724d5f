#include "common/rpc/grpc_server.h"

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include <atomic>
#include <chrono>
#include <limits>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/rpc/frame.h"
#include "common/rpc/grpc_message.h"
#include "common/thread/mutex.h"

namespace satrap::rpc {
namespace {

struct Route {
  Method method;
  Handler* handler;
};
using Routes = absl::flat_hash_map<std::string, Route>;

// One call. gRPC's API for calls of unknown methods is a stream in both directions. Here one
// message is read and one is written. The object deletes itself in OnDone, which gRPC calls after
// Finish and all reactions.
class UnaryReactor final : public grpc::ServerGenericBidiReactor {
 public:
  // `route` is null for an unknown method.
  UnaryReactor(const Route* route, const std::string& path)
      : route_(route), state_(std::make_shared<State>(this)) {
    if (route_ == nullptr) {
      state_->Finish(absl::UnimplementedError(absl::StrCat("nothing here serves ", path)));
    } else {
      StartRead(&request_);
    }
  }

  void OnReadDone(bool ok) override {
    if (!ok) return state_->Finish(absl::InvalidArgumentError("call without a request"));
    absl::StatusOr<Message> request = FromByteBuffer(route_->method, request_);
    request_.Clear();
    if (!request.ok()) return state_->Finish(request.status());
    route_->handler->Handle(route_->method, *std::move(request),
                            [responder = Responder(state_)](auto answer) mutable {
                              responder.Respond(std::move(answer));
                            });
  }

  void OnCancel() override { state_->Finish(absl::CancelledError("call was cancelled")); }
  void OnDone() override { delete this; }

 private:
  // The handler and a cancellation race to finish the call. The first of them finishes it. The
  // second must not touch the reactor, which may be deleted.
  class State {
   public:
    explicit State(UnaryReactor* reactor) : reactor_(reactor) {}

    void Finish(absl::StatusOr<Message> answer) {
      if (finished_.exchange(true)) return;
      // gRPC itself refuses answers above max_message_bytes, but a field above 2 GiB could not even
      // be encoded.
      if (answer.ok()) {
        const absl::Status size = CheckFrameSize("answer to", reactor_->route_->method, *answer,
                                                 std::numeric_limits<int64_t>::max());
        if (!size.ok()) answer = size;
      }
      if (answer.ok()) {
        reactor_->answer_ = ToByteBuffer(reactor_->route_->method, *answer);
        reactor_->StartWriteAndFinish(&reactor_->answer_, grpc::WriteOptions(), grpc::Status::OK);
      } else {
        reactor_->Finish(ToGrpcStatus(answer.status()));
      }
    }

   private:
    std::atomic<bool> finished_ = false;
    UnaryReactor* const reactor_;
  };

  // Owned by the handler's callback. If the callback is destroyed without being called, answers the
  // call.
  class Responder {
   public:
    explicit Responder(std::shared_ptr<State> state) : state_(std::move(state)) {}
    Responder(Responder&&) = default;
    ~Responder() {
      if (state_ != nullptr) {
        state_->Finish(absl::UnavailableError("the peer dropped the call: it is stopping"));
      }
    }
    void Respond(absl::StatusOr<Message> answer) {
      std::exchange(state_, nullptr)->Finish(std::move(answer));
    }

   private:
    std::shared_ptr<State> state_;
  };

  const Route* const route_;
  const std::shared_ptr<State> state_;
  grpc::ByteBuffer request_;
  grpc::ByteBuffer answer_;
};

class RoutedService final : public grpc::CallbackGenericService {
 public:
  explicit RoutedService(Routes routes) : routes_(std::move(routes)) {}

  grpc::ServerGenericBidiReactor* CreateReactor(
      grpc::GenericCallbackServerContext* context) override {
    const auto route = routes_.find(context->method());
    return new UnaryReactor(route == routes_.end() ? nullptr : &route->second, context->method());
  }

 private:
  const Routes routes_;
};

absl::StatusOr<Routes> MakeRoutes(absl::Span<const GrpcServer::Service> services) {
  Routes routes;
  for (const GrpcServer::Service& service : services) {
    for (const Method& method : service.methods) {
      if (!routes.emplace(method.path, Route{method, service.handler}).second) {
        return absl::InvalidArgumentError(absl::StrCat(method.path, " is served twice"));
      }
    }
  }
  return routes;
}

std::string WithPort(const std::string& address, int port) {
  if (absl::StartsWith(address, "unix")) return address;
  return absl::StrCat(address.substr(0, address.rfind(':')), ":", port);
}

}  // namespace

struct GrpcServer::Rep {
  explicit Rep(Routes routes) : service(std::move(routes)) {}

  RoutedService service;
  std::string address;
  Mutex mutex;  // a second Shutdown waits for the first
  // Both are null after Shutdown. The socket's lock is released after the server is destroyed, so
  // that no other process takes the socket while it is in use.
  std::unique_ptr<SocketLock> socket_lock GUARDED_BY(mutex);
  std::unique_ptr<grpc::Server> server GUARDED_BY(mutex);
};

absl::StatusOr<std::unique_ptr<GrpcServer>> GrpcServer::Start(const std::string& address,
                                                              const EndpointOptions& options,
                                                              absl::Span<const Service> services) {
  ASSIGN_OR_RETURN(Routes routes, MakeRoutes(services));
  ASSIGN_OR_RETURN(auto socket_lock, SocketLock::Acquire(address));
  auto rep = std::make_unique<Rep>(std::move(routes));
  grpc::ServerBuilder builder;
  int port = 0;
  ListenOn(address, options, &builder, &port);
  builder.RegisterCallbackGenericService(&rep->service);
  std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (server == nullptr || port == 0) {
    return absl::FailedPreconditionError(absl::StrCat(
        "cannot listen on ", address, ": it is in use, or it is not an address of this machine"));
  }
  rep->address = WithPort(address, port);
  {
    MutexLock lock(&rep->mutex);
    rep->server = std::move(server);
    rep->socket_lock = std::move(socket_lock);
  }
  return std::unique_ptr<GrpcServer>(new GrpcServer(std::move(rep)));
}

GrpcServer::GrpcServer(std::unique_ptr<Rep> rep) : rep_(std::move(rep)) {}

GrpcServer::~GrpcServer() { Shutdown(0); }

const std::string& GrpcServer::address() const { return rep_->address; }

void GrpcServer::Shutdown(int64_t deadline_ms) {
  MutexLock lock(&rep_->mutex);
  if (rep_->server == nullptr) return;
  rep_->server->Shutdown(std::chrono::system_clock::now() + std::chrono::milliseconds(deadline_ms));
  rep_->server.reset();
  rep_->socket_lock.reset();
}

}  // namespace satrap::rpc

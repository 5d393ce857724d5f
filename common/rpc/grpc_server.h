// The server of real processes: passes gRPC calls to Handlers, by their method.
//
// Handlers are called on gRPC's threads. There are few of these, so handlers pass their work to an
// executor and do not block. If a handler destroys its callback without calling it, the call is
// answered UNAVAILABLE.
//
// Thread-safe.

#ifndef SATRAP_COMMON_RPC_GRPC_SERVER_H_
#define SATRAP_COMMON_RPC_GRPC_SERVER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/rpc/endpoints.h"
#include "common/rpc/rpc.h"

namespace satrap::rpc {

class GrpcServer {
 public:
  struct Service {
    absl::Span<const Method> methods;  // only Start reads them
    Handler* handler;                  // not owned; must outlive the server
  };

  // Listens and serves. With TCP port 0 the system chooses a port, which address() shows.
  // FAILED_PRECONDITION if the address is in use or cannot be bound; INVALID_ARGUMENT if it is
  // malformed (endpoints.h) or two services have the same method.
  static absl::StatusOr<std::unique_ptr<GrpcServer>> Start(const std::string& address,
                                                           const EndpointOptions& options,
                                                           absl::Span<const Service> services);

  // Calls Shutdown(0) unless Shutdown was called before.
  ~GrpcServer();

  // The address at which the server listens, with the port that was chosen.
  const std::string& address() const;

  // Refuses new calls and waits up to `deadline_ms` for running calls to be answered. Calls that
  // still run then are cancelled: their clients get UNAVAILABLE, and later answers of handlers are
  // dropped. When this returns, no handler is being called and the address is free. Idempotent.
  // REQUIRES: not called from a handler
  void Shutdown(int64_t deadline_ms);

 private:
  struct Rep;
  explicit GrpcServer(std::unique_ptr<Rep> rep);
  const std::unique_ptr<Rep> rep_;
};

}  // namespace satrap::rpc

#endif  // SATRAP_COMMON_RPC_GRPC_SERVER_H_

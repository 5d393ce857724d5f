// The server of real processes: hands gRPC calls to Handlers, by their method.
//
// Handlers are called on gRPC's threads, of which there are few: they hand over and do not block. A
// handler that drops its callback without a word answers UNAVAILABLE by that.
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
    absl::Span<const Method> methods;  // read by Start only
    Handler* handler;                  // not owned; must outlive the server
  };

  // Listens and serves. TCP port 0 lets the system choose: see address().
  // FAILED_PRECONDITION if the address is in use or cannot be bound; INVALID_ARGUMENT if it is
  // malformed (endpoints.h) or two services have the same method.
  static absl::StatusOr<std::unique_ptr<GrpcServer>> Start(const std::string& address,
                                                           const EndpointOptions& options,
                                                           absl::Span<const Service> services);

  // Shutdown(0) if it was not called.
  ~GrpcServer();

  // Where the server listens, the chosen port included.
  const std::string& address() const;

  // Refuses new calls, gives those that run `deadline_ms` to be answered, then breaks them off:
  // their clients see UNAVAILABLE, and what handlers answer later goes nowhere. When it returns no
  // handler is being called and the address is free. Idempotent.
  // REQUIRES: not called from a handler.
  void Shutdown(int64_t deadline_ms);

 private:
  struct Rep;
  explicit GrpcServer(std::unique_ptr<Rep> rep);
  const std::unique_ptr<Rep> rep_;
};

}  // namespace satrap::rpc

#endif  // SATRAP_COMMON_RPC_GRPC_SERVER_H_

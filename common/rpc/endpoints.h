// Makes the credentials and the options of all gRPC channels and servers, and checks addresses.
// Addresses are the strings that gRPC accepts: "unix:/path", "host:port", "[::]:port",
// "dns:///name:port".
//
// Traffic is not encrypted: Unix sockets lie in a folder of mode 0700, and TCP is for a network
// whose members trust each other.

#ifndef SATRAP_COMMON_RPC_ENDPOINTS_H_
#define SATRAP_COMMON_RPC_ENDPOINTS_H_

#include <grpcpp/channel.h>
#include <grpcpp/server_builder.h>

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/base/buffer.h"

namespace satrap::rpc {

struct EndpointOptions {
  // The size limit of one request or answer. A larger one ends its call with RESOURCE_EXHAUSTED.
  int64_t max_message_bytes = int64_t{64} << 20;
  // Only for channels: allocates the payloads of answers. If null, they are on the heap.
  std::shared_ptr<BufferAllocator> payload_allocator;
};

// The longest path of a Unix socket that the kernel accepts.
inline constexpr size_t kMaxSocketPathBytes = 107;

// INVALID_ARGUMENT if `address` is empty or a Unix socket whose path is empty or too long.
absl::Status CheckAddress(absl::string_view address);

// A channel with a connection of its own. It connects when it is first used. Whenever the
// connection is lost, it connects again after 0.1 to 1 s. Errors are those of CheckAddress.
absl::StatusOr<std::shared_ptr<grpc::Channel>> NewChannel(const std::string& address,
                                                          const EndpointOptions& options);

// Makes `builder` listen on `address`. When it builds the server, it sets *port to the bound TCP
// port, to 1 for a Unix socket, or to 0 if the address could not be bound. `port` must live until
// then. REQUIRES: CheckAddress(address).ok()
void ListenOn(const std::string& address, const EndpointOptions& options,
              grpc::ServerBuilder* builder, int* port);

// The right to listen on a Unix socket, held as long as the object lives. Without it gRPC would
// silently take the socket from a server that is still running. For TCP it does nothing, because
// the kernel refuses a port in use.
//
// It is an flock on "<path>.lock". The file stays in the folder; the lock ends with the process.
class SocketLock {
 public:
  // Removes the socket that a dead process has left at `address`. FAILED_PRECONDITION if a server
  // of this or another process holds the lock, or if the path exists and is not a socket;
  // INVALID_ARGUMENT as CheckAddress returns it; other codes if the lock file fails.
  static absl::StatusOr<std::unique_ptr<SocketLock>> Acquire(absl::string_view address);

  ~SocketLock();
  SocketLock(const SocketLock&) = delete;
  SocketLock& operator=(const SocketLock&) = delete;

 private:
  explicit SocketLock(int fd) : fd_(fd) {}
  const int fd_;  // -1: not a Unix socket
};

}  // namespace satrap::rpc

#endif  // SATRAP_COMMON_RPC_ENDPOINTS_H_

#include "common/rpc/endpoints.h"

#include <errno.h>
#include <fcntl.h>
#include <grpc/grpc.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/security/server_credentials.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <limits>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/types/optional.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "common/file/file_error.h"

namespace satrap::rpc {
namespace {

// Peers start in any order, so the pauses between attempts to connect are short. gRPC's own grow to
// minutes.
constexpr int kReconnectMinMs = 100;
constexpr int kReconnectMaxMs = 1000;
// A machine that vanishes does not close its connections; pings detect that.
constexpr int kKeepaliveTimeMs = 20000;
constexpr int kKeepaliveTimeoutMs = 20000;

// The path in "unix:path" or "unix:///path"; nullopt for other addresses.
absl::optional<std::string> SocketPath(absl::string_view address) {
  if (!absl::ConsumePrefix(&address, "unix:")) return absl::nullopt;
  if (absl::StartsWith(address, "//")) address.remove_prefix(2);
  return std::string(address);
}

int MaxMessageBytes(const EndpointOptions& options) {
  return static_cast<int>(
      std::min<int64_t>(options.max_message_bytes, std::numeric_limits<int>::max()));
}

absl::Status RemoveStaleSocket(const std::string& path) {
  struct stat info;
  if (::lstat(path.c_str(), &info) != 0) {
    return errno == ENOENT ? absl::OkStatus() : FileError("look at", path);
  }
  if (!S_ISSOCK(info.st_mode)) {
    return absl::FailedPreconditionError(absl::StrCat(path, " exists and is not a socket"));
  }
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) return FileError("remove", path);
  return absl::OkStatus();
}

// gRPC shuts its library down when the last user has released it. It may wait ten seconds for one
// of its own threads. So each channel and server takes a reference to the library and never
// releases it.
void KeepLibraryUp() { grpc_init(); }

}  // namespace

absl::Status CheckAddress(absl::string_view address) {
  if (address.empty()) return absl::InvalidArgumentError("address is empty");
  const absl::optional<std::string> path = SocketPath(address);
  if (!path.has_value()) return absl::OkStatus();
  if (path->empty()) return absl::InvalidArgumentError("address \"unix:\" has no path");
  if (path->size() > kMaxSocketPathBytes) {
    return absl::InvalidArgumentError(absl::StrCat("socket path of ", path->size(),
                                                   " bytes is longer than the kernel's limit of ",
                                                   kMaxSocketPathBytes, ": ", *path));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<grpc::Channel>> NewChannel(const std::string& address,
                                                          const EndpointOptions& options) {
  RETURN_IF_ERROR(CheckAddress(address));
  KeepLibraryUp();
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(MaxMessageBytes(options));
  arguments.SetMaxSendMessageSize(MaxMessageBytes(options));
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, kReconnectMinMs);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, kReconnectMaxMs);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, kReconnectMaxMs);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveTimeMs);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepaliveTimeoutMs);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  // Retries are off: ReliableCall repeats attempts, and gRPC's own retries would keep a copy of
  // every request.
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  arguments.SetInt(GRPC_ARG_SERVICE_CONFIG_DISABLE_RESOLUTION, 1);
  return grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
}

void ListenOn(const std::string& address, const EndpointOptions& options,
              grpc::ServerBuilder* builder, int* port) {
  CHECK_OK(CheckAddress(address));
  KeepLibraryUp();
  *port = 0;
  builder->AddListeningPort(address, grpc::InsecureServerCredentials(), port);
  builder->SetMaxReceiveMessageSize(MaxMessageBytes(options));
  builder->SetMaxSendMessageSize(MaxMessageBytes(options));
  builder->AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  // Allows pings every kKeepaliveTimeMs. By default gRPC regards so many pings as abuse and closes
  // the connection.
  builder->AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS,
                              kKeepaliveTimeMs / 2);
  builder->AddChannelArgument(GRPC_ARG_HTTP2_MAX_PING_STRIKES, 0);
}

absl::StatusOr<std::unique_ptr<SocketLock>> SocketLock::Acquire(absl::string_view address) {
  RETURN_IF_ERROR(CheckAddress(address));
  const absl::optional<std::string> path = SocketPath(address);
  if (!path.has_value()) return std::unique_ptr<SocketLock>(new SocketLock(-1));
  const std::string lock_path = *path + ".lock";
  const int fd = ::open(lock_path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) return FileError("open", lock_path);
  std::unique_ptr<SocketLock> lock(new SocketLock(fd));
  if (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return FileError("lock", lock_path);
    return absl::FailedPreconditionError(
        absl::StrCat("another server listens on ", address, " (it holds ", lock_path, ")"));
  }
  RETURN_IF_ERROR(RemoveStaleSocket(*path));
  return lock;
}

SocketLock::~SocketLock() {
  if (fd_ >= 0) ::close(fd_);
}

}  // namespace satrap::rpc

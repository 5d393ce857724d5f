#include "common/role/process_limits.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <iterator>
#include <string>
#include <system_error>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/shortage.h"
#include "common/base/status_macros.h"
#include "common/role/cause_table.h"
#include "common/role/ending.h"

namespace satrap {
namespace {

constexpr rlim_t kMostDescriptors = 65536;
constexpr int kLoopbackMs = 2000;

// The error contains the cure that the table of causes gives for the shortage.
absl::Status Lack(Shortage shortage, absl::StatusCode code, const std::string& what) {
  absl::Status lack = MarkShortage(absl::Status(code, what), shortage);
  Ending ending = EndingOf(Ending::MEMBER_FAILED, "");
  ending.set_kind(KindOf(lack));
  return MarkShortage(absl::Status(code, absl::StrCat(what, ": ", RuleOf(ending).cure)), shortage);
}

absl::Status CheckDescriptors() {
  rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return absl::OkStatus();
  const rlim_t wanted = std::min(limit.rlim_max, kMostDescriptors);
  if (limit.rlim_cur < wanted) {
    const rlimit raised = {wanted, limit.rlim_max};
    if (setrlimit(RLIMIT_NOFILE, &raised) == 0) limit = raised;
  }
  std::error_code error;
  const std::filesystem::directory_iterator fds("/proc/self/fd", error);
  // If /proc is missing or cannot be read, assumes that no descriptors are open.
  const auto open = error ? 0 : std::distance(begin(fds), end(fds));
  const auto most = static_cast<int64_t>(limit.rlim_cur);
  if (limit.rlim_cur == RLIM_INFINITY || most - open >= kDescriptorsNeeded) return absl::OkStatus();
  return Lack(Shortage::kDescriptors, absl::StatusCode::kResourceExhausted,
              absl::StrCat("this process may open ", most, " files and sockets, has ", open,
                           " open, and needs ", kDescriptorsNeeded, " more"));
}

// Threads that wait until they are released.
void* WaitForRelease(void* gate) {
  auto* const mutex = static_cast<pthread_mutex_t*>(gate);
  pthread_mutex_lock(mutex);
  pthread_mutex_unlock(mutex);
  return nullptr;
}

// Starts as many threads as the process needs, all at the same time. If not all of them can be
// started, gRPC would later run without the missing threads, and calls would never be answered.
absl::Status CheckThreads() {
  pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
  pthread_mutex_lock(&gate);
  std::vector<pthread_t> threads;
  threads.reserve(kThreadsNeeded);
  int error = 0;
  while (error == 0 && threads.size() < kThreadsNeeded) {
    pthread_t thread;
    error = pthread_create(&thread, nullptr, WaitForRelease, &gate);
    if (error == 0) threads.push_back(thread);
  }
  pthread_mutex_unlock(&gate);
  for (const pthread_t thread : threads) pthread_join(thread, nullptr);
  if (error == 0) return absl::OkStatus();
  return Lack(
      Shortage::kProcesses, absl::StatusCode::kResourceExhausted,
      absl::StrCat("this process can start only ", threads.size(), " of the ", kThreadsNeeded,
                   " threads that it needs (", std::generic_category().message(error), ")"));
}

// A socket that closes itself when it is destroyed.
class Socket {
 public:
  Socket() : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {}
  ~Socket() {
    if (fd_ >= 0) close(fd_);
  }
  int fd() const { return fd_; }

 private:
  const int fd_;
};

// Connects to a port of this process: binding an address is no proof, because it works even if the
// interface is down. Returns 0 if the connection works, otherwise the errno.
int TryLoopback() {
  const Socket server;
  const Socket client;
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  auto* const name = reinterpret_cast<sockaddr*>(&address);
  socklen_t size = sizeof(address);
  if (server.fd() < 0 || client.fd() < 0) return errno;
  if (bind(server.fd(), name, size) != 0 || listen(server.fd(), 1) != 0) return errno;
  if (getsockname(server.fd(), name, &size) != 0) return errno;
  if (connect(client.fd(), name, size) == 0) return 0;
  if (errno != EINPROGRESS) return errno;
  pollfd waited = {client.fd(), POLLOUT, 0};
  if (poll(&waited, 1, kLoopbackMs) <= 0) return ETIMEDOUT;
  int error = 0;
  socklen_t error_size = sizeof(error);
  getsockopt(client.fd(), SOL_SOCKET, SO_ERROR, &error, &error_size);
  return error;
}

absl::Status CheckLoopback() {
  const int error = TryLoopback();
  if (error == 0) return absl::OkStatus();
  const Shortage shortage = ShortageOfErrno(error);
  return Lack(
      shortage == Shortage::kNone ? Shortage::kAddress : shortage, absl::StatusCode::kUnavailable,
      absl::StrCat("127.0.0.1 cannot be used (", std::generic_category().message(error), ")"));
}

}  // namespace

absl::Status CheckProcessLimits(bool needs_loopback) {
  RETURN_IF_ERROR(CheckDescriptors());
  RETURN_IF_ERROR(CheckThreads());
  return needs_loopback ? CheckLoopback() : absl::OkStatus();
}

}  // namespace satrap

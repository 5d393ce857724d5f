#include "deploy/cli/bench/metrics_page.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace satrap {
namespace {

// With HTTP/1.0 the server sends the page unencoded, and then closes the connection.
constexpr char kRequest[] = "GET /metrics HTTP/1.0\r\nHost: localhost\r\n\r\n";

absl::Status Unreachable(const std::string& address) {
  return absl::UnavailableError(
      absl::StrCat("cannot read the metrics at ", address, ": ", strerror(errno)));
}

}  // namespace

absl::StatusOr<std::string> ReadMetricsPage(const std::string& address, int64_t timeout_ms) {
  const std::pair<std::string, std::string> parts =
      absl::StrSplit(address, absl::MaxSplits(':', 1));
  sockaddr_in name{};
  name.sin_family = AF_INET;
  uint32_t port = 0;
  if (inet_pton(AF_INET, parts.first.c_str(), &name.sin_addr) != 1 ||
      !absl::SimpleAtoi(parts.second, &port) || port > 65535) {
    return absl::UnavailableError(
        absl::StrCat("'", address, "' is not the address of a metrics page"));
  }
  name.sin_port = htons(static_cast<uint16_t>(port));

  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return Unreachable(address);
  const auto closing = absl::MakeCleanup([fd] { close(fd); });
  timeval timeout{};
  timeout.tv_sec = timeout_ms / 1000;
  timeout.tv_usec = timeout_ms % 1000 * 1000;
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
  setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout));
  if (connect(fd, reinterpret_cast<const sockaddr*>(&name), sizeof(name)) != 0 ||
      send(fd, kRequest, sizeof(kRequest) - 1, MSG_NOSIGNAL) < 0) {
    return Unreachable(address);
  }
  std::string page;
  char bytes[4096];
  while (true) {
    const ssize_t n = recv(fd, bytes, sizeof(bytes), 0);
    if (n == 0) return page;
    if (n < 0 && errno != EINTR) return Unreachable(address);
    if (n > 0) page.append(bytes, static_cast<size_t>(n));
  }
}

absl::optional<double> SumOfMetric(absl::string_view page, absl::string_view metric) {
  absl::optional<double> sum;
  for (absl::string_view line : absl::StrSplit(page, '\n')) {
    // NAME{LABELS} VALUE, or NAME VALUE
    if (!absl::ConsumePrefix(&line, metric) || line.empty()) continue;
    if (line.front() != '{' && line.front() != ' ') continue;
    double value = 0;
    if (absl::SimpleAtod(line.substr(line.rfind(' ') + 1), &value)) sum = sum.value_or(0) + value;
  }
  return sum;
}

}  // namespace satrap

#include "nn_worker/collective/own_address.h"

#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/shortage.h"

namespace satrap {
namespace {

struct FreeAddresses {
  void operator()(addrinfo* addresses) const { freeaddrinfo(addresses); }
};

// Returns 0, or the errno of socket or bind.
int TryToBind(const addrinfo& address) {
  const int fd = socket(address.ai_family, address.ai_socktype, address.ai_protocol);
  if (fd < 0) return errno;
  const int error = bind(fd, address.ai_addr, address.ai_addrlen) == 0 ? 0 : errno;
  close(fd);
  return error;
}

std::string TextOf(const addrinfo& address) {
  char text[NI_MAXHOST] = "";
  getnameinfo(address.ai_addr, address.ai_addrlen, text, sizeof(text), nullptr, 0, NI_NUMERICHOST);
  return text;
}

}  // namespace

absl::StatusOr<std::string> OwnAddressOf(absl::string_view host) {
  absl::string_view name = host;
  if (absl::StartsWith(name, "[") && absl::EndsWith(name, "]")) {
    name = name.substr(1, name.size() - 2);
  }
  // No name or address contains one of these characters. Without this check the resolver would also
  // stop at a zero byte.
  constexpr absl::string_view kNoHost("[]/\0 ", 5);
  if (name.empty() || name.find_first_of(kNoHost) != name.npos) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", host,
                     "' is not a host: expected the name or address of this machine, "
                     "without a port, as in worker-0, 10.0.0.7 or [fd00::7]"));
  }
  addrinfo hints = {};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(std::string(name).c_str(), nullptr, &hints, &found);
  const std::unique_ptr<addrinfo, FreeAddresses> addresses(found);
  if (error != 0) {
    return MarkShortage(
        absl::UnavailableError(absl::StrCat(
            "the host '", host, "' does not resolve: ",
            error == EAI_SYSTEM ? std::strerror(errno) : gai_strerror(error),
            "; expected the name or address of this machine at which the other ranks reach it, "
            "without a port")),
        Shortage::kAddress);
  }
  int bind_error = 0;
  for (const addrinfo* address = addresses.get(); address != nullptr; address = address->ai_next) {
    bind_error = TryToBind(*address);
    if (bind_error == 0) return TextOf(*address);
  }
  if (const Shortage shortage = ShortageOfErrno(bind_error);
      shortage != Shortage::kNone && shortage != Shortage::kAddress) {
    return MarkShortage(absl::ResourceExhaustedError(absl::StrCat("cannot open a socket at ", host,
                                                                  ": ", std::strerror(bind_error))),
                        shortage);
  }
  return absl::FailedPreconditionError(
      absl::StrCat("the host '", host, "' (", TextOf(*addresses),
                   ") is not this machine: cannot listen there: ", std::strerror(bind_error)));
}

}  // namespace satrap

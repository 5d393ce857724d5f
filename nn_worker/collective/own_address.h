// The address at which the other ranks reach this machine. Gloo does not check the host that it is
// given: if the name does not resolve, Gloo reads an uninitialised address list.
//
// Thread-safe: the function depends only on its argument and on the machine.

#ifndef SATRAP_NN_WORKER_COLLECTIVE_OWN_ADDRESS_H_
#define SATRAP_NN_WORKER_COLLECTIVE_OWN_ADDRESS_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace satrap {

// The first address of `host` that a socket can be bound to, as text. `host` is a name, an IPv4
// address, or an IPv6 address with or without brackets. It has no port. All errors name `host`:
// INVALID_ARGUMENT if it cannot be a host; UNAVAILABLE, marked as the lack of an address
// (common/base/shortage.h), if it does not resolve (perhaps only because the name is not published
// yet); FAILED_PRECONDITION if none of its addresses is this machine's; RESOURCE_EXHAUSTED, also
// marked as a shortage, if no socket can be opened.
absl::StatusOr<std::string> OwnAddressOf(absl::string_view host);

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_COLLECTIVE_OWN_ADDRESS_H_

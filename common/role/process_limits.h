// Checks, before a process of a run begins, that the machine has what every such process needs.
// Without this check, gRPC and other libraries would end the process by an assertion whose message
// does not name the cause.
//
// Thread-safe.

#ifndef SATRAP_COMMON_ROLE_PROCESS_LIMITS_H_
#define SATRAP_COMMON_ROLE_PROCESS_LIMITS_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"

namespace satrap {

// The number of descriptors that this process must still be able to open.
inline constexpr int64_t kDescriptorsNeeded = 64;
// The number of threads that this process must be able to start. On two cores a role has 21 to 26.
inline constexpr size_t kThreadsNeeded = 32;

// Raises the soft limit of descriptors to the hard one, but to 65,536 at most. Then checks that the
// process can open enough descriptors, start enough threads and, with `needs_loopback`, use
// 127.0.0.1. The threads that it starts for this have ended when it returns. Errors are
// RESOURCE_EXHAUSTED and UNAVAILABLE; they are marked (common/base/shortage.h) and say what to do.
absl::Status CheckProcessLimits(bool needs_loopback);

}  // namespace satrap

#endif  // SATRAP_COMMON_ROLE_PROCESS_LIMITS_H_

// Chooses the first acceptable alternative of those that a library offers in order of preference.
//
// Thread-safe: the function depends only on its arguments.

#ifndef SATRAP_NN_WORKER_DEVICE_FIRST_ACCEPTED_H_
#define SATRAP_NN_WORKER_DEVICE_FIRST_ACCEPTED_H_

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace satrap {

// Returns the first i from 0 to count - 1 for which check(i) is OK. If check(i) is NOT_FOUND, i is
// refused and the next one is tried; if all are refused, returns the last refusal. Any other error
// of `check` ends the search and is returned. REQUIRES: count >= 1
inline absl::StatusOr<int> FirstAccepted(int count, absl::FunctionRef<absl::Status(int)> check) {
  absl::Status refusal;
  for (int i = 0; i < count; ++i) {
    refusal = check(i);
    if (refusal.ok()) return i;
    if (!absl::IsNotFound(refusal)) return refusal;
  }
  return refusal;
}

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_DEVICE_FIRST_ACCEPTED_H_

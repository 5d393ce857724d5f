// Which of several ways that a library offers, best first, is taken.
//
// Thread-safe: a function of its arguments.

#ifndef SATRAP_NN_WORKER_DEVICE_FIRST_ACCEPTED_H_
#define SATRAP_NN_WORKER_DEVICE_FIRST_ACCEPTED_H_

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace satrap {

// The first of 0 to count - 1 for which `check` is OK. NOT_FOUND refuses one, and the next is
// asked; the last refusal if there is no other. Any other error of `check` ends the search.
// REQUIRES: count >= 1
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

// A backend for tests that behaves as a device does: operations and copies run no earlier than
// somebody waits for them, and the host cannot reach the memory. Code that relies on more than the
// contract in backend.h passes on a CPU and fails here:
//
//   - reading a result before Sync, or before the second Poll of an event after the operation,
//     gives the value from before the operation;
//   - a copy on a lane of its own reads the host's memory when it runs, so what the host changes
//     before it has waited goes along;
//   - an operation that does not wait for a copy in which it needs, and a copy out that does not
//     wait for the operation, see old values;
//   - such a copy from or to memory that is not pinned fails a CHECK;
//   - touching memory through a Tensor, rather than by a copy or HostView, ends the process with
//     SIGSEGV, for what Allocate returns is closed to the host: the operations find the same memory
//     at another address;
//   - a tensor with a value outside one allocation of this backend fails a CHECK.
//
// The arithmetic is that of an inner backend, so results have its bits.
//
// Threads: as every Backend.

#ifndef SATRAP_NN_WORKER_BACKEND_TESTING_DEFERRED_BACKEND_H_
#define SATRAP_NN_WORKER_BACKEND_TESTING_DEFERRED_BACKEND_H_

#include <memory>

#include "nn_worker/backend/backend.h"

namespace satrap {

enum class HostAccess {
  kNone,      // HostView gives null, as a GPU's memory
  kByViewing  // HostView opens an allocation to the host until the next operation on it
};

// `inner` computes in host memory.
std::unique_ptr<Backend> NewDeferredBackend(std::unique_ptr<Backend> inner, HostAccess host_access);

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_BACKEND_TESTING_DEFERRED_BACKEND_H_

// A backend for tests that behaves as a device does: operations run no earlier than the next Sync,
// and the host cannot reach the memory. Code that relies on more than the contract in backend.h
// passes on a CPU and fails here:
//
//   - reading a result before Sync gives the value from before the operation;
//   - touching memory through a Tensor, rather than by a copy or HostView, ends the process with
//     SIGSEGV, for what Allocate returns is closed to the host: the operations find the same memory
//     at another address;
//   - a tensor with a value outside one allocation of this backend fails a CHECK.
//
// The arithmetic is that of an inner backend, so results have its bits.
//
// Thread-compatible, as every Backend.

#ifndef SATRAP_NN_WORKER_BACKEND_DEFERRED_BACKEND_H_
#define SATRAP_NN_WORKER_BACKEND_DEFERRED_BACKEND_H_

#include <memory>

#include "nn_worker/backend/backend.h"

namespace satrap {

enum class HostAccess {
  kNone,      // HostView gives null, as a GPU's memory
  kByViewing  // HostView opens the memory to the host until the next operation
};

// `inner` computes in host memory.
std::unique_ptr<Backend> NewDeferredBackend(std::unique_ptr<Backend> inner, HostAccess host_access);

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_BACKEND_DEFERRED_BACKEND_H_

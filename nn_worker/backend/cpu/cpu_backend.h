// The CPU backend: matrix products by oneDNN (cpu_matrix.h), the rest by vectorised loops
// (cpu_kernels.h), each cut into pieces of fixed size that a fork-join pool runs. An operation has
// run when its call returns, so Sync has nothing to do.
//
// Thread-compatible, like every Backend; different backends may work at the same time.

#ifndef SATRAP_NN_WORKER_BACKEND_CPU_CPU_BACKEND_H_
#define SATRAP_NN_WORKER_BACKEND_CPU_CPU_BACKEND_H_

#include <memory>

#include "common/thread/fork_join_pool.h"
#include "nn_worker/backend/backend.h"

namespace satrap {

// `compute_threads` counts the caller's thread. REQUIRES: compute_threads >= 1
std::unique_ptr<Backend> NewCpuBackend(int compute_threads);

// Runs on `pool`, which other code may use between the backend's operations. Not owned; must
// outlive the backend.
std::unique_ptr<Backend> NewCpuBackend(ForkJoinPool* pool);

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_BACKEND_CPU_CPU_BACKEND_H_

// The CPU backend: matrix products by oneDNN (cpu_matrix.h), the rest by vectorised loops
// (cpu_kernels.h), each cut into parts of fixed size over a fork-join pool. Operations have run
// when their call returns.
//
// Thread-compatible, as every Backend; several may work at the same time.

#ifndef SATRAP_NN_WORKER_BACKEND_CPU_BACKEND_H_
#define SATRAP_NN_WORKER_BACKEND_CPU_BACKEND_H_

#include <memory>

#include "nn_worker/backend/backend.h"
#include "nn_worker/backend/fork_join_pool.h"

namespace satrap {

// `compute_threads` counts the caller's thread. REQUIRES: compute_threads >= 1
std::unique_ptr<Backend> NewCpuBackend(int compute_threads);

// On a pool that others may use between its operations. Not owned; must outlive the backend.
std::unique_ptr<Backend> NewCpuBackend(ForkJoinPool* pool);

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_BACKEND_CPU_BACKEND_H_

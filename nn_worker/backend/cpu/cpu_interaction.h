// The interaction operations of CpuBackend: vectorised loops over pieces of the samples, which a
// fork-join pool runs. The pieces have a fixed size and no sum extends over two pieces, so the bits
// do not depend on the number of threads.
//
// Thread-compatible, as every Backend.

#ifndef SATRAP_NN_WORKER_BACKEND_CPU_CPU_INTERACTION_H_
#define SATRAP_NN_WORKER_BACKEND_CPU_CPU_INTERACTION_H_

#include "common/thread/fork_join_pool.h"
#include "nn_worker/backend/cpu/cpu_matrix.h"
#include "nn_worker/backend/cpu/host_backend.h"
#include "nn_worker/backend/operation_operands.h"

namespace satrap {

// A base of CpuBackend.
class CpuInteractionBackend : public HostBackend {
 public:
  SATRAP_INTERACTION_OPERATIONS(SATRAP_DECLARE_OPERATION)

 protected:
  // `pool` is not owned and must outlive the backend.
  explicit CpuInteractionBackend(ForkJoinPool* pool) : interaction_pool_(*pool) {}

 private:
  ForkJoinPool& interaction_pool_;
  AlignedScratch interaction_scratch_;
};

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_BACKEND_CPU_CPU_INTERACTION_H_

// The interaction operations of ReferenceBackend: plain loops with sums in double, for comparison
// with the formulas of interaction_operations.h.
//
// Thread-compatible, as every Backend.

#ifndef SATRAP_NN_WORKER_BACKEND_TESTING_REFERENCE_INTERACTION_H_
#define SATRAP_NN_WORKER_BACKEND_TESTING_REFERENCE_INTERACTION_H_

#include "nn_worker/backend/cpu/host_backend.h"
#include "nn_worker/backend/operation_operands.h"

namespace satrap {

// A base of ReferenceBackend.
class ReferenceInteractionBackend : public HostBackend {
 public:
  SATRAP_INTERACTION_OPERATIONS(SATRAP_DECLARE_OPERATION)
};

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_BACKEND_TESTING_REFERENCE_INTERACTION_H_

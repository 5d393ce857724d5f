// The losses of ReferenceBackend, as loss_operations.h defines them: sample by sample, in double.
//
// Thread-compatible, as every Backend.

#ifndef SATRAP_NN_WORKER_BACKEND_TESTING_REFERENCE_LOSSES_H_
#define SATRAP_NN_WORKER_BACKEND_TESTING_REFERENCE_LOSSES_H_

#include "nn_worker/backend/operation_operands.h"
#include "nn_worker/backend/testing/reference_interaction.h"

namespace satrap {

// A base of ReferenceBackend.
class ReferenceLossBackend : public ReferenceInteractionBackend {
 public:
  SATRAP_LOSS_OPERATIONS(SATRAP_DECLARE_OPERATION)
};

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_BACKEND_TESTING_REFERENCE_LOSSES_H_

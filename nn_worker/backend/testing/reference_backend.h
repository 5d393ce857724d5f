// The operations of backend.h as plain loops with sums in double. They are slow, but easy to check
// against the formulas. Tests compare other backends with them.

#ifndef SATRAP_NN_WORKER_BACKEND_TESTING_REFERENCE_BACKEND_H_
#define SATRAP_NN_WORKER_BACKEND_TESTING_REFERENCE_BACKEND_H_

#include <memory>

#include "nn_worker/backend/backend.h"

namespace satrap {

std::unique_ptr<Backend> NewReferenceBackend();

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_BACKEND_TESTING_REFERENCE_BACKEND_H_

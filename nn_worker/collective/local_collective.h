// The collective of ranks that are threads of one process. It serves tests, and jobs with one NN
// worker (size 1 costs nothing). Values are added in rank order. Abort of one rank ends the calls
// of all ranks.

#ifndef SATRAP_NN_WORKER_COLLECTIVE_LOCAL_COLLECTIVE_H_
#define SATRAP_NN_WORKER_COLLECTIVE_LOCAL_COLLECTIVE_H_

#include <memory>
#include <vector>

#include "nn_worker/collective/collective.h"

namespace satrap {

// Element r is for rank r. The collectives may be destroyed in any order, but not while any of them
// is in a call. REQUIRES: size >= 1
std::vector<std::unique_ptr<Collective>> NewLocalCollectives(int size);

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_COLLECTIVE_LOCAL_COLLECTIVE_H_

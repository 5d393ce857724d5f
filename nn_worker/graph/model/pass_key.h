// Identifies training passes of a network that are alike: passes with equal keys enqueue the same
// operations with the same arguments.

#ifndef SATRAP_NN_WORKER_GRAPH_MODEL_PASS_KEY_H_
#define SATRAP_NN_WORKER_GRAPH_MODEL_PASS_KEY_H_

#include <cstdint>

#include "absl/container/inlined_vector.h"

namespace satrap {

// A key is made in every step. Its inline size is enough for a network of three tasks, so that no
// memory is allocated.
using PassKey = absl::InlinedVector<int64_t, 24>;

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_GRAPH_MODEL_PASS_KEY_H_

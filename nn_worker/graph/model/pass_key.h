// Identifies training passes of a network that are alike: passes with equal keys enqueue the same
// operations with the same arguments.

#ifndef SATRAP_NN_WORKER_GRAPH_MODEL_PASS_KEY_H_
#define SATRAP_NN_WORKER_GRAPH_MODEL_PASS_KEY_H_

#include <cstdint>

#include "absl/container/inlined_vector.h"

namespace satrap {

// One key is made in each step, so the inline size is large enough for a network of three tasks.
using PassKey = absl::InlinedVector<int64_t, 24>;

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_GRAPH_MODEL_PASS_KEY_H_

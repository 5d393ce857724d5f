// The collective of ranks in processes, over TCP by Gloo's transport.
//
// The algorithms are ours, over Gloo's point-to-point buffers: its own cannot be ended from another
// thread, and sum in the order of a ring. An allreduce of n ranks is cut into n pieces, piece r
// summed by rank r in rank order and sent back: each rank sends and receives 2 (n - 1) / n of the
// bytes, and the sum does not depend on how it was cut.
//
// A rank that ends, is aborted or goes away closes its connections: the calls of the others then
// fail with UNAVAILABLE.
//
// A write to a peer that has gone raises SIGPIPE: the process ignores that signal.

#ifndef SATRAP_NN_WORKER_COLLECTIVE_GLOO_COLLECTIVE_H_
#define SATRAP_NN_WORKER_COLLECTIVE_GLOO_COLLECTIVE_H_

#include <cstdint>
#include <memory>
#include <string>

#include "common/role/rendezvous_store.h"
#include "nn_worker/collective/collective.h"

namespace satrap {

struct GlooOptions {
  int rank = 0;
  int size = 1;
  std::string host = "127.0.0.1";  // a name or address of this machine that the other ranks reach
  // Keys begin with it: one for each generation of the job.
  std::string prefix;
  int64_t connect_timeout_ms = 60000;
};

// Connects to all other ranks. `store` is used during the call only. UNAVAILABLE, naming the
// reason, if that fails or takes longer than `connect_timeout_ms`.
absl::StatusOr<std::unique_ptr<Collective>> NewGlooCollective(const GlooOptions& options,
                                                              RendezvousStore* store);

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_COLLECTIVE_GLOO_COLLECTIVE_H_

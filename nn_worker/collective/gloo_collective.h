// The collective of ranks in processes, over TCP by Gloo's transport.
//
// The algorithms are ours, over Gloo's point-to-point buffers: Gloo's own algorithms cannot be
// ended from another thread, and they add in the order of a ring. An allreduce of n ranks cuts the
// values into n pieces; rank r sums piece r in rank order and sends the sum to all. So each rank
// sends and receives 2 (n - 1) / n times the bytes of the values, and the sum does not depend on
// how the values were cut.
//
// When a rank ends, is aborted or dies, its connections close and the calls of the other ranks fail
// with UNAVAILABLE.
//
// A write to a peer that is gone raises SIGPIPE: the process must ignore that signal.

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
  // The prefix of all keys in the store, different for each generation of the job.
  std::string prefix;
  int64_t connect_timeout_ms = 60000;
};

// Connects to all other ranks. `store` is used during the call only. UNAVAILABLE, naming the
// reason, if connecting fails or takes longer than `connect_timeout_ms`. The errors of OwnAddressOf
// (own_address.h) are returned before anything connects.
absl::StatusOr<std::unique_ptr<Collective>> NewGlooCollective(const GlooOptions& options,
                                                              RendezvousStore* store);

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_COLLECTIVE_GLOO_COLLECTIVE_H_

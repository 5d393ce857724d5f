// SplitLeaseClient is the SplitSupply of hybrid training. It leases one split after another from
// the coordinator (LeaseSplit), so that a fast loader reads more splits. Each split is leased only
// once in an epoch, even if messages are lost or repeated.
//
// Thread-safe. The executor and the channel are not owned; they must outlive the client and its
// open calls.

#ifndef SATRAP_DATA_LOADER_ENGINE_SPLIT_LEASE_CLIENT_H_
#define SATRAP_DATA_LOADER_ENGINE_SPLIT_LEASE_CLIENT_H_

#include <cstdint>

#include "common/rpc/numbered_client.h"
#include "common/rpc/rpc.h"
#include "common/rpc/timeouts.h"
#include "common/thread/executor.h"
#include "data_loader/engine/split_supply.h"
#include "proto/hot.pb.h"

namespace satrap {

class SplitLeaseClient final : public SplitSupply {
 public:
  struct Options {
    Envelope envelope;
    uint32_t loader_index = 0;
    uint32_t num_splits = 0;  // the number of splits of the train stream
    rpc::RpcTimeouts timeouts;
  };
  SplitLeaseClient(const Options& options, Executor* executor, rpc::Channel* coordinator);

  // Fails as the call does, or with INTERNAL if the coordinator's answer is not valid.
  void NextSplit(uint32_t epoch, Callback done) override;

 private:
  const uint32_t num_splits_;
  rpc::NumberedClient coordinator_;
};

}  // namespace satrap

#endif  // SATRAP_DATA_LOADER_ENGINE_SPLIT_LEASE_CLIENT_H_

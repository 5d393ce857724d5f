// SplitLease is the SplitSupply of hybrid training: it asks the coordinator for one split after
// another (LeaseSplit), so that a fast loader reads more of them. A split is leased once in an
// epoch, whatever messages are lost or repeated.
//
// Thread-safe. What it points to is not owned and must outlive it and its open calls.

#ifndef SATRAP_DATA_LOADER_ENGINE_SPLIT_LEASE_H_
#define SATRAP_DATA_LOADER_ENGINE_SPLIT_LEASE_H_

#include <cstdint>

#include "common/executor.h"
#include "common/rpc/numbered_client.h"
#include "common/rpc/rpc.h"
#include "common/rpc/timeouts.h"
#include "data_loader/engine/split_supply.h"
#include "proto/hot.pb.h"

namespace satrap {

class SplitLease final : public SplitSupply {
 public:
  struct Options {
    Envelope envelope;
    uint32_t loader_index = 0;
    uint32_t num_splits = 0;  // of the train stream
    rpc::RpcTimeouts timeouts;
  };
  SplitLease(const Options& options, Executor* executor, rpc::Channel* coordinator);

  // Errors are those of the call, and INTERNAL if the coordinator breaks the contract.
  void NextSplit(uint32_t epoch, Callback done) override;

 private:
  const uint32_t num_splits_;
  rpc::NumberedClient coordinator_;
};

}  // namespace satrap

#endif  // SATRAP_DATA_LOADER_ENGINE_SPLIT_LEASE_H_

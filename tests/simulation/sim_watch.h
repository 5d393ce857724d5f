// A handler that stands before an embedding worker and notes how far the loaders are.
//
// Not thread-safe: it lives on the SimLoop's thread.

#ifndef SATRAP_TESTS_SIMULATION_SIM_WATCH_H_
#define SATRAP_TESTS_SIMULATION_SIM_WATCH_H_

#include <cstdint>
#include <map>

#include "common/rpc/rpc.h"
#include "proto/hot.pb.h"

namespace satrap::simulation {

class PutBatchWatch final : public rpc::Handler {
 public:
  // `worker` and `last_epochs` are not owned.
  PutBatchWatch(rpc::Handler* worker, std::map<Stream, uint32_t>* last_epochs)
      : worker_(worker), last_epochs_(last_epochs) {}

  // Raises the stream's entry of `last_epochs` to the epoch or pass of each PutBatch.
  void Handle(const rpc::Method& method, rpc::Message request, rpc::Callback respond) override;

 private:
  rpc::Handler* const worker_;
  std::map<Stream, uint32_t>* const last_epochs_;
};

}  // namespace satrap::simulation

#endif  // SATRAP_TESTS_SIMULATION_SIM_WATCH_H_

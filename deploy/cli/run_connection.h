// A RunConnection finds the coordinator of a run in progress by the run's folder, through all of
// the run's generations.
//
// Not thread-safe.

#ifndef SATRAP_DEPLOY_CLI_RUN_CONNECTION_H_
#define SATRAP_DEPLOY_CLI_RUN_CONNECTION_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/rpc/grpc_channel.h"
#include "proto/control.pb.h"

namespace satrap {

class RunConnection {
 public:
  // UNAVAILABLE if nothing runs in `run_dir`. If the run's coordinator is just being restarted, it
  // is reached once it answers.
  static absl::StatusOr<std::unique_ptr<RunConnection>> Open(const std::string& run_dir);

  // UNAVAILABLE or DEADLINE_EXCEEDED if the coordinator does not answer within 2 s.
  absl::StatusOr<StatusAnswer> Status();

  // Whether a later status shows that the wish with the number `wish` in `generation` is fulfilled.
  using Fulfilled =
      absl::FunctionRef<bool(const StatusAnswer& status, uint64_t generation, uint64_t wish)>;
  // Makes the wish and waits until it is fulfilled; makes it again if the generation ends before,
  // because its wishes end with it. Returns the status that fulfilled it. The run's end ends the
  // wait: UNAVAILABLE if nothing runs any more, ABORTED if the run has failed, FAILED_PRECONDITION
  // if it has finished or stopped. FAILED_PRECONDITION, too, if the run takes no such wish;
  // INVALID_ARGUMENT as WishAnswer. A wish to stop that is refused because the run changes its size
  // is made again after that; between two generations the run's launcher takes it
  // (deploy/launcher/pause_server.h).
  absl::StatusOr<StatusAnswer> Fulfil(WishRequest request, Fulfilled fulfilled);

 private:
  RunConnection(std::string run_dir, std::string address, std::unique_ptr<rpc::GrpcChannel> channel)
      : run_dir_(std::move(run_dir)), address_(std::move(address)), channel_(std::move(channel)) {}

  const std::string run_dir_;
  const std::string address_;
  // Replaced after each call that got no answer: a channel that has failed to connect waits longer
  // and longer before it tries again, while the run's coordinators come and go.
  std::unique_ptr<rpc::GrpcChannel> channel_;
};

}  // namespace satrap

#endif  // SATRAP_DEPLOY_CLI_RUN_CONNECTION_H_

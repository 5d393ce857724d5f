// A RunConnection finds the coordinator of a run in progress from the run's folder. It follows the
// run through all its generations.
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
#include "absl/types/optional.h"
#include "common/rpc/grpc_channel.h"
#include "proto/control.pb.h"

namespace satrap {

class RunConnection {
 public:
  // UNAVAILABLE if nothing runs in `run_dir`. If the run's coordinator is being restarted, later
  // calls reach it as soon as it answers.
  static absl::StatusOr<std::unique_ptr<RunConnection>> Open(const std::string& run_dir);

  // As Open, for a command in a pod of the run: the run's coordinator serves at `address`, and
  // `submission` is the one that the pod belongs to.
  static absl::StatusOr<std::unique_ptr<RunConnection>> OpenInPod(const std::string& run_dir,
                                                                  uint64_t submission,
                                                                  const std::string& address);

  // UNAVAILABLE or DEADLINE_EXCEEDED if the coordinator does not answer within 2 s.
  absl::StatusOr<StatusAnswer> Status();

  // Whether `status` shows that the wish with the number `wish`, made in `generation`, is
  // fulfilled.
  using Fulfilled =
      absl::FunctionRef<bool(const StatusAnswer& status, uint64_t generation, uint64_t wish)>;
  // Makes the wish, waits until it is fulfilled, and returns the status that shows this. If the
  // generation ends first, its wishes are lost, so the wish is made again in the next one. If the
  // run ends: UNAVAILABLE if nothing runs any more, ABORTED if the run has failed,
  // FAILED_PRECONDITION if it has finished or stopped. DEADLINE_EXCEEDED if the coordinator of a
  // run in pods has not answered for 10 minutes. If the run does not accept such a wish:
  // FAILED_PRECONDITION or INVALID_ARGUMENT, as at WishAnswer. A wish to stop that is refused
  // during a change of size is made again afterwards; between two generations the launcher accepts
  // it (deploy/launcher/pause_server.h).
  absl::StatusOr<StatusAnswer> Fulfil(WishRequest request, Fulfilled fulfilled);

 private:
  RunConnection(std::string run_dir, absl::optional<uint64_t> submission, std::string address,
                std::unique_ptr<rpc::GrpcChannel> channel)
      : run_dir_(std::move(run_dir)),
        submission_(submission),
        address_(std::move(address)),
        channel_(std::move(channel)) {}
  bool HasEnded() const;

  const std::string run_dir_;
  const absl::optional<uint64_t> submission_;  // of a run in pods
  const std::string address_;
  // Replaced after each call without an answer: a channel waits longer after each failed attempt to
  // connect, but a new coordinator may answer soon.
  std::unique_ptr<rpc::GrpcChannel> channel_;
};

}  // namespace satrap

#endif  // SATRAP_DEPLOY_CLI_RUN_CONNECTION_H_

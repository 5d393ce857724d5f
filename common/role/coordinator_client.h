// Calls to the coordinator, for roles and for the command line.
//
// Each call blocks until it is answered. An attempt that was lost is repeated until `timeout_ms`
// has passed; then the call returns UNAVAILABLE or DEADLINE_EXCEEDED. Other errors are the
// coordinator's own. Never make a call from a task of an executor or from a callback of a channel.
//
// Thread-safe. `channel` is not owned and must outlive the client.

#ifndef SATRAP_COMMON_ROLE_COORDINATOR_CLIENT_H_
#define SATRAP_COMMON_ROLE_COORDINATOR_CLIENT_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/role/rendezvous_store.h"
#include "common/rpc/rpc.h"
#include "proto/control.pb.h"

namespace satrap {

// If a role sends no heartbeat for this long, it counts as lost. If a role gets no answer from its
// coordinator for this long, it ends.
inline constexpr int64_t kHeartbeatTimeoutMs = 8000;
inline constexpr int64_t kHeartbeatPeriodMs = 1000;

// The methods of service Coordinator (proto/control.proto).
inline constexpr rpc::Method kRegister = {"/satrap.Coordinator/Register", false};
inline constexpr rpc::Method kHeartbeat = {"/satrap.Coordinator/Heartbeat", false};
inline constexpr rpc::Method kLeaseSplit = {"/satrap.Coordinator/LeaseSplit", false};
inline constexpr rpc::Method kStoreSet = {"/satrap.Coordinator/StoreSet", false};
inline constexpr rpc::Method kStoreGet = {"/satrap.Coordinator/StoreGet", false};
inline constexpr rpc::Method kFinish = {"/satrap.Coordinator/Finish", false};
inline constexpr rpc::Method kFail = {"/satrap.Coordinator/Fail", false};
inline constexpr rpc::Method kStatus = {"/satrap.Coordinator/Status", false};
inline constexpr rpc::Method kFixSplits = {"/satrap.Coordinator/FixSplits", false};
inline constexpr rpc::Method kCommitCut = {"/satrap.Coordinator/CommitCut", false};
inline constexpr rpc::Method kWish = {"/satrap.Coordinator/Wish", false};

class CoordinatorClient final : public RendezvousStore {
 public:
  // `envelope` is the one in RegisterAnswer. If it names another run than the coordinator's own,
  // the coordinator answers FAILED_PRECONDITION. Clients that do not know a run yet leave it empty,
  // and may only call Register and Status.
  explicit CoordinatorClient(rpc::Channel* channel, const Envelope& envelope = Envelope(),
                             int64_t timeout_ms = kHeartbeatTimeoutMs)
      : channel_(channel), envelope_(envelope), timeout_ms_(timeout_ms) {}

  // FAILED_PRECONDITION for an index out of range; INVALID_ARGUMENT if this process and the
  // coordinator were built from different sources, unless the process has a holder: then the answer
  // is not an error but tells the process to wait.
  absl::StatusOr<RegisterAnswer> Register(const RegisterRequest& request);
  // FAILED_PRECONDITION only if the client's envelope has a run id and the coordinator belongs to
  // another run.
  absl::StatusOr<StatusAnswer> Status();
  absl::Status Finish(const RunResult& result);
  // Returns the files and topics of the run. `splits` become its files, unless the run already has
  // a list. Waits for as long as the coordinator waits for a broker, whatever timeout_ms is.
  // REQUIRES: heartbeats watch the coordinator meanwhile
  absl::StatusOr<SplitList> FixSplits(int loader, const SplitList& splits);
  // Returns the wish's number. WishAnswer (proto/control.proto) documents FAILED_PRECONDITION and
  // INVALID_ARGUMENT.
  absl::StatusOr<uint64_t> Wish(const WishRequest& request);
  // Reports that this role must end because of `error`. The answer says whether the run or only the
  // generation ends, and the reason: this error, unless another failure came first. `incarnation`
  // is that of this process (RegisterRequest). If another process has become the member of this
  // index, the answer ends this process alone.
  absl::StatusOr<FailAnswer> Fail(Role role, int index, uint64_t incarnation,
                                  const absl::Status& error);

  absl::Status Set(const std::string& key, const std::string& value) override;
  absl::StatusOr<std::string> Get(const std::string& key, int64_t timeout_ms) override;

 private:
  absl::Status Call(const rpc::Method& method, const google::protobuf::MessageLite& request,
                    google::protobuf::MessageLite* answer) {
    return Call(method, request, timeout_ms_, answer);
  }
  absl::Status Call(const rpc::Method& method, const google::protobuf::MessageLite& request,
                    int64_t timeout_ms, google::protobuf::MessageLite* answer);

  rpc::Channel* const channel_;
  const Envelope envelope_;
  const int64_t timeout_ms_;
};

}  // namespace satrap

#endif  // SATRAP_COMMON_ROLE_COORDINATOR_CLIENT_H_

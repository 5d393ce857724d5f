// Calls to the coordinator, for roles and for the command line.
//
// Each call blocks until it is answered, repeating an attempt that was lost until `patience_ms` has
// passed; then it is UNAVAILABLE or DEADLINE_EXCEEDED. Other errors are the coordinator's own.
// Never call one from a task of an executor or from a callback of a channel.
//
// Thread-safe. `channel` is not owned and must outlive the client.

#ifndef SATRAP_COMMON_ROLE_COORDINATOR_CLIENT_H_
#define SATRAP_COMMON_ROLE_COORDINATOR_CLIENT_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/role/rendezvous_store.h"
#include "common/rpc/rpc.h"
#include "proto/control.pb.h"

namespace satrap {

// The generation of a run that has lost nobody. A run that has lost somebody ends, so there is no
// other.
inline constexpr uint64_t kFirstGeneration = 1;

// A role whose heartbeats stay away for this long is lost, and a role that hears nothing of its
// coordinator for this long ends.
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

class CoordinatorClient final : public RendezvousStore {
 public:
  explicit CoordinatorClient(rpc::Channel* channel, int64_t patience_ms = kHeartbeatTimeoutMs)
      : channel_(channel), patience_ms_(patience_ms) {}

  // FAILED_PRECONDITION for another job or an index that is taken or out of range.
  absl::StatusOr<RegisterAnswer> Register(const RegisterRequest& request);
  absl::StatusOr<StatusAnswer> Status();
  absl::Status Finish(const RunResult& result);
  // The run's cause, "ROLE I: ...": this one, unless another came first.
  absl::StatusOr<std::string> Fail(Role role, int index, absl::string_view reason);

  absl::Status Set(const std::string& key, const std::string& value) override;
  absl::StatusOr<std::string> Get(const std::string& key, int64_t timeout_ms) override;

 private:
  absl::Status Call(const rpc::Method& method, const google::protobuf::MessageLite& request,
                    google::protobuf::MessageLite* answer);

  rpc::Channel* const channel_;
  const int64_t patience_ms_;
};

}  // namespace satrap

#endif  // SATRAP_COMMON_ROLE_COORDINATOR_CLIENT_H_

// Rank 0's slow calls to the embedding PSs: marking, writing and loading tables, and their sizes.
//
// Each call is numbered and repeated until it is answered (common/rpc/numbered_client.h), except
// for TableStats, which changes nothing. Numbers are per method and PS.
//
// Thread-safe. `done` runs once, on a thread of the executor or a channel, never inside the call.
// Executor and channels are not owned and must outlive the calls.

#ifndef SATRAP_NN_WORKER_CHECKPOINT_PS_CONTROL_CLIENT_H_
#define SATRAP_NN_WORKER_CHECKPOINT_PS_CONTROL_CLIENT_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/rpc/numbered_client.h"
#include "common/rpc/rpc.h"
#include "common/rpc/timeouts.h"
#include "common/thread/executor.h"
#include "proto/control.pb.h"

namespace satrap {

// The sender of the numbered calls about cuts: rank 0 makes them all.
inline constexpr uint32_t kCutSender = 0;

class PsControlClient {
 public:
  // Errors name method and PS.
  using Done = absl::AnyInvocable<void(absl::StatusOr<rpc::Message>)>;
  using StatusDone = absl::AnyInvocable<void(absl::Status)>;

  // `embedding_ps` are the PSs by index.
  PsControlClient(const Envelope& envelope, const rpc::RpcTimeouts& timeouts, Executor* executor,
                  std::vector<rpc::Channel*> embedding_ps);

  size_t num_ps() const { return embedding_ps_.size(); }

  // Makes a numbered call to one PS. `request` has neither envelope nor call, because each attempt
  // adds them. REQUIRES: the method is BeginCut, AwaitCut, AbandonCut or LoadTables
  void Call(size_t ps, const rpc::Method& method, const google::protobuf::MessageLite& request,
            Done done);
  // Makes the same call to every PS. `done` receives OK when all have answered, or the first error
  // at once.
  void CallAll(const rpc::Method& method, const google::protobuf::MessageLite& request,
               StatusDone done);

  // Replaces the rows of all PSs by those of the cut in `directory`. Errors of the PSs: NOT_FOUND
  // without a manifest, DATA_LOSS naming what is damaged, FAILED_PRECONDITION if the tables are not
  // those of this job. `done` runs when all PSs have answered, so no PS is still loading then.
  void LoadTables(const std::string& directory, StatusDone done);

  // Rows and bytes of each table, summed over the PSs.
  void TableStats(absl::AnyInvocable<void(absl::StatusOr<std::vector<satrap::TableStats>>)> done);

 private:
  struct StatsCall;
  void AskForStats(std::shared_ptr<StatsCall> call, size_t ps);

  const Envelope envelope_;
  const rpc::RpcTimeouts timeouts_;
  Executor* const executor_;
  const std::vector<rpc::Channel*> embedding_ps_;
  std::map<std::string, std::vector<rpc::NumberedClient>> clients_;  // by method and PS; fixed
};

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_CHECKPOINT_PS_CONTROL_CLIENT_H_

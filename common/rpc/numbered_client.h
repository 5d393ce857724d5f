// A NumberedClient makes the calls that one sender makes by one method on one stream. It numbers
// them, repeats each until it is answered (reliable_call.h) and names peer and method in errors.
// call_receiver.h is the other half, at the peer; together they make each call happen once.
//
//   NumberedClient client({rpc::kPutBatch, envelope, loader_index, timeouts}, executor,
//                         rpc::PeersOf("embedding_worker", channels));
//   client.Call(worker, {header.SerializeAsString(), payload}, [](auto answer) { ... });
//
// All peers of a client share one sequence of numbers. A peer keeps its answers from the sender's
// oldest open call on, even if that call is to another peer. So if answers are large, or if they
// are slow at one peer, make a client for each peer.
//
// Thread-safe. The client may be destroyed before its calls are answered; the executor and the
// channels, which are not owned, must outlive the calls.

#ifndef SATRAP_COMMON_RPC_NUMBERED_CLIENT_H_
#define SATRAP_COMMON_RPC_NUMBERED_CLIENT_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/rpc/rpc.h"
#include "common/rpc/timeouts.h"
#include "common/thread/executor.h"
#include "proto/hot.pb.h"

namespace satrap::rpc {

struct Peer {
  std::string name;  // in errors: "embedding_worker 2"
  Channel* channel = nullptr;
};

// Peers of one role, named by their index: "ROLE 0", "ROLE 1", ...
std::vector<Peer> PeersOf(absl::string_view role, absl::Span<Channel* const> channels);

class NumberedClient {
 public:
  struct Options {
    Method method;
    Envelope envelope;    // of this run
    uint32_t sender = 0;  // this process's index in its role
    RpcTimeouts timeouts;
  };
  NumberedClient(const Options& options, Executor* executor, std::vector<Peer> peers);
  ~NumberedClient();
  NumberedClient(NumberedClient&&) noexcept;
  NumberedClient& operator=(NumberedClient&&) = delete;

  // Calls peers[peer] with the next number. The header of `request` has neither envelope nor call
  // (fields 1 and 2), because each attempt gets its own. `done` runs once, on a thread of the
  // executor or the channel, never inside this call, and after the number was closed. It gets an
  // answer whose outcome is DONE, or an error such as "PutBatch to embedding_worker 2: ...". Errors
  // are those of the peer and of ReliableCall, INTERNAL if a call that is still open was answered
  // OLD, and CANCELLED after CancelAll.
  void Call(size_t peer, Message request, Callback done);

  // Like Call, but for a call that another process has numbered: `id` is sent unchanged.
  void Forward(size_t peer, const CallId& id, Message request, Callback done);

  // Gives up all open calls: no further attempt begins, and each `done` that has no result yet gets
  // CANCELLED on the executor. REQUIRES: no Call or Forward at the same time
  void CancelAll();

 private:
  struct State;
  const std::shared_ptr<State> state_;  // shared with open calls
};

}  // namespace satrap::rpc

#endif  // SATRAP_COMMON_RPC_NUMBERED_CLIENT_H_

// The interface between engines and the network. Engines call peers through a Channel and serve
// calls as a Handler; neither knows gRPC. Implementations: grpc_channel.h and grpc_server.h for
// real processes, tests/simulation for a network that loses, repeats, delays and reorders.
//
// A Message consists of a small protobuf header and bulk bytes, the payload. A bulk method sends
// both as the protobuf message
//   message XRequest { optional XHeader header = 1; optional bytes payload = 2; }
// so that any generated client can talk to Satrap. A plain method sends only the header's bytes.
// The payload is never copied through generated code: the receiver gathers it once into a Buffer.

#ifndef SATRAP_COMMON_RPC_RPC_H_
#define SATRAP_COMMON_RPC_RPC_H_

#include <cstdint>
#include <string>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/base/buffer.h"

namespace satrap::rpc {

struct Message {
  std::string header;  // serialized protobuf
  Buffer payload;      // bulk methods only
};

// One RPC method. `path` is gRPC's full name, "/satrap.EmbeddingPs/Lookup", with static lifetime.
struct Method {
  const char* path;
  bool bulk;
};

inline bool operator==(const Method& a, const Method& b) {
  return absl::string_view(a.path) == b.path;
}

// A Callback runs exactly once for each call, on any thread. It must not block.
using Callback = absl::AnyInvocable<void(absl::StatusOr<Message>)>;

// Marks the error of an attempt whose deadline passed after its answer had begun to arrive: the
// peer is alive, but the transfer is slower than the deadline. AnswerHadBegun finds the mark. Only
// a network that delivers an answer in pieces can set the mark; a channel that never sets it is
// also correct.
absl::Status MarkAnswerBegun(absl::Status deadline_exceeded);
bool AnswerHadBegun(const absl::Status& status);

// A connection to one peer. Thread-safe.
class Channel {
 public:
  virtual ~Channel() = default;

  // Makes one attempt. `done` gets the answer, the error that the peer answered, DEADLINE_EXCEEDED
  // after `timeout_ms`, or UNAVAILABLE. After DEADLINE_EXCEEDED and UNAVAILABLE the peer may or may
  // not have received the call. `done` may run before Call returns.
  virtual void Call(const Method& method, Message request, int64_t timeout_ms, Callback done) = 0;
};

// Serves the calls of a role. Thread-safe: calls arrive on any thread, concurrently.
class Handler {
 public:
  virtual ~Handler() = default;

  // Answers by calling `respond` exactly once, now or later, on any thread. Must not block. An
  // unknown method is answered UNIMPLEMENTED.
  virtual void Handle(const Method& method, Message request, Callback respond) = 0;
};

}  // namespace satrap::rpc

#endif  // SATRAP_COMMON_RPC_RPC_H_

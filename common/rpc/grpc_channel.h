// The Channel of real processes: unary gRPC calls to one address.
//
// A call waits for a connection as long as its timeout allows, so peers may start in any order.
// Callbacks run on gRPC's threads, so they pass their work to an executor and do not block.
//
// Thread-safe.

#ifndef SATRAP_COMMON_RPC_GRPC_CHANNEL_H_
#define SATRAP_COMMON_RPC_GRPC_CHANNEL_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/rpc/endpoints.h"
#include "common/rpc/rpc.h"

namespace satrap::rpc {

class GrpcChannel final : public Channel {
 public:
  // Does not connect yet. INVALID_ARGUMENT if the address is malformed (endpoints.h).
  static absl::StatusOr<std::unique_ptr<GrpcChannel>> Create(const std::string& address,
                                                             const EndpointOptions& options);

  // Cancels the calls in progress, whose callbacks get CANCELLED, and waits until all callbacks
  // have returned. REQUIRES: not called from a callback
  ~GrpcChannel() override;

  // A call that the other side ends gets UNAVAILABLE; a call that this channel gives up gets
  // CANCELLED. Further errors, in addition to those of Channel: RESOURCE_EXHAUSTED if the request
  // or the answer is larger than max_message_bytes, naming the method, the bytes and the fields of
  // the job to change (such a request is not sent); INTERNAL if the answer is malformed.
  // DEADLINE_EXCEEDED is marked (MarkAnswerBegun) if the answer had begun to arrive.
  void Call(const Method& method, Message request, int64_t timeout_ms, Callback done) override;

 private:
  struct Rep;
  explicit GrpcChannel(std::unique_ptr<Rep> rep);
  const std::unique_ptr<Rep> rep_;
};

}  // namespace satrap::rpc

#endif  // SATRAP_COMMON_RPC_GRPC_CHANNEL_H_

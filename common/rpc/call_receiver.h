// A CallReceiver receives the calls of one method that NumberedClients make (numbered_client.h) and
// runs each once: it parses the header, checks that the call is of this run and of a sender that
// exists, and admits it to the AnswerWindow of its sender and stream.
//
//   receiver.Receive<AckHeader>(std::move(request), std::move(respond),
//                               [](const PendingAnswer& call, AckHeader header, Buffer payload) {
//                                 ...do the work, now or later, then: call.Finish(answer);
//                               });
//
// A call that is refused before it reaches a window (a malformed header, another run, a sender that
// does not exist) does not use up its number, and no window is made for it.
//
// Thread-safe.

#ifndef SATRAP_COMMON_RPC_CALL_RECEIVER_H_
#define SATRAP_COMMON_RPC_CALL_RECEIVER_H_

#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "common/rpc/answer_window.h"
#include "common/rpc/header.h"
#include "common/rpc/rpc.h"
#include "common/thread/executor.h"
#include "proto/hot.pb.h"

namespace satrap::rpc {

// A call that the receiver has to run. Finish sends its answer.
struct PendingAnswer {
  AnswerWindow* window = nullptr;
  uint64_t number = 0;
  uint32_t sender = 0;

  // REQUIRES: called once
  void Finish(absl::StatusOr<Message> answer) const { window->Finish(number, std::move(answer)); }
};

// The stream that a header names. A method without streams has stream 0, so each sender has one
// window.
template <typename Header>
int StreamOf(const Header& header) {
  if constexpr (requires { header.stream(); }) {
    return header.stream();
  } else {
    return 0;
  }
}

class CallReceiver {
 public:
  struct Options {
    std::string name;          // this process's name in errors: "embedding_ps 3"
    Envelope envelope;         // of this run
    uint32_t num_senders = 0;  // senders are 0 .. num_senders - 1
    int64_t hold_us = 0;       // as for AnswerWindow
    Keeping keeping = Keeping::kUntilClosed;
  };
  // `executor` is not owned and must outlive the receiver.
  CallReceiver(Options options, Executor* executor);

  // Call this when one attempt of a call has arrived. If the call has to run, this calls
  // run(PendingAnswer, Header, Buffer payload), which calls PendingAnswer::Finish once, now or
  // later. Otherwise `respond` is called, now or by the attempt that runs. INVALID_ARGUMENT for
  // bytes that are not a Header or for an unknown sender; FAILED_PRECONDITION for another run.
  template <typename Header, typename Run>
  void Receive(Message request, Callback respond, Run run) {
    absl::StatusOr<Header> header = ParseHeader<Header>(request.header);
    if (!header.ok()) return respond(header.status());
    const absl::optional<PendingAnswer> call =
        Admit(header->envelope(), header->call(), StreamOf(*header), std::move(respond));
    if (call.has_value()) run(*call, *std::move(header), std::move(request.payload));
  }

 private:
  // Returns the call's PendingAnswer if the call has to run. Otherwise responds, now or later.
  absl::optional<PendingAnswer> Admit(const Envelope& envelope, const CallId& id, int stream,
                                      Callback respond);

  const Options options_;
  AnswerWindows windows_;
};

}  // namespace satrap::rpc

#endif  // SATRAP_COMMON_RPC_CALL_RECEIVER_H_

#include "common/rpc/call_receiver.h"

#include "absl/strings/str_cat.h"

namespace satrap::rpc {

CallReceiver::CallReceiver(Options options, Executor* executor)
    : options_(std::move(options)), windows_(executor, options_.hold_us, options_.keeping) {}

absl::optional<PendingAnswer> CallReceiver::Admit(const Envelope& envelope, const CallId& id,
                                                  int stream, Callback respond) {
  absl::Status status = CheckEnvelope(envelope, options_.envelope, options_.name);
  // Checked before a window is made, so that unknown senders cannot fill the memory with windows.
  if (status.ok() && id.sender() >= options_.num_senders) {
    status = absl::InvalidArgumentError(absl::StrCat("call.sender: ", id.sender(), " is not below ",
                                                     options_.num_senders,
                                                     ", the number of senders of ", options_.name));
  }
  if (!status.ok()) {
    respond(std::move(status));
    return absl::nullopt;
  }
  AnswerWindow* window = windows_.Get(id.sender(), stream);
  if (window->Admit(id.number(), id.oldest_open(), std::move(respond), id.without_payload()) ==
      Admission::kHandled) {
    return absl::nullopt;
  }
  return PendingAnswer{window, id.number(), id.sender()};
}

}  // namespace satrap::rpc

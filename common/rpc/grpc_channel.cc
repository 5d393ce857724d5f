#include "common/rpc/grpc_channel.h"

#include <grpcpp/client_context.h>
#include <grpcpp/generic/generic_stub.h>

#include <atomic>
#include <chrono>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/rpc/frame.h"
#include "common/rpc/grpc_message.h"
#include "common/thread/mutex.h"

namespace satrap::rpc {

struct GrpcChannel::Rep {
  // One call. It deletes itself after its callback has returned.
  class UnaryCall;

  Rep(std::shared_ptr<grpc::Channel> channel, const EndpointOptions& options)
      : stub(std::move(channel)),
        max_message_bytes(options.max_message_bytes),
        payload_allocator(options.payload_allocator) {}

  // Returns false, and does not add the call, once the channel is closing.
  bool Add(UnaryCall* call) {
    MutexLock lock(&mutex);
    if (closing) return false;
    ++num_open;
    calls.insert(call);
    return true;
  }
  // Call this when the call's callback has returned: the destructor must no longer cancel the call.
  void Remove(UnaryCall* call) {
    MutexLock lock(&mutex);
    calls.erase(call);
  }
  // Call this after a removed call was deleted. The destructor waits for this, not only for Remove.
  void Leave() {
    MutexLock lock(&mutex);
    if (--num_open == 0 && closing) all_left.NotifyAll();
  }

  grpc::GenericStub stub;
  const int64_t max_message_bytes;
  const std::shared_ptr<BufferAllocator> payload_allocator;
  Mutex mutex;
  CondVar all_left;
  bool closing GUARDED_BY(mutex) = false;
  int64_t num_open GUARDED_BY(mutex) = 0;  // calls that were added and have not left
  absl::flat_hash_set<UnaryCall*> calls GUARDED_BY(mutex);
};

class GrpcChannel::Rep::UnaryCall final : public grpc::ClientUnaryReactor {
 public:
  UnaryCall(Rep* rep, const Method& method, Callback done)
      : rep_(rep), method_(method), done_(std::move(done)) {}

  void Start(const Message& request, int64_t timeout_ms) {
    context_.set_wait_for_ready(true);
    context_.set_deadline(std::chrono::system_clock::now() + std::chrono::milliseconds(timeout_ms));
    // Checks the request before it is encoded, because gRPC would refuse it with a text that names
    // neither the call nor what to do.
    absl::Status status = CheckFrameSize("request of", method_, request, rep_->max_message_bytes);
    if (status.ok() && !rep_->Add(this)) status = absl::CancelledError("channel is closed");
    if (!status.ok()) {
      done_(std::move(status));
      delete this;
      return;
    }
    request_ = ToByteBuffer(method_, request);
    rep_->stub.PrepareUnaryCall(&context_, method_.path, {}, &request_, &answer_, this);
    StartCall();
  }

  void Cancel() {
    given_up_ = true;
    context_.TryCancel();
  }

  // gRPC calls this when the first bytes of the answer have come.
  void OnReadInitialMetadataDone(bool ok) override {
    if (ok) answer_begun_ = true;
  }

  void OnDone(const grpc::Status& status) override {
    done_(Answer(status));
    Rep* const rep = rep_;
    rep->Remove(this);
    // The call must be deleted before the channel's destructor may return, for two reasons. The
    // call's context refers to gRPC's channel, whose last reference must not be dropped on a thread
    // of gRPC. And its callback may own objects that need the channel.
    delete this;
    rep->Leave();
  }

 private:
  absl::StatusOr<Message> Answer(const grpc::Status& status) const {
    if (IsMessageTooLarge(status)) {
      // Requests are checked before they are sent, so only the answer can have been too large to
      // send.
      const bool is_answer = absl::StartsWith(status.error_message(), "Sent");
      return FrameTooLarge(is_answer ? "answer to" : "message of", method_, status.error_message());
    }
    if (!status.ok()) {
      absl::Status error = FromGrpcStatus(status);
      // A server that shuts down ends the calls that it has not answered. The call itself was not
      // wrong: its peer is unreachable, as after a broken connection.
      if (absl::IsCancelled(error) && !given_up_) {
        return absl::UnavailableError(
            absl::StrCat("the peer has ended the call: ", error.message()));
      }
      return answer_begun_ && absl::IsDeadlineExceeded(error) ? MarkAnswerBegun(std::move(error))
                                                              : error;
    }
    absl::StatusOr<Message> message = FromByteBuffer(method_, answer_, rep_->payload_allocator);
    if (!message.ok()) {
      return absl::InternalError(
          absl::StrCat("answer to ", method_.path, " is malformed: ", message.status().message()));
    }
    return message;
  }

  Rep* const rep_;
  const Method method_;
  Callback done_;
  grpc::ClientContext context_;
  grpc::ByteBuffer request_;
  grpc::ByteBuffer answer_;
  std::atomic<bool> given_up_ = false;  // by this channel
  bool answer_begun_ = false;           // gRPC calls OnDone after everything else
};

absl::StatusOr<std::unique_ptr<GrpcChannel>> GrpcChannel::Create(const std::string& address,
                                                                 const EndpointOptions& options) {
  ASSIGN_OR_RETURN(auto channel, NewChannel(address, options));
  return std::unique_ptr<GrpcChannel>(
      new GrpcChannel(std::make_unique<Rep>(std::move(channel), options)));
}

GrpcChannel::GrpcChannel(std::unique_ptr<Rep> rep) : rep_(std::move(rep)) {}

GrpcChannel::~GrpcChannel() {
  MutexLock lock(&rep_->mutex);
  rep_->closing = true;
  // Cancels under the lock, so that no call is deleted meanwhile. That cannot deadlock: callbacks
  // run on gRPC's threads, never inside TryCancel.
  for (Rep::UnaryCall* call : rep_->calls) call->Cancel();
  while (rep_->num_open > 0) rep_->all_left.Wait(&rep_->mutex);
}

void GrpcChannel::Call(const Method& method, Message request, int64_t timeout_ms, Callback done) {
  auto* call = new Rep::UnaryCall(rep_.get(), method, std::move(done));
  call->Start(request, timeout_ms);
}

}  // namespace satrap::rpc

#include "common/rpc/numbered_client.h"

#include <atomic>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "common/base/check.h"
#include "common/rpc/call_numbers.h"
#include "common/rpc/reliable_call.h"
#include "common/thread/mutex.h"

namespace satrap::rpc {
namespace {

// For "/satrap.EmbeddingPs/Lookup", returns "Lookup".
absl::string_view ShortName(const Method& method) {
  const absl::string_view path = method.path;
  return path.substr(path.rfind('/') + 1);
}

// The answer, if its outcome is DONE. Anything else becomes an error that names method and peer.
absl::StatusOr<Message> DoneOrError(absl::StatusOr<Message> answer, const Method& method,
                                    absl::string_view peer) {
  absl::Status error = answer.status();
  if (error.ok()) {
    const Outcome outcome = OutcomeOf(*answer);
    if (outcome == OUTCOME_DONE) return answer;
    error = absl::InternalError(
        absl::StrCat("a call that is still open was answered ", Outcome_Name(outcome)));
  }
  return absl::Status(error.code(),
                      absl::StrCat(ShortName(method), " to ", peer, ": ", error.message()));
}

// Makes a request whose header has the envelope and the call id first, as fields 1 and 2, and then
// the header's own fields, whose bytes are the same in every attempt.
Message RequestOf(const CallPrefix& prefix, const Message& request, bool with_payload) {
  return {absl::StrCat(prefix.SerializeAsString(), request.header),
          with_payload ? request.payload : Buffer()};
}

}  // namespace

std::vector<Peer> PeersOf(absl::string_view role, absl::Span<Channel* const> channels) {
  std::vector<Peer> peers;
  for (Channel* channel : channels)
    peers.push_back({absl::StrCat(role, " ", peers.size()), channel});
  return peers;
}

struct NumberedClient::State : std::enable_shared_from_this<NumberedClient::State> {
  State(const Options& options, Executor* executor, std::vector<Peer> peers)
      : options(options), executor(executor), peers(std::move(peers)) {}

  // `number` comes from `numbers` and is closed when the call ends. A forwarded call has no number.
  void Start(size_t peer, const CallId& id, absl::optional<uint64_t> number, Message request,
             Callback done) {
    CHECK(peer < peers.size()) << peer << " of " << peers.size();
    CallPrefix prefix;
    *prefix.mutable_envelope() = options.envelope;
    *prefix.mutable_call() = id;
    auto make_request = [self = shared_from_this(), renews = number.has_value(),
                         prefix = std::move(prefix),
                         request = std::move(request)](bool with_payload) mutable {
      // Updated for each attempt, so that the peer can forget the answers to calls that have ended.
      if (renews) prefix.mutable_call()->set_oldest_open(self->numbers.oldest_open());
      if (!with_payload && !request.payload.empty()) {
        prefix.mutable_call()->set_without_payload(true);
      } else {
        prefix.mutable_call()->clear_without_payload();
      }
      return RequestOf(prefix, request, with_payload);
    };
    const uint64_t key = next_key++;
    auto answered = [self = shared_from_this(), peer, key, number,
                     done = std::move(done)](absl::StatusOr<Message> answer) mutable {
      self->Close(key, number);
      done(DoneOrError(std::move(answer), self->options.method, self->peers[peer].name));
    };
    const auto call = std::make_shared<ReliableCall>(executor, peers[peer].channel, options.method,
                                                     options.timeouts, std::move(make_request),
                                                     std::move(answered));
    {
      // Added before the call starts, because the call may end in another thread before Start
      // returns. The pointer is weak, because the call owns this State.
      MutexLock lock(&mutex);
      open.emplace(key, call);
    }
    call->Start();
  }

  void Close(uint64_t key, absl::optional<uint64_t> number) {
    if (number.has_value()) numbers.End(*number);
    MutexLock lock(&mutex);
    open.erase(key);
  }

  const Options options;
  Executor* const executor;
  const std::vector<Peer> peers;
  CallNumbers numbers;
  std::atomic<uint64_t> next_key{0};  // for `open`; forwarded calls have no number of ours

  Mutex mutex;
  std::map<uint64_t, std::weak_ptr<ReliableCall>> open GUARDED_BY(mutex);
};

NumberedClient::NumberedClient(const Options& options, Executor* executor, std::vector<Peer> peers)
    : state_(std::make_shared<State>(options, executor, std::move(peers))) {}

NumberedClient::~NumberedClient() = default;
NumberedClient::NumberedClient(NumberedClient&& other) noexcept : state_(other.state_) {}

void NumberedClient::Call(size_t peer, Message request, Callback done) {
  const uint64_t number = state_->numbers.Begin();
  CallId id;
  id.set_sender(state_->options.sender);
  id.set_number(number);
  state_->Start(peer, id, number, std::move(request), std::move(done));
}

void NumberedClient::Forward(size_t peer, const CallId& id, Message request, Callback done) {
  state_->Start(peer, id, absl::nullopt, std::move(request), std::move(done));
}

void NumberedClient::CancelAll() {
  std::map<uint64_t, std::weak_ptr<ReliableCall>> open;
  {
    MutexLock lock(&state_->mutex);
    open = state_->open;
  }
  for (const auto& [key, weak] : open) {
    if (const std::shared_ptr<ReliableCall> call = weak.lock()) call->Cancel();
  }
}

}  // namespace satrap::rpc

#include "common/chunk/chunked_channel.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "common/base/check.h"
#include "common/chunk/call_name.h"
#include "common/rpc/lost_call.h"
#include "common/rpc/sign_of_life.h"
#include "common/rpc/timeouts.h"

namespace satrap::rpc {
namespace {

// The number of times that a chunk is sent or asked for before the attempt ends.
constexpr int kChunkTries = 3;

// The error of an attempt that cannot continue although the peer has just answered.
absl::Status RepeatLater(const Method& method, absl::string_view why) {
  return MarkSignOfLife(absl::UnavailableError(absl::StrCat(method.path, ": ", why)), 0);
}

}  // namespace

struct ChunkedChannel::Rep : std::enable_shared_from_this<ChunkedChannel::Rep> {
  // One attempt of a call. Shared by the callbacks of its chunks, which run one at a time.
  struct Attempt {
    Method method;
    absl::optional<CallName> call;
    Message request;
    Callback done;
    uint64_t transfer = 0;
    uint64_t sent_bytes = 0;  // the bytes that have arrived
    int losses = 0;           // of the next chunk
    int64_t timeout_ms = 0;   // of a chunk, without the time allowed for its bytes
    // When the peer last answered a chunk of the attempt; nullopt if it has not answered any.
    absl::optional<int64_t> sign_us;
    std::unique_ptr<ChunkJoiner> answer;
  };
  using AttemptPtr = std::shared_ptr<Attempt>;

  Rep(Channel* channel, Options options)
      : options(std::move(options)), channel(channel), next_transfer(this->options.first_transfer) {
    CHECK(this->options.clock != nullptr);
  }

  void Begin(const Method& method, Message request, int64_t timeout_ms, Callback done) {
    auto attempt = std::make_shared<Attempt>();
    attempt->method = method;
    attempt->done = std::move(done);
    const absl::optional<NamedCall> named = CallOf(method, request.header);
    if (named.has_value()) attempt->call = named->name;
    // A chunk's timeout is that of the attempt, but the time for the attempt's payload is replaced
    // by the time for the chunk's own bytes.
    attempt->timeout_ms =
        std::max<int64_t>(1, timeout_ms - RpcTimeouts::TransferMs(request.payload.size()));
    if (FitsInOneFrame(method, request, options.limits)) {
      channel->Call(method, std::move(request), timeout_ms,
                    [self = shared_from_this(), attempt](absl::StatusOr<Message> answer) {
                      self->OnAnswer(attempt, std::move(answer));
                    });
      return;
    }
    const absl::Status size =
        CheckMessageSize("request of", method, BytesOf(request), options.limits.largest_bytes);
    if (!size.ok()) return attempt->done(size);
    attempt->request = std::move(request);
    attempt->transfer = next_transfer++;
    SendNext(attempt);
  }

  // Sends the chunk that begins at sent_bytes.
  void SendNext(const AttemptPtr& attempt) {
    SendChunkHeader header;
    header.set_transfer(attempt->transfer);
    header.set_method(attempt->method.path);
    header.set_header_bytes(attempt->request.header.size());
    header.set_payload_bytes(attempt->request.payload.size());
    header.set_offset_bytes(attempt->sent_bytes);
    Buffer chunk = ChunkAt(attempt->request, attempt->sent_bytes, options.limits);
    const uint64_t end_bytes = attempt->sent_bytes + chunk.size();
    const int64_t timeout_ms = attempt->timeout_ms + RpcTimeouts::TransferMs(chunk.size());
    channel->Call(kSendChunk, {header.SerializeAsString(), std::move(chunk)}, timeout_ms,
                  [self = shared_from_this(), attempt, end_bytes](absl::StatusOr<Message> answer) {
                    if (!answer.ok() && self->MaySendAgain(attempt.get(), answer.status())) {
                      return self->SendNext(attempt);
                    }
                    if (end_bytes < BytesOf(attempt->request)) {
                      return self->OnTaken(attempt, end_bytes, std::move(answer));
                    }
                    attempt->request = Message();  // it has arrived whole
                    self->OnAnswer(attempt, std::move(answer));
                  });
  }

  // Whether a lost chunk is sent again. The first chunk is not, because a new attempt would be just
  // as good, and nothing shows yet that the peer is there. A chunk whose answer has begun to arrive
  // is not sent again either: the receiver has it, and only the answer needs more time. The next
  // attempt of the call gets that time because of this status.
  bool MaySendAgain(Attempt* attempt, const absl::Status& lost) const {
    const bool has_begun = attempt->sent_bytes > 0 || attempt->answer != nullptr;
    return has_begun && !AnswerHadBegun(lost) && IsLost(lost) && ++attempt->losses < kChunkTries;
  }

  void OnTaken(const AttemptPtr& attempt, uint64_t end_bytes, absl::StatusOr<Message> answer) {
    if (!answer.ok()) return attempt->done(AfterSigns(*attempt, std::move(answer).status()));
    ChunkNote note;
    if (!IsNote(*answer) || !note.ParseFromString(answer->header)) {
      return attempt->done(absl::InternalError(
          absl::StrCat(attempt->method.path, ": a chunk was answered as if it were a call")));
    }
    if (note.state() != ChunkNote::TAKEN) return OnNote(attempt, note, Buffer());
    attempt->losses = 0;
    attempt->sent_bytes = end_bytes;
    attempt->sign_us = options.clock->NowUs();
    SendNext(attempt);
  }

  // The attempt's error after a chunk was lost. If the peer answered earlier chunks, the error
  // carries the last such answer as a sign of life.
  absl::Status AfterSigns(const Attempt& attempt, absl::Status lost) const {
    // The mark that the channel itself has set on `lost` is newer than the one that would be set
    // here.
    if (!IsLost(lost) || !attempt.sign_us.has_value() || AnswerHadBegun(lost)) return lost;
    const int64_t ago_us = options.clock->NowUs() - *attempt.sign_us;
    // Other chunks have arrived, so perhaps this chunk only needed more time.
    if (absl::IsDeadlineExceeded(lost)) lost = MarkAnswerBegun(std::move(lost));
    return MarkSignOfLife(std::move(lost), ago_us);
  }

  // Receives the answer to the call, or to the last chunk of its request.
  void OnAnswer(const AttemptPtr& attempt, absl::StatusOr<Message> answer) {
    if (!answer.ok()) return attempt->done(AfterSigns(*attempt, std::move(answer).status()));
    if (!IsNote(*answer)) return attempt->done(std::move(answer));
    ChunkNote note;
    if (!note.ParseFromString(answer->header)) {
      return attempt->done(absl::InternalError(
          absl::StrCat("answer to ", attempt->method.path, " is malformed: not a ChunkNote")));
    }
    OnNote(attempt, note, answer->payload);
  }

  void OnNote(const AttemptPtr& attempt, const ChunkNote& note, const Buffer& payload) {
    switch (note.state()) {
      case ChunkNote::FOLLOWS:
        return BeginAnswer(attempt, note, payload);
      case ChunkNote::CHUNK:
        if (attempt->answer != nullptr) return AddToAnswer(attempt, payload);
        break;
      case ChunkNote::NO_ROOM:
        return attempt->done(
            RepeatLater(attempt->method, "the peer has no room for another incomplete message"));
      case ChunkNote::UNKNOWN:
        // The peer has dropped the transfer because no chunk came for too long, or it was
        // restarted.
        return attempt->done(RepeatLater(
            attempt->method, "the peer has dropped a message that was being sent in chunks"));
      case ChunkNote::TAKEN:
        break;
    }
    attempt->done(absl::InternalError(absl::StrCat("answer to ", attempt->method.path, " is ",
                                                   ChunkNote::State_Name(note.state()))));
  }

  void BeginAnswer(const AttemptPtr& attempt, const ChunkNote& note, const Buffer& payload) {
    if (attempt->answer != nullptr || note.header_bytes() > UINT32_MAX) {
      return attempt->done(
          absl::InternalError(absl::StrCat("answer to ", attempt->method.path,
                                           " begins twice, or states a header of 4 GiB or more")));
    }
    const uint64_t bytes = StatedBytes(note.header_bytes(), note.payload_bytes());
    const absl::Status size =
        CheckMessageSize("answer to", attempt->method, bytes, options.limits.largest_bytes);
    if (!size.ok()) return attempt->done(size);
    ChunkMemory::Share share =
        ChunkMemory::Take(options.memory, bytes, {this, attempt->call, options.clock->NowUs()});
    if (!share) {
      return attempt->done(
          RepeatLater(attempt->method, "this process has no room for another incomplete message"));
    }
    attempt->transfer = note.transfer();
    attempt->answer = std::make_unique<ChunkJoiner>(note.header_bytes(), note.payload_bytes(),
                                                    std::move(share), options.payload_allocator);
    AddToAnswer(attempt, payload);
  }

  void AddToAnswer(const AttemptPtr& attempt, const Buffer& chunk) {
    const absl::Status added = attempt->answer->Add(chunk);
    if (!added.ok()) {
      return attempt->done(absl::InternalError(
          absl::StrCat("answer to ", attempt->method.path, ": ", added.message())));
    }
    attempt->losses = 0;
    attempt->sign_us = options.clock->NowUs();
    if (!attempt->answer->complete()) return FetchNext(attempt);
    Message answer = attempt->answer->Take();
    attempt->answer.reset();  // before `done`, which may make the next call
    attempt->done(std::move(answer));
  }

  void FetchNext(const AttemptPtr& attempt) {
    FetchChunkHeader header;
    header.set_transfer(attempt->transfer);
    header.set_offset_bytes(attempt->answer->next_bytes());
    const auto most_bytes = static_cast<uint64_t>(options.limits.max_message_bytes);
    const int64_t timeout_ms =
        attempt->timeout_ms +
        RpcTimeouts::TransferMs(std::min(attempt->answer->missing_bytes(), most_bytes));
    channel->Call(kFetchChunk, {header.SerializeAsString(), Buffer()}, timeout_ms,
                  [self = shared_from_this(), attempt](absl::StatusOr<Message> answer) {
                    if (!answer.ok() && self->MaySendAgain(attempt.get(), answer.status())) {
                      return self->FetchNext(attempt);
                    }
                    self->OnFetched(attempt, std::move(answer));
                  });
  }

  void OnFetched(const AttemptPtr& attempt, absl::StatusOr<Message> answer) {
    if (!answer.ok()) return attempt->done(AfterSigns(*attempt, std::move(answer).status()));
    ChunkNote note;
    if (!IsNote(*answer) || !note.ParseFromString(answer->header)) {
      return attempt->done(absl::InternalError(
          absl::StrCat("answer to ", attempt->method.path, ": one of its chunks is malformed")));
    }
    OnNote(attempt, note, answer->payload);
  }

  const Options options;
  // Callbacks may still use the channel while it is being destroyed: its destructor returns only
  // after the last of them.
  Channel* const channel;
  std::atomic<uint64_t> next_transfer;
};

ChunkedChannel::ChunkedChannel(std::unique_ptr<Channel> channel, Options options)
    : channel_(std::move(channel)),
      rep_(std::make_shared<Rep>(channel_.get(), std::move(options))) {}

ChunkedChannel::~ChunkedChannel() = default;

void ChunkedChannel::Call(const Method& method, Message request, int64_t timeout_ms,
                          Callback done) {
  if (!method.bulk) {
    channel_->Call(method, std::move(request), timeout_ms, std::move(done));
    return;
  }
  rep_->Begin(method, std::move(request), timeout_ms, std::move(done));
}

}  // namespace satrap::rpc

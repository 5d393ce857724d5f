#include "common/chunk/chunked_handler.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "common/base/status_macros.h"
#include "common/chunk/call_name.h"
#include "common/rpc/header.h"
#include "common/thread/mutex.h"

namespace satrap::rpc {

struct ChunkedHandler::Rep : std::enable_shared_from_this<ChunkedHandler::Rep> {
  // Each message has a mutex, so that its memory is allocated, filled and freed without the lock
  // that all transfers share: a message of gigabytes would hold up the others.
  struct Incoming {
    Incoming(const Method& method, const SendChunkHeader& header,
             const absl::optional<CallName>& call, ChunkMemory::Share share)
        : method(method),
          header_bytes(header.header_bytes()),
          payload_bytes(header.payload_bytes()),
          call(call),
          share(std::move(share)) {}

    const Method method;
    const uint64_t header_bytes;
    const uint64_t payload_bytes;
    const absl::optional<CallName> call;
    Mutex mutex;
    // Held here until the first chunk is added; then the joiner is made and takes over the share.
    ChunkMemory::Share share GUARDED_BY(mutex);
    std::unique_ptr<ChunkJoiner> joiner GUARDED_BY(mutex);
    bool ended GUARDED_BY(mutex) = false;  // complete or refused
  };
  using IncomingPtr = std::shared_ptr<Incoming>;
  struct Outgoing {
    absl::optional<CallName> call;
    Message answer;
    ChunkMemory::Share share;
  };
  template <typename Transfer>
  struct Held {
    std::shared_ptr<Transfer> transfer;
    int64_t until_us = 0;
  };

  Rep(Handler* handler, absl::Span<const Method> methods, Executor* executor, Options options)
      : handler(handler),
        methods(methods.begin(), methods.end()),
        executor(executor),
        options(std::move(options)),
        answer_memory(
            std::make_shared<ChunkMemory>(this->options.answer_bytes, this->options.deadline_us)),
        next_transfer(this->options.first_transfer) {}

  absl::optional<Method> Find(absl::string_view path) const {
    for (const Method& method : methods) {
      if (method.bulk && path == method.path) return method;
    }
    return absl::nullopt;
  }

  void Serve(const Method& method, Message request, Callback respond) {
    absl::optional<CallName> call;
    if (method.bulk) call = NameOf(CallOf(method, request.header));
    handler->Handle(method, std::move(request),
                    [self = shared_from_this(), method, call,
                     respond = std::move(respond)](absl::StatusOr<Message> answer) mutable {
                      if (answer.ok() && method.bulk &&
                          !FitsInOneFrame(method, *answer, self->options.limits)) {
                        answer = self->HoldAnswer(method, call, *std::move(answer));
                      }
                      respond(std::move(answer));
                    });
  }

  static absl::optional<CallName> NameOf(const absl::optional<NamedCall>& named) {
    return named.has_value() ? absl::make_optional(named->name) : absl::nullopt;
  }

  // Keeps a large answer so that it can be fetched in chunks. Returns the note to be sent in its
  // place.
  absl::StatusOr<Message> HoldAnswer(const Method& method, const absl::optional<CallName>& call,
                                     Message answer) {
    const absl::Status size =
        CheckMessageSize("answer to", method, BytesOf(answer), options.limits.largest_bytes);
    if (!size.ok()) return size;
    // A sender that repeats a call has stopped fetching an earlier answer to it, or has never known
    // of that answer.
    if (call.has_value()) DropAnswersTo(*call);
    auto held = std::make_shared<Outgoing>();
    held->share = ChunkMemory::Take(answer_memory, BytesOf(answer), ClaimOf(call));
    if (!held->share) return NoteOf(ChunkNote::NO_ROOM);
    Buffer first = ChunkAt(answer, 0, options.limits);
    ChunkNote note;
    note.set_state(ChunkNote::FOLLOWS);
    note.set_header_bytes(answer.header.size());
    note.set_payload_bytes(answer.payload.size());
    held->call = call;
    held->answer = std::move(answer);
    MutexLock lock(&mutex);
    note.set_transfer(next_transfer++);
    outgoing[note.transfer()] = {std::move(held), Until()};
    return Message{note.SerializeAsString(), std::move(first)};
  }

  void DropAnswersTo(const CallName& call) {
    std::vector<std::shared_ptr<Outgoing>> dropped;  // freed after the lock is released
    MutexLock lock(&mutex);
    for (auto at = outgoing.begin(); at != outgoing.end();) {
      const auto it = at++;
      if (!(it->second.transfer->call == call)) continue;
      dropped.push_back(std::move(it->second.transfer));
      outgoing.erase(it);
    }
  }

  ChunkMemory::Claim ClaimOf(const absl::optional<CallName>& call) const {
    return {this, call, executor->NowUs()};
  }

  void TakeChunk(const Message& request, Callback respond) {
    const auto header = ParseHeader<SendChunkHeader>(request.header);
    if (!header.ok()) return respond(header.status());
    IncomingPtr to;
    absl::StatusOr<ChunkNote::State> state = FindOrBegin(*header, request.payload, &to);
    absl::optional<Message> whole;
    if (to != nullptr) {
      state = Join(to.get(), header->offset_bytes(), request.payload, &whole);
      if (whole.has_value() || !state.ok()) {
        MutexLock lock(&mutex);
        incoming.erase(header->transfer());
      }
    }
    if (whole.has_value()) {
      Serve(to->method, *std::move(whole), std::move(respond));
    } else if (state.ok()) {
      respond(NoteOf(*state));
    } else {
      respond(state.status());
    }
  }

  // Sets `*to` to the message to which the chunk belongs. If there is no such message, and the
  // chunk does not begin one, returns the answer to the chunk.
  absl::StatusOr<ChunkNote::State> FindOrBegin(const SendChunkHeader& header, const Buffer& chunk,
                                               IncomingPtr* to) {
    *to = Find(header.transfer());
    if (*to != nullptr) return ChunkNote::TAKEN;
    if (header.offset_bytes() > 0) return ChunkNote::UNKNOWN;
    const absl::optional<Method> method = Find(header.method());
    if (!method.has_value()) {
      return absl::UnimplementedError(
          absl::StrCat("this process does not accept ", header.method(), " in chunks"));
    }
    const uint64_t bytes = StatedBytes(header.header_bytes(), header.payload_bytes());
    RETURN_IF_ERROR(CheckMessageSize("request of", *method, bytes, options.limits.largest_bytes));
    const absl::string_view beginning(reinterpret_cast<const char*>(chunk.data()), chunk.size());
    const absl::optional<NamedCall> named =
        CallOf(*method, beginning.substr(0, header.header_bytes()));
    if (named.has_value()) {
      // Check the envelope here already, so that a process of another run cannot take memory. The
      // handler checks it again when it has the whole message.
      RETURN_IF_ERROR(CheckEnvelope(named->envelope, options.envelope, options.name));
      if (!DropEarlier(named->name, header.transfer())) return ChunkNote::UNKNOWN;
    }
    ChunkMemory::Share share = ChunkMemory::Take(options.memory, bytes, ClaimOf(NameOf(named)));
    if (!share) return ChunkNote::NO_ROOM;
    auto begun = std::make_shared<Incoming>(*method, header, NameOf(named), std::move(share));
    MutexLock lock(&mutex);
    // A copy of this chunk, handled by another thread, may have inserted the transfer meanwhile.
    const auto at = incoming.try_emplace(header.transfer(), Held<Incoming>{std::move(begun)}).first;
    at->second.until_us = Until();
    *to = at->second.transfer;
    return ChunkNote::TAKEN;
  }

  // Null if there is no such transfer.
  IncomingPtr Find(uint64_t transfer) {
    MutexLock lock(&mutex);
    const auto at = incoming.find(transfer);
    if (at == incoming.end()) return nullptr;
    at->second.until_us = Until();
    return at->second.transfer;
  }

  // Drops the chunks of the call's attempts before `transfer`. Returns false if there is a newer
  // attempt: then `transfer` is a late copy, which its sender has given up.
  bool DropEarlier(const CallName& call, uint64_t transfer) {
    std::vector<IncomingPtr> dropped;  // freed after the lock is released
    MutexLock lock(&mutex);
    for (auto at = incoming.begin(); at != incoming.end();) {
      const auto it = at++;
      if (!(it->second.transfer->call == call)) continue;
      if (it->first == transfer) continue;  // a copy of its first chunk has come meanwhile
      // A sender's transfer numbers increase. The signed difference also compares numbers that have
      // wrapped around.
      if (static_cast<int64_t>(transfer - it->first) < 0) return false;
      dropped.push_back(std::move(it->second.transfer));
      incoming.erase(it);
    }
    return true;
  }

  // Adds the chunk. If that completes the message, sets `*whole` and frees the message's share:
  // from then on the message is like any other.
  absl::StatusOr<ChunkNote::State> Join(Incoming* to, uint64_t offset_bytes, const Buffer& chunk,
                                        absl::optional<Message>* whole) const {
    std::unique_ptr<ChunkJoiner> ended;  // freed after the lock is released
    MutexLock lock(&to->mutex);
    if (to->ended) return ChunkNote::UNKNOWN;
    if (to->joiner == nullptr) {
      to->joiner = std::make_unique<ChunkJoiner>(to->header_bytes, to->payload_bytes,
                                                 std::move(to->share), options.payload_allocator);
    }
    const uint64_t next_bytes = to->joiner->next_bytes();
    if (offset_bytes < next_bytes) return ChunkNote::TAKEN;  // repeated
    if (offset_bytes > next_bytes) return ChunkNote::UNKNOWN;
    const absl::Status added = to->joiner->Add(chunk);
    if (added.ok() && !to->joiner->complete()) return ChunkNote::TAKEN;
    if (added.ok()) *whole = to->joiner->Take();
    ended = std::move(to->joiner);
    to->ended = true;
    if (!added.ok()) return added;
    return ChunkNote::TAKEN;
  }

  absl::StatusOr<Message> GiveChunk(const Message& request) {
    const auto header = ParseHeader<FetchChunkHeader>(request.header);
    if (!header.ok()) return header.status();
    std::shared_ptr<const Outgoing> held;
    {
      MutexLock lock(&mutex);
      const auto at = outgoing.find(header->transfer());
      if (at == outgoing.end()) return NoteOf(ChunkNote::UNKNOWN);
      held = at->second.transfer;
      at->second.until_us = Until();
    }
    const uint64_t all = BytesOf(held->answer);
    if (header->offset_bytes() >= all) {
      return absl::InvalidArgumentError(
          absl::StrCat("FetchChunk: byte ", header->offset_bytes(), " of ", all));
    }
    Message chunk = NoteOf(ChunkNote::CHUNK);
    chunk.payload = ChunkAt(held->answer, header->offset_bytes(), options.limits);
    if (header->offset_bytes() + chunk.payload.size() == all) {
      MutexLock lock(&mutex);
      outgoing.erase(header->transfer());
    }
    return chunk;
  }

  // The time at which a transfer that is used now will be dropped if it is not used again. Makes
  // sure that the timer for dropping transfers is set.
  int64_t Until() REQUIRES(mutex) {
    if (!timer_set) SetTimer(options.deadline_us);
    return executor->NowUs() + options.deadline_us;
  }

  void SetTimer(int64_t delay_us) REQUIRES(mutex) {
    timer_set = true;
    // The pointer is weak, so that destroying the handler releases the transfers even if a timer is
    // still set.
    executor->PostAfter(delay_us, [weak = weak_from_this()] {
      if (const std::shared_ptr<Rep> self = weak.lock()) self->GiveUpOld();
    });
  }

  void GiveUpOld() {
    // Freed after the lock is released.
    std::vector<std::shared_ptr<void>> dropped;
    MutexLock lock(&mutex);
    timer_set = false;
    const int64_t now_us = executor->NowUs();
    int64_t next_us = std::numeric_limits<int64_t>::max();
    const auto drop_old = [&](auto* transfers) {
      for (auto at = transfers->begin(); at != transfers->end();) {
        const auto it = at++;
        if (it->second.until_us <= now_us) {
          dropped.push_back(std::move(it->second.transfer));
          transfers->erase(it);
        } else {
          next_us = std::min(next_us, it->second.until_us);
        }
      }
    };
    drop_old(&incoming);
    drop_old(&outgoing);
    if (next_us != std::numeric_limits<int64_t>::max()) SetTimer(next_us - now_us);
  }

  Handler* const handler;
  const std::vector<Method> methods;
  Executor* const executor;
  const Options options;
  const std::shared_ptr<ChunkMemory> answer_memory;
  mutable Mutex mutex;
  uint64_t next_transfer GUARDED_BY(mutex);
  absl::flat_hash_map<uint64_t, Held<Incoming>> incoming GUARDED_BY(mutex);
  absl::flat_hash_map<uint64_t, Held<Outgoing>> outgoing GUARDED_BY(mutex);
  bool timer_set GUARDED_BY(mutex) = false;
};

ChunkedHandler::ChunkedHandler(Handler* handler, absl::Span<const Method> methods,
                               Executor* executor, Options options)
    : rep_(std::make_shared<Rep>(handler, methods, executor, std::move(options))) {}

ChunkedHandler::~ChunkedHandler() = default;

void ChunkedHandler::Handle(const Method& method, Message request, Callback respond) {
  if (method == kSendChunk) return rep_->TakeChunk(request, std::move(respond));
  if (method == kFetchChunk) return respond(rep_->GiveChunk(request));
  rep_->Serve(method, std::move(request), std::move(respond));
}

size_t ChunkedHandler::num_incomplete_requests() const {
  MutexLock lock(&rep_->mutex);
  return rep_->incoming.size();
}

size_t ChunkedHandler::num_held_answers() const {
  MutexLock lock(&rep_->mutex);
  return rep_->outgoing.size();
}

}  // namespace satrap::rpc

#include "common/chunk/chunked_handler.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "common/base/status_macros.h"
#include "common/rpc/header.h"
#include "common/thread/mutex.h"

namespace satrap::rpc {

struct ChunkedHandler::Rep : std::enable_shared_from_this<ChunkedHandler::Rep> {
  // Chunks are copied while holding only the lock of their own message, not the one for all.
  struct Incoming {
    Method method;
    Mutex mutex;
    // Null once it is complete or refused.
    std::unique_ptr<ChunkJoiner> joiner GUARDED_BY(mutex);
  };
  struct Outgoing {
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
        answer_memory(std::make_shared<ChunkMemory>(this->options.answer_bytes)),
        next_transfer(this->options.first_transfer) {}

  absl::optional<Method> Find(absl::string_view path) const {
    for (const Method& method : methods) {
      if (method.bulk && path == method.path) return method;
    }
    return absl::nullopt;
  }

  void Serve(const Method& method, Message request, Callback respond) {
    handler->Handle(method, std::move(request),
                    [self = shared_from_this(), method,
                     respond = std::move(respond)](absl::StatusOr<Message> answer) mutable {
                      if (answer.ok() && method.bulk &&
                          !FitsInOneFrame(method, *answer, self->options.limits)) {
                        answer = self->HoldAnswer(method, *std::move(answer));
                      }
                      respond(std::move(answer));
                    });
  }

  // Keeps the answer until its chunks are asked for. Returns the note that is sent instead of it.
  absl::StatusOr<Message> HoldAnswer(const Method& method, Message answer) {
    const absl::Status size =
        CheckMessageSize("answer to", method, BytesOf(answer), options.limits.largest_bytes);
    if (!size.ok()) return size;
    auto held = std::make_shared<Outgoing>();
    held->share = ChunkMemory::Take(answer_memory, BytesOf(answer));
    if (!held->share) return NoteOf(ChunkNote::NO_ROOM);
    Buffer first = ChunkAt(answer, 0, options.limits);
    ChunkNote note;
    note.set_state(ChunkNote::FOLLOWS);
    note.set_header_bytes(answer.header.size());
    note.set_payload_bytes(answer.payload.size());
    held->answer = std::move(answer);
    MutexLock lock(&mutex);
    note.set_transfer(next_transfer++);
    outgoing[note.transfer()] = {std::move(held), Until()};
    return Message{note.SerializeAsString(), std::move(first)};
  }

  void TakeChunk(const Message& request, Callback respond) {
    const auto header = ParseHeader<SendChunkHeader>(request.header);
    if (!header.ok()) return respond(header.status());
    const absl::StatusOr<std::shared_ptr<Incoming>> found = FindOrBegin(*header);
    if (!found.ok()) return respond(found.status());
    if (*found == nullptr) {
      return respond(NoteOf(header->offset_bytes() == 0 ? ChunkNote::NO_ROOM : ChunkNote::UNKNOWN));
    }
    absl::optional<Message> whole;
    const absl::StatusOr<ChunkNote::State> state =
        Join(found->get(), header->offset_bytes(), request.payload, &whole);
    if (whole.has_value() || !state.ok()) {
      MutexLock lock(&mutex);
      incoming.erase(header->transfer());
    }
    if (whole.has_value()) {
      Serve((*found)->method, *std::move(whole), std::move(respond));
    } else if (state.ok()) {
      respond(NoteOf(*state));
    } else {
      respond(state.status());
    }
  }

  // Null if there is no room for the message of a first chunk, or no transfer for a later one.
  absl::StatusOr<std::shared_ptr<Incoming>> FindOrBegin(const SendChunkHeader& header) {
    MutexLock lock(&mutex);
    const auto at = incoming.find(header.transfer());
    if (at != incoming.end()) {
      at->second.until_us = Until();
      return at->second.transfer;
    }
    if (header.offset_bytes() > 0) return nullptr;
    ASSIGN_OR_RETURN(std::shared_ptr<Incoming> begun, BeginRequest(header));
    if (begun != nullptr) incoming[header.transfer()] = {begun, Until()};
    return begun;
  }

  // Null if there is no room.
  absl::StatusOr<std::shared_ptr<Incoming>> BeginRequest(const SendChunkHeader& header) const {
    const absl::optional<Method> method = Find(header.method());
    if (!method.has_value()) {
      return absl::UnimplementedError(
          absl::StrCat("nothing here takes chunks of ", header.method()));
    }
    // Checked separately, so that their sum cannot overflow.
    const auto largest = static_cast<uint64_t>(options.limits.largest_bytes);
    const uint64_t bytes = std::max(header.header_bytes(), header.payload_bytes()) > largest
                               ? std::max(header.header_bytes(), header.payload_bytes())
                               : header.header_bytes() + header.payload_bytes();
    RETURN_IF_ERROR(CheckMessageSize("request of", *method, bytes, options.limits.largest_bytes));
    ChunkMemory::Share share = ChunkMemory::Take(options.memory, bytes);
    if (!share) return nullptr;
    auto begun = std::make_shared<Incoming>();
    begun->method = *method;
    MutexLock lock(&begun->mutex);
    begun->joiner = std::make_unique<ChunkJoiner>(header.header_bytes(), header.payload_bytes(),
                                                  std::move(share), nullptr);
    return begun;
  }

  // Sets `*whole` when the chunk completes the message, and frees the message's share: it is then
  // like any other message.
  static absl::StatusOr<ChunkNote::State> Join(Incoming* to, uint64_t offset_bytes,
                                               const Buffer& chunk,
                                               absl::optional<Message>* whole) {
    MutexLock lock(&to->mutex);
    if (to->joiner == nullptr) return ChunkNote::UNKNOWN;
    const uint64_t next_bytes = to->joiner->next_bytes();
    if (offset_bytes < next_bytes) return ChunkNote::TAKEN;  // repeated
    if (offset_bytes > next_bytes) return ChunkNote::UNKNOWN;
    const absl::Status added = to->joiner->Add(chunk);
    if (added.ok() && !to->joiner->complete()) return ChunkNote::TAKEN;
    if (added.ok()) *whole = to->joiner->Take();
    to->joiner.reset();
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

  // The time at which a transfer that is used now will be dropped. Sets the timer that drops it.
  int64_t Until() REQUIRES(mutex) {
    if (!timer_set) SetTimer(options.deadline_us);
    return executor->NowUs() + options.deadline_us;
  }

  void SetTimer(int64_t delay_us) REQUIRES(mutex) {
    timer_set = true;
    // Weak, so that what is held is released with the handler even if timers are left.
    executor->PostAfter(delay_us, [weak = weak_from_this()] {
      if (const std::shared_ptr<Rep> self = weak.lock()) self->GiveUpOld();
    });
  }

  void GiveUpOld() {
    MutexLock lock(&mutex);
    timer_set = false;
    const int64_t now_us = executor->NowUs();
    int64_t next_us = std::numeric_limits<int64_t>::max();
    const auto drop_old = [&](auto* transfers) {
      for (auto at = transfers->begin(); at != transfers->end();) {
        const auto it = at++;
        if (it->second.until_us <= now_us) {
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

// Faults of large messages: handlers and channels that are put next to those that divide and join
// large messages (common/chunk/chunked_handler.h).

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"
#include "common/chunk/chunk.h"
#include "common/rpc/header.h"
#include "tests/simulation/plants/sim_plants_messages.h"

namespace satrap::simulation {
namespace {

// Joins chunks of one method and size, whichever attempt they belong to.
class JoinsAttempts final : public PlantedHandler {
 public:
  using PlantedHandler::PlantedHandler;
  void Handle(const rpc::Method& method, rpc::Message request, rpc::Callback respond) override {
    if (method == rpc::kSendChunk) {
      EditHeader<SendChunkHeader>(&request, [this](SendChunkHeader* header) {
        uint64_t& first =
            transfers_[{header->method(), header->header_bytes() + header->payload_bytes()}];
        if (first == 0) first = header->transfer();
        header->set_transfer(first);
      });
    }
    Pass(method, std::move(request), std::move(respond));
  }

 private:
  std::map<std::pair<std::string, uint64_t>, uint64_t> transfers_;
};

// Answers every request for a chunk of an answer with a chunk of the newest answer.
class MixesAnswers final : public PlantedHandler {
 public:
  using PlantedHandler::PlantedHandler;
  void Handle(const rpc::Method& method, rpc::Message request, rpc::Callback respond) override {
    if (method == rpc::kFetchChunk && newest_ != 0) {
      EditHeader<FetchChunkHeader>(
          &request, [this](FetchChunkHeader* header) { header->set_transfer(newest_); });
    }
    Pass(method, std::move(request),
         [this, respond = std::move(respond)](absl::StatusOr<rpc::Message> answer) mutable {
           ChunkNote note;
           if (answer.ok() && rpc::IsNote(*answer) && note.ParseFromString(answer->header) &&
               note.state() == ChunkNote::FOLLOWS) {
             newest_ = note.transfer();
           }
           respond(std::move(answer));
         });
  }

 private:
  uint64_t newest_ = 0;
};

// If a chunk arrives twice, writes the second copy to the place of the next chunk.
class TakesTwice final : public PlantedHandler {
 public:
  using PlantedHandler::PlantedHandler;
  void Handle(const rpc::Method& method, rpc::Message request, rpc::Callback respond) override {
    if (method == rpc::kSendChunk) {
      const uint64_t bytes = request.payload.size();
      EditHeader<SendChunkHeader>(&request, [this, bytes](SendChunkHeader* header) {
        uint64_t& next = next_bytes_[header->transfer()];
        const uint64_t left = header->header_bytes() + header->payload_bytes() - next;
        // A copy that does not fit in the next chunk's place would be refused instead of being used
        // twice.
        if (header->offset_bytes() < next && bytes <= left) header->set_offset_bytes(next);
        if (header->offset_bytes() == next) next += bytes;
      });
    }
    Pass(method, std::move(request), std::move(respond));
  }

 private:
  std::map<uint64_t, uint64_t> next_bytes_;  // by transfer
};

// Puts an unknown field before each request's header. So the beginning of a message does not show
// which call it belongs to, and a repeated call does not replace the attempt that was given up.
class HidesCalls final : public PlantedHandler {
 public:
  using PlantedHandler::PlantedHandler;
  void Handle(const rpc::Method& method, rpc::Message request, rpc::Callback respond) override {
    if (method == rpc::kSendChunk) {
      auto header = HeaderOf<SendChunkHeader>(request);
      if (header.offset_bytes() == 0) {
        request.payload = After(kUnknownField, request.payload);
      } else {
        header.set_offset_bytes(header.offset_bytes() + kUnknownField.size());
      }
      header.set_header_bytes(header.header_bytes() + kUnknownField.size());
      request.header = header.SerializeAsString();
    } else if (!(method == rpc::kFetchChunk)) {
      request.header.insert(0, kUnknownField.data(), kUnknownField.size());
    }
    Pass(method, std::move(request), std::move(respond));
  }

 private:
  // The field with number 2000, a varint with value 1.
  static constexpr absl::string_view kUnknownField = "\x80\x7d\x01";

  static Buffer After(absl::string_view first, const Buffer& rest) {
    Buffer both(first.size() + rest.size());
    std::copy(first.begin(), first.end(), both.mutable_data());
    std::copy(rest.data(), rest.data() + rest.size(), both.mutable_data() + first.size());
    return both;
  }
};

// Marks requests that come in chunks. PassesWindows, which comes after the ChunkedHandler, reads
// the marks.
class MarksJoined final : public PlantedHandler {
 public:
  using PlantedHandler::PlantedHandler;
  void Handle(const rpc::Method& method, rpc::Message request, rpc::Callback respond) override {
    *site_.in_chunk = method == rpc::kSendChunk;
    Pass(method, std::move(request), std::move(respond));
    *site_.in_chunk = false;
  }
};

// Runs requests that have come in chunks once for each attempt, as if no answer window existed.
class PassesWindows final : public PlantedHandler {
 public:
  using PlantedHandler::PlantedHandler;
  void Handle(const rpc::Method& method, rpc::Message request, rpc::Callback respond) override {
    if (*site_.in_chunk) {
      const uint64_t number = kFirstPlantedNumber + count_++;
      EditCall(method, &request, [number](int, CallId* call) { Renumber(call, number); });
    }
    Pass(method, std::move(request), std::move(respond));
  }

 private:
  uint64_t count_ = 0;
};

// Mistakes the loss of a request's last chunk for the answer to the call.
class LossIsAnswer final : public rpc::Channel {
 public:
  explicit LossIsAnswer(std::unique_ptr<rpc::Channel> channel) : channel_(std::move(channel)) {}

  void Call(const rpc::Method& method, rpc::Message request, int64_t timeout_ms,
            rpc::Callback done) override {
    if (!(method == rpc::kSendChunk) || !IsLast(request)) {
      return channel_->Call(method, std::move(request), timeout_ms, std::move(done));
    }
    channel_->Call(method, std::move(request), timeout_ms,
                   [done = std::move(done)](absl::StatusOr<rpc::Message> answer) mutable {
                     done(answer.ok() ? std::move(answer) : DoneMessage());
                   });
  }

 private:
  static bool IsLast(const rpc::Message& request) {
    const auto header = HeaderOf<SendChunkHeader>(request);
    return header.offset_bytes() + request.payload.size() ==
           header.header_bytes() + header.payload_bytes();
  }

  const std::unique_ptr<rpc::Channel> channel_;
};

}  // namespace

std::vector<Fault> ChunkFaults() {
  return {
      {.says = "chunks of two attempts are joined to one request",
       .before_chunks = Before<JoinsAttempts>()},
      {.says = "chunks of two answers are joined to one", .before_chunks = Before<MixesAnswers>()},
      {.says = "a repeated chunk is taken twice", .before_chunks = Before<TakesTwice>()},
      {.says = "a request that was joined runs once for each attempt",
       .before_chunks = Before<MarksJoined>(),
       .after_chunks = Before<PassesWindows>()},
      {.says = "the loss of a chunk is taken for an answer",
       .below_chunks =
           [](std::unique_ptr<rpc::Channel> channel) {
             return std::make_unique<LossIsAnswer>(std::move(channel));
           }},
      {.says = "what a call has given up stays in memory",
       .before_chunks = Before<HidesCalls>(),
       .chunks_kept = true},
  };
}

}  // namespace satrap::simulation

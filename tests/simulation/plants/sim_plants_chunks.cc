#include "tests/simulation/plants/sim_plants_chunks.h"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <utility>

#include "common/base/check.h"
#include "common/chunk/chunk.h"
#include "common/rpc/header.h"
#include "tests/simulation/plants/sim_plants_messages.h"

namespace satrap::simulation {
namespace {

constexpr int64_t kNever = int64_t{1} << 50;

// Joins chunks of one method and size, whichever attempt they belong to.
class JoinsAttempts final : public rpc::Handler {
 public:
  explicit JoinsAttempts(rpc::Handler* chunks) : chunks_(chunks) {}

  void Handle(const rpc::Method& method, rpc::Message request, rpc::Callback respond) override {
    if (method == rpc::kSendChunk) {
      SendChunkHeader header;
      CHECK(header.ParseFromString(request.header));
      uint64_t& first =
          transfers_[{header.method(), header.header_bytes() + header.payload_bytes()}];
      if (first == 0) first = header.transfer();
      header.set_transfer(first);
      request.header = header.SerializeAsString();
    }
    chunks_->Handle(method, std::move(request), std::move(respond));
  }

 private:
  rpc::Handler* const chunks_;
  std::map<std::pair<std::string, uint64_t>, uint64_t> transfers_;
};

// Answers a request for a chunk of any answer with a chunk of the newest answer.
class MixesAnswers final : public rpc::Handler {
 public:
  explicit MixesAnswers(rpc::Handler* chunks) : chunks_(chunks) {}

  void Handle(const rpc::Method& method, rpc::Message request, rpc::Callback respond) override {
    if (method == rpc::kFetchChunk) {
      FetchChunkHeader header;
      CHECK(header.ParseFromString(request.header));
      if (newest_ != 0) header.set_transfer(newest_);
      request.header = header.SerializeAsString();
    }
    chunks_->Handle(
        method, std::move(request),
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
  rpc::Handler* const chunks_;
  uint64_t newest_ = 0;
};

// Writes a chunk that comes twice to where the next one belongs.
class TakesTwice final : public rpc::Handler {
 public:
  explicit TakesTwice(rpc::Handler* chunks) : chunks_(chunks) {}

  void Handle(const rpc::Method& method, rpc::Message request, rpc::Callback respond) override {
    if (method == rpc::kSendChunk) {
      SendChunkHeader header;
      CHECK(header.ParseFromString(request.header));
      uint64_t& next = next_bytes_[header.transfer()];
      const uint64_t left = header.header_bytes() + header.payload_bytes() - next;
      // If the chunk did not fit there it would be refused, and not be taken twice.
      if (header.offset_bytes() < next && request.payload.size() <= left) {
        header.set_offset_bytes(next);
        request.header = header.SerializeAsString();
      }
      if (header.offset_bytes() == next) next += request.payload.size();
    }
    chunks_->Handle(method, std::move(request), std::move(respond));
  }

 private:
  rpc::Handler* const chunks_;
  std::map<uint64_t, uint64_t> next_bytes_;  // by transfer
};

// Marks requests that come in chunks, for PassesWindows, which follows the ChunkedHandler.
class MarksJoined final : public rpc::Handler {
 public:
  MarksJoined(rpc::Handler* chunks, std::shared_ptr<ChunkPassage> passage)
      : chunks_(chunks), passage_(std::move(passage)) {}

  void Handle(const rpc::Method& method, rpc::Message request, rpc::Callback respond) override {
    passage_->joins = method == rpc::kSendChunk;
    chunks_->Handle(method, std::move(request), std::move(respond));
    passage_->joins = false;
  }

 private:
  rpc::Handler* const chunks_;
  const std::shared_ptr<ChunkPassage> passage_;
};

// Runs requests that have come in chunks once for each attempt, as if no window had seen them.
class PassesWindows final : public rpc::Handler {
 public:
  PassesWindows(rpc::Handler* engine, std::shared_ptr<ChunkPassage> passage)
      : engine_(engine), passage_(std::move(passage)) {}

  void Handle(const rpc::Method& method, rpc::Message request, rpc::Callback respond) override {
    if (passage_->joins) GiveNewNumber(method, &request, kFirstPlantedNumber + count_++);
    engine_->Handle(method, std::move(request), std::move(respond));
  }

 private:
  rpc::Handler* const engine_;
  const std::shared_ptr<ChunkPassage> passage_;
  uint64_t count_ = 0;
};

// Mistakes the loss of a request's last chunk for the answer to the call.
class LossIsAnswer final : public rpc::Channel {
 public:
  explicit LossIsAnswer(std::unique_ptr<rpc::Channel> channel) : channel_(std::move(channel)) {}

  void Call(const rpc::Method& method, rpc::Message request, int64_t timeout_ms,
            rpc::Callback done) override {
    bool is_last = false;
    if (method == rpc::kSendChunk) {
      SendChunkHeader header;
      CHECK(header.ParseFromString(request.header));
      is_last = header.offset_bytes() + request.payload.size() ==
                header.header_bytes() + header.payload_bytes();
    }
    if (!is_last) {
      return channel_->Call(method, std::move(request), timeout_ms, std::move(done));
    }
    channel_->Call(method, std::move(request), timeout_ms,
                   [done = std::move(done)](absl::StatusOr<rpc::Message> answer) mutable {
                     done(answer.ok() ? std::move(answer) : DoneMessage());
                   });
  }

 private:
  const std::unique_ptr<rpc::Channel> channel_;
};

}  // namespace

std::unique_ptr<rpc::Handler> NewPlantBeforeChunks(Plant plant, rpc::Handler* chunks,
                                                   std::shared_ptr<ChunkPassage> passage) {
  switch (plant) {
    case Plant::kAttemptsJoined:
      return std::make_unique<JoinsAttempts>(chunks);
    case Plant::kAnswersMixed:
      return std::make_unique<MixesAnswers>(chunks);
    case Plant::kChunkTakenTwice:
      return std::make_unique<TakesTwice>(chunks);
    case Plant::kJoinedPassWindows:
      return std::make_unique<MarksJoined>(chunks, std::move(passage));
    default:
      return nullptr;
  }
}

std::unique_ptr<rpc::Handler> NewPlantBehindChunks(Plant plant, rpc::Handler* engine,
                                                   std::shared_ptr<ChunkPassage> passage) {
  if (plant != Plant::kJoinedPassWindows) return nullptr;
  return std::make_unique<PassesWindows>(engine, std::move(passage));
}

std::unique_ptr<rpc::Channel> PlantBelowChunks(Plant plant, std::unique_ptr<rpc::Channel> channel) {
  if (plant != Plant::kChunkLossIsAnswer) return channel;
  return std::make_unique<LossIsAnswer>(std::move(channel));
}

int64_t PlantedChunkDeadlineUs(Plant plant, int64_t deadline_us) {
  return plant == Plant::kChunksKept ? kNever : deadline_us;
}

}  // namespace satrap::simulation

#include "common/chunk/chunked_handler.h"

#include <chrono>
#include <cstdlib>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "common/rpc/header.h"
#include "common/testing/manual_executor.h"
#include "gtest/gtest.h"

namespace satrap::rpc {
namespace {

constexpr Method kEcho{"/satrap.Test/Echo", true};
constexpr Method kMethods[] = {kEcho};
constexpr int64_t kChunkBytes = 10;
constexpr int64_t kDeadlineUs = 1000;
constexpr int64_t kRoomBytes = 60;

Buffer BytesOfText(absl::string_view text) {
  Buffer buffer(text.size());
  std::copy(text.begin(), text.end(), buffer.mutable_data());
  return buffer;
}
std::string TextOf(const Buffer& buffer) {
  return std::string(reinterpret_cast<const char*>(buffer.data()), buffer.size());
}

class Echo final : public Handler {
 public:
  void Handle(const Method&, Message request, Callback respond) override {
    requests.push_back(request.header + "|" + TextOf(request.payload));
    request.payload = BytesOfText(answer.empty() ? TextOf(request.payload) : answer);
    respond(std::move(request));
  }
  std::vector<std::string> requests;
  std::string answer;  // empty: the answer is the request
};

// Allocates on the heap. Whenever memory is allocated or freed, `look` runs on another thread.
// `waits` counts the runs of `look` that had not returned after 5 s: they were waiting for a lock
// of the thread that allocated or freed.
class LookingAllocator final : public BufferAllocator {
 public:
  uint8_t* Allocate(size_t size_bytes) override {
    Look();
    return static_cast<uint8_t*>(std::aligned_alloc(
        kBufferAlignment,
        (size_bytes + kBufferAlignment - 1) / kBufferAlignment * kBufferAlignment));
  }
  void Free(uint8_t* data, size_t) override {
    Look();
    std::free(data);
  }

  std::function<void()> look;
  int looks = 0;
  int waits = 0;

 private:
  void Look() {
    if (look == nullptr) return;
    ++looks;
    looking_.push_back(std::async(std::launch::async, look));
    // Only a run of `look` that waits for a lock of this thread takes this long.
    if (looking_.back().wait_for(std::chrono::seconds(5)) != std::future_status::ready) ++waits;
  }

  std::vector<std::future<void>> looking_;
};

class ChunkedHandlerTest : public testing::Test {
 protected:
  explicit ChunkedHandlerTest(int64_t chunk_bytes = kChunkBytes, int64_t room_bytes = kRoomBytes)
      : memory_(std::make_shared<ChunkMemory>(room_bytes, kDeadlineUs)) {
    ChunkedHandler::Options options;
    options.limits = {chunk_bytes + static_cast<int64_t>(kChunkOverheadBytes), 1000};
    options.envelope = OwnEnvelope();
    options.name = "worker 3";
    options.payload_allocator = allocator_;
    options.memory = memory_;
    options.answer_bytes = 400;
    options.deadline_us = kDeadlineUs;
    options.first_transfer = 100;
    handler_ = std::make_unique<ChunkedHandler>(&echo_, kMethods, &executor_, options);
  }

  absl::StatusOr<Message> Call(const Method& method, Message request) {
    absl::StatusOr<Message> result = absl::UnknownError("not answered");
    handler_->Handle(method, std::move(request),
                     [&result](absl::StatusOr<Message> answer) { result = std::move(answer); });
    return result;
  }
  // Sends a chunk of a request with the header "header".
  absl::StatusOr<Message> Send(uint64_t transfer, uint64_t offset, absl::string_view chunk,
                               uint64_t payload_bytes = 20) {
    SendChunkHeader header;
    header.set_transfer(transfer);
    header.set_method(kEcho.path);
    header.set_header_bytes(6);
    header.set_payload_bytes(payload_bytes);
    header.set_offset_bytes(offset);
    return Call(kSendChunk, {header.SerializeAsString(), BytesOfText(chunk)});
  }
  absl::StatusOr<Message> Fetch(uint64_t transfer, uint64_t offset) {
    FetchChunkHeader header;
    header.set_transfer(transfer);
    header.set_offset_bytes(offset);
    return Call(kFetchChunk, {header.SerializeAsString(), Buffer()});
  }
  static Envelope OwnEnvelope() {
    Envelope envelope;
    envelope.set_run_id(7);
    envelope.set_generation(2);
    envelope.set_job_fingerprint(9);
    return envelope;
  }
  static ChunkNote NoteIn(const absl::StatusOr<Message>& answer) {
    ChunkNote note;
    EXPECT_TRUE(answer.ok()) << answer.status();
    if (!answer.ok()) return note;
    EXPECT_TRUE(IsNote(*answer)) << answer->header;
    EXPECT_TRUE(note.ParseFromString(answer->header));
    return note;
  }

  ManualExecutor executor_;
  Echo echo_;
  const std::shared_ptr<LookingAllocator> allocator_ = std::make_shared<LookingAllocator>();
  const std::shared_ptr<ChunkMemory> memory_;
  std::unique_ptr<ChunkedHandler> handler_;
};

// Requests of numbered calls. One chunk is large enough for everything that identifies a call.
class NumberedChunksTest : public ChunkedHandlerTest {
 protected:
  NumberedChunksTest() : ChunkedHandlerTest(/*chunk_bytes=*/100, /*room_bytes=*/400) {}

  static Message RequestOf(uint64_t number, size_t payload_bytes, Stream stream = TRAIN_STREAM,
                           const Envelope& envelope = OwnEnvelope()) {
    PutBatchHeader header;
    *header.mutable_envelope() = envelope;
    header.mutable_call()->set_sender(1);
    header.mutable_call()->set_number(number);
    header.mutable_call()->set_oldest_open(number);
    header.set_stream(stream);
    return {header.SerializeAsString(), BytesOfText(std::string(payload_bytes, 'x'))};
  }
  // Sends chunk `index` of `request` as part of the transfer numbered `transfer`.
  absl::StatusOr<Message> SendOf(const Message& request, uint64_t transfer, int index = 0) {
    const ChunkLimits limits{100 + kChunkOverheadBytes, 1000};
    SendChunkHeader header;
    header.set_transfer(transfer);
    header.set_method(kEcho.path);
    header.set_header_bytes(request.header.size());
    header.set_payload_bytes(request.payload.size());
    header.set_offset_bytes(100 * index);
    return Call(kSendChunk, {header.SerializeAsString(), ChunkAt(request, 100 * index, limits)});
  }
};

TEST_F(ChunkedHandlerTest, ARequestReachesTheHandlerOnceAllOfItsChunksHaveCome) {
  EXPECT_EQ(NoteIn(Send(1, 0, "headerABCD")).state(), ChunkNote::TAKEN);
  EXPECT_EQ(NoteIn(Send(1, 10, "EFGHIJKLMN")).state(), ChunkNote::TAKEN);
  EXPECT_TRUE(echo_.requests.empty());
  const auto answer = Send(1, 20, "OPQRST");
  ASSERT_TRUE(answer.ok());
  EXPECT_EQ(TextOf(answer->payload), "ABCDEFGHIJKLMNOPQRST");
  EXPECT_EQ(echo_.requests, std::vector<std::string>({"header|ABCDEFGHIJKLMNOPQRST"}));
  EXPECT_EQ(handler_->num_incomplete_requests(), 0u);
  EXPECT_EQ(memory_->taken_bytes(), 0);
}

TEST_F(ChunkedHandlerTest, ARepeatedChunkIsTakenOnce) {
  EXPECT_EQ(NoteIn(Send(1, 0, "headerABCD")).state(), ChunkNote::TAKEN);
  EXPECT_EQ(NoteIn(Send(1, 0, "headerABCD")).state(), ChunkNote::TAKEN);
  EXPECT_EQ(NoteIn(Send(1, 10, "EFGHIJKLMN")).state(), ChunkNote::TAKEN);
  EXPECT_EQ(NoteIn(Send(1, 0, "headerABCD")).state(), ChunkNote::TAKEN);
  EXPECT_TRUE(Send(1, 20, "OPQRST").ok());
  EXPECT_EQ(echo_.requests, std::vector<std::string>({"header|ABCDEFGHIJKLMNOPQRST"}));
  // Repeats the last chunk after the request was passed to the handler.
  EXPECT_EQ(NoteIn(Send(1, 20, "OPQRST")).state(), ChunkNote::UNKNOWN);
  EXPECT_EQ(echo_.requests.size(), 1u);
}

TEST_F(ChunkedHandlerTest, ChunksOfTwoAttemptsAreNotJoined) {
  EXPECT_EQ(NoteIn(Send(1, 0, "headerABCD")).state(), ChunkNote::TAKEN);
  EXPECT_EQ(NoteIn(Send(2, 10, "EFGHIJKLMN")).state(), ChunkNote::UNKNOWN);
  EXPECT_EQ(NoteIn(Send(2, 0, "headerabcd")).state(), ChunkNote::TAKEN);
  EXPECT_EQ(NoteIn(Send(1, 10, "EFGHIJKLMN")).state(), ChunkNote::TAKEN);
  EXPECT_EQ(NoteIn(Send(2, 10, "efghijklmn")).state(), ChunkNote::TAKEN);
  EXPECT_TRUE(Send(2, 20, "opqrst").ok());
  EXPECT_TRUE(Send(1, 20, "OPQRST").ok());
  EXPECT_EQ(echo_.requests, std::vector<std::string>(
                                {"header|abcdefghijklmnopqrst", "header|ABCDEFGHIJKLMNOPQRST"}));
}

TEST_F(ChunkedHandlerTest, AChunkBeforeItsTurnIsNotTaken) {
  EXPECT_EQ(NoteIn(Send(1, 0, "headerABCD")).state(), ChunkNote::TAKEN);
  EXPECT_EQ(NoteIn(Send(1, 20, "OPQRST")).state(), ChunkNote::UNKNOWN);
  EXPECT_TRUE(echo_.requests.empty());
}

TEST_F(ChunkedHandlerTest, MoreBytesThanTheMessageHasAreRefused) {
  EXPECT_EQ(NoteIn(Send(1, 0, "headerABCD", 5)).state(), ChunkNote::TAKEN);
  EXPECT_EQ(Send(1, 10, "EFGHIJKLMN", 5).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(handler_->num_incomplete_requests(), 0u);
  EXPECT_EQ(memory_->taken_bytes(), 0);
}

TEST_F(ChunkedHandlerTest, RequestsWaitForRoomAndTheLargestHaveABound) {
  EXPECT_EQ(NoteIn(Send(1, 0, "headerABCD", 30)).state(), ChunkNote::TAKEN);
  EXPECT_EQ(NoteIn(Send(2, 0, "headerABCD", 19)).state(), ChunkNote::NO_ROOM);
  EXPECT_EQ(NoteIn(Send(3, 0, "headerABCD", 18)).state(), ChunkNote::TAKEN);
  for (const uint64_t bytes : {uint64_t{995}, ~uint64_t{0}}) {
    const absl::Status status = Send(4, 0, "headerABCD", bytes).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    EXPECT_NE(status.message().find("request of /satrap.Test/Echo"), absl::string_view::npos);
  }
}

TEST_F(ChunkedHandlerTest, ARequestWhoseChunksStayAwayIsGivenUp) {
  EXPECT_EQ(NoteIn(Send(1, 0, "headerABCD")).state(), ChunkNote::TAKEN);
  executor_.AdvanceBy(kDeadlineUs - 1);
  EXPECT_EQ(NoteIn(Send(1, 10, "EFGHIJKLMN")).state(), ChunkNote::TAKEN);
  executor_.AdvanceBy(kDeadlineUs - 1);
  EXPECT_EQ(handler_->num_incomplete_requests(), 1u);
  executor_.AdvanceBy(1);
  EXPECT_EQ(handler_->num_incomplete_requests(), 0u);
  EXPECT_EQ(memory_->taken_bytes(), 0);
  EXPECT_EQ(NoteIn(Send(1, 20, "OPQRST")).state(), ChunkNote::UNKNOWN);
  EXPECT_TRUE(echo_.requests.empty());
}

TEST_F(ChunkedHandlerTest, WhileAMessageIsAllocatedOrFreedOthersDoNotWait) {
  allocator_->look = [this] { handler_->num_incomplete_requests(); };
  EXPECT_EQ(NoteIn(Send(1, 0, "headerABCD")).state(), ChunkNote::TAKEN);
  EXPECT_EQ(allocator_->looks, 1);
  executor_.AdvanceBy(kDeadlineUs);
  EXPECT_EQ(handler_->num_incomplete_requests(), 0u);
  EXPECT_EQ(allocator_->looks, 2) << "freed, when it was given up";
  EXPECT_EQ(NoteIn(Send(2, 0, "headerABCD", 5)).state(), ChunkNote::TAKEN);
  EXPECT_FALSE(Send(2, 10, "EFGHIJKLMN", 5).ok());
  EXPECT_EQ(allocator_->looks, 4) << "freed, when it was refused";
  EXPECT_EQ(allocator_->waits, 0);
}

TEST_F(NumberedChunksTest, ANewAttemptOfACallTakesThePlaceOfTheEarlierOne) {
  const Message request = RequestOf(1, 250);
  EXPECT_EQ(NoteIn(SendOf(request, 10)).state(), ChunkNote::TAKEN);
  EXPECT_EQ(NoteIn(SendOf(request, 10, 1)).state(), ChunkNote::TAKEN);
  EXPECT_EQ(NoteIn(SendOf(request, 11)).state(), ChunkNote::TAKEN) << "there is no room for two";
  EXPECT_EQ(handler_->num_incomplete_requests(), 1u);
  EXPECT_EQ(NoteIn(SendOf(request, 10, 2)).state(), ChunkNote::UNKNOWN);
  EXPECT_EQ(NoteIn(SendOf(request, 11, 1)).state(), ChunkNote::TAKEN);
  EXPECT_TRUE(SendOf(request, 11, 2).ok());
  EXPECT_EQ(echo_.requests.size(), 1u);
  EXPECT_EQ(memory_->taken_bytes(), 0);
}

TEST_F(NumberedChunksTest, ALateCopyOfAnEarlierAttemptTakesNoPlace) {
  const Message request = RequestOf(1, 150);
  EXPECT_EQ(NoteIn(SendOf(request, 11)).state(), ChunkNote::TAKEN);
  EXPECT_EQ(NoteIn(SendOf(request, 10)).state(), ChunkNote::UNKNOWN);
  EXPECT_EQ(NoteIn(SendOf(request, 11)).state(), ChunkNote::TAKEN);
  EXPECT_TRUE(SendOf(request, 11, 1).ok());
  EXPECT_EQ(echo_.requests.size(), 1u);
  EXPECT_EQ(memory_->taken_bytes(), 0);
}

TEST_F(NumberedChunksTest, TransfersOfOtherCallsStay) {
  EXPECT_EQ(NoteIn(SendOf(RequestOf(1, 80), 10)).state(), ChunkNote::TAKEN);
  EXPECT_EQ(NoteIn(SendOf(RequestOf(2, 80), 11)).state(), ChunkNote::TAKEN);
  EXPECT_EQ(NoteIn(SendOf(RequestOf(1, 80, TEST_STREAM), 12)).state(), ChunkNote::TAKEN);
  EXPECT_EQ(handler_->num_incomplete_requests(), 3u);
}

TEST_F(NumberedChunksTest, ANewAnswerToACallTakesThePlaceOfTheEarlierOne) {
  echo_.answer = std::string(300, 'x');
  const ChunkNote first = NoteIn(Call(kEcho, RequestOf(1, 1)));
  const ChunkNote second = NoteIn(Call(kEcho, RequestOf(1, 1)));
  EXPECT_EQ(second.state(), ChunkNote::FOLLOWS) << "there is no room for two";
  EXPECT_EQ(handler_->num_held_answers(), 1u);
  EXPECT_EQ(NoteIn(Fetch(first.transfer(), 100)).state(), ChunkNote::UNKNOWN);
  EXPECT_EQ(NoteIn(Fetch(second.transfer(), 100)).state(), ChunkNote::CHUNK);
  EXPECT_EQ(NoteIn(Call(kEcho, RequestOf(2, 1))).state(), ChunkNote::NO_ROOM);
  EXPECT_EQ(handler_->num_held_answers(), 1u);
}

TEST_F(NumberedChunksTest, ChunksOfAnotherRunTakeNoMemory) {
  Envelope other = OwnEnvelope();
  other.set_generation(1);
  const absl::Status status = SendOf(RequestOf(1, 250, TRAIN_STREAM, other), 10).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
  EXPECT_TRUE(IsOfAnotherRun(status));
  EXPECT_NE(status.message().find("worker 3"), absl::string_view::npos) << status;
  EXPECT_EQ(handler_->num_incomplete_requests(), 0u);
  EXPECT_EQ(memory_->taken_bytes(), 0);
}

TEST_F(NumberedChunksTest, ALargeRequestIsNotStarvedBySmallOnes) {
  const auto begin = [this](uint64_t number, size_t payload_bytes) {
    return NoteIn(SendOf(RequestOf(number, payload_bytes), number)).state();
  };
  const auto end = [this](uint64_t number, size_t payload_bytes) {
    return SendOf(RequestOf(number, payload_bytes), number, 1).ok();
  };
  EXPECT_EQ(begin(1, 100), ChunkNote::TAKEN);
  EXPECT_EQ(begin(2, 100), ChunkNote::TAKEN);
  EXPECT_EQ(begin(3, 300), ChunkNote::NO_ROOM);
  EXPECT_TRUE(end(1, 100));
  EXPECT_EQ(begin(4, 100), ChunkNote::NO_ROOM) << "it would take the room of call 3";
  EXPECT_EQ(begin(3, 300), ChunkNote::NO_ROOM);
  EXPECT_TRUE(end(2, 100));
  EXPECT_EQ(begin(3, 300), ChunkNote::TAKEN);
}

TEST_F(ChunkedHandlerTest, UnknownMethodsHaveNoChunks) {
  SendChunkHeader header;
  header.set_method("/satrap.Test/Other");
  EXPECT_EQ(Call(kSendChunk, {header.SerializeAsString(), Buffer()}).status().code(),
            absl::StatusCode::kUnimplemented);
  EXPECT_EQ(Call(kSendChunk, {"\xff", Buffer()}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(ChunkedHandlerTest, ASmallAnswerGoesAsItIs) {
  const auto answer = Call(kEcho, {"small", BytesOfText("payload")});
  ASSERT_TRUE(answer.ok());
  EXPECT_EQ(answer->header, "small");
  EXPECT_EQ(handler_->num_held_answers(), 0u);
}

TEST_F(ChunkedHandlerTest, ALargeAnswerIsHeldUntilItsLastChunkWasAskedFor) {
  echo_.answer = std::string(200, 'x') + "end";
  const auto answer = Call(kEcho, {"header", Buffer()});
  const ChunkNote note = NoteIn(answer);
  EXPECT_EQ(note.state(), ChunkNote::FOLLOWS);
  EXPECT_EQ(note.header_bytes(), 6u);
  EXPECT_EQ(note.payload_bytes(), 203u);
  std::string all = TextOf(answer->payload);
  while (all.size() < 209) {
    EXPECT_EQ(handler_->num_held_answers(), 1u);
    const auto chunk = Fetch(note.transfer(), all.size());
    EXPECT_EQ(NoteIn(chunk).state(), ChunkNote::CHUNK);
    ASSERT_GT(chunk->payload.size(), 0u);
    all += TextOf(chunk->payload);
  }
  EXPECT_EQ(all, "header" + echo_.answer);
  EXPECT_EQ(handler_->num_held_answers(), 0u);
  EXPECT_EQ(NoteIn(Fetch(note.transfer(), 200)).state(), ChunkNote::UNKNOWN);
}

TEST_F(ChunkedHandlerTest, AnAnswerThatNobodyFetchesIsGivenUp) {
  echo_.answer = std::string(200, 'x');
  const ChunkNote note = NoteIn(Call(kEcho, {"header", Buffer()}));
  executor_.AdvanceBy(kDeadlineUs - 1);
  EXPECT_EQ(NoteIn(Fetch(note.transfer(), 10)).state(), ChunkNote::CHUNK);
  executor_.AdvanceBy(kDeadlineUs);
  EXPECT_EQ(handler_->num_held_answers(), 0u);
  EXPECT_EQ(NoteIn(Fetch(note.transfer(), 20)).state(), ChunkNote::UNKNOWN);
}

TEST_F(ChunkedHandlerTest, AnswersToBeFetchedHaveABound) {
  echo_.answer = std::string(300, 'x');
  const ChunkNote note = NoteIn(Call(kEcho, {"header", Buffer()}));
  EXPECT_EQ(note.state(), ChunkNote::FOLLOWS);
  EXPECT_EQ(NoteIn(Call(kEcho, {"header", Buffer()})).state(), ChunkNote::NO_ROOM);
  executor_.AdvanceBy(kDeadlineUs);
  EXPECT_EQ(NoteIn(Call(kEcho, {"header", Buffer()})).state(), ChunkNote::FOLLOWS);
  echo_.answer = std::string(1000, 'x');
  const absl::Status status = Call(kEcho, {"header", Buffer()}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(status.message().find("answer to /satrap.Test/Echo"), absl::string_view::npos);
}

TEST_F(ChunkedHandlerTest, AChunkBeyondTheAnswerIsRefused) {
  echo_.answer = std::string(200, 'x');
  const ChunkNote note = NoteIn(Call(kEcho, {"header", Buffer()}));
  EXPECT_EQ(Fetch(note.transfer(), 206).status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace satrap::rpc

#include "common/chunk/chunk.h"

#include <algorithm>
#include <string>

#include "gtest/gtest.h"

namespace satrap::rpc {
namespace {

constexpr Method kMethod{"/satrap.EmbeddingWorker/PushGradients", true};

Buffer Bytes(size_t size) {
  Buffer buffer(size);
  for (size_t i = 0; i < size; ++i) buffer.mutable_data()[i] = static_cast<uint8_t>(i * 31 + i / 7);
  return buffer;
}

bool Equal(const Buffer& a, const Buffer& b) {
  return a.size() == b.size() && std::equal(a.data(), a.data() + a.size(), b.data());
}

ChunkMemory::Share ShareOf(uint64_t bytes) {
  return ChunkMemory::Take(std::make_shared<ChunkMemory>(1 << 20, 1000), bytes, {});
}

TEST(ChunkTest, TheChunksOfAMessageJoinToIt) {
  for (const size_t header_bytes : {0, 1, 9, 10, 11, 20, 25}) {
    for (const size_t payload_bytes : {0, 1, 9, 10, 35}) {
      const Message message{std::string(header_bytes, 'h'), Bytes(payload_bytes)};
      const ChunkLimits limits{10 + kChunkOverheadBytes};
      ChunkJoiner joiner(header_bytes, payload_bytes, ShareOf(BytesOf(message)), nullptr);
      while (!joiner.complete()) {
        const Buffer chunk = ChunkAt(message, joiner.next_bytes(), limits);
        EXPECT_LE(chunk.size(), 10u);
        ASSERT_TRUE(joiner.Add(chunk).ok());
      }
      const Message joined = joiner.Take();
      EXPECT_EQ(joined.header, message.header);
      EXPECT_TRUE(Equal(joined.payload, message.payload)) << header_bytes << " " << payload_bytes;
    }
  }
}

TEST(ChunkTest, AChunkThatDoesNotFitIsRefused) {
  ChunkJoiner joiner(3, 4, ShareOf(7), nullptr);
  EXPECT_EQ(joiner.Add(Buffer()).code(), absl::StatusCode::kInvalidArgument);
  ASSERT_TRUE(joiner.Add(Bytes(5)).ok());
  EXPECT_EQ(joiner.Add(Bytes(3)).message(),
            "expected a chunk of 1 to 2 bytes (2 bytes of the message are left), got 3 bytes");
  EXPECT_EQ(joiner.next_bytes(), 5u);
}

TEST(ChunkTest, SizesThatAPeerStatesAddUpWithoutOverflow) {
  constexpr uint64_t kMost = ~uint64_t{0};
  EXPECT_EQ(StatedBytes(3, 4), 7u);
  EXPECT_EQ(StatedBytes(0, kMost), kMost);
  EXPECT_EQ(StatedBytes(2, kMost), kMost);
  EXPECT_EQ(StatedBytes(kMost, kMost), kMost);
}

TEST(ChunkTest, AMessageBeyondTheBoundIsRefusedByNameAndCure) {
  EXPECT_TRUE(CheckMessageSize("request of", kMethod, 8, 8).ok());
  const absl::Status status = CheckMessageSize("request of", kMethod, 9, 8);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(),
            "request of /satrap.EmbeddingWorker/PushGradients has 9 bytes, but a message can have "
            "at most 8: raise nn_worker.replicas, or lower global_batch_size");
}

// A chunk's frame may be as large as the limit for frames, but no larger.
TEST(ChunkTest, AChunkWithItsHeaderFitsInAFrame) {
  const Message message{"", Bytes(1000)};
  const ChunkLimits limits{600};
  EXPECT_FALSE(FitsInOneFrame(kMethod, message, limits));
  SendChunkHeader header;
  header.set_transfer(~uint64_t{0});
  header.set_method(kMethod.path);
  header.set_header_bytes(kLargestMessageBytes);
  header.set_payload_bytes(kLargestMessageBytes);
  header.set_offset_bytes(kLargestMessageBytes);
  EXPECT_TRUE(FitsInOneFrame(kSendChunk, {header.SerializeAsString(), ChunkAt(message, 0, limits)},
                             limits));
  ChunkNote note;
  note.set_state(ChunkNote::FOLLOWS);
  note.set_transfer(~uint64_t{0});
  note.set_header_bytes(kLargestMessageBytes);
  note.set_payload_bytes(kLargestMessageBytes);
  EXPECT_TRUE(
      FitsInOneFrame(kMethod, {note.SerializeAsString(), ChunkAt(message, 0, limits)}, limits));
}

TEST(ChunkTest, ANoteIsKnownByItsFirstBytes) {
  EXPECT_TRUE(IsNote(NoteOf(ChunkNote::TAKEN)));
  EXPECT_TRUE(IsNote(NoteOf(ChunkNote::FOLLOWS)));
  EXPECT_FALSE(IsNote(Message()));
  EXPECT_FALSE(IsNote(Message{"\x08\x01", Buffer()}));
}

}  // namespace
}  // namespace satrap::rpc

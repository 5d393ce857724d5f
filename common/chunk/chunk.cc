#include "common/chunk/chunk.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/rpc/frame.h"

namespace satrap::rpc {
namespace {

// The tag of ChunkNote's field 1000, a varint.
constexpr char kNoteTag[] = {static_cast<char>(0xc0), 0x3e};

}  // namespace

uint64_t BytesOf(const Message& message) { return message.header.size() + message.payload.size(); }

uint64_t StatedBytes(uint64_t header_bytes, uint64_t payload_bytes) {
  const uint64_t left = std::numeric_limits<uint64_t>::max() - header_bytes;
  return header_bytes + std::min(payload_bytes, left);
}

absl::Status CheckMessageSize(absl::string_view kind, const Method& method, uint64_t bytes,
                              int64_t largest_bytes) {
  if (bytes <= static_cast<uint64_t>(largest_bytes)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      kind, " ", method.path, " has ", bytes, " bytes, but a message can have at most ",
      largest_bytes, ": raise nn_worker.replicas, or lower global_batch_size"));
}

bool FitsInOneFrame(const Method& method, const Message& message, const ChunkLimits& limits) {
  return CheckFrameSize("message of", method, message, limits.max_message_bytes).ok();
}

Buffer ChunkAt(const Message& message, uint64_t offset_bytes, const ChunkLimits& limits) {
  const uint64_t all = BytesOf(message);
  CHECK(offset_bytes < all) << offset_bytes << " of " << all;
  const auto most = static_cast<uint64_t>(limits.max_message_bytes) - kChunkOverheadBytes;
  Buffer chunk(std::min(most, all - offset_bytes));
  uint8_t* to = chunk.mutable_data();
  size_t left = chunk.size();
  const size_t header_bytes = message.header.size();
  if (offset_bytes < header_bytes) {
    const size_t count = std::min(left, header_bytes - offset_bytes);
    std::memcpy(to, message.header.data() + offset_bytes, count);
    to += count;
    left -= count;
    offset_bytes += count;
  }
  if (left > 0) std::memcpy(to, message.payload.data() + (offset_bytes - header_bytes), left);
  return chunk;
}

Message NoteOf(ChunkNote::State state) {
  ChunkNote note;
  note.set_state(state);
  return {note.SerializeAsString(), Buffer()};
}

bool IsNote(const Message& answer) {
  return answer.header.size() > sizeof(kNoteTag) &&
         std::memcmp(answer.header.data(), kNoteTag, sizeof(kNoteTag)) == 0;
}

ChunkJoiner::ChunkJoiner(uint64_t header_bytes, uint64_t payload_bytes, ChunkMemory::Share share,
                         const std::shared_ptr<BufferAllocator>& allocator)
    : share_(std::move(share)) {
  message_.header.resize(header_bytes);
  if (payload_bytes > 0) message_.payload = Buffer(payload_bytes, allocator);
}

absl::Status ChunkJoiner::Add(const Buffer& chunk) {
  const size_t header_bytes = message_.header.size();
  if (chunk.empty() || chunk.size() > missing_bytes()) {
    return absl::InvalidArgumentError(
        absl::StrCat("expected a chunk of 1 to ", missing_bytes(), " bytes (", missing_bytes(),
                     " bytes of the message are left), got ", chunk.size(), " bytes"));
  }
  const uint8_t* from = chunk.data();
  size_t left = chunk.size();
  if (next_bytes_ < header_bytes) {
    const size_t count = std::min(left, header_bytes - static_cast<size_t>(next_bytes_));
    std::memcpy(message_.header.data() + next_bytes_, from, count);
    from += count;
    left -= count;
    next_bytes_ += count;
  }
  if (left > 0) {
    std::memcpy(message_.payload.mutable_data() + (next_bytes_ - header_bytes), from, left);
    next_bytes_ += left;
  }
  return absl::OkStatus();
}

}  // namespace satrap::rpc

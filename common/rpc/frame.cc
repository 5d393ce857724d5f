#include "common/rpc/frame.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"

namespace satrap::rpc {
namespace {

// Field number << 3 | wire type 2 (length-delimited).
constexpr uint8_t kHeaderTag = 0x0a;
constexpr uint8_t kPayloadTag = 0x12;
constexpr size_t kMaxFieldBytes = 0x7fffffff;  // protobuf's own limit

void AppendVarint(size_t value, std::string* out) {
  for (; value >= 0x80; value >>= 7) out->push_back(static_cast<char>(value | 0x80));
  out->push_back(static_cast<char>(value));
}

size_t FieldBytes(size_t size_bytes) {
  size_t bytes = 1 + 1 + size_bytes;  // the tag, and the length in 7 bits a byte
  for (size_t rest = size_bytes >> 7; rest > 0; rest >>= 7) ++bytes;
  return bytes;
}

void AppendField(uint8_t tag, size_t size_bytes, std::string* out) {
  CHECK(size_bytes <= kMaxFieldBytes) << size_bytes << " bytes in one field";
  out->push_back(static_cast<char>(tag));
  AppendVarint(size_bytes, out);
}

// Reads the slices as one sequence of bytes. Each read requires that enough bytes are left.
class SliceReader {
 public:
  explicit SliceReader(absl::Span<const absl::string_view> slices) : slices_(slices) {
    for (const absl::string_view slice : slices) left_ += slice.size();
  }

  size_t left() const { return left_; }

  // REQUIRES: size_bytes <= left()
  void Read(size_t size_bytes, void* out) {
    CHECK(size_bytes <= left_);
    left_ -= size_bytes;
    auto* to = static_cast<char*>(out);
    while (size_bytes > 0) {
      const absl::string_view rest = slices_[slice_].substr(offset_);
      const size_t part_bytes = std::min(rest.size(), size_bytes);
      // An empty slice may have a null address, which memcpy must not get.
      if (part_bytes > 0) std::memcpy(to, rest.data(), part_bytes);
      to += part_bytes;
      size_bytes -= part_bytes;
      offset_ += part_bytes;
      if (offset_ == slices_[slice_].size()) {
        ++slice_;
        offset_ = 0;
      }
    }
  }

  // Reads a field's length. It is an error if fewer bytes than that follow.
  absl::StatusOr<size_t> ReadLength() {
    uint64_t length = 0;
    for (int shift = 0; shift < 35; shift += 7) {
      if (left_ == 0) return absl::InvalidArgumentError("frame ends within a field's length");
      uint8_t byte;
      Read(1, &byte);
      length |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if ((byte & 0x80) != 0) continue;
      if (length > left_ || length > kMaxFieldBytes) {
        return absl::InvalidArgumentError(absl::StrCat(
            "frame has a field of ", length, " bytes, but only ", left_, " bytes follow"));
      }
      return static_cast<size_t>(length);
    }
    return absl::InvalidArgumentError("frame has a field whose length takes more than 5 bytes");
  }

 private:
  const absl::Span<const absl::string_view> slices_;
  size_t left_ = 0;
  size_t slice_ = 0;  // the next byte is at offset_ of slices_[slice_]
  size_t offset_ = 0;
};

absl::Status ReadField(uint8_t tag, const std::shared_ptr<BufferAllocator>& allocator,
                       SliceReader* reader, Message* message) {
  ASSIGN_OR_RETURN(const size_t size_bytes, reader->ReadLength());
  if (tag == kHeaderTag) {
    message->header.resize(size_bytes);
    reader->Read(size_bytes, message->header.data());
  } else {
    message->payload = Buffer(size_bytes, allocator);
    reader->Read(size_bytes, message->payload.mutable_data());
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckFrameSize(absl::string_view kind, const Method& method, const Message& message,
                            int64_t max_message_bytes) {
  const size_t header_bytes = message.header.size();
  const size_t payload_bytes = message.payload.size();
  size_t frame_bytes = header_bytes;
  if (method.bulk) {
    frame_bytes = FieldBytes(header_bytes);
    if (payload_bytes > 0) frame_bytes += FieldBytes(payload_bytes);
  }
  const size_t limit_bytes = std::min(static_cast<size_t>(max_message_bytes), kMaxFieldBytes);
  if (frame_bytes <= limit_bytes) return absl::OkStatus();
  return FrameTooLarge(kind, method, absl::StrCat(frame_bytes, " vs. ", limit_bytes));
}

absl::Status FrameTooLarge(absl::string_view kind, const Method& method, absl::string_view sizes) {
  return absl::ResourceExhaustedError(
      absl::StrCat(kind, " ", method.path, " is larger than max_message_bytes (", sizes,
                   "): raise max_message_bytes, or lower global_batch_size"));
}

std::string EncodeFramePrefix(const Method& method, const Message& message) {
  if (!method.bulk) {
    CHECK(message.payload.empty()) << method.path << " carries no payload";
    return message.header;
  }
  std::string prefix;
  prefix.reserve(message.header.size() + 12);
  AppendField(kHeaderTag, message.header.size(), &prefix);
  prefix += message.header;
  if (!message.payload.empty()) AppendField(kPayloadTag, message.payload.size(), &prefix);
  return prefix;
}

absl::StatusOr<Message> DecodeFrame(const Method& method,
                                    absl::Span<const absl::string_view> slices,
                                    const std::shared_ptr<BufferAllocator>& allocator) {
  SliceReader reader(slices);
  Message message;
  if (!method.bulk) {
    message.header.resize(reader.left());
    reader.Read(reader.left(), message.header.data());
    return message;
  }
  uint8_t last_tag = 0;
  while (reader.left() > 0) {
    uint8_t tag;
    reader.Read(1, &tag);
    if (tag != kHeaderTag && tag != kPayloadTag) {
      return absl::InvalidArgumentError(absl::StrCat("frame has an unknown tag ", tag));
    }
    if (tag <= last_tag) {
      return absl::InvalidArgumentError("frame has a field twice or its header after its payload");
    }
    last_tag = tag;
    RETURN_IF_ERROR(ReadField(tag, allocator, &reader, &message));
  }
  return message;
}

}  // namespace satrap::rpc

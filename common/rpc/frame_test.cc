#include "common/rpc/frame.h"

#include <cstring>
#include <limits>
#include <memory>
#include <vector>

#include "common/numeric/random.h"
#include "gtest/gtest.h"

namespace satrap::rpc {
namespace {

constexpr Method kBulk{"/satrap.Test/Bulk", true};
constexpr Method kPlain{"/satrap.Test/Plain", false};

Buffer BufferOf(absl::string_view bytes) {
  Buffer buffer(bytes.size());
  if (!bytes.empty()) std::memcpy(buffer.mutable_data(), bytes.data(), bytes.size());
  return buffer;
}

std::string TextOf(const Buffer& buffer) {
  return std::string(reinterpret_cast<const char*>(buffer.data()), buffer.size());
}

std::string Encode(const Method& method, absl::string_view header, absl::string_view payload) {
  const Message message{std::string(header), BufferOf(payload)};
  return EncodeFramePrefix(method, message) + std::string(payload);
}

std::string Bytes(std::initializer_list<int> values) {
  return std::string(values.begin(), values.end());
}

absl::StatusOr<Message> Decode(const std::string& bytes) {
  const absl::string_view slice = bytes;
  return DecodeFrame(kBulk, {&slice, 1});
}

std::string RandomText(SplitMix64* random, size_t size) {
  std::string text(size, '\0');
  for (char& c : text) c = static_cast<char>(random->Next());
  return text;
}

TEST(FrameTest, HasTheBytesOfTheProtobufMessage) {
  EXPECT_EQ(Encode(kBulk, "\x01\x02", "\x07\x08\x09"), Bytes({0x0a, 2, 1, 2, 0x12, 3, 7, 8, 9}));
  EXPECT_EQ(Encode(kBulk, std::string(200, 'h'), "p"),
            Bytes({0x0a, 0xc8, 0x01}) + std::string(200, 'h') + Bytes({0x12, 1}) + "p");
  EXPECT_EQ(Encode(kPlain, "abc", ""), "abc");
}

TEST(FrameTest, TheSizeIsCheckedToTheByteBeforeEncoding) {
  for (const size_t payload_bytes : {0, 1, 127, 128, 70000}) {
    const Message message{std::string(200, 'h'), Buffer(payload_bytes)};
    for (const Method& method : {kBulk, kPlain}) {
      if (!method.bulk && payload_bytes > 0) continue;
      const auto frame_bytes =
          static_cast<int64_t>(EncodeFramePrefix(method, message).size() + payload_bytes);
      EXPECT_TRUE(CheckFrameSize("request of", method, message, frame_bytes).ok());
      EXPECT_EQ(CheckFrameSize("request of", method, message, frame_bytes - 1).code(),
                absl::StatusCode::kResourceExhausted);
    }
  }
}

// The buffer takes address space but no memory, because its pages are never touched.
TEST(FrameTest, AFieldOfTwoGibIsRefusedByNameWhateverTheLimit) {
  const Message message{"", Buffer(size_t{1} << 31)};
  const absl::Status status =
      CheckFrameSize("answer to", kBulk, message, std::numeric_limits<int64_t>::max());
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_NE(status.message().find("answer to /satrap.Test/Bulk"), absl::string_view::npos);
  EXPECT_NE(status.message().find("raise max_message_bytes"), absl::string_view::npos);
}

TEST(FrameTest, EmptyFieldsMayBeAbsentOrPresent) {
  for (const std::string& bytes :
       {std::string(), Bytes({0x0a, 0}), Bytes({0x12, 0}), Bytes({0x0a, 0, 0x12, 0})}) {
    const auto message = Decode(bytes);
    ASSERT_TRUE(message.ok()) << message.status();
    EXPECT_TRUE(message->header.empty());
    EXPECT_TRUE(message->payload.empty());
  }
}

TEST(FrameTest, ReadsAPlainMessageFromAnySlices) {
  const std::vector<absl::string_view> slices = {"ab", "", "c"};
  EXPECT_EQ(DecodeFrame(kPlain, slices)->header, "abc");
  EXPECT_EQ(DecodeFrame(kPlain, {})->header, "");
}

// Cuts one message at every possible pair of places, which also makes empty slices.
TEST(FrameTest, SlicesMayBeCutAnywhere) {
  const std::string bytes = Encode(kBulk, std::string(130, 'h'), "payload");
  const absl::string_view all = bytes;
  for (size_t a = 0; a <= all.size(); ++a) {
    for (size_t b = a; b <= all.size(); ++b) {
      const std::vector<absl::string_view> slices = {all.substr(0, a), all.substr(a, b - a),
                                                     all.substr(b)};
      const auto message = DecodeFrame(kBulk, slices);
      ASSERT_TRUE(message.ok()) << a << " " << b;
      ASSERT_EQ(message->header, std::string(130, 'h'));
      ASSERT_EQ(TextOf(message->payload), "payload");
    }
  }
}

TEST(FrameTest, GathersUnalignedSlicesIntoAnAlignedPayload) {
  SplitMix64 random(3);
  const std::string payload = RandomText(&random, 300000);
  const std::string bytes = "x" + Encode(kBulk, "header", payload);
  std::vector<absl::string_view> slices;
  for (size_t at = 1; at < bytes.size();) {
    const size_t size = 1 + random.Below(20000);
    slices.push_back(absl::string_view(bytes).substr(at, size));
    at += size;
  }
  const auto message = DecodeFrame(kBulk, slices);
  ASSERT_TRUE(message.ok());
  EXPECT_EQ(reinterpret_cast<uintptr_t>(message->payload.data()) % kBufferAlignment, 0u);
  EXPECT_EQ(TextOf(message->payload), payload);
}

TEST(FrameTest, EveryTruncationOfAFieldIsRefused) {
  const std::string bytes = Encode(kBulk, std::string(130, 'h'), std::string(200, 'p'));
  const size_t header_end = 3 + 130;
  for (size_t size = 1; size < bytes.size(); ++size) {
    if (size == header_end) continue;  // a complete message without a payload
    EXPECT_EQ(Decode(bytes.substr(0, size)).status().code(), absl::StatusCode::kInvalidArgument)
        << size;
  }
}

TEST(FrameTest, RefusesWhatNoGeneratedCodeWrites) {
  const std::string cases[] = {
      Bytes({0x1a, 1, 7}),                             // field 3
      Bytes({0x08, 1}),                                // field 1 as a varint
      Bytes({0x00}),                                   // field 0
      Bytes({0x12, 1, 7, 0x0a, 1, 7}),                 // header after payload
      Bytes({0x0a, 1, 7, 0x0a, 1, 7}),                 // two headers
      Bytes({0x12, 1, 7, 0x12, 1, 7}),                 // two payloads
      Bytes({0x0a, 1, 7, 0x12, 1, 7, 0}),              // bytes after the payload
      Bytes({0x12, 0xff, 0xff, 0xff, 0xff, 0x07}),     // 2 GiB announced
      Bytes({0x12, 0xff, 0xff, 0xff, 0xff, 0x7f}),     // more than fits 32 bits
      Bytes({0x0a, 0x80, 0x80, 0x80, 0x80, 0x80, 0}),  // a length of 6 bytes
      Bytes({0x0a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01}),
  };
  for (const std::string& bytes : cases) {
    EXPECT_EQ(Decode(bytes).status().code(), absl::StatusCode::kInvalidArgument);
  }
}

// Decodes frames in which bytes were changed, removed and added. Each slice has a block of exactly
// its size, so that a sanitizer detects any read outside it. No decoded message may be larger than
// its frame.
TEST(FrameTest, SurvivesMutatedInput) {
  SplitMix64 random(4);
  int accepted = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string bytes = Encode(kBulk, RandomText(&random, random.Below(300)),
                               RandomText(&random, random.Below(300)));
    for (uint64_t i = random.Below(4); i > 0 && !bytes.empty(); --i) {
      const size_t at = random.Below(bytes.size());
      switch (random.Below(3)) {
        case 0:
          bytes[at] = static_cast<char>(random.Next());
          break;
        case 1:
          bytes.resize(at);
          break;
        default:
          bytes.insert(at, 1, static_cast<char>(random.Next()));
      }
    }
    std::vector<std::unique_ptr<char[]>> blocks;
    std::vector<absl::string_view> slices;
    for (size_t at = 0; at < bytes.size();) {
      const size_t size = std::min<size_t>(random.Below(100), bytes.size() - at);
      blocks.push_back(std::make_unique<char[]>(size));
      std::memcpy(blocks.back().get(), bytes.data() + at, size);
      slices.emplace_back(blocks.back().get(), size);
      at += size;
    }
    const auto message = DecodeFrame(kBulk, slices);
    if (!message.ok()) {
      ASSERT_EQ(message.status().code(), absl::StatusCode::kInvalidArgument);
      continue;
    }
    ++accepted;
    ASSERT_LE(message->header.size() + message->payload.size(), bytes.size());
  }
  EXPECT_GT(accepted, 1000);
  EXPECT_LT(accepted, 19000);
}

}  // namespace
}  // namespace satrap::rpc

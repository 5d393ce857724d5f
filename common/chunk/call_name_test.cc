#include "common/chunk/call_name.h"

#include <string>

#include "gtest/gtest.h"
#include "proto/hot.pb.h"

namespace satrap::rpc {
namespace {

constexpr Method kMethod{"/satrap.EmbeddingWorker/PutBatch", true};
constexpr Method kOther{"/satrap.EmbeddingWorker/NextBatch", true};

template <typename Header>
Header HeaderOf(uint32_t sender, uint64_t number) {
  Header header;
  header.mutable_envelope()->set_run_id(7);
  header.mutable_envelope()->set_generation(3);
  header.mutable_call()->set_sender(sender);
  header.mutable_call()->set_number(number);
  header.mutable_call()->set_oldest_open(1);
  return header;
}

PutBatchHeader PutBatchOf(uint32_t sender, uint64_t number, Stream stream) {
  auto header = HeaderOf<PutBatchHeader>(sender, number);
  header.set_stream(stream);
  header.set_epoch(2);
  return header;
}

absl::optional<CallName> NameOf(const Method& method, const std::string& header) {
  const absl::optional<NamedCall> call = CallOf(method, header);
  if (!call.has_value()) return absl::nullopt;
  return call->name;
}

TEST(CallNameTest, AttemptsOfOneCallHaveOneName) {
  PutBatchHeader header = PutBatchOf(1, 300, TEST_STREAM);
  const absl::optional<CallName> first = NameOf(kMethod, header.SerializeAsString());
  ASSERT_TRUE(first.has_value());
  header.mutable_call()->set_oldest_open(200);
  header.mutable_call()->set_without_payload(true);
  EXPECT_EQ(NameOf(kMethod, header.SerializeAsString()), first);
}

TEST(CallNameTest, OtherCallsHaveOtherNames) {
  const auto name = NameOf(kMethod, PutBatchOf(1, 300, TEST_STREAM).SerializeAsString());
  EXPECT_FALSE(NameOf(kMethod, PutBatchOf(2, 300, TEST_STREAM).SerializeAsString()) == name);
  EXPECT_FALSE(NameOf(kMethod, PutBatchOf(1, 301, TEST_STREAM).SerializeAsString()) == name);
  EXPECT_FALSE(NameOf(kMethod, PutBatchOf(1, 300, TRAIN_STREAM).SerializeAsString()) == name);
  EXPECT_FALSE(NameOf(kOther, PutBatchOf(1, 300, TEST_STREAM).SerializeAsString()) == name);
}

// The field after the CallPrefix is a message in an UpdateHeader, not a stream as in a
// PutBatchHeader.
TEST(CallNameTest, ACallWithoutStreamHasANameToo) {
  auto header = HeaderOf<UpdateHeader>(1, 5);
  header.mutable_step()->set_step(9);
  const auto named = CallOf(kMethod, header.SerializeAsString());
  ASSERT_TRUE(named.has_value());
  EXPECT_EQ(named->name.number, 5u);
  EXPECT_EQ(named->name.stream, 0u);
}

TEST(CallNameTest, TheEnvelopeComesWithIt) {
  const auto named = CallOf(kMethod, PutBatchOf(1, 300, TEST_STREAM).SerializeAsString());
  ASSERT_TRUE(named.has_value());
  EXPECT_EQ(named->envelope.run_id(), 7u);
  EXPECT_EQ(named->envelope.generation(), 3u);
}

TEST(CallNameTest, TheBeginningOfAHeaderIsEnoughIfItHasAllOfThePrefix) {
  const PutBatchHeader header = PutBatchOf(1, 300, TEST_STREAM);
  CallPrefix prefix;
  *prefix.mutable_envelope() = header.envelope();
  *prefix.mutable_call() = header.call();
  const std::string whole = header.SerializeAsString();
  for (size_t bytes = 0; bytes <= whole.size(); ++bytes) {
    const std::string exact = whole.substr(0, bytes);  // so that a sanitizer sees its end
    EXPECT_EQ(CallOf(kMethod, exact).has_value(), bytes >= prefix.ByteSizeLong()) << bytes;
  }
}

TEST(CallNameTest, OtherBytesAreNoCall) {
  EXPECT_FALSE(CallOf(kMethod, "").has_value());
  EXPECT_FALSE(CallOf(kMethod, "header").has_value());
  EXPECT_FALSE(CallOf(kMethod, "\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01").has_value());
  EXPECT_FALSE(CallOf(kMethod, PutBatchOf(1, 0, TEST_STREAM).SerializeAsString()).has_value())
      << "no call has number 0";
}

}  // namespace
}  // namespace satrap::rpc

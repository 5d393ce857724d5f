#include "common/rpc/header.h"

#include "gtest/gtest.h"

namespace satrap::rpc {
namespace {

Envelope EnvelopeOf(uint64_t job, uint64_t generation, uint64_t run_id) {
  Envelope envelope;
  envelope.set_job_fingerprint(job);
  envelope.set_generation(generation);
  envelope.set_run_id(run_id);
  return envelope;
}

TEST(Header, IsParsedFromTheMessageMadeOfIt) {
  AckHeader header;
  header.set_handle(7);
  const auto parsed = ParseHeader<AckHeader>(MessageOf(header).header);
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(parsed->handle(), 7u);
}

TEST(Header, BytesThatAreNoneAreRefusedByItsName) {
  const auto status = ParseHeader<AckHeader>("\xff\xff").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(status.message().find("AckHeader"), absl::string_view::npos);
}

TEST(Header, OnlyCallsOfTheSameJobGenerationAndRunAreAccepted) {
  const Envelope own = EnvelopeOf(7, 1, 5);
  EXPECT_TRUE(CheckEnvelope(EnvelopeOf(7, 1, 5), own, "receiver").ok());
  for (const Envelope& other :
       {EnvelopeOf(8, 1, 5), EnvelopeOf(7, 2, 5), EnvelopeOf(7, 1, 6), Envelope()}) {
    const absl::Status status = CheckEnvelope(other, own, "embedding PS 3");
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_NE(status.message().find("embedding PS 3 serves run 0000000000000005"),
              absl::string_view::npos)
        << status;
  }
}

}  // namespace
}  // namespace satrap::rpc

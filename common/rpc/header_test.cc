#include "common/rpc/header.h"

#include "gtest/gtest.h"

namespace satrap::rpc {
namespace {

Envelope RunOf(uint64_t job, uint64_t generation) {
  Envelope envelope;
  envelope.set_job_fingerprint(job);
  envelope.set_generation(generation);
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

TEST(Header, OnlyCallsOfTheSameJobAndGenerationAreOfThisRun) {
  EXPECT_TRUE(CheckEnvelope(RunOf(7, 1), RunOf(7, 1), "receiver").ok());
  for (const Envelope& other : {RunOf(8, 1), RunOf(7, 2)}) {
    const absl::Status status = CheckEnvelope(other, RunOf(7, 1), "embedding PS 3");
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_NE(status.message().find("embedding PS 3"), absl::string_view::npos);
  }
}

}  // namespace
}  // namespace satrap::rpc

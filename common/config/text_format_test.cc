#include "common/config/text_format.h"

#include <unistd.h>

#include <cstdio>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/job.pb.h"

namespace satrap {
namespace {

using testing::EndsWith;
using testing::HasSubstr;

TEST(ParseText, NamesLineAndColumnOfAnUnknownField) {
  JobConfig job;
  const absl::Status status = ParseText("name: 'a'\n  nmae: 'b'\n", "x.textproto", &job);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("x.textproto:2:"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("nmae"));
}

TEST(ParseText, SaysWhichFieldWasProbablyMeant) {
  JobConfig job;
  EXPECT_THAT(std::string(ParseText("epocs: 3", "x", &job).message()),
              EndsWith(" has no field named \"epocs\"; did you mean epochs?"));
  EXPECT_THAT(std::string(ParseText("embedding_ps { replica: 3 }", "x", &job).message()),
              EndsWith("; did you mean replicas?"));
  EXPECT_THAT(std::string(ParseText("nothing_like_it: 3", "x", &job).message()),
              EndsWith(" has no field named \"nothing_like_it\"."));
}

TEST(ParseText, RefusesAFieldGivenTwice) {
  JobConfig job;
  EXPECT_FALSE(ParseText("seed: 1 seed: 2", "x", &job).ok());
}

TEST(ParseText, RefusesAnUnknownEnumValue) {
  JobConfig job;
  EXPECT_THAT(std::string(ParseText("mode: ASYNC", "x", &job).message()), HasSubstr("ASYNC"));
}

TEST(ParseText, ReadsBackWhatToTextWrote) {
  JobConfig job, again;
  ASSERT_TRUE(
      ParseText("name: 'quote \\\" and \\n' seed: 7 data { csv { separator: '\\t' } }", "x", &job)
          .ok());
  ASSERT_TRUE(ParseText(ToText(job), "y", &again).ok());
  EXPECT_EQ(job.SerializeAsString(), again.SerializeAsString());
}

TEST(ParseTextFile, NamesAFileThatIsNotThere) {
  JobConfig job;
  const absl::Status status = ParseTextFile("no/such.textproto", &job);
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()), HasSubstr("no/such.textproto"));
}

}  // namespace
}  // namespace satrap

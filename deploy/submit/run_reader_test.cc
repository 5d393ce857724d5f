#include "deploy/submit/run_reader.h"

#include <csignal>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "deploy/submit/testing/submission_fixture.h"
#include "gmock/gmock.h"

namespace satrap {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kPods[] = "*get pods --selector=job-name=demo-reader-*";

class RunReaderTest : public SubmissionTest {
 protected:
  void SetUp() override {
    SubmissionTest::SetUp();
    On("*get configmaps*", List({MapOf(3, 1)}));
    On("*patch --local *", "kind: Job\nmetadata:\n  name: demo-reader-1\n");
    On("*create*", "");
    On("*delete jobs.batch/demo-reader-*", "");
    On("*get jobs.batch demo-reader-*", R"({"kind":"Job","metadata":{"name":"demo-reader-1",
        "uid":"r","labels":{"app.kubernetes.io/component":"reader"}}})");
    On("*get events*", R"({"items":[{"involvedObject":{"uid":"r"},"reason":"FailedCreate",
        "message":"exceeded quota"}]})");
  }
  static std::string PodIn(const std::string& phase, const std::string& more = "") {
    return absl::StrCat(R"({"items":[{"kind":"Pod","metadata":{"name":"demo-reader-x"},
        "status":{"phase":")",
                        phase, "\"", more, "}}]}");
  }
  absl::StatusOr<std::string> Read() {
    return ReadInPod(
        "demo", {"checkpoint", "list"}, {"more"}, kubectl_.get(),
        [this](const std::string& line) { said_.push_back(line); },
        [this](int64_t) { return signal_; });
  }
};

TEST_F(RunReaderTest, APodPrintsWhatItReadsAndIsRemoved) {
  On(kPods, {kNothing, 0, "", true});
  On(kPods, {PodIn("Pending"), 0, "", true});
  On(kPods, PodIn("Succeeded"));
  On("*logs demo-reader-x --container=satrap*", "latest\n");
  const auto text = Read();
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_EQ(*text, "latest\n");
  EXPECT_THAT(Created(), ElementsAre(HasSubstr("Job demo-reader-")));
  EXPECT_THAT(Input(1),
              AllOf(HasSubstr("- checkpoint\n"), HasSubstr("- list\n"),
                    HasSubstr("- /runs/demo-first\n            - more\n"),
                    HasSubstr("claimName: runs"), HasSubstr("activeDeadlineSeconds: 120")));
  EXPECT_THAT(Calls().back(), HasSubstr("delete jobs.batch/demo-reader-"));
}

TEST_F(RunReaderTest, ACommandThatFailsSaysWhy) {
  On(kPods, PodIn("Failed", R"(,"containerStatuses":[{"state":{"terminated":{
      "message":"satrap: the log is damaged"}}}])"));
  EXPECT_EQ(Read().status(), absl::FailedPreconditionError("satrap: the log is damaged"));
  EXPECT_THAT(Calls().back(), HasSubstr("delete "));
}

TEST_F(RunReaderTest, APodThatCanNeverWorkIsNotWaitedFor) {
  On(kPods, PodIn("Pending", R"(,"containerStatuses":[{"state":{"waiting":{
      "reason":"InvalidImageName","message":"no name"}}}])"));
  EXPECT_THAT(Read().status().message(),
              AllOf(HasSubstr("InvalidImageName, no name"), HasSubstr("correct the image")));
  EXPECT_THAT(Calls().back(), HasSubstr("delete "));
}

TEST_F(RunReaderTest, AQuotaThatTakesNoPodIsSaidWhileItWaits) {
  On(kPods, {kNothing, 0, "", true});
  On(kPods, PodIn("Succeeded"));
  On("*logs demo-reader-x*", "latest\n");
  EXPECT_TRUE(Read().ok());
  EXPECT_THAT(said_, ElementsAre("Job demo-reader-1: cannot make a pod, exceeded quota"));
}

TEST_F(RunReaderTest, ASignalEndsItAndRemovesThePod) {
  signal_ = SIGINT;
  On(kPods, PodIn("Pending"));
  EXPECT_EQ(Read().status().code(), absl::StatusCode::kCancelled);
  EXPECT_THAT(Calls().back(), HasSubstr("delete "));
}

}  // namespace
}  // namespace satrap

#include "deploy/submit/run_watch.h"

#include <csignal>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "deploy/submit/kubectl/fake_kubectl.h"
#include "gmock/gmock.h"

namespace satrap {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kPods[] = "*get pods*component=story*";
constexpr char kJob[] = "*get jobs.batch demo*";

std::string PodOf(const std::string& uid, const std::string& phase, int second) {
  return absl::StrCat(R"({"metadata":{"name":"demo-)", uid, R"(","uid":")", uid,
                      R"(","creationTimestamp":"2026-01-01T00:00:0)", second,
                      R"(Z"},"status":{"phase":")", phase, R"("}})");
}

std::string ListOf(const std::string& items) { return absl::StrCat(R"({"items":[)", items, "]}"); }

std::string JobWith(const std::string& condition) {
  return absl::StrCat(
      R"({"kind":"Job","metadata":{"name":"demo"},"status":{"conditions":[{"type":")", condition,
      R"(","status":"True"}]}})");
}

class RunWatchTest : public FakeKubectlTest {
 protected:
  void SetUp() override {
    FakeKubectlTest::SetUp();
    BlockSignalsOfStream();
    kubectl_ = std::make_unique<Kubectl>("ml", program());
    options_.show = [this](absl::string_view line) { shown_.emplace_back(line); };
    options_.say = [this](const std::string& line) { said_.push_back(line); };
    options_.wait = [this](int64_t) { return signal_; };
  }
  absl::StatusOr<Watched> Watch() { return WatchRun("demo", kubectl_.get(), options_); }
  std::vector<std::string> LogCalls() {
    std::vector<std::string> logs;
    for (const std::string& call : Calls()) {
      const size_t at = call.find("logs ");
      if (at != std::string::npos) logs.push_back(call.substr(at));
    }
    return logs;
  }
  std::unique_ptr<Kubectl> kubectl_;
  WatchOptions options_;
  std::vector<std::string> shown_;
  std::vector<std::string> said_;
  int signal_ = 0;
};

TEST_F(RunWatchTest, TheStoryIsShownUntilTheRunHasEnded) {
  On(kJob, {JobWith("Suspended"), 0, "", true});
  On(kJob, {JobWith("Suspended"), 0, "", true});
  On(kJob, JobWith("Complete"));
  On(kPods, {ListOf(PodOf("a", "Running", 1)), 0, "", true});
  On(kPods, ListOf(PodOf("a", "Succeeded", 1)));
  On("*logs*", {"2026-01-01T00:00:01.000000001Z it begins\n", 0, "", true});
  On("*logs*",
     "2026-01-01T00:00:01.000000001Z it begins\n2026-01-01T00:00:02.000000001Z it ends\n");
  const auto watched = Watch();
  ASSERT_TRUE(watched.ok()) << watched.status();
  EXPECT_FALSE(watched->failed);
  EXPECT_EQ(watched->signal, 0);
  EXPECT_THAT(shown_, ElementsAre("it begins\n", "it ends\n"));
  EXPECT_THAT(LogCalls(), ElementsAre("logs --follow --timestamps demo-a --container=satrap",
                                      "logs --follow --timestamps demo-a --container=satrap "
                                      "--since-time=2026-01-01T00:00:01Z"))
      << "a log that was read to its end after the pod had ended is not asked for again";
}

TEST_F(RunWatchTest, AResumeMeanwhileEndsIt) {
  const auto job = [](const std::string& uid) {
    return absl::StrCat(R"({"kind":"Job","metadata":{"name":"demo","uid":")", uid, R"("}})");
  };
  On(kJob, {job("u-1"), 0, "", true});
  On(kJob, job("u-2"));
  On(kPods, ListOf(PodOf("a", "Running", 1)));
  On("*logs*", "2026-01-01T00:00:01Z of the first\n");
  EXPECT_EQ(Watch().status(),
            absl::NotFoundError("the run demo continues as a later submission; `satrap logs demo "
                                "--namespace ml --follow` shows it"));
  EXPECT_THAT(shown_, ElementsAre("of the first\n"));
}

TEST_F(RunWatchTest, EachLineOfSeveralPodsIsShownOnceAndInTheirOrder) {
  const std::string pods = absl::StrCat(PodOf("b", "Running", 2), ",", PodOf("a", "Failed", 1));
  const std::string ended = absl::StrCat(PodOf("b", "Succeeded", 2), ",", PodOf("a", "Failed", 1));
  On(kJob, {JobWith("Suspended"), 0, "", true});
  On(kJob, {JobWith("Suspended"), 0, "", true});
  On(kJob, JobWith("Complete"));
  On(kPods, {ListOf(pods), 0, "", true});
  On(kPods, ListOf(ended));
  On("*logs*demo-a*", "2026-01-01T00:00:01Z of a\n");
  On("*logs*demo-b*", "2026-01-01T00:00:02.5Z of b\n2026-01-01T01:00:03.25+01:00 the report\n");
  const auto watched = Watch();
  ASSERT_TRUE(watched.ok()) << watched.status();
  EXPECT_THAT(shown_, ElementsAre("of a\n", "of b\n", "the report\n"));
}

TEST_F(RunWatchTest, WhatWasLoggedWhileTheConnectionWasAwayIsShown) {
  On(kJob, {JobWith("Suspended"), 0, "", true});
  On(kJob, {"", 1, "the server is away\n", true});
  On(kJob, JobWith("Failed"));
  On(kPods, {ListOf(PodOf("a", "Running", 1)), 0, "", true});
  On(kPods, {"", 1, "the server is away\n", true});
  On(kPods, ListOf(PodOf("a", "Failed", 1)));
  On("*logs*", {"2026-01-01T00:00:01.1Z one\n", 1, "the connection was lost\n", true});
  On("*logs*--since-time=2026-01-01T00:00:01Z*",
     "2026-01-01T00:00:01.1Z one\n2026-01-01T00:00:01.2Z two\n2026-01-01T00:09:00Z the end\n");
  const auto watched = Watch();
  ASSERT_TRUE(watched.ok()) << watched.status();
  EXPECT_TRUE(watched->failed);
  EXPECT_THAT(shown_, ElementsAre("one\n", "two\n", "the end\n"));
}

TEST_F(RunWatchTest, AStoryThatCannotBeShownToItsEndIsNoSuccess) {
  On(kJob, JobWith("Complete"));
  On(kPods, ListOf(PodOf("a", "Succeeded", 1)));
  On("*logs*", {"", 1, "the node is away\n", false});
  const auto watched = Watch();
  EXPECT_TRUE(absl::IsUnavailable(watched.status())) << watched.status();
  EXPECT_THAT(watched.status().message(), HasSubstr("`satrap logs demo --namespace ml`"));
  EXPECT_EQ(LogCalls().size(), 10u);
}

TEST_F(RunWatchTest, AsLongAsNobodyTellsTheStoryItSaysWhatKubernetesWaitsFor) {
  On(kJob, {JobWith("Suspended"), 0, "", true});
  On(kJob, {JobWith("Suspended"), 0, "", true});
  On(kJob, JobWith("Complete"));
  On(kPods, {ListOf(""), 0, "", true});
  On(kPods, {ListOf(""), 0, "", true});
  On(kPods, ListOf(PodOf("a", "Succeeded", 1)));
  On("*get jobs.batch,statefulsets.apps,pods*", ListOf(R"(
      {"kind":"Job","metadata":{"name":"demo","uid":"j"}})"));
  On("*get events*", ListOf(R"({"involvedObject":{"uid":"j"},"reason":"FailedCreate",
      "message":"exceeded quota"})"));
  On("*logs*", "2026-01-01T00:00:01Z the story\n");
  const auto watched = Watch();
  ASSERT_TRUE(watched.ok()) << watched.status();
  EXPECT_THAT(said_, ElementsAre("Job demo: cannot make a pod, exceeded quota"));
  EXPECT_THAT(shown_, ElementsAre("the story\n"));
}

TEST_F(RunWatchTest, ASignalEndsTheWatchingAndNotTheRun) {
  On(kPods, ListOf(PodOf("a", "Pending", 1)));
  On(kJob, JobWith("Suspended"));
  On("*get jobs.batch,statefulsets.apps,pods*", ListOf(""));
  signal_ = SIGINT;
  const auto watched = Watch();
  ASSERT_TRUE(watched.ok()) << watched.status();
  EXPECT_EQ(watched->signal, SIGINT);
  EXPECT_THAT(LogCalls(), IsEmpty());
}

TEST_F(RunWatchTest, ARunThatWasDeletedEndsTheWatching) {
  On(kJob, "");
  EXPECT_TRUE(absl::IsNotFound(Watch().status()));
}

}  // namespace
}  // namespace satrap

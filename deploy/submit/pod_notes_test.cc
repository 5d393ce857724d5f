#include "deploy/submit/pod_notes.h"

#include <string>

#include "common/base/check.h"
#include "common/json/json.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

KubectlObject PodWith(const std::string& status) {
  KubectlObject pod;
  CHECK_OK(ParseJson(
      R"({"kind":"Pod","metadata":{"name":"demo-nn-worker-1"},"status":)" + status + "}", &pod));
  return pod;
}

std::string NotesText(const KubectlObject& pod) {
  std::string text;
  for (const PodNote& note : NotesOf(pod)) text += note.text + (note.is_final ? " FINAL\n" : "\n");
  return text;
}

std::string WaitingFor(const std::string& reason, const std::string& message) {
  return NotesText(PodWith(R"({"phase":"Pending","containerStatuses":[{"name":"satrap","state":)"
                           R"({"waiting":{"reason":")" +
                           reason + R"(","message":")" + message + R"("}}}]})"));
}

TEST(PodNotesTest, APodThatWorksOrIsJustStartingHasNone) {
  EXPECT_EQ(NotesText(PodWith(R"({"phase":"Running","conditions":[
      {"type":"PodScheduled","status":"True"},{"type":"Ready","status":"True"}],
      "containerStatuses":[{"name":"satrap","ready":true,"state":{"running":{}}}]})")),
            "");
  EXPECT_EQ(WaitingFor("ContainerCreating", ""), "");
}

TEST(PodNotesTest, APodWithoutANodeSaysWhy) {
  EXPECT_EQ(NotesText(PodWith(R"({"phase":"Pending","conditions":[{"type":"PodScheduled",
      "status":"False","reason":"Unschedulable",
      "message":"0/3 nodes are available: 3 Insufficient nvidia.com/gpu."}]})")),
            "demo-nn-worker-1: Pending, 0/3 nodes are available: 3 Insufficient nvidia.com/gpu.\n");
}

TEST(PodNotesTest, AnImageThatIsNotThereAtTheSecondAttemptIsFinal) {
  EXPECT_EQ(WaitingFor("ErrImagePull", "no such host"),
            "demo-nn-worker-1: ErrImagePull, no such host\n");
  EXPECT_EQ(WaitingFor("ImagePullBackOff", "Back-off pulling image \\\"x:1\\\""),
            "demo-nn-worker-1: ImagePullBackOff, Back-off pulling image \"x:1\" FINAL\n");
  EXPECT_EQ(WaitingFor("CreateContainerConfigError", "secret \\\"s\\\" not found"),
            "demo-nn-worker-1: CreateContainerConfigError, secret \"s\" not found FINAL\n");
}

TEST(PodNotesTest, AContainerThatEndsAgainAndAgainSaysItsLastWords) {
  EXPECT_EQ(NotesText(PodWith(R"({"phase":"Running","containerStatuses":[{"name":"satrap",
      "state":{"waiting":{"reason":"CrashLoopBackOff","message":"back-off 10s"}},
      "lastState":{"terminated":{"exitCode":1,"message":"cannot write\n/runs: denied\n"}}}]})")),
            "demo-nn-worker-1: CrashLoopBackOff, cannot write /runs: denied FINAL\n");
}

TEST(PodNotesTest, ASetThatMayMakeNoPodSaysWhyByItsNewestEvent) {
  KubectlList events;
  CHECK_OK(ParseJson(R"({"items":[
      {"involvedObject":{"name":"demo-nn-worker"},"reason":"FailedCreate","message":"old"},
      {"involvedObject":{"name":"other"},"reason":"FailedCreate","message":"other"},
      {"involvedObject":{"name":"demo-nn-worker"},"reason":"FailedCreate",
       "message":"exceeded quota: cpu"},
      {"involvedObject":{"name":"demo-nn-worker"},"reason":"Unhealthy","message":"x"}]})",
                     &events));
  const auto notes = NotesOfEvents(events, "demo-nn-worker");
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_EQ(notes[0].text, "demo-nn-worker: no pod can be made, exceeded quota: cpu");
  EXPECT_TRUE(NotesOfEvents(events, "demo-coordinator").empty());
}

}  // namespace
}  // namespace satrap

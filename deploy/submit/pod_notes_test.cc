#include "deploy/submit/pod_notes.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/json/json.h"
#include "gmock/gmock.h"

namespace satrap {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

KubectlObject PodWith(const std::string& status, const std::string& more = "") {
  KubectlObject pod;
  CHECK_OK(ParseJson(absl::StrCat(R"({"kind":"Pod","metadata":{"name":"demo-nn-worker-1")", more,
                                  R"(},"status":)", status, "}"),
                     &pod));
  return pod;
}

std::string TextOf(const std::vector<PodNote>& notes) {
  std::string text;
  for (const PodNote& note : notes) text += LineOf(note) + (note.is_final ? " FINAL\n" : "\n");
  return text;
}

std::string WaitingStatus(const std::string& reason, const std::string& message, int restarts = 0) {
  return absl::StrCat(R"({"phase":"Pending","containerStatuses":[{"restartCount":)", restarts,
                      R"(,"state":{"waiting":{"reason":")", reason, R"(","message":")", message,
                      R"("}}}]})");
}

std::string WaitingFor(const std::string& reason, const std::string& message, int restarts = 0) {
  return TextOf(NotesOf(PodWith(WaitingStatus(reason, message, restarts))));
}

KubectlList ListOf(const std::string& items) {
  KubectlList list;
  CHECK_OK(ParseJson(absl::StrCat(R"({"items":[)", items, "]}"), &list));
  return list;
}

TEST(PodNotesTest, APodThatWorksOrIsJustStartingHasNone) {
  EXPECT_EQ(TextOf(NotesOf(PodWith(R"({"phase":"Running","conditions":[
      {"type":"PodScheduled","status":"True"},{"type":"Ready","status":"True"}],
      "containerStatuses":[{"name":"satrap","ready":true,"state":{"running":{}}}]})"))),
            "");
  EXPECT_EQ(WaitingFor("ContainerCreating", ""), "");
}

TEST(PodNotesTest, APodThatIsBeingDeletedHasNone) {
  EXPECT_EQ(TextOf(NotesOf(PodWith(WaitingStatus("InvalidImageName", "x"),
                                   R"(,"deletionTimestamp":"2026-01-01T00:00:00Z")"))),
            "");
}

TEST(PodNotesTest, APodWithoutANodeSaysWhy) {
  EXPECT_EQ(TextOf(NotesOf(PodWith(R"({"phase":"Pending","conditions":[{"type":"PodScheduled",
      "status":"False","reason":"Unschedulable",
      "message":"0/3 nodes are available: 3 Insufficient nvidia.com/gpu."}]})"))),
            "demo-nn-worker-1: Pending, 0/3 nodes are available: 3 Insufficient nvidia.com/gpu.\n");
}

TEST(PodNotesTest, OnlyWhatNoOtherAttemptChangesIsFinalAtOnce) {
  EXPECT_EQ(WaitingFor("InvalidImageName", "no name"),
            "demo-nn-worker-1: InvalidImageName, no name FINAL\n");
  EXPECT_EQ(WaitingFor("ErrImagePull", "429 too many requests"),
            "demo-nn-worker-1: ErrImagePull, 429 too many requests\n");
  EXPECT_EQ(WaitingFor("ImagePullBackOff", "Back-off pulling image \\\"x:1\\\""),
            "demo-nn-worker-1: ImagePullBackOff, Back-off pulling image \"x:1\"\n");
  EXPECT_EQ(WaitingFor("CreateContainerConfigError", "secret \\\"s\\\" not found"),
            "demo-nn-worker-1: CreateContainerConfigError, secret \"s\" not found\n");
}

TEST(PodNotesTest, AContainerThatEndsAgainAndAgainSaysItsLastWords) {
  EXPECT_EQ(TextOf(NotesOf(PodWith(R"({"phase":"Running","containerStatuses":[{"name":"satrap",
      "state":{"waiting":{"reason":"CrashLoopBackOff","message":"back-off 10s"}},"restartCount":1,
      "lastState":{"terminated":{"exitCode":1,"message":"cannot write\n/runs: denied\n"}}}]})"))),
            "demo-nn-worker-1: CrashLoopBackOff, cannot write /runs: denied\n");
  EXPECT_EQ(WaitingFor("CrashLoopBackOff", "back-off 40s", 3),
            "demo-nn-worker-1: CrashLoopBackOff, back-off 40s FINAL\n");
}

TEST(PodNotesTest, AContainerThatRunsBeforeTheOthersIsLookedAtToo) {
  EXPECT_EQ(TextOf(NotesOf(PodWith(R"({"phase":"Pending","initContainerStatuses":[{
      "state":{"waiting":{"reason":"ErrImagePull","message":"no sidecar"}}}]})"))),
            "demo-nn-worker-1: ErrImagePull, no sidecar\n");
}

TEST(PodNotesTest, EachKindOfTroubleHasItsCureWhichIsToldOnce) {
  const auto waiting = [](const std::string& reason) {
    return NotesOf(PodWith(WaitingStatus(reason, "why"),
                           R"(,"labels":{"app.kubernetes.io/component":"nn-worker"})"));
  };
  std::vector<PodNote> notes = waiting("ErrImagePull");
  const std::string of_image = notes[0].cure;
  EXPECT_THAT(of_image, HasSubstr("--image"));
  notes.push_back(waiting("ImagePullBackOff")[0]);
  EXPECT_EQ(WithCures(notes),
            "demo-nn-worker-1: ErrImagePull, why; demo-nn-worker-1: "
            "ImagePullBackOff, why; " +
                of_image);
  EXPECT_EQ(WithCures({}), "");
  EXPECT_THAT(waiting("CreateContainerConfigError")[0].cure, HasSubstr("Secret"));
  EXPECT_THAT(waiting("CreateContainerError")[0].cure, HasSubstr("pod_patch"));
  const std::string labels = R"(,"labels":{"app.kubernetes.io/component":"nn-worker"})";
  const std::string pending = R"({"phase":"Pending","conditions":[
      {"type":"PodScheduled","status":"False","message":"no card"}]})";
  EXPECT_THAT(NotesOf(PodWith(pending, labels))[0].cure,
              HasSubstr("or reduce its requests (kubernetes.nn_worker)"));
  EXPECT_THAT(NotesOf(PodWith(pending))[0].cure, HasSubstr("(kubernetes.coordinator)"));
}

TEST(PodWatchTest, APodIsGivenUpOnlyIfItIsStuckForAMinuteWithoutABreak) {
  const auto with = [](const std::string& status) {
    KubectlList list;
    *list.add_items() = PodWith(status);
    return list;
  };
  const KubectlList fails = with(WaitingStatus("ErrImagePull", "no such host"));
  const KubectlList waits = with(WaitingStatus("ImagePullBackOff", "Back-off"));
  const std::string at_work = R"({"phase":"Running","containerStatuses":[{"state":{}}]})";
  PodWatch watch;
  EXPECT_EQ(TextOf(watch.Notes(fails, 1000)), "demo-nn-worker-1: ErrImagePull, no such host\n");
  EXPECT_EQ(TextOf(watch.Notes(waits, 60000)), "demo-nn-worker-1: ImagePullBackOff, no such host\n")
      << "the kubelet has the cause only at the attempt";
  EXPECT_EQ(TextOf(watch.Notes(with(at_work), 60999)), "");
  EXPECT_EQ(TextOf(watch.Notes(fails, 61000)), "demo-nn-worker-1: ErrImagePull, no such host\n");
  EXPECT_EQ(TextOf(watch.Notes(waits, 120999)),
            "demo-nn-worker-1: ImagePullBackOff, no such host\n");
  EXPECT_EQ(TextOf(watch.Notes(waits, 121000)),
            "demo-nn-worker-1: ImagePullBackOff, no such host FINAL\n");
}

TEST(PodWatchTest, AnotherPodOfTheSameNameBeginsAnew) {
  const auto of = [](const std::string& uid) {
    KubectlList list;
    *list.add_items() = PodWith(WaitingStatus("CreateContainerError", "busy"),
                                absl::StrCat(R"(,"uid":")", uid, "\""));
    return list;
  };
  PodWatch watch;
  watch.Notes(of("a"), 0);
  EXPECT_EQ(TextOf(watch.Notes(of("b"), 60000)), "demo-nn-worker-1: CreateContainerError, busy\n");
  EXPECT_EQ(TextOf(watch.Notes(of("b"), 120000)),
            "demo-nn-worker-1: CreateContainerError, busy FINAL\n");
}

constexpr char kSetWithOnePod[] = R"(
    {"kind":"StatefulSet","metadata":{"name":"demo-nn-worker","uid":"set-2",
     "labels":{"app.kubernetes.io/component":"nn-worker"}},"spec":{"replicas":2}},
    {"kind":"Pod","metadata":{"name":"demo-nn-worker-0",
     "labels":{"app.kubernetes.io/component":"nn-worker"}}})";

TEST(PodNotesTest, WhatLacksAPodSaysWhyByItsOwnNewestEvent) {
  const KubectlList events = ListOf(R"(
      {"involvedObject":{"uid":"set-2"},"reason":"FailedCreate","message":"old"},
      {"involvedObject":{"uid":"set-2"},"reason":"FailedCreate","message":"exceeded quota: cpu"},
      {"involvedObject":{"uid":"set-1"},"reason":"FailedCreate","message":"of an earlier run"},
      {"involvedObject":{"uid":"set-2"},"reason":"Unhealthy","message":"x"})");
  EXPECT_EQ(TextOf(NotesOfEvents(ListOf(kSetWithOnePod), events)),
            "StatefulSet demo-nn-worker: cannot make a pod, exceeded quota: cpu\n");
  EXPECT_THAT(NotesOfEvents(ListOf(kSetWithOnePod), events)[0].cure,
              HasSubstr("a low quota, delete other runs, or reduce what the pod requests "
                        "(kubernetes.nn_worker)"));
  const std::string job = R"({"kind":"Job","metadata":{"name":"demo","uid":"set-2"}})";
  EXPECT_EQ(TextOf(NotesOfEvents(ListOf(job), events)),
            "Job demo: cannot make a pod, exceeded quota: cpu\n");
}

TEST(PodNotesTest, WhatHasAllItsPodsOrHasEndedLacksNone) {
  EXPECT_EQ(MissingPods(ListOf(kSetWithOnePod)).size(), 1u);
  EXPECT_THAT(MissingPods(ListOf(absl::StrCat(kSetWithOnePod, R"(,
      {"kind":"Pod","metadata":{"name":"demo-nn-worker-1",
       "labels":{"app.kubernetes.io/component":"nn-worker"}}},
      {"kind":"Job","metadata":{"name":"demo"},
       "status":{"conditions":[{"type":"Failed","status":"True"}]}},
      {"kind":"Job","metadata":{"name":"demo-members","deletionTimestamp":"x"}})"))),
              IsEmpty());
}

}  // namespace
}  // namespace satrap

#include <string>

#include "absl/strings/str_cat.h"
#include "deploy/submit/submission.h"
#include "deploy/submit/testing/submission_fixture.h"
#include "gmock/gmock.h"

namespace satrap {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kGetParts[] = "*get jobs.batch,statefulsets.apps,pods --selector=*";

using SubmissionWaitTest = SubmissionTest;

std::string Pod(const std::string& name, const std::string& status, const std::string& more = "") {
  return absl::StrCat(R"({"kind":"Pod","metadata":{"name":")", name, "\"", more, R"(},"status":)",
                      status, "}");
}

constexpr char kPending[] =
    R"({"phase":"Pending","conditions":[{"type":"PodScheduled","status":"False","message":"no node"}]})";
constexpr char kReady[] = R"({"phase":"Running","conditions":[{"type":"Ready","status":"True"}]})";
// The run's two Jobs.
constexpr char kJobs[] = R"({"kind":"Job","metadata":{"name":"demo","uid":"u-9",
    "labels":{"app.kubernetes.io/component":"story"}}},
    {"kind":"Job","metadata":{"name":"demo-members","uid":"u-1",
    "labels":{"app.kubernetes.io/component":"members"}}})";

// The labels of a part of the run, as kubectl shows them.
std::string LabelsOf(const std::string& part) {
  return absl::StrCat(R"(,"labels":{"app.kubernetes.io/component":")", part, "\"}");
}

std::string PodsOfJobs() {
  constexpr char kRuns[] = R"({"phase":"Running"})";
  return absl::StrCat(Pod("demo-x", kRuns, LabelsOf("story")), ",",
                      Pod("demo-members-x", kRuns, LabelsOf("members")));
}

TEST_F(SubmissionWaitTest, WaitsUntilTheCoordinatorServes) {
  const std::string pending = Pod("demo-coordinator-0", kPending);
  // The pod of an earlier run, which is being deleted.
  const std::string old = Pod("demo-coordinator-0", kReady, R"(,"deletionTimestamp":"x")");
  On(kGetParts, {List({kJobs, PodsOfJobs(), pending}), 0, "", true});
  On(kGetParts, {List({kJobs, PodsOfJobs(), pending}), 0, "", true});
  On(kGetParts, {"", 1, "the server is away\n", true});
  On(kGetParts, {List({kJobs, PodsOfJobs(), old}), 0, "", true});
  On(kGetParts, List({kJobs, PodsOfJobs(), Pod("demo-coordinator-0", kReady),
                      Pod("demo-nn-worker-0", kPending)}));
  EXPECT_EQ(Submit(RunWith()).AwaitCoordinator(), absl::OkStatus());
  EXPECT_THAT(said_, ElementsAre("demo-coordinator-0: Pending, no node",
                                 "demo-nn-worker-0: Pending, no node"))
      << "each is said once, those of the other pods, too";
  EXPECT_EQ(Calls().size(), 5u);
}

TEST_F(SubmissionWaitTest, APodThatCanNeverWorkEndsTheWait) {
  On(kGetParts,
     List({kJobs, PodsOfJobs(),
           Pod("demo-nn-worker-0",
               R"({"containerStatuses":[{"state":{"waiting":{"reason":"InvalidImageName"}}}]})")}));
  EXPECT_EQ(Submit(RunWith()).AwaitCoordinator(),
            absl::FailedPreconditionError(
                "demo-nn-worker-0: InvalidImageName; correct the image (--image), or give the "
                "nodes a login for its registry (imagePullSecrets in kubernetes.pod_patch)"));
}

TEST_F(SubmissionWaitTest, TheCauseOfAnEndCountsMoreThanAPodThatCanNeverWork) {
  const std::string failed =
      R"({"kind":"Job","metadata":{"name":"demo"},"status":{"conditions":[{"type":"Failed","status":"True"}]}})";
  const std::string last_words = Pod(
      "demo-x",
      R"({"phase":"Failed","containerStatuses":[{"state":{"terminated":{"message":"no hard links"}}}]})",
      LabelsOf("story"));
  On(kGetParts,
     List({failed, last_words,
           Pod("demo-nn-worker-0",
               R"({"containerStatuses":[{"state":{"waiting":{"reason":"InvalidImageName"}}}]})")}));
  EXPECT_EQ(Submit(RunWith()).AwaitCoordinator(),
            absl::FailedPreconditionError("the coordinator does not begin: no hard links"));
}

TEST_F(SubmissionWaitTest, APullThatFailsOnceEndsNothing) {
  const std::string fails = Pod(
      "demo-nn-worker-0",
      R"({"containerStatuses":[{"state":{"waiting":{"reason":"ImagePullBackOff","message":"429"}}}]})");
  On(kGetParts, {List({kJobs, PodsOfJobs(), fails}), 0, "", true});
  On(kGetParts, List({kJobs, PodsOfJobs(), Pod("demo-coordinator-0", kReady)}));
  EXPECT_EQ(Submit(RunWith()).AwaitCoordinator(), absl::OkStatus());
  EXPECT_THAT(said_, ElementsAre("demo-nn-worker-0: ImagePullBackOff, 429"));
}

TEST_F(SubmissionWaitTest, AQuotaThatIsFullIsToldByTheEventsOfWhatLacksAPod) {
  On(kGetParts,
     List({kJobs, PodsOfJobs(),
           absl::StrCat(R"({"kind":"StatefulSet","metadata":{"name":"demo-coordinator","uid":"s")",
                        LabelsOf("coordinator"), R"(},"spec":{"replicas":1}})")}));
  On("*get events*", R"({"items":[{"involvedObject":{"uid":"s"},"reason":"FailedCreate",)"
                     R"("message":"exceeded quota"}]})");
  On("*logs demo-coordinator-0*", {"", 1, "not found\n", false});
  EXPECT_EQ(Submit(RunWith("start_seconds: 1")).AwaitCoordinator(),
            absl::DeadlineExceededError(
                "the coordinator does not serve after 1 s (kubernetes.start_seconds): StatefulSet "
                "demo-coordinator: cannot make a pod, exceeded quota; have the cause removed, such "
                "as a low quota, delete other runs, or reduce what the pod requests "
                "(kubernetes.coordinator)"));
}

TEST_F(SubmissionWaitTest, ACoordinatorThatSaysNothingElseHasItsLogQuoted) {
  On(kGetParts, List({kJobs, PodsOfJobs(), Pod("demo-coordinator-0", R"({"phase":"Running"})")}));
  On("*logs demo-coordinator-0 --container=satrap --tail=3", "begins\nerror: no hard links\n");
  EXPECT_EQ(Submit(RunWith("start_seconds: 1")).AwaitCoordinator(),
            absl::DeadlineExceededError(
                "the coordinator does not serve after 1 s (kubernetes.start_seconds): its log "
                "ends with begins error: no hard links"));
}

TEST_F(SubmissionWaitTest, ACoordinatorThatRefusesToBeginIsToldByTheJobOfTheRun) {
  const std::string failed =
      R"({"kind":"Job","metadata":{"name":"demo"},"status":{"conditions":[{"type":"Failed","status":"True"}]}})";
  const std::string last_words = Pod(
      "demo-x",
      R"({"phase":"Failed","containerStatuses":[{"state":{"terminated":{"message":"/runs has no hard links\n"}}}]})",
      LabelsOf("story"));
  On(kGetParts, List({failed, last_words, Pod("demo-coordinator-0", R"({"phase":"Running"})")}));
  EXPECT_EQ(
      Submit(RunWith()).AwaitCoordinator(),
      absl::FailedPreconditionError("the coordinator does not begin: /runs has no hard links"));
}

TEST_F(SubmissionWaitTest, WithoutAnAnswerOfTheClusterNothingIsKnown) {
  On(kGetParts, {"", 1, "the network is away\n", false});
  EXPECT_TRUE(absl::IsUnavailable(Submit(RunWith("start_seconds: 1")).AwaitCoordinator()));
}

TEST_F(SubmissionWaitTest, ARunThatIsDeletedMeanwhileEndsTheWait) {
  On(kGetParts, kNothing);
  EXPECT_EQ(Submit(RunWith()).AwaitCoordinator(), absl::NotFoundError("the run demo was deleted"));
}

TEST_F(SubmissionWaitTest, WaitsUntilAllPodsRunOrTheRunHasEnded) {
  const std::string set =
      absl::StrCat(R"({"kind":"StatefulSet","metadata":{"name":"demo-nn-worker","uid":"s")",
                   LabelsOf("nn-worker"), R"(},"spec":{"replicas":1}})");
  const auto worker = [](const std::string& status) {
    return Pod("demo-nn-worker-0", status, LabelsOf("nn-worker"));
  };
  On("*get events*", kNothing);
  On(kGetParts, {List({kJobs, PodsOfJobs(), set}), 0, "", true});
  On(kGetParts, {List({kJobs, PodsOfJobs(), set, worker(kPending)}), 0, "", true});
  On(kGetParts, {List({kJobs, set, worker(kReady)}), 0, "", true});
  On(kGetParts, {List({kJobs, PodsOfJobs(), set, worker(R"({"phase":"Running"})")}), 0, "", true});
  Submission submission = Submit(RunWith());
  EXPECT_EQ(submission.AwaitPods(), absl::OkStatus());
  EXPECT_THAT(said_, ElementsAre("demo-nn-worker-0: Pending, no node"));
  EXPECT_THAT(Calls(), Contains(HasSubstr("get jobs.batch,statefulsets.apps,pods")).Times(4));
  const std::string complete =
      R"({"kind":"Job","metadata":{"name":"demo"},"status":{"conditions":[{"type":"Complete","status":"True"}]}})";
  On(kGetParts, {List({complete, set}), 0, "", true});
  EXPECT_EQ(submission.AwaitPods(), absl::OkStatus());
  // If the run does not have all its pods in time, it ends by itself.
  On(kGetParts, List({kJobs, PodsOfJobs(), set}));
  EXPECT_EQ(Submit(RunWith("start_seconds: 1")).AwaitPods(), absl::OkStatus());
}

TEST_F(SubmissionWaitTest, ARunThatFailsForWantOfPodsSaysWhatTheyHaveWaitedFor) {
  const std::string waiting = Pod("demo-nn-worker-0", kPending, LabelsOf("nn-worker"));
  const std::string failed =
      R"({"kind":"Job","metadata":{"name":"demo"},"status":{"conditions":[{"type":"Failed","status":"True"}]}})";
  const std::string last_words = Pod(
      "demo-x",
      R"({"phase":"Failed","containerStatuses":[{"state":{"terminated":{"message":"nn_worker 0 has not come"}}}]})",
      LabelsOf("story"));
  On(kGetParts, {List({kJobs, PodsOfJobs(), waiting}), 0, "", true});
  On(kGetParts, {List({failed, last_words}), 0, "", true});
  EXPECT_EQ(Submit(RunWith()).AwaitPods(),
            absl::FailedPreconditionError(
                "the run has failed: nn_worker 0 has not come; demo-nn-worker-0: Pending, no node; "
                "add nodes that have what the pod requests, check that its claims can be bound, or "
                "reduce its requests (kubernetes.nn_worker)"));
  // What the run waited for earlier does not matter.
  On(kGetParts, {List({kJobs, PodsOfJobs(), waiting}), 0, "", true});
  On(kGetParts, {List({kJobs, PodsOfJobs(),
                       Pod("demo-nn-worker-0", R"({"phase":"Pending"})", LabelsOf("nn-worker"))}),
                 0, "", true});
  On(kGetParts, List({failed, last_words}));
  EXPECT_EQ(Submit(RunWith()).AwaitPods(), absl::OkStatus()) << "its story says why";
}

TEST_F(SubmissionWaitTest, ASignalEndsTheWait) {
  On(kGetParts, List({kJobs, PodsOfJobs(), Pod("demo-coordinator-0", R"({"phase":"Pending"})")}));
  signal_ = 2;
  EXPECT_TRUE(absl::IsCancelled(Submit(RunWith()).AwaitCoordinator()));
  EXPECT_EQ(Calls().size(), 1u);
}

}  // namespace
}  // namespace satrap

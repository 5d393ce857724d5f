#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "deploy/submit/submission.h"
#include "deploy/submit/submitted_run.h"
#include "deploy/submit/testing/submission_fixture.h"
#include "gmock/gmock.h"

namespace satrap {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kGetObjects[] = "*get jobs.batch/demo-members services/demo-coordinator *";
constexpr char kGetPods[] = "*get pods --selector=*";
constexpr char kGetStory[] = "*get jobs.batch demo --ignore-not-found*";

// The second submission of RunWith().
RunInCluster Resumed() {
  RunInCluster run = RunWith();
  run.submission = 2;
  run.run_dir = "/runs/demo-first";
  run.from = "cut_0001_000004";
  return run;
}

// A pod of that part as kubectl shows it.
std::string PodOf(const std::string& name, const std::string& part) {
  return absl::StrCat(R"({"kind":"Pod","metadata":{"name":")", name,
                      R"(","labels":{"app.kubernetes.io/component":")", part, R"("}}})");
}

class SubmissionResumeTest : public SubmissionTest {
 protected:
  // Job RUN of the first submission.
  std::string EarlierStory(const std::string& condition) {
    std::string job = Shown("Job", "demo");
    job.pop_back();
    return absl::StrCat(job, R"(,"status":{"conditions":[{"type":")", condition,
                        R"(","status":"True"}]}})");
  }
};

TEST_F(SubmissionResumeTest, WaitsUntilTheSubmissionBeforeIsGoneAndReplacesItsJob) {
  const std::string story = EarlierStory("Failed");
  const std::string told = PodOf("demo-x", "story");
  On(kGetObjects, {List({story, Shown("Job", "demo-members")}), 0, "", true});
  On(kGetObjects, List({story}));
  const std::string reader = PodOf("demo-reader-1-x", "reader");
  On(kGetPods, {List({told, reader, PodOf("demo-nn-worker-0", "nn-worker")}), 0, "", true});
  On(kGetPods, List({told, reader}));
  On(kGetStory, story);
  On("*delete*", "");
  On("*create*", R"({"metadata":{"uid":"u-2"}})");
  Submission submission = Submit(Resumed());
  ASSERT_EQ(submission.Create(), absl::OkStatus());
  EXPECT_THAT(said_, ElementsAre("waits until Job demo-members is gone",
                                 "waits until Pod demo-nn-worker-0 is gone"));
  EXPECT_THAT(Created(),
              ElementsAre("Job demo-members", "Service demo-coordinator", "ConfigMap demo-job-2",
                          "StatefulSet demo-coordinator", "StatefulSet demo-embedding-ps",
                          "StatefulSet demo-embedding-worker", "StatefulSet demo-data-loader",
                          "StatefulSet demo-nn-worker", "Job demo"));
  EXPECT_THAT(*(Calls().end() - 2),
              HasSubstr("delete jobs.batch demo --ignore-not-found --cascade=foreground "
                        "--wait=true"))
      << "just before the new one is made";
  const std::string coordinator = Input(Calls().size() - 8);
  EXPECT_THAT(coordinator, HasSubstr("kind: StatefulSet\nmetadata:\n  name: demo-coordinator"));
  EXPECT_THAT(coordinator, HasSubstr("--submission=2"));
  EXPECT_THAT(coordinator, HasSubstr("--from=cut_0001_000004"));
  EXPECT_THAT(Input(Calls().size() - 1), HasSubstr("--run_dir=/runs/demo-first\""));
}

TEST_F(SubmissionResumeTest, WhatAnAttemptBeforeHasMadeIsWaitedForWhileItIsBeingDeleted) {
  const std::string deleted = R"(,"deletionTimestamp":"2026-01-01T00:00:00Z")";
  On(kGetObjects, {List({ShownOf(Resumed(), "Job", "demo", deleted),
                         ShownOf(Resumed(), "Job", "demo-members", deleted)}),
                   0, "", true});
  On(kGetObjects, List({}));
  On(kGetPods, List({}));
  On(kGetStory, "");
  On("*create*", R"({"metadata":{"uid":"u-2"}})");
  ASSERT_EQ(Submit(Resumed()).Create(), absl::OkStatus());
  EXPECT_THAT(said_, ElementsAre("waits until Job demo-members is gone"));
  EXPECT_THAT(Created(), Contains("Job demo"));
}

TEST_F(SubmissionResumeTest, ARunThatGoesOnIsLeftAlone) {
  On(kGetObjects, List({EarlierStory("Suspended"), Shown("Job", "demo-members")}));
  EXPECT_EQ(
      Submit(Resumed()).Create(),
      absl::FailedPreconditionError("the run demo is in progress: there is nothing to resume"));
  EXPECT_EQ(Calls().size(), 1u);
}

TEST_F(SubmissionResumeTest, AResumeThatWasBrokenOffIsCompleted) {
  const std::string members = ShownOf(Resumed(), "Job", "demo-members");
  On(kGetObjects,
     List({EarlierStory("Failed"), members, ShownOf(Resumed(), "ConfigMap", "demo-job-2"),
           ShownOf(Resumed(), "Service", "demo-coordinator")}));
  On(kGetStory, "");
  On("*create*", R"({"metadata":{"uid":"u-3"}})");
  Submission submission = Submit(Resumed());
  ASSERT_EQ(submission.Create(), absl::OkStatus());
  EXPECT_THAT(Created(), Contains("Job demo"));
  EXPECT_THAT(Created(), Not(Contains("ConfigMap demo-job-2")));
  EXPECT_THAT(Calls(), Each(Not(HasSubstr("delete")))) << "Job RUN was removed already";
}

TEST_F(SubmissionResumeTest, OfTwoDifferentResumesTheSecondIsRefused) {
  RunInCluster other = Resumed();
  other.from.clear();
  On(kGetObjects, List({EarlierStory("Failed"), ShownOf(other, "Job", "demo-members")}));
  EXPECT_THAT(Submit(Resumed()).Create().message(),
              HasSubstr("Job demo-members already exists, from another submission with the name "
                        "demo"));
  EXPECT_THAT(Created(), ElementsAre());
}

TEST_F(SubmissionResumeTest, WhatCannotBeginLeavesTheSubmissionBeforeToBeResumed) {
  const RunInCluster run = Resumed();
  Submission submission = Submit(run);
  const std::string command = submission.run().command;
  On(kGetObjects, {List({EarlierStory("Failed")}), 0, "", true});
  On(kGetObjects, List({EarlierStory("Failed"), ShownOf(run, "Job", "demo-members", "", command)}));
  On(kGetPods, List({}));
  On("*get jobs.batch/demo jobs.batch/demo-members configmaps/demo-job-2*",
     List({EarlierStory("Failed"), ShownOf(run, "Job", "demo-members", "", command),
           ShownOf(run, "ConfigMap", "demo-job-2", "", command)}));
  for (int made = 0; made < 3; ++made)
    On("*create*", {R"({"metadata":{"uid":"u-1"}})", 0, "", true});
  On("*create*", {"", 1, "Error from server (Forbidden): exceeded quota\n", false});
  On("*delete*", "");
  EXPECT_THAT(submission.Create().message(), HasSubstr("cannot make StatefulSet"));
  EXPECT_THAT(Calls().back(), HasSubstr("delete jobs.batch/demo-members configmaps/demo-job-2 "));
}

constexpr char kGet[] = "*get jobs.batch,configmaps,pods --selector=*";

std::string Object(const std::string& kind, const std::string& name, int submission,
                   const std::string& more = "") {
  return absl::StrCat(R"({"kind":")", kind, R"(","metadata":{"name":")", name,
                      R"(","annotations":{"satrap/submission":")", submission,
                      R"(","satrap/run-dir":"/runs/demo-first"}})", more, "}");
}

std::string Ended(const std::string& condition) {
  return absl::StrCat(R"(,"status":{"conditions":[{"type":")", condition,
                      R"(","status":"True"}]})");
}

std::string Told(const std::string& words) {
  return absl::StrCat(R"({"kind":"Pod","metadata":{"name":"demo-x","labels":
      {"app.kubernetes.io/component":"story"}},
      "status":{"containerStatuses":[{"state":{"terminated":{"message":")",
                      words, R"("}}}]}})");
}

class SubmittedRunTest : public SubmissionTest {
 protected:
  absl::StatusOr<RunInCluster> Next(const std::vector<std::string>& objects) {
    On(kGet, {List(objects), 0, "", true});
    return NextSubmission("demo", kubectl_.get());
  }
};

TEST_F(SubmittedRunTest, TheNextSubmissionHasWhatTheNewestOneHad) {
  const auto next = Next({MapOf(1, 1), MapOf(3, 4), MapOf(2, 2),
                          Object("Job", "demo", 3, Ended("Failed")), Told("the disk is full")});
  ASSERT_TRUE(next.ok()) << next.status();
  EXPECT_EQ(next->submission, 4);
  EXPECT_EQ(next->job.embedding_ps().replicas(), 4);
  EXPECT_EQ(next->name, "demo");
  EXPECT_EQ(next->space, "ml");
  EXPECT_EQ(next->image, "satrap:7");
  EXPECT_EQ(next->template_patch, "spec: {}\n");
  EXPECT_EQ(next->run_dir, "/runs/demo-first");
}

TEST_F(SubmittedRunTest, WhatWasScaledIsScaledInTheNextSubmissionToo) {
  const std::string changes = R"("satrap/changes":"epochs=3\nembedding_ps.replicas=6")";
  const std::string ended = Object("Job", "demo", 1, Ended("Complete"));
  auto next = Next({MapOf(1, 4, changes), ended});
  ASSERT_TRUE(next.ok()) << next.status();
  EXPECT_EQ(next->job.embedding_ps().replicas(), 6);
  EXPECT_EQ(next->job.epochs(), 3);
  next = Next({MapOf(1, 4, R"("satrap/changes":"seed=9")"), ended});
  EXPECT_EQ(next.status().code(), absl::StatusCode::kInternal);
  EXPECT_THAT(next.status().message(), HasSubstr("satrap/changes: "));
}

TEST_F(SubmittedRunTest, ChangesAreNotedAtTheNewestMapOneOfEachField) {
  On("*get configmaps*",
     List({MapOf(1, 1), MapOf(2, 1, R"("satrap/changes":"epochs=3\nseed=1")")}));
  On("*annotate*", "");
  ASSERT_EQ(NoteChanges("demo", {"epochs=5", "embedding_ps.replicas=2"}, kubectl_.get()),
            absl::OkStatus());
  EXPECT_THAT(Calls().back(), HasSubstr("annotate configmaps/demo-job-2 satrap/changes=seed=1 "
                                        "epochs=5 embedding_ps.replicas=2 --overwrite"));
}

TEST_F(SubmittedRunTest, AStoppedRunGoesOnAndAFinishedOneDoesNot) {
  const std::string job = Object("Job", "demo", 1, Ended("Complete"));
  EXPECT_TRUE(Next({MapOf(1, 1), job, Told("STOPPED")}).ok());
  EXPECT_EQ(Next({MapOf(1, 1), job, Told("FINISHED")}).status(),
            absl::FailedPreconditionError("the run demo has finished: there is nothing to resume"));
}

TEST_F(SubmittedRunTest, ARunThatGoesOnIsNotResumed) {
  EXPECT_EQ(
      Next({MapOf(1, 1), Object("Job", "demo", 1), Object("Job", "demo-members", 1)}).status(),
      absl::UnavailableError("the run demo is in progress; `satrap stop demo --namespace ml` "
                             "lets it take a last cut and end"));
}

TEST_F(SubmittedRunTest, ASubmissionThatWasBrokenOffIsReturnedAgain) {
  const std::string members = Object("Job", "demo-members", 2);
  auto next = Next({MapOf(1, 1), Object("Job", "demo", 1, Ended("Failed")), members});
  ASSERT_TRUE(next.ok()) << next.status();
  EXPECT_EQ(next->submission, 2) << "before its ConfigMap was made";
  next = Next({MapOf(1, 1), MapOf(2, 2), members});
  ASSERT_TRUE(next.ok()) << next.status();
  EXPECT_EQ(next->submission, 2) << "after Job RUN was removed";
  EXPECT_EQ(next->job.embedding_ps().replicas(), 2);
  EXPECT_THAT(Next({MapOf(1, 1), Object("Job", "demo-members", 1)}).status().message(),
              HasSubstr("the same `satrap submit` command completes it"));
}

TEST_F(SubmittedRunTest, WhatIsBeingDeletedIsNoSubmissionToComplete) {
  const auto deleted = [](std::string object) {
    const std::string fields = R"("metadata":{)";
    return object.replace(object.find(fields), fields.size(),
                          fields + R"("deletionTimestamp":"2026-01-01T00:00:00Z",)");
  };
  const auto next = Next({MapOf(1, 1), deleted(MapOf(2, 2)), deleted(Object("Job", "demo", 2)),
                          deleted(Object("Job", "demo-members", 2))});
  ASSERT_TRUE(next.ok()) << next.status();
  EXPECT_EQ(next->submission, 2);
  EXPECT_EQ(next->job.embedding_ps().replicas(), 1);
}

TEST_F(SubmittedRunTest, ARunWithoutJobRunGoesOn) {
  const auto next = Next({MapOf(2, 1)});
  ASSERT_TRUE(next.ok()) << next.status();
  EXPECT_EQ(next->submission, 3);
}

TEST_F(SubmittedRunTest, ARunThatIsNotThereOrCannotBeReadIsAnError) {
  EXPECT_EQ(Next({}).status(), absl::NotFoundError("there is no run demo in namespace ml"));
  const auto next =
      Next({Object("ConfigMap", "demo-job", 1, R"(,"data":{"job.textproto":"no_field: 1"})")});
  EXPECT_EQ(next.status().code(), absl::StatusCode::kInternal);
  EXPECT_THAT(next.status().message(),
              HasSubstr("ConfigMap demo-job in namespace ml cannot be read: job.textproto:1:"));
}

}  // namespace
}  // namespace satrap

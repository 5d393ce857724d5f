#include "deploy/submit/submission.h"

#include <string>

#include "deploy/submit/testing/submission_fixture.h"
#include "gmock/gmock.h"

namespace satrap {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

constexpr char kGetObjects[] = "*get jobs.batch/demo-members services/demo-coordinator *";
constexpr char kGetPods[] = "*get pods --selector=*";
// A pod that reads the folder of an earlier run. It is in nobody's way.
constexpr char kReader[] = R"({"kind":"Pod","metadata":{"name":"demo-reader-1-x",
    "labels":{"app.kubernetes.io/component":"reader"}}})";
constexpr char kGetJobs[] =
    "*get jobs.batch/demo jobs.batch/demo-members configmaps/demo-job --ignore-not-found*";

TEST(CheckRunTest, NamesAreCheckedBeforeAnythingIsSent) {
  EXPECT_EQ(CheckRun(RunWith()), absl::OkStatus());
  RunInCluster run = RunWith();
  run.name = std::string(60, 'a');
  EXPECT_THAT(CheckRun(run).message(),
              AllOf(HasSubstr("must have at most 35 lower-case letters"),
                    HasSubstr("got '" + run.name + "': choose another by --name")));
  run = RunWith();
  run.space = "A";
  EXPECT_THAT(std::string(CheckRun(run).message()), StartsWith("--namespace must have"));
  run = RunWith();
  run.image.clear();
  EXPECT_THAT(CheckRun(run).message(), HasSubstr("--image IMAGE"));
  run = RunWith();
  run.job.clear_kubernetes();
  EXPECT_THAT(CheckRun(run).message(), HasSubstr("kubernetes { volumes {"));
}

TEST(CheckRunTest, AJobThatNoConfigMapHoldsIsRefused) {
  RunInCluster run = RunWith();
  run.job.set_data_root(std::string(1000000, 'x'));
  EXPECT_THAT(CheckRun(run).message(), HasSubstr("that a ConfigMap may hold"));
}

TEST(PatchOfTemplateTest, APartOfAPodBecomesPartOfATemplate) {
  EXPECT_EQ(*PatchOfTemplate("---\n# ours\nspec:\n  schedulerName: volcano\n", "p.yaml"),
            "spec:\n  template:\n    # ours\n    spec:\n      schedulerName: volcano\n\n");
  EXPECT_EQ(*PatchOfTemplate(R"({"spec":{}})", "p"), "spec:\n  template:\n    {\"spec\":{}}\n");
  EXPECT_EQ(PatchOfTemplate("a: 1\n---\nb: 2\n", "p.yaml").status(),
            absl::InvalidArgumentError(
                "kubernetes.pod_patch: p.yaml must hold one document, but has several"));
  EXPECT_THAT(PatchOfTemplate("\n# none\n", "p.yaml").status().message(), HasSubstr("is empty"));
  EXPECT_THAT(PatchOfTemplate("  \n\t\n  # none\n", "p.yaml").status().message(),
              HasSubstr("is empty"));
  EXPECT_EQ(PatchOfTemplate("--- {spec: {hostNetwork: true}}\n", "p.yaml").status(),
            absl::InvalidArgumentError(
                "kubernetes.pod_patch: p.yaml must begin its document in a line after `---`, got "
                "`--- {spec: {hostNetwork: true}}`"));
}

TEST_F(SubmissionTest, TheOwnerIsMadeFirstAndTheJobOfTheRunLast) {
  On(kGetObjects, kNothing);
  On(kGetPods, List({kReader}));
  On("*create*", R"({"kind":"X","metadata":{"uid":"01234567-8","namespace":"ml"}})");
  Submission submission = Submit(RunWith());
  ASSERT_EQ(submission.Create(), absl::OkStatus());
  EXPECT_THAT(Created(),
              ElementsAre("Job demo-members", "Service demo-coordinator", "ConfigMap demo-job",
                          "StatefulSet demo-coordinator", "StatefulSet demo-embedding-ps",
                          "StatefulSet demo-embedding-worker", "StatefulSet demo-data-loader",
                          "StatefulSet demo-nn-worker", "Job demo"));
  EXPECT_EQ(submission.run().owner_uid, "01234567-8");
  EXPECT_EQ(submission.space(), "ml");
  EXPECT_THAT(Calls(), Each(Not(HasSubstr("apply"))));
  EXPECT_THAT(Calls(), Each(StartsWith("--namespace=ml ")));
  EXPECT_THAT(Input(3), HasSubstr("uid: \"01234567-8\""));
  EXPECT_THAT(Input(3), HasSubstr(submission.run().command));
}

TEST_F(SubmissionTest, ANameInUseIsRefusedAndNothingIsTouched) {
  On(kGetObjects, List({Shown("Job", "demo")}));
  const absl::Status status = Submit(RunWith()).Create();
  EXPECT_TRUE(absl::IsAlreadyExists(status)) << status;
  EXPECT_THAT(status.message(),
              HasSubstr("there is a run demo in namespace ml: choose another name by --name, or "
                        "remove it by `satrap delete demo --namespace ml`"));
  EXPECT_EQ(Calls().size(), 1u);
}

TEST_F(SubmissionTest, AnObjectOfSomebodyElseIsRefusedAndNotTouched) {
  On(kGetObjects,
     {R"({"items":[{"kind":"Job","metadata":{"name":"demo","uid":"x"}}]})", 0, "", true});
  EXPECT_EQ(Submit(RunWith()).Create(),
            absl::FailedPreconditionError(
                "Job demo in namespace ml has a name that the run demo needs, but does not belong "
                "to a run of that name: choose another name by --name"));
  EXPECT_EQ(Calls().size(), 1u);
  // Job RUN of a run demo-members has the same name as Job RUN-members of the run demo.
  std::string of_other = Shown("Job", "demo-members");
  of_other.replace(of_other.find("\"demo\""), 6, "\"demo-members\"");
  On(kGetObjects, List({of_other}));
  EXPECT_THAT(Submit(RunWith()).Create().message(), HasSubstr("does not belong to a run"));
  EXPECT_EQ(Calls().size(), 2u);
}

TEST_F(SubmissionTest, PodsOfAnEarlierRunMustBeGone) {
  On(kGetObjects, kNothing);
  On(kGetPods, List({kReader, R"({"kind":"Pod","metadata":{"name":"demo-nn-worker-0"}})"}));
  EXPECT_EQ(
      Submit(RunWith()).Create(),
      absl::FailedPreconditionError("Pod demo-nn-worker-0 of another submission of the run demo "
                                    "is there: give the command again when it is gone"));
  EXPECT_EQ(Calls().size(), 2u);
}

TEST_F(SubmissionTest, ANameWhoseObjectsAreBeingDeletedIsRefused) {
  On(kGetObjects, List({Shown("Job", "demo", R"(,"deletionTimestamp":"2026-01-01T00:00:00Z")")}));
  const absl::Status status = Submit(RunWith()).Create();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(status.message(),
              HasSubstr("Job demo of an earlier run demo is still being deleted"));
  EXPECT_EQ(Calls().size(), 1u);
}

TEST_F(SubmissionTest, TheRestOfAnotherSubmissionIsRefused) {
  std::string other = Shown("Job", "demo-members");
  const std::string identity = Submit(RunWith()).run().identity;
  other.replace(other.find(identity), identity.size(), "another");
  On(kGetObjects, List({other}));
  EXPECT_THAT(Submit(RunWith()).Create().message(),
              HasSubstr("Job demo-members already exists, from another submission with the name "
                        "demo"));
  EXPECT_THAT(Submit(RunWith()).Create().message(),
              HasSubstr("`satrap delete demo --namespace ml`"));
  EXPECT_EQ(Calls().size(), 2u);
}

TEST_F(SubmissionTest, WhatHasLostItsOwnerIsNotTakenForPartOfThisSubmission) {
  std::string orphan = Shown("Service", "demo-coordinator");
  orphan.replace(orphan.rfind("u-1"), 3, "u-0");
  On(kGetObjects, List({Shown("Job", "demo-members"), orphan}));
  EXPECT_THAT(Submit(RunWith()).Create().message(),
              HasSubstr("Service demo-coordinator already exists"));
}

TEST_F(SubmissionTest, ASubmissionThatWasBrokenOffIsCompleted) {
  On(kGetObjects, List({Shown("Job", "demo-members"), Shown("Service", "demo-coordinator"),
                        Shown("ConfigMap", "demo-job"), Shown("StatefulSet", "demo-coordinator")}));
  On("*create*", R"({"metadata":{"uid":"u-2"}})");
  Submission submission = Submit(RunWith());
  ASSERT_EQ(submission.Create(), absl::OkStatus());
  EXPECT_EQ(submission.run().owner_uid, "u-1");
  EXPECT_THAT(
      Created(),
      ElementsAre("StatefulSet demo-embedding-ps", "StatefulSet demo-embedding-worker",
                  "StatefulSet demo-data-loader", "StatefulSet demo-nn-worker", "Job demo"));
  EXPECT_THAT(said_, ElementsAre("completes the submission of demo that was broken off"));
}

TEST_F(SubmissionTest, WhatWasMadeIsRemovedIfTheRestCannotBeMade) {
  Submission submission = Submit(RunWith());
  const std::string members = List({Shown("Job", "demo-members", "", submission.run().command)});
  On(kGetObjects, {kNothing, 0, "", true});
  On(kGetObjects, members);
  On(kGetPods, kNothing);
  On(kGetJobs, members);
  On("*create*", {R"({"metadata":{"uid":"u-1"}})", 0, "", true});
  On("*create*", {"", 1, "Error from server (Forbidden): exceeded quota\n", false});
  On("*delete*", "");
  EXPECT_EQ(submission.Create(),
            absl::FailedPreconditionError(
                "cannot make Service demo-coordinator in namespace ml: kubectl create has failed: "
                "Error from server (Forbidden): exceeded quota; what was made of the run is "
                "removed: correct the cause, and give the command again"));
  EXPECT_THAT(Calls().back(), HasSubstr("delete jobs.batch/demo-members --ignore-not-found "
                                        "--cascade=foreground --wait=false"));
}

TEST_F(SubmissionTest, AJobThatThisCommandCouldNotMakeIsNotRemoved) {
  Submission submission = Submit(RunWith());
  const std::string members = Shown("Job", "demo-members", "", submission.run().command);
  // Somebody else makes Job demo while the other objects are made.
  const std::string foreign = R"({"kind":"Job","metadata":{"name":"demo","uid":"x"}})";
  On(kGetObjects, {kNothing, 0, "", true});
  On(kGetObjects, List({members, foreign}));
  On(kGetPods, kNothing);
  On(kGetJobs, List({members, foreign}));
  for (int made = 0; made < 8; ++made)
    On("*create*", {R"({"metadata":{"uid":"u-1"}})", 0, "", true});
  On("*create*", {"", 1, "Error from server (AlreadyExists)\n", false});
  On("*delete*", "");
  EXPECT_THAT(submission.Create().message(), HasSubstr("cannot make Job demo in namespace ml"));
  EXPECT_THAT(Calls().back(), HasSubstr("delete jobs.batch/demo-members --ignore-not-found"));
}

TEST_F(SubmissionTest, ARunThatAnotherCommandHasSubmittedMeanwhileIsNotRemoved) {
  Submission submission = Submit(RunWith());
  // Another command has completed what this one began.
  const std::string members = Shown("Job", "demo-members", "", submission.run().command);
  On(kGetObjects, {kNothing, 0, "", true});
  On(kGetObjects, List({members}));
  On(kGetPods, kNothing);
  On(kGetJobs, List({members, Shown("Job", "demo")}));
  On("*create*", {R"({"metadata":{"uid":"u-1"}})", 0, "", true});
  On("*create*", {"", 1, "Error from server (InternalError)\n", false});
  EXPECT_THAT(submission.Create().message(),
              AllOf(HasSubstr("(InternalError)"),
                    HasSubstr("; another command has submitted the run demo meanwhile")));
  EXPECT_THAT(Calls(), Each(Not(HasSubstr("delete"))));
}

TEST_F(SubmissionTest, WhatAnEarlierCommandHasMadeIsLeftThereIfItCannotBeCompleted) {
  On(kGetObjects, List({Shown("Job", "demo-members"), Shown("Service", "demo-coordinator")}));
  On(kGetJobs, List({Shown("Job", "demo-members")}));
  On("*create*", {"", 1, "Error from server (InternalError)\n", false});
  EXPECT_THAT(Submit(RunWith()).Create().message(),
              HasSubstr("; what an earlier command has made of the run is left there: give the "
                        "same command again, or remove it by `satrap delete demo --namespace ml`"));
  EXPECT_THAT(Calls(), Each(Not(HasSubstr("delete"))));
}

TEST_F(SubmissionTest, ARunIsRemovedByTheCommandThatHasSubmittedIt) {
  Submission submission = Submit(RunWith());
  On(kGetObjects, List({Shown("Job", "demo-members")}));
  On("*create*", R"({"metadata":{"uid":"u-2"}})");
  ASSERT_EQ(submission.Create(), absl::OkStatus());
  const std::string story = Shown("Job", "demo", "", submission.run().command);
  On(kGetJobs,
     {List({Shown("Job", "demo-members"), Shown("ConfigMap", "demo-job"), story}), 0, "", true});
  On("*delete*", "");
  EXPECT_EQ(submission.Remove(), absl::OkStatus());
  EXPECT_THAT(Calls().back(),
              HasSubstr("delete jobs.batch/demo jobs.batch/demo-members configmaps/demo-job "
                        "--ignore-not-found"));
  // Somebody has deleted the run, and has submitted another one of the same name.
  std::string other = Shown("Job", "demo-members");
  other.replace(other.find("u-1"), 3, "u-7");
  On(kGetJobs, {List({other, Shown("Job", "demo")}), 0, "", true});
  EXPECT_FALSE(submission.Remove().ok());
  On(kGetJobs, kNothing);
  EXPECT_EQ(submission.Remove(), absl::OkStatus());
  EXPECT_THAT(Calls(), Contains(HasSubstr("delete")).Times(1));
}

TEST_F(SubmissionTest, ALostAnswerToTheLastCreateIsNoFailure) {
  Submission submission = Submit(RunWith());
  On(kGetObjects, {List({Shown("Job", "demo-members"), Shown("Service", "demo-coordinator"),
                         Shown("ConfigMap", "demo-job")}),
                   0, "", true});
  On(kGetObjects,
     List({Shown("Job", "demo-members"), Shown("Job", "demo", "", submission.run().command)}));
  for (int made = 0; made < 5; ++made)
    On("*create*", {R"({"metadata":{"uid":"u-2"}})", 0, "", true});
  On("*create*", {"", 1, "error: the connection was lost\n", false});
  EXPECT_EQ(submission.Create(), absl::OkStatus());
}

TEST_F(SubmissionTest, AClusterWithoutRightsChangesNothing) {
  On("*", {"", 1, "Error from server (Forbidden): jobs.batch is forbidden\n", false});
  EXPECT_THAT(Submit(RunWith()).Create().message(), HasSubstr("jobs.batch is forbidden"));
  EXPECT_EQ(Calls().size(), 1u);
}

TEST_F(SubmissionTest, OfTwoCommandsTheOneThatMakesTheJobOfTheRunHasSubmittedIt) {
  On(kGetObjects, {kNothing, 0, "", true});
  On(kGetObjects, List({Shown("Job", "demo-members"), Shown("Service", "demo-coordinator"),
                        Shown("Job", "demo")}));
  On(kGetPods, kNothing);
  for (int made = 0; made < 8; ++made)
    On("*create*", {R"({"metadata":{"uid":"u-1"}})", 0, "", true});
  On("*create*", {"", 1, "Error from server (AlreadyExists)\n", false});
  const absl::Status status = Submit(RunWith()).Create();
  EXPECT_TRUE(absl::IsAlreadyExists(status)) << status;
  EXPECT_THAT(status.message(), HasSubstr("what this one has made belongs to that submission"));
  EXPECT_THAT(Calls(), Each(Not(HasSubstr("delete")))) << "the other one goes on";
}

TEST_F(SubmissionTest, WhatAnotherCommandHasMadeMeanwhileIsTaken) {
  On(kGetObjects, {kNothing, 0, "", true});
  On(kGetObjects, List({Shown("Job", "demo-members")}));
  On(kGetPods, kNothing);
  On("*create*", {"", 1, "Error from server (AlreadyExists)\n", true});
  On("*create*", R"({"metadata":{"uid":"u-3"}})");
  Submission submission = Submit(RunWith());
  ASSERT_EQ(submission.Create(), absl::OkStatus());
  EXPECT_EQ(submission.run().owner_uid, "u-1");
}

TEST_F(SubmissionTest, APatchIsMergedIntoWhatHasPods) {
  On(kGetObjects, kNothing);
  On(kGetPods, kNothing);
  On("*patch*", "kind: Patched\nmetadata:\n  name: x\n");
  On("*create*", R"({"metadata":{"uid":"u-1"}})");
  ASSERT_EQ(Submit(RunWith(), "spec: {}\n").Create(), absl::OkStatus());
  EXPECT_THAT(Calls(), Contains(HasSubstr("patch --local --filename=- --type=strategic "
                                          "--patch=spec: {}  --output=yaml"))
                           .Times(7));
  EXPECT_THAT(Created(), Contains("Patched x").Times(7));
  EXPECT_THAT(Created(), Contains("Service demo-coordinator"));
}

TEST_F(SubmissionTest, APatchThatKubectlRefusesEndsTheSubmission) {
  On(kGetObjects, kNothing);
  On(kGetPods, kNothing);
  On(kGetJobs, kNothing);
  On("*patch*", {"", 1, "error: unable to parse \"spec\"\n", false});
  EXPECT_THAT(Submit(RunWith(), "spec\n").Create().message(), HasSubstr("unable to parse"));
  EXPECT_THAT(Created(), IsEmpty());
}

TEST_F(SubmissionTest, AClaimMustBeForPodsOnSeveralNodes) {
  const std::string of_claim = "*get persistentvolumeclaims runs*";
  On(of_claim, {"", 0, "", true});
  EXPECT_EQ(Submit(RunWith()).CheckCluster(),
            absl::NotFoundError("the claim runs is not in namespace ml: make it first, with access "
                                "mode ReadWriteMany"));
  On(of_claim, {R"({"metadata":{"name":"runs"},"spec":{"accessModes":["ReadWriteOnce"]},)"
                R"("status":{"phase":"Bound"}})",
                0, "", true});
  EXPECT_EQ(Submit(RunWith()).CheckCluster(),
            absl::FailedPreconditionError(
                "the claim runs must be ReadWriteMany, because pods on several nodes use it, got "
                "ReadWriteOnce"));
  On(of_claim, {R"({"metadata":{"name":"runs"},"spec":{"accessModes":["ReadWriteMany"]},)"
                R"("status":{"phase":"Lost"}})",
                0, "", true});
  EXPECT_THAT(Submit(RunWith()).CheckCluster().message(), HasSubstr("has lost its volume"));
  On(of_claim, R"({"metadata":{"name":"runs"},"spec":{"accessModes":["ReadWriteMany"]},)"
               R"("status":{"phase":"Pending"}})");
  EXPECT_EQ(Submit(RunWith()).CheckCluster(), absl::OkStatus());
  EXPECT_THAT(said_,
              ElementsAre(HasSubstr("the claim runs is not bound to a volume yet (Pending)")));
}

TEST_F(SubmissionTest, DataMayLieOnAClaimThatIsOnlyRead) {
  On("*get persistentvolumeclaims runs*",
     R"({"metadata":{"name":"runs"},"spec":{"accessModes":["ReadOnlyMany","ReadWriteMany"]},)"
     R"("status":{"phase":"Bound"}})");
  On("*get persistentvolumeclaims data*",
     R"({"metadata":{"name":"data"},"spec":{"accessModes":["ReadOnlyMany"]},)"
     R"("status":{"phase":"Bound"}})");
  const std::string data = "volumes { claim: 'data' mount_path: '/data' read_only: true }";
  EXPECT_EQ(Submit(RunWith(data)).CheckCluster(), absl::OkStatus());
  EXPECT_THAT(said_, IsEmpty());
}

TEST_F(SubmissionTest, ASecretMustBeThereAndIsNotRead) {
  On("*get persistentvolumeclaims*",
     R"({"metadata":{"name":"runs"},"spec":{"accessModes":["ReadWriteMany"]},)"
     R"("status":{"phase":"Bound"}})");
  On("*get secrets login*", {"secret/login\n", 0, "", true});
  On("*get secrets login*", "");
  const RunInCluster run = RunWith("secrets { name: 'login' mount_path: '/login' }");
  EXPECT_EQ(Submit(run).CheckCluster(), absl::OkStatus());
  EXPECT_EQ(Submit(run).CheckCluster(),
            absl::NotFoundError("the secret login is not in namespace ml: make it first"));
  EXPECT_THAT(Calls()[1], HasSubstr("--output=name"));
}

}  // namespace
}  // namespace satrap

#include "deploy/submit/submission.h"

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/config/job_config.h"
#include "common/config/validation_check.h"
#include "deploy/submit/fake_kubectl.h"
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

RunInCluster RunWith(absl::string_view more = "") {
  RunInCluster run;
  run.job = SmallJob();
  CHECK_OK(ParseText(absl::StrCat("volumes { claim: 'runs' mount_path: '/runs' } ", more),
                     "kubernetes", run.job.mutable_kubernetes()));
  ResolveJob(&run.job);
  CHECK_OK(ValidateJob(run.job));
  run.name = "demo";
  run.space = "ml";
  run.image = "satrap:1";
  return run;
}

constexpr char kNothing[] = R"({"kind":"List","items":[]})";
constexpr char kGetObjects[] = "*get jobs.batch,services,*";

class SubmissionTest : public FakeKubectlTest {
 protected:
  Submission Submit(const RunInCluster& run, const std::string& patch = "") {
    return Submission(
        run, patch, kubectl_.get(), [this](const std::string& line) { said_.push_back(line); },
        [this](int64_t) { return signal_; });
  }
  // An object as kubectl shows it, of the submission of RunWith().
  std::string Shown(const std::string& kind, const std::string& name,
                    const std::string& more = "") {
    const std::string identity = Submit(RunWith()).run().identity;
    const std::string owner =
        kind == "Job" ? ""
                      : R"(,"ownerReferences":[{"kind":"Job","name":"demo-members","uid":"u-1"}])";
    return absl::StrCat(R"({"kind":")", kind, R"(","metadata":{"name":")", name,
                        R"(","uid":"u-1","annotations":{"satrap/identity":")", identity, "\"}",
                        owner, more, "}}");
  }
  static std::string List(const std::vector<std::string>& objects) {
    std::string items;
    for (const std::string& object : objects) {
      absl::StrAppend(&items, items.empty() ? "" : ",", object);
    }
    return absl::StrCat(R"({"kind":"List","items":[)", items, "]}");
  }
  // Kind and name of what was created, in order.
  std::vector<std::string> Created() {
    std::vector<std::string> created;
    const std::vector<std::string> calls = FakeKubectlTest::Calls();
    for (size_t i = 0; i < calls.size(); ++i) {
      if (!absl::StrContains(calls[i], " create ")) continue;
      const std::string text = Input(i);
      const auto after = [&](const std::string& key) {
        const size_t at = text.find(key) + key.size();
        return text.substr(at, text.find('\n', at) - at);
      };
      created.push_back(absl::StrCat(after("kind: "), " ", after("metadata:\n  name: ")));
    }
    return created;
  }

  void SetUp() override {
    FakeKubectlTest::SetUp();
    kubectl_ = std::make_unique<Kubectl>("ml", program());
  }

  std::unique_ptr<Kubectl> kubectl_;
  std::vector<std::string> said_;
  int signal_ = 0;  // that comes while it waits; 0: none
};

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
                "kubernetes.pod_patch: p.yaml must hold one document, and has several"));
  EXPECT_THAT(PatchOfTemplate("\n# none\n", "p.yaml").status().message(), HasSubstr("is empty"));
}

TEST_F(SubmissionTest, TheOwnerIsMadeFirstAndTheJobOfTheRunLast) {
  On(kGetObjects, kNothing);
  On("*create*", R"({"kind":"X","metadata":{"uid":"01234567-8"}})");
  Submission submission = Submit(RunWith());
  ASSERT_EQ(submission.Create(), absl::OkStatus());
  EXPECT_THAT(Created(),
              ElementsAre("Job demo-members", "Service demo-coordinator", "ConfigMap demo-job",
                          "StatefulSet demo-coordinator", "StatefulSet demo-embedding-ps",
                          "StatefulSet demo-embedding-worker", "StatefulSet demo-data-loader",
                          "StatefulSet demo-nn-worker", "Job demo"));
  EXPECT_EQ(submission.run().owner_uid, "01234567-8");
  EXPECT_THAT(Calls(), Each(Not(HasSubstr("apply"))));
  EXPECT_THAT(Calls(), Each(StartsWith("--namespace=ml ")));
  EXPECT_THAT(Input(2), HasSubstr("uid: \"01234567-8\""));
}

TEST_F(SubmissionTest, ANameInUseIsRefusedAndNothingIsTouched) {
  On(kGetObjects, List({Shown("Job", "demo")}));
  const absl::Status status = Submit(RunWith()).Create();
  EXPECT_TRUE(absl::IsAlreadyExists(status)) << status;
  EXPECT_THAT(status.message(), HasSubstr("there is a run demo in namespace ml"));
  EXPECT_EQ(Calls().size(), 1u);
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
              HasSubstr("Job demo-members is there from another submission of the name demo"));
  EXPECT_EQ(Calls().size(), 1u);
}

TEST_F(SubmissionTest, WhatHasLostItsOwnerIsNotTakenForPartOfThisSubmission) {
  std::string orphan = Shown("Service", "demo-coordinator");
  orphan.replace(orphan.rfind("u-1"), 3, "u-0");
  On(kGetObjects, List({Shown("Job", "demo-members"), orphan}));
  EXPECT_THAT(Submit(RunWith()).Create().message(), HasSubstr("Service demo-coordinator is there"));
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
  On(kGetObjects, {kNothing, 0, "", true});
  On(kGetObjects, List({Shown("Job", "demo-members")}));
  On("*create*", {R"({"metadata":{"uid":"u-1"}})", 0, "", true});
  On("*create*", {"", 1, "Error from server (Forbidden): exceeded quota\n", false});
  On("*delete*", "");
  const absl::Status status = Submit(RunWith()).Create();
  EXPECT_EQ(status, absl::FailedPreconditionError("kubectl create has failed: Error from server "
                                                  "(Forbidden): exceeded quota"));
  EXPECT_THAT(Calls().back(), HasSubstr("delete jobs.batch demo demo-members --ignore-not-found "
                                        "--cascade=background --wait=false"));
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
  for (int made = 0; made < 8; ++made)
    On("*create*", {R"({"metadata":{"uid":"u-1"}})", 0, "", true});
  On("*create*", {"", 1, "Error from server (AlreadyExists)\n", false});
  const absl::Status status = Submit(RunWith()).Create();
  EXPECT_TRUE(absl::IsAlreadyExists(status)) << status;
  EXPECT_THAT(Calls(), Each(Not(HasSubstr("delete")))) << "the other one goes on";
}

TEST_F(SubmissionTest, WhatAnotherCommandHasMadeMeanwhileIsTaken) {
  On(kGetObjects, {kNothing, 0, "", true});
  On(kGetObjects, List({Shown("Job", "demo-members")}));
  On("*create*", {"", 1, "Error from server (AlreadyExists)\n", true});
  On("*create*", R"({"metadata":{"uid":"u-3"}})");
  Submission submission = Submit(RunWith());
  ASSERT_EQ(submission.Create(), absl::OkStatus());
  EXPECT_EQ(submission.run().owner_uid, "u-1");
}

TEST_F(SubmissionTest, APatchIsMergedIntoWhatHasPods) {
  On(kGetObjects, kNothing);
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

std::string Pod(const std::string& name, const std::string& status) {
  return absl::StrCat(R"({"kind":"Pod","metadata":{"name":")", name, R"("},"status":)", status,
                      "}");
}

TEST_F(SubmissionTest, WaitsUntilTheCoordinatorServes) {
  const std::string pending =
      R"({"phase":"Pending","conditions":[{"type":"PodScheduled","status":"False","message":"no node"}]})";
  On("*get pods*", {List({Pod("demo-coordinator-0", pending)}), 0, "", true});
  On("*get pods*", {List({Pod("demo-coordinator-0", pending)}), 0, "", true});
  On("*get pods*", {"", 1, "the server is away\n", true});
  On("*get pods*",
     List({Pod("demo-coordinator-0", R"({"conditions":[{"type":"Ready","status":"True"}]})")}));
  EXPECT_EQ(Submit(RunWith()).AwaitCoordinator(), absl::OkStatus());
  EXPECT_THAT(said_, ElementsAre("demo-coordinator-0: Pending, no node")) << "it is said once";
  EXPECT_EQ(Calls().size(), 4u);
}

TEST_F(SubmissionTest, APodThatCanNeverWorkEndsTheWait) {
  On("*get pods*",
     List({Pod("demo-nn-worker-0",
               R"({"containerStatuses":[{"state":{"waiting":{"reason":"ImagePullBackOff"}}}]})")}));
  On("*get events*", kNothing);
  EXPECT_EQ(Submit(RunWith()).AwaitCoordinator(),
            absl::FailedPreconditionError("demo-nn-worker-0: ImagePullBackOff"));
}

TEST_F(SubmissionTest, AQuotaThatIsFullIsToldByTheEventsOfTheSet) {
  On("*get pods*", List({Pod("demo-members-x", R"({"phase":"Pending"})")}));
  On("*get events*",
     R"({"items":[{"involvedObject":{"name":"demo-coordinator"},"reason":"FailedCreate",)"
     R"("message":"exceeded quota"}]})");
  EXPECT_EQ(Submit(RunWith("start_seconds: 1")).AwaitCoordinator(),
            absl::DeadlineExceededError(
                "the coordinator does not serve after 1 s (kubernetes.start_seconds): "
                "demo-coordinator: no pod can be made, exceeded quota"));
}

TEST_F(SubmissionTest, ASignalEndsTheWait) {
  On("*get pods*", List({Pod("demo-coordinator-0", R"({"phase":"Pending"})")}));
  signal_ = 2;
  EXPECT_TRUE(absl::IsCancelled(Submit(RunWith()).AwaitCoordinator()));
  EXPECT_EQ(Calls().size(), 1u);
}

}  // namespace
}  // namespace satrap

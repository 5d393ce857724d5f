// What can go wrong when a run is submitted. In each case the command exits with 1 and an error
// that says in one line what is wrong, where, and what to do. Nothing is left in the cluster.

#include <cstdint>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/thread/clock.h"
#include "deploy/submit/command/run_place.h"
#include "deploy/submit/command/testing/fake_cluster.h"
#include "deploy/submit/testing/submission_fixture.h"
#include "gmock/gmock.h"

namespace satrap {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr char kReady[] = R"({"phase":"Running","conditions":[{"type":"Ready","status":"True"}]})";

class SubmitFailureTest : public FakeClusterTest {
 protected:
  // Submits the run, which must fail as the comment above says. Returns the line.
  std::string Failure(const RunInCluster& run) {
    const absl::StatusOr<int> code = Submit(run);
    EXPECT_FALSE(code.ok()) << "it exits with " << *code;
    std::string line(code.status().message());
    EXPECT_THAT(line, Not(HasSubstr("\n")));
    EXPECT_THAT(Objects(), IsEmpty());
    EXPECT_EQ(*NamespaceOf("demo", "", dir_ + "/runs"), "") << "nothing stays noted";
    return line;
  }
  static std::string Unscheduled(const std::string& why) {
    return R"({"phase":"Pending","conditions":[{"type":"PodScheduled","status":"False","message":")" +
           why + R"("}]})";
  }
  // Lets the run's coordinator refuse to begin, because of `why`. Returns the line.
  std::string FailureOfCoordinator(const std::string& why) {
    SetPods({Pod("coordinator", "demo-coordinator-0", R"({"phase":"Running"})")});
    on_wait_ = [this, why] { FailRun(why); };
    return Failure(RunWith());
  }
};

TEST_F(SubmitFailureTest, AnImageThatCannotBePulled) {
  SetPods({Pod("coordinator", "demo-coordinator-0",
               R"({"phase":"Pending","containerStatuses":[{"state":{"waiting":{
                   "reason":"ErrImagePull","message":"satrap:1: not found"}}}]})")});
  EXPECT_THAT(Failure(RunWith("start_seconds: 1")),
              AllOf(HasSubstr("demo-coordinator-0: ErrImagePull, satrap:1: not found"),
                    HasSubstr("correct the image (--image)")));
}

TEST_F(SubmitFailureTest, AnImageWhoseNameIsNone) {
  SetPods({Pod("nn-worker", "demo-nn-worker-0",
               R"({"phase":"Pending","containerStatuses":[{"state":{"waiting":{
                   "reason":"InvalidImageName","message":"satrap::"}}}]})")});
  EXPECT_THAT(Failure(RunWith()), AllOf(HasSubstr("demo-nn-worker-0: InvalidImageName, satrap::"),
                                        HasSubstr("correct the image (--image)")));
}

TEST_F(SubmitFailureTest, AClaimThatIsNotThere) {
  On("*get persistentvolumeclaims runs*", "");
  EXPECT_EQ(Failure(RunWith()),
            "the claim runs is not in namespace ml: make it first, with access mode ReadWriteMany");
}

TEST_F(SubmitFailureTest, AClaimThatIsNotBound) {
  On("*get persistentvolumeclaims runs*",
     R"({"metadata":{"name":"runs"},"spec":{"accessModes":["ReadWriteMany"]},)"
     R"("status":{"phase":"Pending"}})");
  SetPods({Pod("coordinator", "demo-coordinator-0",
               Unscheduled("pod has unbound immediate PersistentVolumeClaims"))});
  EXPECT_THAT(Failure(RunWith("start_seconds: 1")),
              AllOf(HasSubstr("demo-coordinator-0: Pending, pod has unbound immediate "
                              "PersistentVolumeClaims"),
                    HasSubstr("check that its claims can be bound")));
  EXPECT_THAT(said_, Contains("warning: the claim runs is not bound to a volume yet (Pending)"));
}

TEST_F(SubmitFailureTest, ACardThatNoNodeHas) {
  const std::string worker = Pod("nn-worker", "demo-nn-worker-0",
                                 Unscheduled("0/3 nodes are available: 3 Insufficient a.b/card."));
  SetPods({Pod("coordinator", "demo-coordinator-0", kReady), worker});
  on_wait_ = [this] {
    SetPods({});
    FailRun("nn_worker 0 has not come within 600 s");
  };
  EXPECT_THAT(Failure(RunWith()),
              AllOf(HasSubstr("the run has failed: nn_worker 0 has not come within 600 s; "
                              "demo-nn-worker-0: Pending, 0/3 nodes are available: 3 "
                              "Insufficient a.b/card."),
                    HasSubstr("or reduce its requests (kubernetes.nn_worker)")));
}

TEST_F(SubmitFailureTest, ASecretThatIsNotThere) {
  On("*get secrets login*", "");
  EXPECT_EQ(Failure(RunWith("secrets { name: 'login' mount_path: '/login' }")),
            "the secret login is not in namespace ml: make it first");
}

TEST_F(SubmitFailureTest, ASecretThatIsRemovedMeanwhile) {
  SetPods({Pod("coordinator", "demo-coordinator-0",
               R"({"phase":"Pending","containerStatuses":[{"state":{"waiting":{
                   "reason":"CreateContainerConfigError","message":"secret login not found"}}}]})")});
  EXPECT_THAT(Failure(RunWith("start_seconds: 1")),
              AllOf(HasSubstr("CreateContainerConfigError, secret login not found"),
                    HasSubstr("make the missing object, such as a Secret")));
}

// In the next tests, the coordinator gives the reason (common/checkpoint/storage_check.h and
// deploy/coordinator/claim/job_files.h). The tests of these files check its text.
TEST_F(SubmitFailureTest, AFolderThatTheCoordinatorCannotUse) {
  const std::string why =
      "run_dir /runs/demo-1 cannot be used: `mkdir` does not work on its file system (nfs): cannot "
      "make /runs/demo-1: Permission denied. This process runs as user 65532 and group 65532, "
      "which need the right to write there";
  EXPECT_EQ(FailureOfCoordinator(why), "the coordinator does not begin: " + why);
}

TEST_F(SubmitFailureTest, AFolderWithoutHardLinks) {
  EXPECT_THAT(FailureOfCoordinator("run_dir /runs/demo-1 cannot be used: `link` does not "
                                   "work on its file system (fuse)"),
              HasSubstr("`link` does not work on its file system (fuse)"));
}

TEST_F(SubmitFailureTest, FilesOfTheJobThatAreNotInItsVolumes) {
  EXPECT_THAT(FailureOfCoordinator("the pods cannot read what the job names: data.train_files: no "
                                   "file matches /data/*.gz"),
              HasSubstr("no file matches /data/*.gz"));
}

TEST_F(SubmitFailureTest, AMachineWithoutKubectl) {
  kubectl_ = std::make_unique<Kubectl>("ml", "/nowhere/kubectl");
  EXPECT_EQ(Failure(RunWith()),
            "there is no /nowhere/kubectl on the PATH: install it, and check by `kubectl get pods` "
            "that it reaches the cluster");
}

TEST_F(SubmitFailureTest, AClusterThatDoesNotAnswer) {
  On("*", {"", 1,
           "The connection to the server 127.0.0.1:6443 was refused - did you specify the right "
           "host or port?\n",
           false});
  EXPECT_THAT(Failure(RunWith()),
              AllOf(HasSubstr("The connection to the server 127.0.0.1:6443 was refused"),
                    HasSubstr("the cluster of your context does not answer")));
}

TEST_F(SubmitFailureTest, AClusterInWhichTheUserHasNoRights) {
  On("*get persistentvolumeclaims*",
     {"", 1,
      "Error from server (Forbidden): persistentvolumeclaims \"runs\" is forbidden: User \"ann\" "
      "cannot get resource \"persistentvolumeclaims\" in API group \"\" in the namespace \"ml\"\n",
      false});
  On("*auth can-i*", {"", 1, "", false});
  EXPECT_THAT(Failure(RunWith()),
              AllOf(HasSubstr("User \"ann\" cannot get resource"),
                    HasSubstr("you need the cluster role `edit` in namespace ml")));
}

TEST_F(SubmitFailureTest, ARightThatIsMissingWhenHalfOfTheObjectsAreMade) {
  Refuse("StatefulSet", "demo-embedding-ps", "Error from server (Forbidden): statefulsets.apps");
  On("*auth can-i*", {"", 1, "", false});
  EXPECT_THAT(Failure(RunWith()),
              AllOf(HasSubstr("cannot make StatefulSet demo-embedding-ps in namespace ml"),
                    HasSubstr("what was made of the run is removed"),
                    HasSubstr("you need the cluster role `edit` in namespace ml")));
}

TEST_F(SubmitFailureTest, AQuotaThatTakesNoFurtherObject) {
  Refuse("Job", "demo",
         "Error from server (Forbidden): jobs.batch \"demo\" is forbidden: exceeded quota: small, "
         "requested: count/jobs.batch=1, used: count/jobs.batch=4, limited: count/jobs.batch=4");
  EXPECT_THAT(Failure(RunWith()),
              AllOf(HasSubstr("cannot make Job demo in namespace ml"),
                    HasSubstr("exceeded quota: small, requested: count/jobs.batch=1"),
                    HasSubstr("correct the cause, and give the command again")));
}

TEST_F(SubmitFailureTest, AQuotaThatTakesNoFurtherPod) {
  SetEvent("StatefulSet", "demo-coordinator", "FailedCreate",
           "pods \"demo-coordinator-0\" is forbidden: exceeded quota: small, requested: "
           "requests.cpu=250m, used: requests.cpu=4, limited: requests.cpu=4");
  EXPECT_THAT(Failure(RunWith("start_seconds: 1")),
              AllOf(HasSubstr("StatefulSet demo-coordinator: cannot make a pod, pods "
                              "\"demo-coordinator-0\" is forbidden: exceeded quota: small"),
                    HasSubstr("delete other runs, or reduce what the pod requests "
                              "(kubernetes.coordinator)")));
}

// Job RUN ends some time after the pods of the run are gone. Its own pod may have had to wait for
// the quota, too.
TEST_F(SubmitFailureTest, AQuotaThatTakesNotAllPods) {
  SetPods({Pod("coordinator", "demo-coordinator-0", kReady)});
  SetEvent("StatefulSet", "demo-nn-worker", "FailedCreate",
           "pods \"demo-nn-worker-0\" is forbidden: exceeded quota: small, requested: pods=1");
  int waits = 0;
  int64_t gone_ms = 0;
  on_wait_ = [&] {
    if (++waits == 2) {
      gone_ms = MonotonicMs();
      SetStatus("Job", "demo-members", R"({"conditions":[{"type":"Complete","status":"True"}]})");
      for (const char* const role :
           {"coordinator", "data-loader", "embedding-ps", "embedding-worker", "nn-worker"}) {
        Lose(absl::StrCat("StatefulSet demo-", role));
      }
      SetPods({Pod("story", "demo-x", R"({"phase":"Running"})")});
    }
    // Later than the command waits for pods.
    if (gone_ms > 0 && MonotonicMs() - gone_ms > 1200) FailRun("nn_worker 0 has not come");
  };
  EXPECT_THAT(Failure(RunWith("start_seconds: 1")),
              AllOf(HasSubstr("the run has failed: nn_worker 0 has not come; "),
                    HasSubstr("StatefulSet demo-nn-worker: cannot make a pod"),
                    HasSubstr("exceeded quota: small"), HasSubstr("delete other runs")));
}

}  // namespace
}  // namespace satrap

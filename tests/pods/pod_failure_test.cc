// Tests on a real Kubernetes what can go wrong when a run is submitted. In each case the command
// exits with 1 and an error that says in one line what is wrong, where, and what to do. Nothing is
// left in the cluster.

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "gmock/gmock.h"
#include "tests/kafka/topic_run_fixture.h"
#include "tests/pods/pod_run_fixture.h"

namespace satrap {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr int64_t kSomeRecords = 1000;
constexpr char kOurs[] = "--selector=app.kubernetes.io/name=satrap";
constexpr double kSecondsToFail = 180;
// How long a run waits for pods that do not come.
constexpr char kWaitsShortly[] = "start_seconds: 20 ";

// With this profile of seccomp the file system of a container has no hard links.
constexpr char kNoLinks[] = R"({"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [
    {"names": ["link", "linkat"], "action": "SCMP_ACT_ERRNO", "errnoRet": 95}]})";
constexpr char kNoLinksPatch[] = R"(spec:
  securityContext: {seccompProfile: {type: Localhost, localhostProfile: no_links.json}}
)";

// Nobody listens at this port.
constexpr char kNoCluster[] = R"(apiVersion: v1
kind: Config
current-context: user
contexts: [{name: user, context: {cluster: tests, user: user, namespace: ml}}]
clusters: [{name: tests, cluster: {server: "https://127.0.0.1:1"}}]
users: [{name: user, user: {token: "x"}}]
)";

constexpr char kKafkaData[] = R"(kafka {
  brokers: "127.0.0.1:1"
  topics: "clicks"
  group_id: "clicks"
  settings { name: "sasl.password" value: "file:/secrets/kafka/password" }
  end { at: NEVER }
})";

// Gives a variable of the environment another value for as long as the object exists.
class OtherVariable {
 public:
  OtherVariable(const char* name, const std::string& value) : name_(name), before_(getenv(name)) {
    setenv(name_, value.c_str(), /*overwrite=*/1);
  }
  ~OtherVariable() { setenv(name_, before_.c_str(), /*overwrite=*/1); }
  OtherVariable(const OtherVariable&) = delete;
  OtherVariable& operator=(const OtherVariable&) = delete;

 private:
  const char* const name_;
  const std::string before_;
};

// The part of the fixture of topic tests that this test uses.
struct Topics : public TopicRunFixture {
  using TopicRunFixture::JobText;
};

class PodFailureTest : public PodRunFixture {
 protected:
  // The section `kubernetes` of a job, with `more`.
  static std::string Section(const std::string& more = "") {
    return absl::StrReplaceAll(SectionOfPods(), {{"kubernetes {", "kubernetes { " + more}});
  }
  // Submits the job at `path`, which must fail as the comment above says. Returns the line.
  std::string FailureOf(const std::string& path, const std::vector<std::string>& args = {},
                        const std::string& image = "") {
    std::vector<std::string> all = {"submit", path, "--image",
                                    image.empty() ? cluster().image() : image};
    all.insert(all.end(), args.begin(), args.end());
    const CommandEnd end = WaitFor(StartWithPath(all), kSecondsToFail);
    EXPECT_EQ(end.exit_code, 1) << end.err;
    ExpectNothingLeft();
    const absl::string_view said = absl::StripSuffix(end.err, "\n");
    return std::string(said.substr(said.rfind('\n') + 1));
  }
  // Starts the command so that it looks for programs in path_.
  Command StartWithPath(const std::vector<std::string>& args) {
    const OtherVariable path("PATH", path_);
    return StartSatrap(args);
  }
  // Submits a job with that section.
  std::string Failure(const std::string& section = Section(),
                      const std::vector<std::string>& args = {}) {
    return FailureOf(WriteCountingJob(kSomeRecords, section), args);
  }
  // Kubernetes removes what a run owns a moment after the run.
  void ExpectNothingLeft() const {
    for (const char* const kind : {"jobs", "statefulsets", "services", "configmaps", "pods"}) {
      Kubectl({"wait", "--for=delete", kind, kOurs, "--timeout=60s"});
    }
    EXPECT_EQ(
        Kubectl({"get", "jobs,statefulsets,services,configmaps,pods", kOurs, "--output=name"}), "");
  }
  void SetQuota(const std::string& what, const std::string& most) const {
    Kubectl({"patch", "resourcequota", "quota", "--type=merge",
             absl::StrCat(R"(--patch={"spec":{"hard":{")", what, R"(":")", most, R"("}}})")});
  }

  std::string path_ = getenv("PATH");
};

TEST_F(PodFailureTest, WhatIsWrongWithTheJobOrItsNamesIsSaidBeforeAnythingIsMade) {
  EXPECT_THAT(Failure(Section() + "nn_worker { threads: }"), HasSubstr("job.textproto:"));
  EXPECT_THAT(Failure(Section(), {"--set", "embedding_ps.replicas=-1"}),
              HasSubstr("embedding_ps.replicas"));
  EXPECT_THAT(Failure(Section(), {"--name", std::string(60, 'a')}),
              AllOf(HasSubstr("must have at most 35 lower-case letters"),
                    HasSubstr("choose another by --name")));
  EXPECT_THAT(FailureOf(WriteCountingJob(kSomeRecords,
                                         absl::StrReplaceAll(Section(), {{"runs\"", "no\""}}))),
              AllOf(HasSubstr("the claim no is not in"), HasSubstr("make it first")));
  EXPECT_THAT(Failure(Section("secrets { name: 'login' mount_path: '/login' } ")),
              AllOf(HasSubstr("the secret login is not in"), HasSubstr("make it first")));
}

TEST_F(PodFailureTest, AMachineWithoutKubectlAndAClusterThatDoesNotAnswer) {
  path_ = Path("empty");
  EXPECT_THAT(Failure(), AllOf(HasSubstr("there is no kubectl on the PATH"),
                               HasSubstr("install it, and check by `kubectl get pods`")));
  path_ = getenv("PATH");
  const OtherVariable config("KUBECONFIG", WriteFile("nowhere", kNoCluster));
  EXPECT_THAT(Failure(), AllOf(HasSubstr("127.0.0.1:1"),
                               HasSubstr("the cluster of your context does not answer"),
                               HasSubstr("`kubectl config get-contexts`")));
}

TEST_F(PodFailureTest, AUserWithoutRights) {
  Kubectl({"create", "serviceaccount", "stranger"});
  cluster().BecomeUser("stranger", space_, Path("kubeconfig"));
  EXPECT_THAT(Failure(), AllOf(HasSubstr("stranger"), HasSubstr("persistentvolumeclaims"),
                               HasSubstr("you need the cluster role `edit`")));
}

TEST_F(PodFailureTest, AnImageThatCannotBePulled) {
  EXPECT_THAT(
      FailureOf(WriteCountingJob(kSomeRecords, SectionOfPods()), {}, "127.0.0.1:1/satrap:1"),
      AllOf(HasSubstr("127.0.0.1:1/satrap:1"), HasSubstr("counting-"),
            HasSubstr("correct the image (--image)")));
}

TEST_F(PodFailureTest, AClaimThatIsNotBound) {
  SetQuota("persistentvolumeclaims", "2");
  cluster().Create("claim", absl::StrCat(R"(apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: unbound, namespace: )",
                                         space_, R"(}
spec:
  accessModes: [ReadWriteMany]
  storageClassName: ""
  volumeName: nowhere
  resources: {requests: {storage: 1Gi}}
)"));
  EXPECT_THAT(Failure(absl::StrReplaceAll(Section(kWaitsShortly), {{"\"runs\"", "\"unbound\""}})),
              AllOf(HasSubstr("counting-coordinator-0: Pending"),
                    HasSubstr("unbound immediate PersistentVolumeClaims"),
                    HasSubstr("check that its claims can be bound")));
}

TEST_F(PodFailureTest, ACardThatNoNodeHas) {
  EXPECT_THAT(Failure(Section(kWaitsShortly), {"--set", "nn_worker.device=CUDA"}),
              AllOf(HasSubstr("the run has failed: "), HasSubstr("nn_worker 0"),
                    HasSubstr("Insufficient nvidia.com/gpu"),
                    HasSubstr("or reduce its requests (kubernetes.nn_worker)")));
}

TEST_F(PodFailureTest, ASecretWithoutTheFileThatTheJobNames) {
  Kubectl({"create", "secret", "generic", "kafka-login", "--from-literal=passwort=alice"});
  const std::string section =
      Section("secrets { name: 'kafka-login' mount_path: '/secrets/kafka' } ");
  EXPECT_THAT(
      FailureOf(WriteFile("topic.textproto", Topics::JobText(kKafkaData) + section)),
      AllOf(HasSubstr("the coordinator does not begin: "), HasSubstr("/secrets/kafka/password")));
}

TEST_F(PodFailureTest, AFolderOfAnotherUser) {
  ASSERT_EQ(chown(Path("volume").c_str(), 0, 0), 0);
  ASSERT_EQ(chmod(Path("volume").c_str(), 0700), 0);
  EXPECT_THAT(
      Failure(),
      AllOf(HasSubstr("the coordinator does not begin: run_dir /runs/counting-"),
            HasSubstr("Permission denied"),
            HasSubstr("user 65532 and group 65532, which need the right to read and write there")));
}

TEST_F(PodFailureTest, AFolderWithoutHardLinks) {
  cluster().AddSeccompProfile("no_links.json", kNoLinks);
  WriteFile("no_links.yaml", kNoLinksPatch);
  EXPECT_THAT(Failure(Section("pod_patch: 'no_links.yaml' ")),
              AllOf(HasSubstr("the coordinator does not begin: run_dir /runs/counting-"),
                    HasSubstr("`link` does not work on its file system"), HasSubstr("NFS 4")));
}

TEST_F(PodFailureTest, AQuotaThatIsFull) {
  SetQuota("pods", "2");
  EXPECT_THAT(Failure(Section(kWaitsShortly)),
              AllOf(HasSubstr("cannot make a pod"), HasSubstr("exceeded quota: quota"),
                    HasSubstr("delete other runs, or reduce what the pod requests")));
  SetQuota("count/configmaps", "1");  // there is one with the cluster's certificate
  EXPECT_THAT(Failure(), AllOf(HasSubstr("cannot make ConfigMap counting-job"),
                               HasSubstr("exceeded quota: quota"),
                               HasSubstr("what was made of the run is removed")));
}

}  // namespace
}  // namespace satrap

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/config/job_change.h"
#include "common/config/job_config.h"
#include "common/config/testing/validation_check.h"
#include "gmock/gmock.h"

namespace satrap {
namespace {

using ::testing::HasSubstr;

JobConfig JobInCluster(absl::string_view more = "") {
  JobConfig job = SmallJob();
  CHECK_OK(ParseText(absl::StrCat("volumes { claim: 'runs' mount_path: '/runs' } ", more),
                     "kubernetes", job.mutable_kubernetes()));
  return job;
}

TEST(ValidateKubernetes, AJobWithAVolumeForItsRunIsValid) {
  EXPECT_EQ(ProblemsOf(SmallJob()), "") << "a job need not say anything about a cluster";
  EXPECT_EQ(ProblemsOf(JobInCluster()), "");
  EXPECT_EQ(ProblemsOf(JobInCluster(R"(
      image: 'registry.example/satrap:1'
      volumes { host_path: '/data' mount_path: '/data' read_only: true }
      secrets { name: 'kafka.password' mount_path: '/secrets/kafka' }
      embedding_ps {
        cpu: '500m' memory: '4Gi'
        node_selector { name: 'disk' value: 'ssd' }
        tolerations { key: 'gpu' effect: NO_SCHEDULE }
      })")),
            "");
}

TEST(ValidateKubernetes, ExactlyOneVolumeHoldsTheRun) {
  const std::string rule =
      "kubernetes.volumes: exactly one volume must be writable (not read_only), because the run's "
      "folder is made in it, got ";
  const std::string ones = " writable ones";
  JobConfig job = JobInCluster();
  EXPECT_EQ(ProblemsOf(job, {"kubernetes.volumes[0].read_only=true"}), rule + "0" + ones);
  EXPECT_EQ(ProblemsOf(JobInCluster("volumes { claim: 'b' mount_path: '/b' }")), rule + "2" + ones);
  job.mutable_kubernetes()->clear_volumes();
  EXPECT_EQ(ProblemsOf(job), rule + "0" + ones);
}

TEST(ValidateKubernetes, AVolumeHasASource) {
  EXPECT_EQ(ProblemsOf(JobInCluster("volumes { mount_path: '/b' read_only: true }")),
            "kubernetes.volumes[1]: must have a claim or a host_path");
  EXPECT_EQ(ProblemsOf(JobInCluster("volumes { claim: 'A b' mount_path: '/b' read_only: true }")),
            "kubernetes.volumes[1].claim: must be a Kubernetes object name (RFC 1123: lower-case "
            "letters, digits, '-' and '.'), got 'A b'");
  for (const char* path : {"", "data", "/", "/data/", "/a/../b"}) {
    EXPECT_EQ(ProblemsOf(JobInCluster(absl::StrCat("volumes { host_path: '", path,
                                                   "' mount_path: '/b' read_only: true }"))),
              absl::StrCat("kubernetes.volumes[1].host_path: must be an absolute path in its "
                           "shortest form, got '",
                           path, "'"));
  }
}

TEST(ValidateKubernetes, AMountIsAtAPathOfItsOwn) {
  const auto problems_at = [](const std::string& path) {
    return ProblemsOf(JobInCluster(absl::StrCat("secrets { name: 's' mount_path: '", path, "' }")));
  };
  const std::string field = "kubernetes.secrets[0].mount_path: ";
  for (const std::string path : {"", "runs", "/", "/a//b", "/a/", "/a/./b", "/a:b"}) {
    EXPECT_EQ(problems_at(path), absl::StrCat(field,
                                              "must be an absolute path in its shortest form, "
                                              "without ':', got '",
                                              path, "'"));
  }
  for (const std::string path : {"/runs", "/runs/secret"}) {
    EXPECT_EQ(problems_at(path),
              absl::StrCat(field, "must not overlap kubernetes.volumes[0].mount_path (/runs), got ",
                           path));
  }
  EXPECT_EQ(problems_at("/runs2"), "") << "a name may begin with another";
  EXPECT_EQ(problems_at("/etc/satrap"),
            field +
                "must not lie in /etc or contain it, because containers need that folder, got "
                "/etc/satrap");
  EXPECT_EQ(
      problems_at("/opt"),
      field +
          "must not lie in /opt/satrap or contain it, because containers need that folder, got "
          "/opt");
  EXPECT_EQ(problems_at("/opt/data"), "");
}

TEST(ValidateKubernetes, QuantitiesAreThoseOfKubernetes) {
  const std::vector<std::string> good = {"1", "0.5", "500m", "4Gi"};
  for (const std::string role :
       {"coordinator", "data_loader", "embedding_worker", "embedding_ps", "nn_worker"}) {
    for (const std::string quantity : {"cpu", "memory"}) {
      const std::string field = absl::StrCat("kubernetes.", role, ".", quantity);
      const std::string examples = quantity == "cpu" ? "2 or 500m" : "4Gi or 512M";
      for (const std::string& value : good) {
        EXPECT_EQ(ProblemsOf(JobInCluster(), {absl::StrCat(field, "=", value)}), "") << value;
      }
      for (const std::string value : {"0", "two", "4GB", "-1"}) {
        EXPECT_EQ(ProblemsOf(JobInCluster(), {absl::StrCat(field, "=", value)}),
                  absl::StrCat(field, ": must be a Kubernetes quantity above 0, such as ", examples,
                               ", got '", value, "'"));
      }
    }
  }
}

TEST(ValidateKubernetes, ALabelOfNodesIsGivenOnce) {
  EXPECT_EQ(ProblemsOf(JobInCluster(R"(embedding_ps {
                node_selector { name: 'disk' value: 'ssd' }
                node_selector { name: 'zone' value: 'a' }
                node_selector { name: 'disk' value: 'hdd' } })")),
            "kubernetes.embedding_ps.node_selector[2].name: must be unique, but "
            "node_selector[0] has disk, too");
}

TEST(ValidateKubernetes, OnlyAnNnWorkerOnACardHasOne) {
  const std::string set = "kubernetes.nn_worker.card=amd.com/gpu";
  EXPECT_EQ(ProblemsOf(JobInCluster(), {set, "nn_worker.device=CUDA"}), "");
  const std::string rule =
      ".card: is for kubernetes.nn_worker with nn_worker.device CUDA only, got 'amd.com/gpu'";
  EXPECT_EQ(ProblemsOf(JobInCluster(), {set}), "kubernetes.nn_worker" + rule);
  EXPECT_EQ(ProblemsOf(JobInCluster(),
                       {"kubernetes.embedding_ps.card=amd.com/gpu", "nn_worker.device=CUDA"}),
            "kubernetes.embedding_ps" + rule);
  EXPECT_EQ(
      ProblemsOf(JobInCluster(), {"kubernetes.nn_worker.card=gpu", "nn_worker.device=CUDA"}),
      "kubernetes.nn_worker.card: must be a Kubernetes resource name such as nvidia.com/gpu, got "
      "'gpu'");
}

TEST(ValidateKubernetes, LabelsAndTaintsHaveNamesOfKubernetes) {
  EXPECT_EQ(ProblemsOf(JobInCluster("nn_worker { node_selector { name: 'a b' value: 'c' } }")),
            "kubernetes.nn_worker.node_selector[0].name: must be a Kubernetes label key such as "
            "kubernetes.io/arch, got 'a b'");
  EXPECT_THAT(ProblemsOf(JobInCluster("nn_worker { node_selector { name: 'a' value: 'b/c' } }")),
              HasSubstr("kubernetes.nn_worker.node_selector[0].value: must have at most 63"));
  EXPECT_THAT(
      ProblemsOf(JobInCluster("coordinator { tolerations { value: 'x' } }")),
      HasSubstr("kubernetes.coordinator.tolerations[0].key: must be a Kubernetes label key"));
}

TEST(ValidateKubernetes, AnImageHasAName) {
  for (const std::string image : {"", "a b"}) {
    EXPECT_EQ(ProblemsOf(JobInCluster(), {"kubernetes.image=" + image}),
              "kubernetes.image: must be the name of an image such as REGISTRY/satrap:TAG, got '" +
                  image + "'");
  }
}

TEST(ValidateKubernetes, WhereARunIsMayChangeAndIsNoPartOfItsIdentity) {
  const JobConfig before = JobInCluster();
  JobConfig after = JobInCluster("image: 'other:2' embedding_ps { memory: '8Gi' }");
  after.mutable_kubernetes()->mutable_volumes(0)->set_claim("faster");
  EXPECT_TRUE(CheckJobChange(before, after).ok()) << CheckJobChange(before, after);
  EXPECT_TRUE(CheckJobChange(SmallJob(), after).ok());
  EXPECT_TRUE(CheckJobChange(before, SmallJob()).ok());
  EXPECT_EQ(JobFingerprint(before), JobFingerprint(after));
  EXPECT_EQ(JobFingerprint(before), JobFingerprint(SmallJob()));
}

}  // namespace
}  // namespace satrap

#include "deploy/submit/pod_resources.h"

#include <string>
#include <vector>

#include "common/config/job_config.h"
#include "common/config/testing/validation_check.h"
#include "gmock/gmock.h"

namespace satrap {
namespace {

using ::testing::ElementsAre;

JobConfig JobWith(const std::vector<std::string>& sets) {
  JobConfig job = SmallJob();
  job.mutable_kubernetes();
  for (const std::string& set : sets) CHECK_OK(SetField(set, &job));
  ResolveJob(&job);
  return job;
}

std::string TextOf(Role role, const JobConfig& job) { return Yaml(ResourcesOf(role, job)).Text(); }

TEST(PodResourcesTest, AProcessorIsReservedForEachThreadUnlessTheJobSaysOtherwise) {
  const JobConfig job =
      JobWith({"embedding_ps.threads=3", "nn_worker.threads=2", "nn_worker.compute_threads=5",
               "kubernetes.data_loader.cpu=1500m"});
  EXPECT_EQ(TextOf(EMBEDDING_PS, job), "requests:\n  cpu: \"3\"\n  memory: \"256Mi\"\n");
  EXPECT_EQ(TextOf(NN_WORKER, job), "requests:\n  cpu: \"7\"\n  memory: \"256Mi\"\n");
  EXPECT_EQ(TextOf(DATA_LOADER, job), "requests:\n  cpu: \"1500m\"\n  memory: \"256Mi\"\n");
  EXPECT_EQ(TextOf(COORDINATOR, job), "requests:\n  cpu: \"250m\"\n  memory: \"256Mi\"\n");
}

TEST(PodResourcesTest, MemoryThatTheJobGivesIsAlsoTheLimit) {
  EXPECT_EQ(TextOf(EMBEDDING_PS, JobWith({"kubernetes.embedding_ps.memory=4Gi"})),
            "requests:\n  cpu: \"1\"\n  memory: \"4Gi\"\nlimits:\n  memory: \"4Gi\"\n");
}

TEST(PodResourcesTest, ARankOnACardGetsOne) {
  EXPECT_EQ(
      TextOf(NN_WORKER, JobWith({"nn_worker.device=CUDA", "kubernetes.nn_worker.card=a.b/c"})),
      "requests:\n  cpu: \"2\"\n  memory: \"256Mi\"\n  a.b/c: 1\nlimits:\n  a.b/c: 1\n");
}

TEST(PodWarningsTest, AnEmbeddingPsShouldHaveALimitOfMemory) {
  EXPECT_THAT(
      PodWarnings(JobWith({})),
      ElementsAre("kubernetes.embedding_ps.memory is not given: an embedding PS may take "
                  "all memory of its node, and Kubernetes may then kill any of the pods there"));
}

TEST(PodWarningsTest, TellHowMuchOfTheMemoryCutsMayNeed) {
  EXPECT_THAT(PodWarnings(JobWith({"kubernetes.embedding_ps.memory=4Gi"})),
              ElementsAre("each embedding PS may use 4.0 GiB, of which a cut may need up to 1.0 "
                          "GiB (checkpoint.copy_bytes): that leaves 3.0 GiB for rows, their index "
                          "and messages"));
  EXPECT_THAT(PodWarnings(JobWith({"kubernetes.embedding_ps.memory=1Gi"})),
              ElementsAre("each embedding PS may use 1.0 GiB, of which a cut may need up to 1.0 "
                          "GiB (checkpoint.copy_bytes): nothing is left for rows"));
}

TEST(PodWarningsTest, ThreadsShouldHaveProcessors) {
  const std::vector<std::string> warnings =
      PodWarnings(JobWith({"kubernetes.embedding_ps.memory=4Gi", "embedding_worker.threads=4",
                           "kubernetes.embedding_worker.cpu=2500m", "nn_worker.threads=2",
                           "kubernetes.nn_worker.cpu=3"}));
  ASSERT_EQ(warnings.size(), 2u) << "three threads of an NN worker have three processors";
  EXPECT_EQ(warnings[0],
            "each embedding_worker has 4 busy threads, but kubernetes.embedding_worker.cpu "
            "reserves 2500m: on a full node they share less than a processor each");
}

}  // namespace
}  // namespace satrap

#include "deploy/submit/manifests.h"

#include <fstream>
#include <iterator>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/config/job_config.h"
#include "common/config/testing/validation_check.h"
#include "gmock/gmock.h"

namespace satrap {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

RunInCluster RunOf(absl::string_view kubernetes, const std::vector<std::string>& sets = {}) {
  RunInCluster run;
  run.job = SmallJob();
  CHECK_OK(ParseText(std::string(kubernetes), "kubernetes", run.job.mutable_kubernetes()));
  for (const std::string& set : sets) CHECK_OK(SetField(set, &run.job));
  ResolveJob(&run.job);
  CHECK_OK(ValidateJob(run.job));
  run.name = "demo";
  run.image = "registry.example/satrap:0123456789ab";
  return run;
}

RunInCluster Demo() { return RunOf("volumes { claim: 'runs' mount_path: '/runs' }"); }

RunInCluster WithCards() {
  RunInCluster run =
      RunOf(R"(
      volumes { claim: 'clicks' mount_path: '/data/clicks' read_only: true }
      volumes { claim: 'runs' mount_path: '/runs' }
      secrets { name: 'kafka-login' mount_path: '/secrets/kafka' }
      embedding_ps { memory: '16Gi' node_selector { name: 'disk' value: 'ssd' } }
      nn_worker {
        cpu: '4' memory: '8Gi' card: 'nvidia.com/gpu'
        tolerations { key: 'nvidia.com/gpu' effect: NO_SCHEDULE }
        tolerations { key: 'team' value: 'ads' }
      })",
            {"nn_worker.device=CUDA", "nn_worker.replicas=2", "embedding_ps.replicas=4",
             "embedding_ps.threads=3", "stop_seconds=40.5"});
  run.name = "cards";
  run.space = "ml";
  run.submission = 2;
  return run;
}

// The text without the job, which has every setting with its default.
std::string WithoutJob(const std::string& text) {
  std::string rest;
  bool in_job = false;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    in_job = in_job && (line.empty() || absl::StartsWith(line, "    "));
    if (!in_job) absl::StrAppend(&rest, rest.empty() ? "" : "\n", line);
    in_job = in_job || line == "  job.textproto: |";
  }
  return rest;
}

std::string Golden(const std::string& name) {
  std::ifstream file("deploy/submit/golden/" + name);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::string TextOf(const std::vector<Manifest>& manifests, const std::string& kind,
                   const std::string& name) {
  for (const Manifest& manifest : manifests) {
    if (manifest.kind == kind && manifest.name == name) return manifest.object.Text();
  }
  ADD_FAILURE() << "there is no " << kind << " " << name;
  return "";
}

TEST(ManifestsTest, AreThoseOfTheGoldenFiles) {
  EXPECT_EQ(WithoutJob(ManifestsText(Demo())), Golden("demo.yaml"));
  EXPECT_EQ(WithoutJob(ManifestsText(WithCards())), Golden("cards.yaml"));
}

TEST(ManifestsTest, AreTheSameForTheSameJob) {
  EXPECT_EQ(ManifestsText(Demo()), ManifestsText(Demo()));
  RunInCluster owned = Demo();
  owned.owner_uid = "1234";
  EXPECT_EQ(ManifestsText(Demo()), ManifestsText(owned)) << "what is printed has no owner";
}

TEST(ManifestsTest, TheServiceAndTheSetsHaveTheMembersJobAsTheirOwner) {
  RunInCluster run = Demo();
  run.owner_uid = "01234567-89ab";
  const std::string owner = "uid: \"01234567-89ab\"";
  int owned = 0;
  for (const Manifest& manifest : OwnedManifests(run)) {
    // Job RUN and the ConfigMap stay when the run has ended.
    const bool stays = manifest.kind == "Job" || manifest.kind == "ConfigMap";
    EXPECT_EQ(absl::StrContains(manifest.object.Text(), owner), !stays) << manifest.name;
    owned += stays ? 0 : 1;
  }
  EXPECT_EQ(owned, 6);
  EXPECT_EQ(OwnedManifests(run).back().name, "demo") << "Job RUN is made last";
  EXPECT_THAT(MembersJob(run).object.Text(), Not(HasSubstr(owner)));
}

TEST(ManifestsTest, TheFolderOfTheRunIsInTheVolumeThatIsNotReadOnlyAndNamedAfterTheOwner) {
  RunInCluster run = WithCards();
  EXPECT_EQ(RunDirOf(run), "/runs/cards");
  run.owner_uid = "01234567-89ab";
  EXPECT_EQ(RunDirOf(run), "/runs/cards-01234567");
  const std::vector<Manifest> manifests = OwnedManifests(run);
  EXPECT_THAT(TextOf(manifests, "ConfigMap", "cards-job-2"),
              HasSubstr("    run_dir: \"/runs/cards-01234567\"\n"));
  EXPECT_THAT(TextOf(manifests, "Job", "cards"), HasSubstr("\"--run_dir=/runs/cards-01234567\""));
}

TEST(ManifestsTest, ALaterSubmissionHasAMapOfItsOwnAndTheFolderOfTheRun) {
  RunInCluster run = Demo();
  run.owner_uid = "89abcdef-01";
  run.submission = 2;
  run.run_dir = "/runs/demo-01234567";
  run.from = "cut_0001_000004";
  run.template_patch = "spec:\n  template: {}\n";
  const std::vector<Manifest> manifests = OwnedManifests(run);
  const std::string map = TextOf(manifests, "ConfigMap", "demo-job-2");
  EXPECT_THAT(map, HasSubstr("    run_dir: \"/runs/demo-01234567\"\n"));
  EXPECT_THAT(map, HasSubstr("image: \"registry.example/satrap:0123456789ab\"\n"));
  EXPECT_THAT(map, HasSubstr("  template_patch.yaml: |\n    spec:\n      template: {}\n"));
  const std::string coordinator = TextOf(manifests, "StatefulSet", "demo-coordinator");
  EXPECT_THAT(coordinator, HasSubstr("name: demo-job-2\n"));
  EXPECT_THAT(coordinator,
              HasSubstr("\"--submission=2\"\n            - \"--from=cut_0001_000004\""));
  EXPECT_THAT(TextOf(manifests, "StatefulSet", "demo-nn-worker"), Not(HasSubstr("--from")));
}

TEST(ManifestsTest, TheLongestNameOfARunGivesNamesThatKubernetesTakes) {
  RunInCluster run = Demo();
  run.name = std::string(35, 'x');
  for (const Manifest& manifest : OwnedManifests(run)) {
    EXPECT_LE(manifest.name.size(), manifest.kind == "StatefulSet" ? 52u : 63u) << manifest.name;
  }
}

TEST(ManifestsTest, EveryContainerAsksForProcessorsAndMemory) {
  const RunInCluster run = Demo();
  std::vector<Manifest> manifests = OwnedManifests(run);
  manifests.push_back(MembersJob(run));
  int with_pods = 0;
  for (const Manifest& manifest : manifests) {
    if (!manifest.has_pods) continue;
    ++with_pods;
    EXPECT_THAT(manifest.object.Text(), HasSubstr("            requests:\n              cpu: "));
    EXPECT_THAT(manifest.object.Text(), HasSubstr("\n              memory: "));
  }
  EXPECT_EQ(with_pods, 7);
}

TEST(ManifestsTest, EveryRoleMountsTheVolumesAndTheSecretsOfTheJob) {
  const RunInCluster run = WithCards();
  for (const Manifest& manifest : OwnedManifests(run)) {
    if (manifest.kind != "StatefulSet") continue;
    const std::string text = manifest.object.Text();
    for (const KubernetesVolume& volume : run.job.kubernetes().volumes()) {
      EXPECT_THAT(text, HasSubstr("mountPath: " + volume.mount_path() + "\n")) << manifest.name;
    }
    for (const KubernetesSecret& secret : run.job.kubernetes().secrets()) {
      EXPECT_THAT(text, HasSubstr("mountPath: " + secret.mount_path() + "\n")) << manifest.name;
      EXPECT_THAT(text, HasSubstr("secretName: " + secret.name() + "\n")) << manifest.name;
    }
  }
}

TEST(ManifestsTest, OnlyRanksWithACardHaveSharedMemoryAndACard) {
  const std::vector<Manifest> manifests = OwnedManifests(WithCards());
  EXPECT_THAT(TextOf(manifests, "StatefulSet", "cards-nn-worker"), HasSubstr("/dev/shm"));
  EXPECT_THAT(TextOf(manifests, "StatefulSet", "cards-nn-worker"),
              HasSubstr("              nvidia.com/gpu: 1\n"));
  EXPECT_THAT(TextOf(manifests, "StatefulSet", "cards-embedding-ps"), Not(HasSubstr("/dev/shm")));
  EXPECT_THAT(TextOf(manifests, "StatefulSet", "cards-embedding-ps"),
              Not(HasSubstr("nvidia.com/gpu")));
  EXPECT_THAT(TextOf(OwnedManifests(Demo()), "StatefulSet", "demo-nn-worker"),
              Not(HasSubstr("/dev/shm")));
}

TEST(ManifestsTest, NodesHaveTheArchitectureOfTheImageUnlessTheJobNamesAnother) {
  const std::string ps = "demo-embedding-ps";
  EXPECT_THAT(TextOf(OwnedManifests(Demo()), "StatefulSet", ps),
              HasSubstr("        kubernetes.io/arch: amd64\n"));
  const RunInCluster other = RunOf(R"(
      volumes { claim: 'runs' mount_path: '/runs' }
      embedding_ps { node_selector { name: 'kubernetes.io/arch' value: 'arm64' } })");
  const std::string text = TextOf(OwnedManifests(other), "StatefulSet", ps);
  EXPECT_THAT(text, HasSubstr("        kubernetes.io/arch: arm64\n"));
  EXPECT_THAT(text, Not(HasSubstr("amd64")));
}

}  // namespace
}  // namespace satrap

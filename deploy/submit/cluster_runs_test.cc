#include "deploy/submit/cluster_runs.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "deploy/submit/kubectl/testing/fake_kubectl.h"
#include "gmock/gmock.h"

namespace satrap {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;

constexpr char kJob[] = "*get jobs.batch/demo statefulsets.apps/demo-coordinator*";
constexpr char kObjects[] = "*get jobs.batch,services,configmaps,statefulsets.apps*";

std::string JobWith(const std::string& condition) {
  return absl::StrCat(
      R"({"kind":"Job","metadata":{"name":"demo","labels":{"app.kubernetes.io/instance":"demo"},)"
      R"("annotations":{"satrap/run-dir":"/runs/demo-1"}},"status":{"conditions":[{"type":")",
      condition, R"(","status":"True"}]}})");
}

std::string ListOf(const std::string& items) { return absl::StrCat(R"({"items":[)", items, "]}"); }

// The objects of the second submission of the run demo, in JSON, without those in `lost`.
std::string ObjectsWithout(const std::vector<std::string>& lost) {
  std::vector<std::string> items;
  for (const std::string object :
       {"Job demo-members", "Service demo-coordinator", "ConfigMap demo-job",
        "ConfigMap demo-job-2", "StatefulSet demo-coordinator", "StatefulSet demo-embedding-ps",
        "StatefulSet demo-embedding-worker", "StatefulSet demo-data-loader",
        "StatefulSet demo-nn-worker", "Job demo"}) {
    if (std::find(lost.begin(), lost.end(), object) != lost.end()) continue;
    const std::pair<std::string, std::string> words = absl::StrSplit(object, ' ');
    items.push_back(absl::StrCat(R"({"kind":")", words.first, R"(","metadata":{"name":")",
                                 words.second, R"(","annotations":{"satrap/submission":")",
                                 words.second == "demo-job" ? 1 : 2, "\"}}}"));
  }
  return ListOf(absl::StrJoin(items, ","));
}

class ClusterRunsTest : public FakeKubectlTest {
 protected:
  void SetUp() override {
    FakeKubectlTest::SetUp();
    kubectl_ = std::make_unique<Kubectl>("ml", program());
  }
  // What PodsText shows of a run whose second submission lacks these objects.
  std::string PodsTextWithout(const std::vector<std::string>& lost) {
    On(kObjects, {ObjectsWithout(lost), 0, "", true});
    const auto text = PodsText("demo", kubectl_.get());
    EXPECT_TRUE(text.ok()) << text.status();
    return text.ok() ? *text : "";
  }
  std::unique_ptr<Kubectl> kubectl_;
};

TEST_F(ClusterRunsTest, RunsAreListedByName) {
  On("*get jobs.batch,configmaps,pods --selector=*component in (story,members,job)*", R"({"items":[
      {"kind":"Job","metadata":{"name":"b","creationTimestamp":"2026-01-02T00:00:00Z",
                   "labels":{"app.kubernetes.io/component":"story"},
                   "annotations":{"satrap/run-dir":"/runs/b-1"}},
       "status":{"conditions":[{"type":"Failed","status":"True"}]}},
      {"kind":"Pod","metadata":{"name":"b-x","labels":{"app.kubernetes.io/component":"story",
                   "app.kubernetes.io/instance":"b"}},
       "status":{"containerStatuses":[{"state":{"terminated":{"message":"the disk\nis full"}}}]}},
      {"kind":"Job","metadata":{"name":"a","creationTimestamp":"2026-01-01T00:00:00Z",
                   "labels":{"app.kubernetes.io/component":"story"},
                   "annotations":{"satrap/run-dir":"/runs/a-1"}},"status":{}},
      {"kind":"Job","metadata":{"name":"a-members",
                   "labels":{"app.kubernetes.io/component":"members",
                             "app.kubernetes.io/instance":"a"}}},
      {"kind":"Job","metadata":{"name":"c-members","creationTimestamp":"2026-01-03T00:00:00Z",
                   "labels":{"app.kubernetes.io/component":"members",
                             "app.kubernetes.io/instance":"c"}}},
      {"kind":"ConfigMap","metadata":{"name":"a-job",
                   "labels":{"app.kubernetes.io/instance":"a"}}},
      {"kind":"ConfigMap","metadata":{"name":"d-job","creationTimestamp":"2026-01-04T00:00:00Z",
                   "labels":{"app.kubernetes.io/instance":"d"},
                   "annotations":{"satrap/run-dir":"/runs/d-1"}}},
      {"kind":"Job","metadata":{"name":"e","creationTimestamp":"2026-01-05T00:00:00Z",
                   "labels":{"app.kubernetes.io/component":"story"},
                   "annotations":{"satrap/run-dir":"/runs/e-1"}},
       "status":{"conditions":[{"type":"Complete","status":"True"}]}},
      {"kind":"Job","metadata":{"name":"d","deletionTimestamp":"2026-01-04T00:00:09Z",
                   "labels":{"app.kubernetes.io/component":"story",
                             "app.kubernetes.io/instance":"d"}}},
      {"kind":"Job","metadata":{"name":"f","deletionTimestamp":"2026-01-06T00:00:09Z",
                   "creationTimestamp":"2026-01-06T00:00:00Z",
                   "labels":{"app.kubernetes.io/component":"story",
                             "app.kubernetes.io/instance":"f"},
                   "annotations":{"satrap/run-dir":"/runs/f-1"}}},
      {"kind":"Pod","metadata":{"name":"e-x","labels":{"app.kubernetes.io/component":"story",
                   "app.kubernetes.io/instance":"e"}},
       "status":{"containerStatuses":[{"state":{"terminated":{"message":"STOPPED"}}}]}}]})");
  const auto list = ListOfRuns(kubectl_.get());
  ASSERT_TRUE(list.ok()) << list.status();
  EXPECT_THAT(*list,
              MatchesRegex("a +is in progress +2026-01-01T00:00:00Z  /runs/a-1\n"
                           "b +has failed +2026-01-02T00:00:00Z  /runs/b-1: the disk is full\n"
                           "c +is incomplete +2026-01-03T00:00:00Z  -; to complete it, repeat the "
                           "command that was broken off; `satrap delete c --namespace ml` "
                           "removes it\n"
                           "d +has no pods +2026-01-04T00:00:00Z  /runs/d-1; `satrap resume` "
                           "continues it, and `satrap delete d --namespace ml` removes it\n"
                           "e +was stopped +2026-01-05T00:00:00Z  /runs/e-1\n"
                           "f +is being deleted +2026-01-06T00:00:00Z  /runs/f-1\n"));
}

TEST_F(ClusterRunsTest, ACommandGoesToTheCoordinatorsPodWithTheRunsFolder) {
  On(kJob, {ListOf(JobWith("Suspended")), 0, "", true});
  On(kJob, {ListOf(JobWith("Failed")), 0, "", true});
  On(kJob, "");
  const auto args = ArgumentsInPod("demo", {"stop"}, kubectl_.get());
  ASSERT_TRUE(args.ok()) << args.status();
  EXPECT_THAT(*args,
              ElementsAre("exec", "demo-coordinator-0", "--container=satrap", "--",
                          "/opt/satrap/deploy/satrap_cli", "--install_dir=/opt/satrap", "stop",
                          "/runs/demo-1", "--coordinator=127.0.0.1:7000", "--submission=1"));
  EXPECT_EQ(ArgumentsInPod("demo", {"stop"}, kubectl_.get()).status(),
            absl::FailedPreconditionError(
                "the run demo has failed: `satrap logs demo --namespace ml` shows how"));
  EXPECT_EQ(ArgumentsInPod("demo", {"stop"}, kubectl_.get()).status(),
            absl::NotFoundError("there is no run demo in namespace ml"));
}

TEST_F(ClusterRunsTest, ARunWhoseSubmissionWasBrokenOffIsReachedByItsCoordinator) {
  On(kJob, ListOf(R"({"kind":"StatefulSet","metadata":{"name":"demo-coordinator",
      "labels":{"app.kubernetes.io/instance":"demo"},
      "annotations":{"satrap/run-dir":"/runs/demo-2","satrap/submission":"3"}}})"));
  const auto args = ArgumentsInPod("demo", {"checkpoint", "list"}, kubectl_.get());
  ASSERT_TRUE(args.ok()) << args.status();
  EXPECT_EQ(absl::StrJoin(args->begin() + 6, args->end(), " "),
            "checkpoint list /runs/demo-2 --coordinator=127.0.0.1:7000 --submission=3");
}

constexpr char kParts[] = "*get jobs.batch,statefulsets.apps,pods --selector=*";

TEST_F(ClusterRunsTest, PodsAreShownWithTheirNodesRestartsAndWhatTheyWaitFor) {
  On(kParts, R"({"items":[
      {"kind":"StatefulSet","metadata":{"name":"demo-nn-worker","uid":"s",
        "labels":{"app.kubernetes.io/component":"nn-worker"}},"spec":{"replicas":13}},
      {"kind":"Pod","metadata":{"name":"demo-nn-worker-10",
        "labels":{"app.kubernetes.io/component":"nn-worker"}},"spec":{"nodeName":"b"},
        "status":{"phase":"Running"}},
      {"kind":"Pod","metadata":{"name":"demo-nn-worker-2",
        "labels":{"app.kubernetes.io/component":"nn-worker"}},"status":{"phase":"Pending",
        "conditions":[{"type":"PodScheduled","status":"False","message":"no card"}]}},
      {"kind":"Pod","metadata":{"name":"demo-nn-worker-1",
        "labels":{"app.kubernetes.io/component":"nn-worker"},
        "deletionTimestamp":"2020-01-01T00:00:00Z"},"spec":{"nodeName":"lost"},
        "status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}},
      {"kind":"Pod","metadata":{"name":"demo-coordinator-0",
        "labels":{"app.kubernetes.io/component":"coordinator"}},"spec":{"nodeName":"a"},
        "status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}],
        "containerStatuses":[{"restartCount":2,"state":{"running":{}}}]}}]})");
  On("*get events*", ListOf(R"({"involvedObject":{"uid":"s"},"reason":"FailedCreate",
      "message":"exceeded quota"})"));
  On(kObjects, ObjectsWithout({}));
  const auto text = PodsText("demo", kubectl_.get());
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_EQ(*text,
            "  demo-coordinator-0: Running on a, 2 restarts\n"
            "  demo-nn-worker-1: Running on lost, is being deleted, 0 restarts\n"
            "  demo-nn-worker-2: Pending, 0 restarts; Pending, no card\n"
            "  demo-nn-worker-10: Running on b, not ready, 0 restarts\n"
            "  StatefulSet demo-nn-worker lacks 10 pods\n"
            "  StatefulSet demo-nn-worker: cannot make a pod, exceeded quota\n"
            "  if node lost is gone: kubectl delete pod demo-nn-worker-1 --namespace ml --force\n");
}

TEST_F(ClusterRunsTest, ObjectsThatAreMissingAreNamedWithWhatMakesThemAgain) {
  On(kParts, ListOf(""));
  const std::string repeat = "repeat the command that submitted or resumed the run\n";
  const std::string remove = "use `kubectl delete job demo --namespace ml`, and after that ";
  for (const std::string object :
       {"Service demo-coordinator", "ConfigMap demo-job-2", "StatefulSet demo-embedding-ps"}) {
    EXPECT_EQ(PodsTextWithout({object}),
              absl::StrCat("  ", object, " is missing: to make it again, ", remove, repeat));
  }
  EXPECT_EQ(PodsTextWithout({"Job demo"}), "  Job demo is missing: to make it again, " + repeat);
  EXPECT_EQ(PodsTextWithout({"StatefulSet demo-nn-worker", "Job demo"}),
            "  StatefulSet demo-nn-worker is missing: to make it again, " + repeat +
                "  Job demo is missing: to make it again, " + repeat);
}

TEST_F(ClusterRunsTest, ARunWithoutTheOwnerOfItsPodsContinuesByAResume) {
  On(kParts, ListOf(""));
  const std::string missing =
      "  Job demo-members is missing, and with it the run's pods: to continue from the newest cut, "
      "use ";
  EXPECT_EQ(PodsTextWithout({"Job demo-members", "Service demo-coordinator"}),
            missing +
                "`kubectl delete job demo --namespace ml`, and after that `satrap resume "
                "demo --namespace ml`\n");
  EXPECT_EQ(PodsTextWithout({"Job demo-members", "Job demo"}),
            missing + "`satrap resume demo --namespace ml`\n");
}

TEST_F(ClusterRunsTest, ARunThatHasEndedSaysHow) {
  On(kParts, {ListOf(JobWith("Suspended")), 0, "", true});
  EXPECT_EQ(*EndText("demo", kubectl_.get()), "");
  On(kParts, {ListOf(absl::StrCat(JobWith("Failed"), R"(,{"kind":"Pod","metadata":{"name":"x",
      "labels":{"app.kubernetes.io/component":"story"}},
      "status":{"containerStatuses":[{"state":{"terminated":{"message":"no room"}}}]}})")),
              0, "", true});
  EXPECT_EQ(*EndText("demo", kubectl_.get()),
            "run demo has failed: no room\nfolder /runs/demo-1\n"
            "`satrap logs demo --namespace ml` shows its story\n");
  On(kParts, ListOf(""));
  EXPECT_EQ(EndText("demo", kubectl_.get()).status(),
            absl::NotFoundError("there is no run demo in namespace ml"));
}

TEST_F(ClusterRunsTest, ALogIsThatOfTheNewestPodOfTheStoryOrOfAProcess) {
  On("*get pods*component=story*", {ListOf(R"(
      {"kind":"Pod","metadata":{"name":"demo-b","creationTimestamp":"2026-01-02T00:00:00Z",
        "labels":{"app.kubernetes.io/component":"story"}}},
      {"kind":"Pod","metadata":{"name":"demo-a","creationTimestamp":"2026-01-01T00:00:00Z",
        "labels":{"app.kubernetes.io/component":"story"}}})"),
                                    0, "", true});
  On("*get pods*component=story*", ListOf(""));
  On("*get pods*", ListOf(R"({"kind":"Pod","metadata":{"name":"demo-embedding-ps-3"}})"));
  LogChoice choice;
  auto args = LogArguments("demo", choice, kubectl_.get());
  ASSERT_TRUE(args.ok()) << args.status();
  EXPECT_THAT(*args, ElementsAre("logs", "demo-b", "--container=satrap"));
  EXPECT_TRUE(absl::IsNotFound(LogArguments("demo", choice, kubectl_.get()).status()));
  choice.role = EMBEDDING_PS;
  choice.index = 3;
  choice.follow = true;
  choice.previous = true;
  args = LogArguments("demo", choice, kubectl_.get());
  ASSERT_TRUE(args.ok()) << args.status();
  EXPECT_THAT(*args, ElementsAre("logs", "--follow", "--previous", "demo-embedding-ps-3",
                                 "--container=satrap"));
  choice.index = 4;
  EXPECT_THAT(LogArguments("demo", choice, kubectl_.get()).status().message(),
              HasSubstr("there is no pod demo-embedding-ps-4 in namespace ml: if the run has "
                        "ended, its logs are in the folder `logs`"));
}

}  // namespace
}  // namespace satrap

#include "deploy/submit/cluster_runs.h"

#include <csignal>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "deploy/submit/fake_kubectl.h"
#include "gmock/gmock.h"

namespace satrap {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;

constexpr char kPods[] = "*get pods*component=story*";
constexpr char kJob[] = "*get jobs.batch demo*";

std::string PodList(const std::string& uid, const std::string& phase) {
  return absl::StrCat(R"({"items":[{"metadata":{"name":"demo-)", uid, R"(","uid":")", uid,
                      R"("},"status":{"phase":")", phase, R"("}}]})");
}

std::string JobWith(const std::string& condition) {
  return absl::StrCat(
      R"({"kind":"Job","metadata":{"name":"demo"},"status":{"conditions":[{"type":")", condition,
      R"(","status":"True"}]}})");
}

class ClusterRunsTest : public FakeKubectlTest {
 protected:
  void SetUp() override {
    FakeKubectlTest::SetUp();
    BlockSignalsOfStream();
    kubectl_ = std::make_unique<Kubectl>("ml", program());
  }
  absl::StatusOr<Watched> Watch() {
    return WatchRun("demo", kubectl_.get(), [this](int64_t) { return signal_; });
  }
  std::unique_ptr<Kubectl> kubectl_;
  int signal_ = 0;
};

TEST_F(ClusterRunsTest, TheStoryIsShownUntilTheRunHasEnded) {
  On(kPods, {PodList("a", "Pending"), 0, "", true});
  On(kPods, {PodList("a", "Running"), 0, "", true});
  On(kPods, PodList("a", "Succeeded"));
  On("*logs*", "the story\n");
  On(kJob, {JobWith("Suspended"), 0, "", true});
  On(kJob, {JobWith("Suspended"), 0, "", true});
  On(kJob, JobWith("Complete"));
  const auto watched = Watch();
  ASSERT_TRUE(watched.ok()) << watched.status();
  EXPECT_FALSE(watched->failed);
  EXPECT_EQ(watched->signal, 0);
  EXPECT_THAT(Calls(), Contains("--namespace=ml logs --follow demo-a").Times(1));
}

TEST_F(ClusterRunsTest, ALogThatBreaksOffIsShownFromThereOnAndThatOfAnotherPodFromItsBeginning) {
  On(kPods, {PodList("a", "Running"), 0, "", true});
  On(kPods, {PodList("a", "Running"), 0, "", true});
  On(kPods, PodList("b", "Running"));
  On("*logs*", "");
  On(kJob, {JobWith("Suspended"), 0, "", true});
  On(kJob, {"", 1, "the server is away\n", true});
  On(kJob, JobWith("Failed"));
  const auto watched = Watch();
  ASSERT_TRUE(watched.ok()) << watched.status();
  EXPECT_TRUE(watched->failed);
  std::vector<std::string> logs;
  for (const std::string& call : Calls()) {
    if (call.find(" logs ") != std::string::npos) logs.push_back(call);
  }
  EXPECT_THAT(logs, ElementsAre("--namespace=ml logs --follow demo-a",
                                MatchesRegex("--namespace=ml logs --follow demo-a "
                                             "--since-time=20..-..-..T..:..:..(Z|\\+00:00)"),
                                "--namespace=ml logs --follow demo-b"));
}

TEST_F(ClusterRunsTest, ASignalEndsTheWatchingAndNotTheRun) {
  On(kPods, PodList("a", "Pending"));
  On(kJob, JobWith("Suspended"));
  signal_ = SIGINT;
  const auto watched = Watch();
  ASSERT_TRUE(watched.ok()) << watched.status();
  EXPECT_EQ(watched->signal, SIGINT);
  EXPECT_EQ(Calls().size(), 2u);
}

TEST_F(ClusterRunsTest, ARunThatWasDeletedEndsTheWatching) {
  On(kPods, R"({"items":[]})");
  On(kJob, "");
  EXPECT_TRUE(absl::IsNotFound(Watch().status()));
}

TEST_F(ClusterRunsTest, RunsAreListedByName) {
  On("*get jobs.batch --selector=*component=story*", R"({"items":[
      {"metadata":{"name":"b","creationTimestamp":"2026-01-02T00:00:00Z",
                   "annotations":{"satrap/run-dir":"/runs/b-1"}},
       "status":{"conditions":[{"type":"Failed","status":"True"}]}},
      {"metadata":{"name":"a","creationTimestamp":"2026-01-01T00:00:00Z",
                   "annotations":{"satrap/run-dir":"/runs/a-1"}},"status":{}}]})");
  const auto list = ListOfRuns(kubectl_.get());
  ASSERT_TRUE(list.ok()) << list.status();
  EXPECT_THAT(*list, MatchesRegex("a +goes on +2026-01-01T00:00:00Z  /runs/a-1\n"
                                  "b +has failed +2026-01-02T00:00:00Z  /runs/b-1\n"));
}

TEST_F(ClusterRunsTest, ACommandGoesToTheCoordinatorsPodWithTheRunsFolder) {
  On(kJob, {R"({"metadata":{"name":"demo","annotations":{"satrap/run-dir":"/runs/demo-1"}}})", 0,
            "", true});
  On(kJob, {JobWith("Failed"), 0, "", true});
  On(kJob, "");
  const auto args = ArgumentsInPod("demo", "stop", kubectl_.get());
  ASSERT_TRUE(args.ok()) << args.status();
  EXPECT_THAT(*args, ElementsAre("exec", "demo-coordinator-0", "--container=satrap", "--",
                                 "/opt/satrap/deploy/satrap_cli", "--install_dir=/opt/satrap",
                                 "stop", "/runs/demo-1", "--coordinator=127.0.0.1:7000"));
  EXPECT_EQ(ArgumentsInPod("demo", "stop", kubectl_.get()).status(),
            absl::FailedPreconditionError("the run demo has failed: `satrap logs demo` shows how"));
  EXPECT_EQ(ArgumentsInPod("demo", "stop", kubectl_.get()).status(),
            absl::NotFoundError("there is no run demo in namespace ml"));
}

TEST_F(ClusterRunsTest, PodsAreShownWithTheirRestartsAndWhatTheyWaitFor) {
  On("*get pods*", R"({"items":[
      {"metadata":{"name":"demo-nn-worker-0"},"status":{"phase":"Pending","conditions":[
        {"type":"PodScheduled","status":"False","message":"no card"}]}},
      {"metadata":{"name":"demo-coordinator-0"},"status":{"phase":"Running","containerStatuses":[
        {"name":"satrap","restartCount":2,"state":{"running":{}}}]}}]})");
  const auto text = PodsText("demo", kubectl_.get());
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_EQ(*text,
            "  demo-coordinator-0: Running, 2 restarts\n"
            "  demo-nn-worker-0: Pending, 0 restarts; demo-nn-worker-0: Pending, no card\n");
}

TEST(LogArgumentsTest, NameTheStoryOrAProcess) {
  EXPECT_THAT(LogArguments("demo", absl::nullopt, 0, /*follow=*/false, /*previous=*/false),
              ElementsAre("logs", "jobs/demo"));
  EXPECT_THAT(LogArguments("demo", EMBEDDING_PS, 3, /*follow=*/true, /*previous=*/true),
              ElementsAre("logs", "--follow", "--previous", "demo-embedding-ps-3"));
}

TEST_F(ClusterRunsTest, OnlyARunThatHasEndedIsDeletedUnlessSomebodyInsists) {
  const std::string goes_on = R"({"items":[{"kind":"Job","metadata":{"name":"demo"}}]})";
  On("*get jobs.batch,*", {goes_on, 0, "", true});
  EXPECT_THAT(DeleteRun("demo", /*now=*/false, kubectl_.get()).message(),
              HasSubstr("has not ended: --now removes it"));
  EXPECT_EQ(Calls().size(), 1u);
  On("*get jobs.batch,*", {goes_on, 0, "", true});
  On("*delete*", "");
  EXPECT_EQ(DeleteRun("demo", /*now=*/true, kubectl_.get()), absl::OkStatus());
  EXPECT_THAT(Calls().back(), HasSubstr("delete jobs.batch,services,configmaps,statefulsets.apps "
                                        "--selector=app.kubernetes.io/name=satrap,"
                                        "app.kubernetes.io/instance=demo --cascade=foreground"));
  On("*get jobs.batch,*", {absl::StrCat(R"({"items":[)", JobWith("Complete"), "]}"), 0, "", true});
  EXPECT_EQ(DeleteRun("demo", /*now=*/false, kubectl_.get()), absl::OkStatus());
}

TEST_F(ClusterRunsTest, ARunThatIsNotThereIsNotDeleted) {
  On("*get*", R"({"items":[]})");
  EXPECT_EQ(DeleteRun("demo", /*now=*/true, kubectl_.get()),
            absl::NotFoundError("there is no run demo in namespace ml"));
}

}  // namespace
}  // namespace satrap

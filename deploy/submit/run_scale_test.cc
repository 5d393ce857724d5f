#include "deploy/submit/run_scale.h"

#include <csignal>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "deploy/submit/kubectl/testing/fake_kubectl.h"
#include "gmock/gmock.h"

namespace satrap {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr char kRun[] = "*get jobs.batch/demo statefulsets.apps/demo-coordinator*";
constexpr char kParts[] = "*get jobs.batch,statefulsets.apps,pods --selector=*";
constexpr char kPlan[] = "*exec demo-coordinator-0 *satrap_cli *scale /runs/demo-1 *--plan*";
constexpr char kWish[] = "* scale /runs/demo-1 embedding_ps.replicas=? --coordinator=*";

class RunScaleTest : public FakeKubectlTest {
 protected:
  void SetUp() override {
    FakeKubectlTest::SetUp();
    BlockSignalsOfStream();
    kubectl_ = std::make_unique<Kubectl>("ml", program());
    On(kRun, R"({"items":[{"kind":"Job","metadata":{"name":"demo",
        "labels":{"app.kubernetes.io/instance":"demo"},
        "annotations":{"satrap/run-dir":"/runs/demo-1"}}}]})");
    On("*get configmaps*", R"({"items":[{"kind":"ConfigMap","metadata":{"name":"demo-job",
        "annotations":{"satrap/changes":"epochs=2\nembedding_ps.replicas=9"}}}]})");
    On("*scale statefulsets.apps/*", "");
    On("*annotate *", "");
  }
  // The plan that the program in the pod prints: how many embedding PSs the job has now, how many
  // the change wants, and which of them wait.
  static std::string PlanOf(int now, int wanted, const std::string& waiting = "") {
    return absl::StrCat("parts { role: DATA_LOADER now: 1 wanted: 1 } parts { role: EMBEDDING_PS ",
                        "now: ", now, " wanted: ", wanted, " ", waiting,
                        " } changes_nothing: ", now == wanted ? "true" : "false",
                        " start_seconds: ", start_seconds_);
  }
  // The StatefulSets of the run: one data loader, and `replicas` embedding PSs.
  static std::string SetsOf(int replicas, const std::string& more = "") {
    return absl::StrCat(R"({"items":[{"kind":"StatefulSet","metadata":{"name":"demo-data-loader"},
        "spec":{"replicas":1}},{"kind":"StatefulSet","metadata":{"name":"demo-embedding-ps"},
        "spec":{"replicas":)",
                        replicas, "}}", more, "]}");
  }
  absl::Status Scale(const std::string& set) {
    const WatchOptions options = {[this](absl::string_view line) { shown_.emplace_back(line); },
                                  [this](const std::string& line) { said_.push_back(line); },
                                  [this](int64_t) { return signal_; }};
    return ScaleRunInCluster("demo", {set}, kubectl_.get(), options);
  }
  // The calls that change something, without their namespaces.
  std::vector<std::string> Changes() const {
    std::vector<std::string> changes;
    for (const std::string& call : Calls()) {
      const bool is_wish = absl::StrContains(call, " exec ") && !absl::StrContains(call, "--plan");
      if (is_wish) changes.emplace_back("wish");
      for (const char* word : {" scale statefulsets.apps/", " annotate "}) {
        const size_t at = call.find(word);
        if (at != std::string::npos && !absl::StrContains(call, " exec ")) {
          changes.push_back(call.substr(at + 1));
        }
      }
    }
    return changes;
  }

  static inline std::string start_seconds_ = "600";
  std::unique_ptr<Kubectl> kubectl_;
  std::vector<std::string> shown_;
  std::vector<std::string> said_;
  int signal_ = 0;
};

TEST_F(RunScaleTest, PodsAreAddedFirstAndTheWishIsMadeWhenEachOfThemHasAsked) {
  On(kPlan, {PlanOf(2, 4), 0, "", true});
  On(kPlan, {PlanOf(2, 4, "waiting: 3"), 0, "", true});
  On(kPlan, {PlanOf(2, 4, "waiting: 3 waiting: 2"), 0, "", true});
  On(kWish, "generation 2 runs: 4 embedding PSs\n");
  On(kParts, {SetsOf(2), 0, "", true});
  On(kParts, SetsOf(4));
  ASSERT_EQ(Scale("embedding_ps.replicas=4"), absl::OkStatus());
  EXPECT_THAT(Changes(),
              ElementsAre("scale statefulsets.apps/demo-embedding-ps --replicas=4", "wish",
                          "annotate configmaps/demo-job satrap/changes=epochs=2 "
                          "embedding_ps.replicas=4 --overwrite"));
  EXPECT_THAT(shown_, ElementsAre("generation 2 runs: 4 embedding PSs\n"));
  EXPECT_THAT(said_, ElementsAre("adds 2 pods of embedding_ps"));
  EXPECT_THAT(Calls(), Contains(AllOf(HasSubstr(" scale /runs/demo-1 embedding_ps.replicas=4 "),
                                      HasSubstr("--coordinator=127.0.0.1:7000"))));
}

TEST_F(RunScaleTest, PodsAreRemovedLast) {
  On(kPlan, PlanOf(4, 1));
  On(kWish, "");
  On(kParts, SetsOf(4));
  ASSERT_EQ(Scale("embedding_ps.replicas=1"), absl::OkStatus());
  EXPECT_THAT(Changes(), ElementsAre("wish", HasSubstr("annotate "),
                                     "scale statefulsets.apps/demo-embedding-ps --replicas=1"));
  EXPECT_THAT(said_, ElementsAre("removes 3 pods of embedding_ps"));
}

// A command that was broken off may have left more pods than the job has processes, or fewer.
TEST_F(RunScaleTest, ARunThatHasTheSizeGetsThePodsThatItNeeds) {
  On(kPlan, PlanOf(3, 3));
  On(kParts, {SetsOf(4), 0, "", true});
  On(kParts, {SetsOf(4), 0, "", true});
  ASSERT_EQ(Scale("embedding_ps.replicas=3"), absl::OkStatus());
  EXPECT_THAT(
      said_, ElementsAre("the run demo has these values already", "removes 1 pod of embedding_ps"));
  said_.clear();
  On(kParts, {SetsOf(2), 0, "", true});
  On(kParts, SetsOf(3));
  ASSERT_EQ(Scale("embedding_ps.replicas=3"), absl::OkStatus());
  EXPECT_THAT(said_,
              ElementsAre("adds 1 pod of embedding_ps", "the run demo has these values already"));
  EXPECT_THAT(Changes(), Not(Contains("wish")));
}

TEST_F(RunScaleTest, WhatIsRefusedAddsNoPod) {
  On(kPlan, {"", 1, "satrap: run /runs/demo-1 cannot be scaled: seed: cannot change\n", false});
  On(kParts, SetsOf(2));
  EXPECT_THAT(Scale("seed=2").message(), HasSubstr("seed: cannot change"));
  EXPECT_THAT(Changes(), IsEmpty());
}

TEST_F(RunScaleTest, PodsThatDoNotComeAreTakenBack) {
  start_seconds_ = "0";
  On(kPlan, PlanOf(2, 3));
  start_seconds_ = "600";
  On(kParts, {SetsOf(2), 0, "", true});
  On(kParts, SetsOf(3, R"(,{"kind":"Pod","metadata":{"name":"demo-embedding-ps-2"},"status":{
      "phase":"Pending","conditions":[{"type":"PodScheduled","status":"False",
      "message":"no room"}]}},{"kind":"Pod","metadata":{"name":"a","ownerReferences":[{}]}})"));
  On("*get events*", R"({"items":[]})");
  const absl::Status late = Scale("embedding_ps.replicas=3");
  EXPECT_EQ(late.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(late.message(), AllOf(HasSubstr("embedding_ps 2 did not ask for a place within 0 s "
                                              "(kubernetes.start_seconds): "),
                                    HasSubstr("demo-embedding-ps-2: Pending, no room; add nodes "
                                              "that have what the pod requests")));
  EXPECT_THAT(Changes(), ElementsAre("scale statefulsets.apps/demo-embedding-ps --replicas=3",
                                     "scale statefulsets.apps/demo-embedding-ps --replicas=2"));
}

TEST_F(RunScaleTest, APodThatCanNeverWorkIsTakenBackAtOnceWithWhatToDo) {
  On(kPlan, PlanOf(2, 3));
  On(kParts, {SetsOf(2), 0, "", true});
  On(kParts, SetsOf(3, R"(,{"kind":"Pod","metadata":{"name":"demo-embedding-ps-2"},"status":{
      "containerStatuses":[{"state":{"waiting":{"reason":"InvalidImageName"}}}]}})"));
  On("*get events*", R"({"items":[]})");
  EXPECT_THAT(Scale("embedding_ps.replicas=3").message(),
              HasSubstr("demo-embedding-ps-2: InvalidImageName; correct the image"));
  EXPECT_EQ(Changes().back(), "scale statefulsets.apps/demo-embedding-ps --replicas=2");
}

TEST_F(RunScaleTest, AWishThatIsRefusedTakesThePodsBackButNotIfTheRunHasTheSizeNevertheless) {
  On(kPlan, {PlanOf(2, 3, "waiting: 2"), 0, "", true});
  On(kPlan, {PlanOf(2, 3), 0, "", true});
  On(kWish, {"", 1, "", false});
  On(kParts, {SetsOf(2), 0, "", true});
  On(kParts, {SetsOf(3), 0, "", true});
  EXPECT_EQ(Scale("embedding_ps.replicas=3"),
            absl::FailedPreconditionError("the run demo was not scaled"));
  EXPECT_THAT(Changes(),
              ElementsAre("scale statefulsets.apps/demo-embedding-ps --replicas=3", "wish",
                          "scale statefulsets.apps/demo-embedding-ps --replicas=2"));
  On(kPlan, {PlanOf(2, 3, "waiting: 2"), 0, "", true});
  On(kPlan, PlanOf(3, 3));
  On(kParts, {SetsOf(2), 0, "", true});
  On(kParts, SetsOf(3));
  EXPECT_FALSE(Scale("embedding_ps.replicas=3").ok());
  EXPECT_EQ(Changes().back(), "wish");
}

TEST_F(RunScaleTest, ASignalLeavesWhatTheSameCommandCompletes) {
  signal_ = SIGINT;
  On(kPlan, PlanOf(2, 3));
  On(kParts, {SetsOf(2), 0, "", true});
  On(kParts, SetsOf(3));
  const absl::Status status = Scale("embedding_ps.replicas=3");
  EXPECT_EQ(status, absl::CancelledError("stopped by a signal; the same command completes the "
                                         "change"));
  EXPECT_THAT(Changes(), ElementsAre("scale statefulsets.apps/demo-embedding-ps --replicas=3"));
}

}  // namespace
}  // namespace satrap

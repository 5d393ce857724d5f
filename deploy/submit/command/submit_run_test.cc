#include "deploy/submit/command/submit_run.h"

#include <csignal>
#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "deploy/submit/command/run_place.h"
#include "deploy/submit/command/testing/fake_cluster.h"
#include "deploy/submit/testing/submission_fixture.h"
#include "gmock/gmock.h"

namespace satrap {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAreArray;

constexpr char kRunning[] = R"({"phase":"Running"})";
constexpr char kReady[] = R"({"phase":"Running","conditions":[{"type":"Ready","status":"True"}]})";
constexpr char kPending[] =
    R"({"phase":"Pending","conditions":[{"type":"PodScheduled","status":"False","message":"no card"}]})";

class SubmitRunTest : public FakeClusterTest {
 protected:
  std::string Coordinator() { return Pod("coordinator", "demo-coordinator-0", kReady); }
  // The pods of all roles and of the two Jobs. `of_worker` is the status of the NN worker's pod.
  std::vector<std::string> AllPods(const std::string& of_worker) {
    return {Coordinator(),
            Pod("embedding-ps", "demo-embedding-ps-0", kRunning),
            Pod("embedding-worker", "demo-embedding-worker-0", kRunning),
            Pod("data-loader", "demo-data-loader-0", kRunning),
            Pod("nn-worker", "demo-nn-worker-0", of_worker),
            Pod("members", "demo-members-x", kRunning),
            Pod("story", "demo-x", kRunning)};
  }
  std::string Noted() { return *NamespaceOf("demo", "", dir_ + "/runs"); }
  // Expects that the same command as before makes what is missing of the run.
  void ExpectCompleted(const std::string& when) {
    const auto code = Submit(RunWith(), /*detach=*/true);
    ASSERT_TRUE(code.ok()) << when << ": " << code.status();
    EXPECT_THAT(Objects(), UnorderedElementsAreArray(objects_)) << when;
  }

  // The objects of the run, in the order in which they are made.
  const std::vector<std::string> objects_ = {"Job demo-members",
                                             "Service demo-coordinator",
                                             "ConfigMap demo-job",
                                             "StatefulSet demo-coordinator",
                                             "StatefulSet demo-embedding-ps",
                                             "StatefulSet demo-embedding-worker",
                                             "StatefulSet demo-data-loader",
                                             "StatefulSet demo-nn-worker",
                                             "Job demo"};
};

TEST_F(SubmitRunTest, ACommandThatDetachesEndsWhenTheCoordinatorServesAndNotesTheNamespace) {
  SetPods({Coordinator()});
  const auto code = Submit(RunWith(), /*detach=*/true);
  ASSERT_TRUE(code.ok()) << code.status();
  EXPECT_EQ(*code, 0);
  EXPECT_THAT(Objects(), SizeIs(9));
  EXPECT_EQ(Noted(), "ml");
  EXPECT_THAT(said_, Contains("run demo is submitted; its folder is /runs/demo-uid-of-J"));
  EXPECT_THAT(said_.back(), HasSubstr("use `satrap logs demo --namespace ml --follow`"));
}

TEST_F(SubmitRunTest, WithoutThatTheStoryIsShownAndItsEndIsTheCommands) {
  SetPods(AllPods(kRunning));
  On("*logs*", "2026-01-01T00:00:01Z step 1\n");
  int waits = 0;
  on_wait_ = [&] {
    if (++waits > 1) return;
    SetStatus("Job", "demo", R"({"conditions":[{"type":"Complete","status":"True"}]})");
    SetPods({Pod("story", "demo-x", R"({"phase":"Succeeded"})")});
  };
  const auto code = Submit(RunWith());
  ASSERT_TRUE(code.ok()) << code.status();
  EXPECT_EQ(*code, 0);
  EXPECT_EQ(shown_, "step 1\n");
  EXPECT_THAT(Objects(), Contains("Job demo"));
}

TEST_F(SubmitRunTest, ARunThatFailsAfterItsPodsHaveRunExits1AndStaysInTheList) {
  SetPods(AllPods(kRunning));
  On("*logs*", "2026-01-01T00:00:01Z the job failed: why\n");
  on_wait_ = [&] {
    SetPods({});
    FailRun("why");
  };
  const auto code = Submit(RunWith());
  ASSERT_TRUE(code.ok()) << code.status();
  EXPECT_EQ(*code, 1);
  EXPECT_THAT(Objects(), Contains("Job demo"));
  EXPECT_EQ(Noted(), "ml");
}

TEST_F(SubmitRunTest, ACommandThatWasKilledAtAnyPointIsCompletedByTheSameCommand) {
  SetPods({Coordinator()});
  for (size_t made = 0; made < objects_.size(); ++made) {
    for (size_t i = made; i < objects_.size(); ++i) Lose(objects_[i]);
    ASSERT_NO_FATAL_FAILURE(ExpectCompleted(absl::StrCat(made, " objects were made")));
  }
}

TEST_F(SubmitRunTest, WithItsJobDeletedARunGetsEveryObjectBackThatSomebodyHasDeleted) {
  SetPods({Coordinator()});
  ASSERT_NO_FATAL_FAILURE(ExpectCompleted("at first"));
  for (const std::string& object : objects_) {
    // Kubernetes removes the others with Job RUN-members.
    if (object == "Job demo-members") continue;
    Lose(object);
    Lose("Job demo");
    ASSERT_NO_FATAL_FAILURE(ExpectCompleted(object + " was deleted"));
  }
}

TEST_F(SubmitRunTest, ARunWhoseJobIsDeletedWhileItsPodsStartContinues) {
  SetPods(AllPods(kPending));
  on_wait_ = [&] { Lose("Job demo"); };
  EXPECT_EQ(Submit(RunWith()).status(), absl::NotFoundError("the run demo was deleted"));
  EXPECT_THAT(Objects(), SizeIs(8)) << "nothing is removed";
  EXPECT_EQ(Noted(), "ml");
  on_wait_ = nullptr;
  ASSERT_NO_FATAL_FAILURE(ExpectCompleted("after that"));
}

TEST_F(SubmitRunTest, CtrlCEndsTheCommandAndNotTheRun) {
  SetPods(AllPods(kPending));
  signal_ = SIGINT;
  const auto code = Submit(RunWith());
  ASSERT_TRUE(code.ok()) << code.status();
  EXPECT_EQ(*code, 128 + SIGINT);
  EXPECT_THAT(Objects(), SizeIs(9));
  EXPECT_THAT(said_.back(), HasSubstr("the run continues"));
}

TEST_F(SubmitRunTest, WhatIsNotHeardOfAnyMoreIsLeftAlone) {
  On("*get jobs.batch,statefulsets.apps,pods*", {"", 1, "the network is away\n", false});
  EXPECT_TRUE(absl::IsUnavailable(Submit(RunWith("start_seconds: 1")).status()));
  EXPECT_THAT(Objects(), SizeIs(9));
  EXPECT_THAT(said_.back(), HasSubstr("the run continues"));
}

// The log holds the number of a resume that has begun. If all traces of it in the cluster were
// removed, the next resume would get the same number, and would be told the end of this one.
TEST_F(SubmitRunTest, AResumeThatHasBegunIsNotRemovedWhenItsPodsDoNotCome) {
  RunInCluster run = RunWith();
  run.submission = 2;
  run.run_dir = "/runs/demo-first";
  SetPods(AllPods(kPending));
  on_wait_ = [&] {
    SetPods({});
    FailRun("nn_worker 0 has not come");
  };
  const absl::Status status = Submit(run).status();
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("the run has failed: nn_worker 0 has not come; demo-nn-worker-0: Pending, "
                        "no card; "));
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("; when the run has ended, `satrap resume demo --namespace ml` begins "
                        "another attempt"));
  EXPECT_THAT(Objects(), Contains("Job demo"));
  EXPECT_THAT(Objects(), Contains("ConfigMap demo-job-2"));
}

}  // namespace
}  // namespace satrap

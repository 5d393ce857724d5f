#include "deploy/submit/run_removal.h"

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "deploy/submit/kubectl/testing/fake_kubectl.h"
#include "gmock/gmock.h"

namespace satrap {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kObjects[] = "*get jobs.batch,services,configmaps,statefulsets.apps*";
constexpr char kRun[] = "*get jobs.batch/demo statefulsets.apps/demo-coordinator*";
constexpr char kGoesOn[] = R"({"items":[{"kind":"Job","metadata":{"name":"demo",
    "labels":{"app.kubernetes.io/instance":"demo"}}}]})";
constexpr char kHasEnded[] = R"({"items":[{"kind":"Job","metadata":{"name":"demo"},
    "status":{"conditions":[{"type":"Complete","status":"True"}]}}]})";
// The objects of a run whose submission was broken off.
constexpr char kHalfMade[] = R"({"items":[
    {"kind":"Job","metadata":{"name":"demo-members"}},
    {"kind":"StatefulSet","metadata":{"name":"demo-coordinator",
     "labels":{"app.kubernetes.io/instance":"demo"}}}]})";

class RunRemovalTest : public FakeKubectlTest {
 protected:
  void SetUp() override {
    FakeKubectlTest::SetUp();
    BlockSignalsOfStream();
    kubectl_ = std::make_unique<Kubectl>("ml", program());
  }
  absl::Status StopAndDelete() {
    return satrap::StopAndDelete("demo", kubectl_.get(), [this](int64_t) {
      ++waits_;
      return signal_;
    });
  }
  std::unique_ptr<Kubectl> kubectl_;
  int waits_ = 0;
  int signal_ = 0;
};

TEST_F(RunRemovalTest, OnlyARunThatHasEndedIsDeletedUnlessSomebodyInsists) {
  On(kObjects, {kGoesOn, 0, "", true});
  EXPECT_THAT(DeleteRun("demo", /*now=*/false, kubectl_.get()).message(),
              HasSubstr("has not ended: `satrap delete demo --namespace ml --now` removes it"));
  EXPECT_EQ(Calls().size(), 1u);
  On(kObjects, {kGoesOn, 0, "", true});
  On("*delete*", "");
  EXPECT_EQ(DeleteRun("demo", /*now=*/true, kubectl_.get()), absl::OkStatus());
  EXPECT_THAT(Calls().back(), HasSubstr("delete jobs.batch,services,configmaps,statefulsets.apps "
                                        "--selector=app.kubernetes.io/name=satrap,"
                                        "app.kubernetes.io/instance=demo --cascade=foreground"));
  On(kObjects, kHasEnded);
  EXPECT_EQ(DeleteRun("demo", /*now=*/false, kubectl_.get()), absl::OkStatus());
}

TEST_F(RunRemovalTest, ARunThatIsNotThereIsNotDeleted) {
  On("*get*", R"({"items":[]})");
  EXPECT_EQ(DeleteRun("demo", /*now=*/true, kubectl_.get()),
            absl::NotFoundError("there is no run demo in namespace ml"));
  EXPECT_EQ(StopAndDelete(), absl::NotFoundError("there is no run demo in namespace ml"));
}

TEST_F(RunRemovalTest, ARunThatGoesOnIsStoppedAndDeletedWhenItsJobHasSeenTheEnd) {
  On(kRun, kGoesOn);
  On("*exec demo-coordinator-0*stop*", "the run has stopped\n");
  On(kObjects, {kGoesOn, 0, "", true});
  On(kObjects, kHasEnded);
  On("*delete*", "");
  EXPECT_EQ(StopAndDelete(), absl::OkStatus());
  EXPECT_EQ(waits_, 1);
  EXPECT_THAT(Calls(), Contains(HasSubstr("delete")).Times(1));
}

TEST_F(RunRemovalTest, ARunThatCannotBeStoppedIsNotDeleted) {
  On(kRun, kGoesOn);
  On("*exec*", {"", 1, "Error from server (Forbidden): pods/exec\n", false});
  On(kObjects, kGoesOn);
  EXPECT_THAT(StopAndDelete().message(),
              AllOf(HasSubstr("the run could not be stopped, and nothing is removed"),
                    HasSubstr("`satrap delete demo --namespace ml --now` removes it")));
  EXPECT_EQ(waits_, 9);
  EXPECT_THAT(Calls(), Each(Not(HasSubstr("delete"))));
}

TEST_F(RunRemovalTest, ARunThatEndsByItselfMeanwhileIsDeleted) {
  On(kRun, kGoesOn);
  On("*exec*", {"", 1, "the run has finished; there was nothing to stop\n", false});
  On(kObjects, {kGoesOn, 0, "", true});
  On(kObjects, kHasEnded);
  On("*delete*", "");
  EXPECT_EQ(StopAndDelete(), absl::OkStatus());
}

TEST_F(RunRemovalTest, WhatIsLeftOfABrokenOffSubmissionIsDeletedWhetherItCanBeStoppedOrNot) {
  On(kRun, kHalfMade);
  On("*exec*", {"", 1, "error: pod demo-coordinator-0 is Pending\n", false});
  On(kObjects, kHalfMade);
  On("*delete*", "");
  EXPECT_EQ(StopAndDelete(), absl::OkStatus());
  EXPECT_EQ(waits_, 0);
  EXPECT_THAT(Calls(), Contains(HasSubstr("exec demo-coordinator-0")).Times(1));
}

TEST_F(RunRemovalTest, ASignalRemovesNothing) {
  On(kRun, kGoesOn);
  On("*exec*", "");
  On(kObjects, kGoesOn);
  signal_ = 2;
  EXPECT_TRUE(absl::IsCancelled(StopAndDelete()));
  EXPECT_THAT(Calls(), Each(Not(HasSubstr("delete"))));
}

}  // namespace
}  // namespace satrap

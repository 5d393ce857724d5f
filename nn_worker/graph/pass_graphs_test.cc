#include "nn_worker/graph/pass_graphs.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nn_worker/backend/testing/fake_device_memory.h"

namespace satrap {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// Logs the calls that it gets.
class GraphMemory final : public FakeDeviceMemory {
 public:
  explicit GraphMemory(std::vector<std::string>* log) : log_(log) {}
  int64_t GraphEpoch() const override { return epoch; }
  absl::StatusOr<std::unique_ptr<OperationGraph>> Capture(
      absl::FunctionRef<absl::Status()> enqueue) override {
    log_->push_back("capture");
    if (absl::Status status = enqueue(); !status.ok()) return status;
    if (!refusal.ok()) return refusal;
    return std::make_unique<OperationGraph>();
  }
  void Enqueue(OperationGraph*) override { log_->push_back("launch"); }
  absl::StatusOr<bool> Poll(BackendEvent*) override {
    if (!failure.ok()) return failure;
    return true;
  }
  void BeginRange(const char* name) override { ranges.push_back(name); }
  void EndRange() override { ranges.push_back("end"); }

  int64_t epoch = 0;
  absl::Status refusal;
  absl::Status failure;  // of the device
  std::vector<std::string> ranges;

 private:
  std::vector<std::string>* const log_;
};

class PassGraphsTest : public testing::Test {
 protected:
  using Log = std::vector<std::string>;
  // The calls that a pass with the key makes.
  Log Run(PassGraphs* graphs, int64_t key) {
    log_.clear();
    const PassPart whole = {true, [&] { return Pass(); }};
    EXPECT_TRUE(graphs->Run({24, key}, absl::MakeConstSpan(&whole, 1)).ok());
    return log_;
  }
  // Runs a pass with a sum over the ranks in the middle.
  Log RunParts(PassGraphs* graphs) {
    log_.clear();
    EXPECT_TRUE(graphs->Run({24, 1}, parts_).ok());
    return log_;
  }
  PassPart Part(bool captured, const std::string& name) {
    return {captured, [this, name] {
              log_.push_back(name);
              return absl::OkStatus();
            }};
  }
  absl::Status Pass() {
    log_.push_back("pass");
    return absl::OkStatus();
  }

  Log log_;
  GraphMemory memory_{&log_};
  std::vector<PassPart> parts_ = {Part(true, "first"), Part(false, "sum"), Part(true, "last")};
  const Log parts_as_they_are_ = {"first", "sum", "last"};
  const Log as_it_is_ = {"pass"};
  const Log captured_ = {"capture", "pass", "launch"};
  const Log launched_ = {"launch"};
};

TEST_F(PassGraphsTest, ThePassIsCapturedWhenItComesForTheSecondTimeAndThenLaunched) {
  PassGraphs graphs(&memory_, true);
  EXPECT_EQ(Run(&graphs, 1), as_it_is_);
  EXPECT_EQ(Run(&graphs, 1), captured_);
  EXPECT_EQ(Run(&graphs, 1), launched_);
  EXPECT_EQ(graphs.launches(), 2);
}

TEST_F(PassGraphsTest, EachKeyHasAGraphOfItsOwn) {
  PassGraphs graphs(&memory_, true);
  EXPECT_EQ(Run(&graphs, 1), as_it_is_);
  EXPECT_EQ(Run(&graphs, 2), as_it_is_);
  EXPECT_EQ(Run(&graphs, 1), captured_);
  EXPECT_EQ(Run(&graphs, 2), captured_);
  EXPECT_EQ(Run(&graphs, 1), launched_);
}

TEST_F(PassGraphsTest, ItBeginsAnewWhenListsWereWrittenOver) {
  PassGraphs graphs(&memory_, true);
  Run(&graphs, 1);
  memory_.epoch = 1;  // by the pass itself
  EXPECT_EQ(Run(&graphs, 1), as_it_is_);
  EXPECT_EQ(Run(&graphs, 1), captured_);
  memory_.epoch = 2;
  EXPECT_EQ(Run(&graphs, 1), as_it_is_);
  EXPECT_EQ(Run(&graphs, 1), captured_);
}

TEST_F(PassGraphsTest, PassesThatAlwaysDifferKeepNoGraphs) {
  PassGraphs graphs(&memory_, true);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(Run(&graphs, i), as_it_is_);
  EXPECT_EQ(Run(&graphs, 99), as_it_is_);
  EXPECT_EQ(Run(&graphs, 99), as_it_is_);
  EXPECT_EQ(Run(&graphs, 0), captured_);
}

TEST_F(PassGraphsTest, WhereThereAreNoGraphsEveryPassIsEnqueuedAsItIs) {
  PassGraphs off(&memory_, false);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(Run(&off, 1), as_it_is_);
  memory_.epoch = -1;
  PassGraphs none(&memory_, true);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(Run(&none, 1), as_it_is_);
}

TEST_F(PassGraphsTest, AnErrorOfThePassIsReturnedAndNothingIsLaunched) {
  PassGraphs graphs(&memory_, true);
  Run(&graphs, 1);
  const PassPart fails = {true, [] { return absl::UnavailableError("rank 1 is lost"); }};
  EXPECT_EQ(graphs.Run({24, 1}, absl::MakeConstSpan(&fails, 1)).message(), "rank 1 is lost");
  EXPECT_EQ(graphs.launches(), 0);
  EXPECT_EQ(Run(&graphs, 1), captured_);
}

TEST_F(PassGraphsTest, ARefusedGraphIsToldOnceAndEveryPassIsEnqueuedAsItIs) {
  std::vector<std::string> told;
  PassGraphs graphs(&memory_, true,
                    [&](const absl::Status& why) { told.emplace_back(why.message()); });
  memory_.refusal = absl::InternalError("card 0 (X), ending a capture: not permitted");
  EXPECT_EQ(Run(&graphs, 1), as_it_is_);
  EXPECT_EQ(Run(&graphs, 2), as_it_is_);
  EXPECT_TRUE(graphs.active());
  EXPECT_EQ(Run(&graphs, 1), (Log{"capture", "pass", "pass"})) << "what was captured has not run";
  EXPECT_FALSE(graphs.active());
  EXPECT_EQ(Run(&graphs, 2), as_it_is_);
  EXPECT_EQ(Run(&graphs, 1), as_it_is_);
  EXPECT_EQ(graphs.launches(), 0);
  ASSERT_EQ(told.size(), 1u);
  EXPECT_THAT(told[0], AllOf(HasSubstr("card 0 (X), ending a capture: not permitted"),
                             HasSubstr("nn_worker.graph_capture=false")));
}

TEST_F(PassGraphsTest, TheErrorOfADeviceThatHasFailedIsNoRefusal) {
  int told = 0;
  PassGraphs graphs(&memory_, true, [&](const absl::Status&) { ++told; });
  Run(&graphs, 1);
  memory_.refusal = absl::InternalError("card 0 (X), a kernel: misaligned address");
  memory_.failure = memory_.refusal;
  log_.clear();
  const PassPart whole = {true, [&] { return Pass(); }};
  EXPECT_EQ(graphs.Run({24, 1}, absl::MakeConstSpan(&whole, 1)), memory_.failure);
  EXPECT_EQ(log_, (Log{"capture", "pass"})) << "nothing is enqueued on it";
  EXPECT_EQ(told, 0);
}

TEST_F(PassGraphsTest, AGraphThatWasMadeIsLaunchedNoMoreOnceAnotherIsRefused) {
  PassGraphs graphs(&memory_, true);
  for (int i = 0; i < 2; ++i) Run(&graphs, 1);
  memory_.refusal = absl::InternalError("full");
  for (int i = 0; i < 2; ++i) Run(&graphs, 2);
  EXPECT_EQ(Run(&graphs, 1), as_it_is_);
}

TEST_F(PassGraphsTest, APartThatIsNotCapturedRunsBetweenTheGraphsOfTheOthers) {
  PassGraphs graphs(&memory_, true);
  EXPECT_EQ(RunParts(&graphs), parts_as_they_are_);
  EXPECT_EQ(RunParts(&graphs),
            (Log{"capture", "first", "launch", "sum", "capture", "last", "launch"}));
  EXPECT_EQ(RunParts(&graphs), (Log{"launch", "sum", "launch"}));
  EXPECT_EQ(graphs.launches(), 4);
}

TEST_F(PassGraphsTest, NoGraphRunsAfterAPartThatWritesListsOver) {
  PassGraphs graphs(&memory_, true);
  for (int i = 0; i < 2; ++i) RunParts(&graphs);
  parts_[1].enqueue = [this] {
    ++memory_.epoch;
    return absl::OkStatus();
  };
  EXPECT_EQ(RunParts(&graphs), (Log{"launch", "last"}));
  parts_[1] = Part(false, "sum");
  EXPECT_EQ(RunParts(&graphs), parts_as_they_are_);
  EXPECT_EQ(RunParts(&graphs),
            (Log{"capture", "first", "launch", "sum", "capture", "last", "launch"}));
}

TEST_F(PassGraphsTest, AfterARefusalTheOtherPartsAreEnqueuedAsTheyAre) {
  PassGraphs graphs(&memory_, true);
  parts_[1].enqueue = [this] {
    memory_.refusal = absl::InternalError("full");
    return absl::OkStatus();
  };
  parts_.push_back(Part(false, "sum"));
  parts_.push_back(Part(true, "after"));
  RunParts(&graphs);
  memory_.refusal = absl::OkStatus();
  EXPECT_EQ(RunParts(&graphs),
            (Log{"capture", "first", "launch", "capture", "last", "last", "sum", "after"}));
}

TEST_F(PassGraphsTest, PartsAfterOneThatFailsAreNotEnqueued) {
  PassGraphs graphs(&memory_, true);
  parts_[1].enqueue = [] { return absl::UnavailableError("rank 1 is lost"); };
  for (const Log& expected : {Log{"first"}, Log{"capture", "first", "launch"}, Log{"launch"}}) {
    log_.clear();
    EXPECT_EQ(graphs.Run({24, 1}, parts_).message(), "rank 1 is lost");
    EXPECT_EQ(log_, expected);
  }
}

TEST_F(PassGraphsTest, AProfilerSeesTheLaunch) {
  PassGraphs graphs(&memory_, true);
  for (int i = 0; i < 2; ++i) Run(&graphs, 1);
  EXPECT_EQ(memory_.ranges, (Log{"captured pass", "end"}));
}

}  // namespace
}  // namespace satrap

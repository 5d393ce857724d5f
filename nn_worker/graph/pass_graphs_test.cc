#include "nn_worker/graph/pass_graphs.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "nn_worker/backend/fake_device_memory.h"

namespace satrap {
namespace {

// Writes down what is asked of it.
class GraphMemory final : public FakeDeviceMemory {
 public:
  explicit GraphMemory(std::vector<std::string>* log) : log_(log) {}
  int64_t GraphEpoch() const override { return epoch; }
  absl::StatusOr<std::unique_ptr<OperationGraph>> Capture(
      absl::FunctionRef<absl::Status()> enqueue) override {
    log_->push_back("capture");
    if (absl::Status status = enqueue(); !status.ok()) return status;
    return std::make_unique<OperationGraph>();
  }
  void Enqueue(OperationGraph*) override { log_->push_back("launch"); }

  int64_t epoch = 0;

 private:
  std::vector<std::string>* const log_;
};

class PassGraphsTest : public testing::Test {
 protected:
  using Log = std::vector<std::string>;
  // What a pass with the key led to.
  Log Run(PassGraphs* graphs, const std::string& key) {
    log_.clear();
    EXPECT_TRUE(graphs->Run(key, [&] { return Pass(); }).ok());
    return log_;
  }
  absl::Status Pass() {
    log_.push_back("pass");
    return absl::OkStatus();
  }

  Log log_;
  GraphMemory memory_{&log_};
  const Log as_it_is_ = {"pass"};
  const Log captured_ = {"capture", "pass", "launch"};
  const Log launched_ = {"launch"};
};

TEST_F(PassGraphsTest, ThePassIsCapturedWhenItComesForTheSecondTimeAndThenLaunched) {
  PassGraphs graphs(&memory_, true);
  EXPECT_EQ(Run(&graphs, "a"), as_it_is_);
  EXPECT_EQ(Run(&graphs, "a"), captured_);
  EXPECT_EQ(Run(&graphs, "a"), launched_);
  EXPECT_EQ(graphs.launches(), 2);
}

TEST_F(PassGraphsTest, EachKeyHasAGraphOfItsOwn) {
  PassGraphs graphs(&memory_, true);
  EXPECT_EQ(Run(&graphs, "a"), as_it_is_);
  EXPECT_EQ(Run(&graphs, "b"), as_it_is_);
  EXPECT_EQ(Run(&graphs, "a"), captured_);
  EXPECT_EQ(Run(&graphs, "b"), captured_);
  EXPECT_EQ(Run(&graphs, "a"), launched_);
}

TEST_F(PassGraphsTest, ItBeginsAnewWhenListsWereWrittenOver) {
  PassGraphs graphs(&memory_, true);
  Run(&graphs, "a");
  memory_.epoch = 1;  // by the pass itself
  EXPECT_EQ(Run(&graphs, "a"), as_it_is_);
  EXPECT_EQ(Run(&graphs, "a"), captured_);
  memory_.epoch = 2;
  EXPECT_EQ(Run(&graphs, "a"), as_it_is_);
  EXPECT_EQ(Run(&graphs, "a"), captured_);
}

TEST_F(PassGraphsTest, PassesThatAlwaysDifferKeepNoGraphs) {
  PassGraphs graphs(&memory_, true);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(Run(&graphs, std::to_string(i)), as_it_is_);
  EXPECT_EQ(Run(&graphs, "99"), as_it_is_);
  EXPECT_EQ(Run(&graphs, "99"), as_it_is_);
  EXPECT_EQ(Run(&graphs, "0"), captured_);
}

TEST_F(PassGraphsTest, WhereThereAreNoGraphsEveryPassIsEnqueuedAsItIs) {
  PassGraphs off(&memory_, false);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(Run(&off, "a"), as_it_is_);
  memory_.epoch = -1;
  PassGraphs none(&memory_, true);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(Run(&none, "a"), as_it_is_);
}

TEST_F(PassGraphsTest, AnErrorOfThePassIsReturnedAndNothingIsLaunched) {
  PassGraphs graphs(&memory_, true);
  Run(&graphs, "a");
  const auto fails = [] { return absl::UnavailableError("rank 1 is lost"); };
  EXPECT_EQ(graphs.Run("a", fails).message(), "rank 1 is lost");
  EXPECT_EQ(graphs.launches(), 0);
  EXPECT_EQ(Run(&graphs, "a"), captured_);
}

}  // namespace
}  // namespace satrap

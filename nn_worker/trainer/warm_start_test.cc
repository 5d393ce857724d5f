#include "nn_worker/trainer/warm_start.h"

#include <thread>

#include "common/rpc/header.h"
#include "common/thread/serial_executor.h"
#include "common/thread/thread_pool_executor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nn_worker/trainer/testing/trainer_ranks.h"

namespace satrap {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// An embedding PS that accepts every load.
class LoadingPs final : public rpc::Channel {
 public:
  void Call(const rpc::Method&, rpc::Message request, int64_t, rpc::Callback done) override {
    LoadTablesRequest load;
    ASSERT_TRUE(load.ParseFromString(request.header));
    loaded.push_back(load.directory());
    LoadTablesAnswer answer;
    answer.set_outcome(OUTCOME_DONE);
    done(rpc::MessageOf(answer));
  }
  std::vector<std::string> loaded;
};

class WarmStartTest : public testing::Test {
 protected:
  WarmStartTest() {
    for (uint64_t step = 0; step < 3; ++step) {
      trained_.Step(step, TrainerBatch(step), {30, 60});
    }
    model_.directory = "runs/before";
    model_.dense = trained_.Saved(0);
    model_.step = 3;
    model_.tables = {"wide", "narrow", "history"};
  }

  ~WarmStartTest() override { pool_.Stop(); }

  // Runs WarmStart on both ranks; returns the report of rank 0.
  absl::StatusOr<WarmStartReport> Begin(TrainerRanks* ranks) {
    std::thread other([&] {
      StartModel none;
      other_ = WarmStart(&none, job_, ranks->network(1), ranks->collective(1), nullptr).status();
    });
    auto report = WarmStart(&model_, job_, ranks->network(0), ranks->collective(0), &client_);
    if (!report.ok()) ranks->collective(0)->Abort(report.status());
    other.join();
    return report;
  }

  JobConfig job_ = TrainerJob();
  TrainerRanks trained_{2};
  StartModel model_;
  LoadingPs ps_;
  ThreadPoolExecutor pool_{1};
  SerialExecutor executor_{&pool_};
  PsControlClient client_{Envelope(), rpc::RpcTimeouts(), &executor_, {&ps_}};
  absl::Status other_;
};

TEST_F(WarmStartTest, AllRanksBeginWithTheModelThatRank0HasRead) {
  TrainerRanks ranks(2);
  const auto report = Begin(&ranks);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_TRUE(other_.ok()) << other_;
  EXPECT_TRUE(report->has_state);
  EXPECT_TRUE(report->fresh.empty() && report->ignored.empty());
  EXPECT_EQ(report->taken[0], "wide");
  EXPECT_THAT(ps_.loaded, ElementsAre("runs/before"));
  EXPECT_EQ(ranks.Weights(0), trained_.Weights(0));
  EXPECT_EQ(ranks.Saved(0), ranks.Saved(1)) << "also the steps of the state";
}

TEST_F(WarmStartTest, SaysWhichTablesOnlyOneOfBothHas) {
  model_.tables = {"wide", "narrow", "old"};
  TrainerRanks ranks(2);
  const auto report = Begin(&ranks);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_THAT(report->fresh, ElementsAre("history"));
  EXPECT_THAT(report->ignored, ElementsAre("old"));
}

TEST_F(WarmStartTest, APatternThatNamesNothingIsFoundBeforeAnythingIsLoaded) {
  job_.mutable_warm_start()->add_only("wide");
  job_.mutable_warm_start()->add_only("wied");
  TrainerRanks ranks(2);
  EXPECT_THAT(std::string(Begin(&ranks).status().message()),
              HasSubstr("warm_start.only[1]: 'wied'"));
  EXPECT_TRUE(ps_.loaded.empty());
}

TEST_F(WarmStartTest, AModelOfWhichNothingFitsIsAnError) {
  model_.tables = {"other"};
  model_.dense = EncodeArrays({{"other.weight", 1, 1, {1}}});
  TrainerRanks ranks(2);
  const auto report = Begin(&ranks);
  EXPECT_EQ(report.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(report.status().message()),
              HasSubstr("nothing of the model in runs/before is taken"));
}

}  // namespace
}  // namespace satrap

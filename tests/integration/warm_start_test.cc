// Tests whole runs, with a process for every role, that start from the model of another run, and
// runs whose rates fall on a plateau.

#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "tests/integration/run_fixture.h"

namespace satrap {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// Every epoch has the same batches, and the model is that of the last step.
constexpr char kSameBatches[] = R"(
  mode: SYNC
  reproducible: true
  evaluation { at_epoch_end: false }
)";

class WarmStartTest : public RunFixture {
 protected:
  std::vector<std::string> Args(const std::string& run, const std::vector<std::string>& sets,
                                const std::string& init_from = "") {
    std::vector<std::string> args = {"train",   job_,       "--run_dir",
                                     Path(run), "--report", Path(run + ".json")};
    for (const std::string& assignment : sets) {
      args.push_back("--set");
      args.push_back(assignment);
    }
    if (init_from.empty()) return args;
    args.push_back("--init_from");
    args.push_back(Path(init_from));
    return args;
  }
  // Trains and returns the report.
  std::string Train(const std::string& run, const std::vector<std::string>& sets,
                    const std::string& init_from = "") {
    const CommandEnd end = Satrap(Args(run, sets, init_from));
    EXPECT_EQ(end.exit_code, 0) << end.err;
    err_ = end.err;
    out_ = end.out;
    return ReadFile(Path(run + ".json"));
  }
  std::string LogOfRank0(const std::string& run) {
    std::string log;
    for (const auto& file : fs::directory_iterator(Path(run + "/logs"))) {
      const std::string name = file.path().filename().string();
      if (name.find("nn_worker") == 0 && name.find('0') != std::string::npos) {
        log += ReadFile(file.path().string());
      }
    }
    return log;
  }

  std::string job_ = WriteJob(5000, kSameBatches);
  std::string err_, out_;  // of the last run: progress, and the report
};

TEST_F(WarmStartTest, ARunThatTakesEverythingGoesOnAsALongerOne) {
  const std::vector<std::string> in_order = {"data.shuffle_rows=0"};
  const std::string longer = Train("longer", {"data.shuffle_rows=0", "epochs=2"});
  Train("first", in_order);
  const std::string second = Train("second", in_order, "first");
  EXPECT_EQ(JsonNumber(second, "steps") * 2, JsonNumber(longer, "steps"));
  EXPECT_EQ(JsonNumber(second, "test.auc"), JsonNumber(longer, "test.auc"));
  // Parts are scored in the order in which they arrive, and the last bits of a sum depend on this
  // order.
  EXPECT_NEAR(JsonNumber(second, "test.logloss"), JsonNumber(longer, "test.logloss"), 1e-12);
  EXPECT_THAT(LogOfRank0("second"),
              AllOf(HasSubstr("begins with a model"), HasSubstr("dense_optimizer_state=true"),
                    Not(HasSubstr("start with initial values"))));

  // Without the optimizer's state the rate warms up again, so the steps differ.
  const std::string warm =
      Train("warm", {"data.shuffle_rows=0", "warm_start.optimizer_state=false"}, "first");
  EXPECT_GT(std::abs(JsonNumber(warm, "test.logloss") - JsonNumber(longer, "test.logloss")), 1e-9);
  EXPECT_NEAR(JsonNumber(warm, "test.auc"), JsonNumber(longer, "test.auc"), 0.02);
  EXPECT_THAT(LogOfRank0("warm"), HasSubstr("dense_optimizer_state=false"));
}

TEST_F(WarmStartTest, TakesOnlyWhatIsNamed) {
  Train("first", {});
  const std::string report = Train("second", {"warm_start.only=deep/*", "max_steps=1"}, "first");
  EXPECT_THAT(LogOfRank0("second"), HasSubstr("dense_optimizer_state=true"));
  // The run takes over no tables and makes one step, so its tables have the rows of one batch and
  // not of 5000 samples.
  EXPECT_LT(JsonNumber(report, "tables.rows"), 19 + 19 + 99);
  const CommandEnd misspelt = Satrap(Args("third", {"warm_start.only=dep/*"}, "first"));
  EXPECT_EQ(misspelt.exit_code, 1);
  EXPECT_THAT(misspelt.err, HasSubstr("warm_start.only[0]: 'dep/*' matches no table and no dense"));
}

TEST_F(WarmStartTest, AnotherModelOrOptimizerTakesWhatFits) {
  Train("first", {});
  const std::string report =
      Train("second",
            {"tables[0].segments[0].optimizer.adam=", "model.layers[2].name=tower",
             "model.layers[3].inputs=linear,pairs,tower"},
            "first");
  EXPECT_GT(JsonNumber(report, "test.auc"), 0.6);
  EXPECT_THAT(LogOfRank0("second"),
              AllOf(HasSubstr("the model lacks parts of the job, which start with initial values"),
                    HasSubstr("tower/linear_0.weight"),
                    HasSubstr("ignores the parts of the model that the job does not have"),
                    HasSubstr("deep/linear_0.weight")));
}

TEST_F(WarmStartTest, SaysByTableAndFeatureWhatWasTakenAndWhichFieldJoinsARenamedFeature) {
  Train("first", {});
  const std::vector<std::string> renamed = {"data.features[0].name=city",
                                            "data.features[0].column=C1"};
  const std::string report = Train("second", renamed, "first");
  EXPECT_THAT(
      report,
      AllOf(HasSubstr("\"warm_start\":{\"model\":\"" + Path("first/checkpoints/cut_")),
            HasSubstr("{\"name\":\"rows\",\"rows\":"), HasSubstr("\"features\":[\"C2\",\"C3\"]"),
            HasSubstr("\"features_without_rows\":[\"city\"]"),
            HasSubstr("\"deep/linear_0.weight\"")));
  const auto warning = AllOf(HasSubstr("feature city: the model's table 'rows' has no rows"),
                             HasSubstr("rows of 'C1'"), HasSubstr("id_space: "));
  EXPECT_THAT(LogOfRank0("second"), AllOf(HasSubstr("takes the rows of a table"),
                                          HasSubstr("features_without_rows=city"), warning));
  EXPECT_THAT(err_.substr(0, err_.find("runs in")), warning) << "before anything starts";
  EXPECT_THAT(out_, AllOf(HasSubstr("began with   " + Path("first/checkpoints/cut_")), warning));

  std::vector<std::string> joined = renamed;
  joined.push_back("data.features[0].id_space=C1");
  const std::string again = Train("third", joined, "first");
  EXPECT_THAT(again, AllOf(HasSubstr("\"features\":[\"city\",\"C2\",\"C3\"]"),
                           HasSubstr("\"warnings\":[]")));
  EXPECT_THAT(err_ + out_, Not(HasSubstr("feature city")));
}

// After some validation all rates are 0 except for rounding, so no later validation is better.
TEST_F(WarmStartTest, RatesFallOnAPlateauAndTheRunEnds) {
  const std::vector<std::string> sets = {
      "epochs=20",
      "evaluation.at_epoch_end=true",
      "evaluation.patience=2",
      "evaluation.reduce_on_plateau.factor=0.1",
      "evaluation.reduce_on_plateau.min_delta=0.5",
  };
  const std::string report = Train("plateau", sets);
  EXPECT_GT(JsonNumber(report, "reductions"), 0);
  EXPECT_LT(JsonNumber(report, "learning_rate_factor"), 0.2);
  EXPECT_THAT(out_, HasSubstr("times those of the job, after "));
  EXPECT_THAT(LogOfRank0("plateau"), HasSubstr("lowers the learning rates"));
  EXPECT_THAT(ReadFile(Path("plateau/metrics.jsonl")), HasSubstr("\"learning_rate_factor\":0.1"));
}

// A run's cuts keep both the reductions of its rates and what it takes from its first model.
TEST_F(WarmStartTest, ARestartInTheMiddleGivesTheSameBits) {
  Train("first", {});
  std::vector<std::string> sets = {
      "epochs=5", "evaluation.at_epoch_end=true", "evaluation.reduce_on_plateau.factor=0.5",
      "evaluation.reduce_on_plateau.min_delta=0.5", "checkpoint.every_steps=7"};
  for (const bool state : {true, false}) {
    sets.push_back(absl::StrCat("warm_start.optimizer_state=", state ? "true" : "false"));
    job_ = WriteJob(5000, kSameBatches);
    const std::string whole = Train(absl::StrCat("whole", state), sets, "first");
    job_ = WriteJob(
        5000, absl::StrCat(kSameBatches, "kill_points { point: RANK_AFTER_COMMIT visit: 6 }"));
    const std::string restarted = Train(absl::StrCat("restarted", state), sets, "first");
    EXPECT_EQ(JsonNumber(whole, "generations"), 1);
    EXPECT_EQ(JsonNumber(restarted, "generations"), 2);
    EXPECT_EQ(JsonNumber(restarted, "learning_rate_factor"), 0.0625);
    EXPECT_EQ(JsonNumber(restarted, "reductions"), 4);
    const auto digest_of = [](const std::string& report) {
      return report.substr(report.find("\"model_digest\""), 34);
    };
    EXPECT_EQ(digest_of(restarted), digest_of(whole));
  }
}

}  // namespace
}  // namespace satrap

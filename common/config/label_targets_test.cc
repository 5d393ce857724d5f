#include "common/config/label_targets.h"

#include <cmath>
#include <limits>

#include "common/config/testing/validation_check.h"
#include "common/config/text_format.h"

namespace satrap {
namespace {

// A job with the tasks of `model` and the label columns 'y' and 'z', both of numbers.
JobConfig JobWithTasks(const std::string& model) {
  JobConfig job = JobWithData(R"(
      csv { columns { name: 'y' kind: LABEL numeric_label: true }
            columns { name: 'user' kind: ID }
            columns { name: 'z' kind: LABEL numeric_label: true } }
      train_files: 'train.csv'
      features { name: 'user' table: 'ids' })");
  ModelConfig tasks;
  CHECK_OK(ParseText(model, "model", &tasks));
  job.mutable_model()->MergeFrom(tasks);
  return job;
}

LabelTargets TargetsOfY(const std::string& model) { return LabelTargetsOf(JobWithTasks(model))[0]; }

TEST(LabelTargetsTest, BceTakesSharesAndNothingElse) {
  const LabelTargets targets = TargetsOfY("tasks { name: 'a' label: 'y' }");
  for (const float label : {0.0f, 0.25f, 1.0f}) EXPECT_TRUE(targets.Takes(label)) << label;
  for (const float label : {-1.0f, 5.0f, 1.0001f, std::nanf("")}) {
    EXPECT_FALSE(targets.Takes(label)) << label;
  }
  EXPECT_EQ(targets.Text(), "a number in [0, 1], which BCE takes");
  EXPECT_EQ(targets.learns_from, LearnsFrom::kDifferences);
}

TEST(LabelTargetsTest, AJobWithoutTasksHasOneOfBce) {
  const std::vector<LabelTargets> targets = LabelTargetsOf(SmallJob());
  ASSERT_EQ(targets.size(), 1u);
  EXPECT_EQ(targets[0].column, "label");
  EXPECT_FALSE(targets[0].Takes(-1));
}

TEST(LabelTargetsTest, MseTakesAnyNumberWhoseSquaresCanBeAddedUp) {
  const LabelTargets targets = TargetsOfY("tasks { name: 'a' label: 'y' loss: MSE }");
  EXPECT_TRUE(targets.Takes(-1e15f));
  EXPECT_FALSE(targets.Takes(1e16f));
  EXPECT_EQ(targets.Text(), "a number of at most 1e15 in magnitude, which MSE takes");
}

TEST(LabelTargetsTest, SoftmaxTakesTheClassesOfItsOutput) {
  const LabelTargets targets = TargetsOfY(R"(
      layers { name: 'deep' inputs: 'user.embedding' mlp { units: 8 output_units: 3 } }
      layers { name: 'scaled' inputs: 'deep' scale { factor: 2 } }
      tasks { name: 'k' label: 'y' output: 'scaled' loss: SOFTMAX_CROSS_ENTROPY })");
  for (const float label : {0.0f, 2.0f}) EXPECT_TRUE(targets.Takes(label)) << label;
  for (const float label : {-1.0f, 0.5f, 3.0f}) EXPECT_FALSE(targets.Takes(label)) << label;
  EXPECT_EQ(targets.Text(), "a whole number from 0 to 2, the classes of SOFTMAX_CROSS_ENTROPY");
}

TEST(LabelTargetsTest, ALabelOfTwoTasksIsWhatBothTake) {
  for (const char* tasks :
       {"tasks { name: 'a' label: 'y' loss: MSE } tasks { name: 'b' label: 'y' }",
        "tasks { name: 'b' label: 'y' } tasks { name: 'a' label: 'y' loss: MSE }"}) {
    EXPECT_FALSE(TargetsOfY(tasks).Takes(2)) << tasks;
    EXPECT_EQ(TargetsOfY(tasks).loss, TaskConfig::BCE) << tasks;
  }
}

TEST(LabelTargetsTest, PairsNeedLabelsOnBothSidesOfAHalf) {
  const LabelTargets targets = TargetsOfY("tasks { name: 'a' label: 'y' loss: BPR }");
  EXPECT_TRUE(targets.Takes(-1)) << "any number has a side";
  EXPECT_EQ(targets.learns_from, LearnsFrom::kSidesOfAHalf);
}

TEST(LabelTargetsTest, ALabelThatNoLossReadsMayBeAnything) {
  const std::vector<LabelTargets> targets =
      LabelTargetsOf(JobWithTasks("tasks { name: 'a' label: 'y' mask: 'z' }"));
  EXPECT_TRUE(targets[1].Takes(-7));
  EXPECT_EQ(targets[1].learns_from, LearnsFrom::kNoLabel);
}

TEST(LabelTargetsTest, WidthsFollowFromLayers) {
  ModelConfig model;
  CHECK_OK(ParseText(R"(
      layers { name: 'a' inputs: 'numeric' linear { units: 4 } }
      layers { name: 'b' inputs: 'a' mlp { units: 16 units: 5 } }
      layers { name: 'ab' inputs: 'a' inputs: 'b' concat {} }
      layers { name: 'sliced' inputs: 'ab' slice { ranges { size: 2 } ranges { begin: 2 size: 3 } } }
      layers { name: 'sum' inputs: 'sliced:1' inputs: 'b' add {} }
      layers { name: 'of_input' inputs: 'numeric' bias {} }
      layers { name: 'crossed' inputs: 'a' cross {} })",
                     "model", &model));
  EXPECT_EQ(OutputWidth(model, "a"), 4);
  EXPECT_EQ(OutputWidth(model, "b"), 5);
  EXPECT_EQ(OutputWidth(model, "ab"), 9);
  EXPECT_EQ(OutputWidth(model, "sliced"), 2);
  EXPECT_EQ(OutputWidth(model, "sum"), 3);
  EXPECT_EQ(OutputWidth(model, "of_input"), absl::nullopt);
  EXPECT_EQ(OutputWidth(model, "crossed"), absl::nullopt) << "its kind is not looked into";
  EXPECT_EQ(OutputWidth(model, "none"), absl::nullopt);
}

// A job whose label 'y' is a class, and whose output is made by `layers`.
JobConfig JobOfLayers(const std::string& layers, int record_rules) {
  JobConfig job;
  CHECK_OK(ParseText(R"(
      tables { name: 'ids' segments { name: 'vector' dim: 4 } segments { name: 'bias' dim: 1 } }
      data {
        csv { columns { name: 'y' kind: LABEL numeric_label: true } }
        numerics { name: 'a' } numerics { name: 'b' } numerics { name: 'c' }
        features { name: 'user' table: 'ids' }
        features { name: 'item' table: 'ids' }
        features { name: 'history' table: 'ids' pooling: NONE max_length: 7 }
      }
      model { tasks { name: 'k' label: 'y' output: 'out' loss: SOFTMAX_CROSS_ENTROPY } })",
                     "job", &job));
  ModelConfig model;
  CHECK_OK(ParseText(layers, "model", &model));
  job.mutable_model()->MergeFrom(model);
  job.mutable_data()->set_record_rules(record_rules);
  return job;
}

LabelTargets TargetsOfLayers(const std::string& layers, int record_rules) {
  return LabelTargetsOf(JobOfLayers(layers, record_rules))[0];
}

int64_t ClassesOf(const std::string& layers, int record_rules = 2) {
  return static_cast<int64_t>(TargetsOfLayers(layers, record_rules).largest) + 1;
}

constexpr int64_t kUnknown = 16777216;

TEST(LabelTargetsTest, ClassesFollowFromTheInputsOfTheGraph) {
  EXPECT_EQ(ClassesOf("layers { name: 'out' inputs: 'numeric' bias {} }"), 3);
  EXPECT_EQ(ClassesOf("layers { name: 'out' inputs: 'user.vector' softmax {} }"), 4);
  EXPECT_EQ(ClassesOf("layers { name: 'out' inputs: 'user.vector' inputs: 'numeric' concat {} }"),
            7);
  EXPECT_EQ(ClassesOf("layers { name: 'out' inputs: 'history.vector' inputs: 'history.length' "
                      "sequence_pool {} }"),
            4);
  EXPECT_EQ(ClassesOf("layers { name: 'out' inputs: 'history.vector' flatten {} }"), 28);
  EXPECT_EQ(ClassesOf("layers { name: 'out' inputs: '*.vector' concat {} }"), kUnknown)
      << "one of them is a sequence, and the graph takes no such layer";
}

TEST(LabelTargetsTest, ClassesFollowWhateverTheOrderOfLayers) {
  EXPECT_EQ(ClassesOf("layers { name: 'out' inputs: 'wide' inputs: 'numeric' concat {} }"
                      "layers { name: 'wide' inputs: 'deep' bias {} }"
                      "layers { name: 'deep' inputs: 'user.vector' linear { units: 6 } }"),
            9);
}

TEST(LabelTargetsTest, ALinearLayerSaysItsClassesWhateverItReads) {
  EXPECT_EQ(ClassesOf("layers { name: 'out' inputs: 'in_batch' linear { units: 3 } }"
                      "layers { name: 'in_batch' inputs: 'user.vector' in_batch_logits {} }"),
            3);
  EXPECT_EQ(ClassesOf("layers { name: 'out' inputs: 'numeric' mlp { units: 8 output_units: 2 } }"),
            2);
}

TEST(LabelTargetsTest, AJobWithoutNumericsHasAnEmptyVectorOfThem) {
  JobConfig job =
      JobOfLayers("layers { name: 'out' inputs: '*.bias' inputs: 'numeric' concat {} }", 2);
  job.mutable_data()->clear_numerics();
  job.mutable_data()->mutable_features()->RemoveLast();
  EXPECT_EQ(LabelTargetsOf(job)[0].largest, 1) << "one of each feature";
}

TEST(LabelTargetsTest, ClassesFollowThroughInteractions) {
  const std::string fields =
      "layers { name: 'fields' inputs: 'user.vector' inputs: 'item.vector' stack {} } ";
  const auto of_fields = [&](const std::string& kind) {
    return ClassesOf(fields + "layers { name: 'out' inputs: 'fields' " + kind + " }");
  };
  EXPECT_EQ(of_fields("flatten {}"), 8);
  EXPECT_EQ(of_fields("bi_interaction {}"), 4);
  EXPECT_EQ(of_fields("cin { units: 6 units: 2 }"), 8);
  EXPECT_EQ(of_fields("inputs: 'history.vector' dot_interaction {}"), 4 + 9 * 8 / 2);
  EXPECT_EQ(of_fields("inputs: 'user.vector' inner_product {}"), 3);
  EXPECT_EQ(of_fields("stack {}"), kUnknown) << "no vector";
  EXPECT_EQ(ClassesOf(fields + "layers { name: 'seen' inputs: 'fields' attention { units: 8 } }"
                               "layers { name: 'out' inputs: 'seen' flatten {} }"),
            16);
  EXPECT_EQ(ClassesOf("layers { name: 'vectors' inputs: 'numeric' numeric_embedding { dim: 5 } }"
                      "layers { name: 'out' inputs: 'vectors' flatten {} }"),
            15);
  EXPECT_EQ(ClassesOf("layers { name: 'out' inputs: 'user.vector' inputs: 'numeric' cross {} }"),
            7);
  EXPECT_EQ(ClassesOf(fields + "layers { name: 'out' inputs: 'fields' slice { ranges { size: 1 } "
                               "ranges { size: 2 } } }"),
            kUnknown);
}

// A run's ledger counts the records that were good by the rules with which the run began. So these
// rules must find the same classes in every build.
TEST(LabelTargetsTest, ARunThatBeganBeforeKnowsTheClassesThatItKnew) {
  EXPECT_EQ(ClassesOf("layers { name: 'out' inputs: 'numeric' bias {} }", 1), kUnknown);
  EXPECT_EQ(ClassesOf("layers { name: 'out' inputs: 'numeric' linear { units: 3 } }", 1), 3);
}

}  // namespace
}  // namespace satrap

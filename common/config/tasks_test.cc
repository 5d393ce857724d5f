#include "common/config/tasks.h"

#include <string>
#include <vector>

#include "common/config/testing/validation_check.h"

namespace satrap {
namespace {

// A job with two tasks on two LABEL columns.
JobConfig TwoTasks(const std::string& more_columns = "") {
  JobConfig job = JobWithData(absl::StrCat(R"(
      csv { columns { name: 'click' kind: LABEL } columns { name: 'user' kind: ID }
            columns { name: 'buy' kind: LABEL } )",
                                           more_columns, R"(}
      train_files: 'train.csv'
      features { name: 'user' table: 'ids' })"));
  ModelConfig model;
  CHECK_OK(ParseText(R"(tasks { name: 'ctr' label: 'click' }
                        tasks { name: 'cvr' output: 'cvr' label: 'buy' mask: 'click' weight: 2 })",
                     "model", &model));
  job.mutable_model()->MergeFrom(model);
  return job;
}

TEST(TasksTest, WithoutTasksThereIsOneOfTheOnlyLabel) {
  const std::vector<ModelTask> tasks = TasksOf(SmallJob());
  ASSERT_EQ(tasks.size(), 1u);
  EXPECT_EQ(tasks[0].name, "");
  EXPECT_EQ(tasks[0].output, "logit");
  EXPECT_EQ(tasks[0].loss, TaskConfig::BCE);
  EXPECT_EQ(tasks[0].weight, 1);
  EXPECT_EQ(tasks[0].mask, -1);
  EXPECT_EQ(LabelsOf(SmallJob().data()), std::vector<std::string>{"label"});
}

TEST(TasksTest, NamesBecomePositionsAmongTheLabels) {
  JobConfig job = TwoTasks();
  EXPECT_EQ(ProblemsOf(job), "");
  const std::vector<ModelTask> tasks = TasksOf(job);
  ASSERT_EQ(tasks.size(), 2u);
  EXPECT_EQ(tasks[0].label, 0u);
  EXPECT_EQ(tasks[0].output, "logit") << "that of the model";
  EXPECT_EQ(tasks[1].label, 1u);
  EXPECT_EQ(tasks[1].mask, 0);
  EXPECT_EQ(tasks[1].weight, 2);
  EXPECT_EQ(MainTaskOf(job), 0u);
  job.mutable_evaluation()->set_task("cvr");
  EXPECT_EQ(MainTaskOf(job), 1u);
}

TEST(TasksTest, ALabelMayBeReadAsAMaskOnly) {
  EXPECT_EQ(ProblemsOf(TwoTasks(), {"model.tasks[0].label=buy"}), "");
  EXPECT_EQ(ProblemsOf(TwoTasks(), {"model.tasks[1].mask="}), "");
}

TEST(TasksTest, EachLabelHasAReader) {
  EXPECT_EQ(ProblemsOf(TwoTasks("columns { name: 'like' kind: LABEL }")),
            "model.tasks: no task reads the LABEL column 'like'; set its kind to IGNORE, or make "
            "it the label or the mask of a task");
}

TEST(TasksTest, NamesAndOutputsAreOfOneTask) {
  EXPECT_EQ(ProblemsOf(TwoTasks(), {"model.tasks[1].name=ctr"}),
            "model.tasks[1].name: the name 'ctr' is taken");
  EXPECT_EQ(ProblemsOf(TwoTasks(), {"model.tasks[1].output=logit"}),
            "model.tasks[1].output: must not be the output of another task, got 'logit'");
  EXPECT_EQ(ProblemsOf(TwoTasks(), {"model.tasks[1].name=a/b"}),
            "model.tasks[1].name: must consist of letters, digits, '_', '-' and '.', got 'a/b'");
}

TEST(TasksTest, LabelsAndMasksAreColumns) {
  EXPECT_EQ(ProblemsOf(TwoTasks(), {"model.tasks[0].label=x"}),
            "model.tasks[0].label: must be a LABEL column (click, buy), got 'x'");
  EXPECT_EQ(ProblemsOf(TwoTasks(), {"model.tasks[0].label="}),
            "model.tasks[0].label: must be a LABEL column (click, buy), got ''");
  EXPECT_EQ(ProblemsOf(TwoTasks(), {"model.tasks[1].mask=user"}),
            "model.tasks[1].mask: must be a LABEL column (click, buy) or empty, got 'user'");
}

TEST(TasksTest, AClassTakesSoftmax) {
  const JobConfig job = TwoTasks("columns { name: 'kind' kind: LABEL vocabulary: ['a', 'b'] }");
  const std::vector<std::string> read = {"model.tasks[0].label=kind"};
  EXPECT_EQ(ProblemsOf(job, read),
            "model.tasks[0].loss: must be SOFTMAX_CROSS_ENTROPY for the classes of column 'kind', "
            "got BCE");
  const std::string softmax = "model.tasks[0].loss=SOFTMAX_CROSS_ENTROPY";
  EXPECT_EQ(ProblemsOf(job, {read[0], softmax, "evaluation.task=cvr"}), "");
  EXPECT_EQ(ProblemsOf(job, {"model.tasks[1].mask=kind", softmax, "evaluation.task=cvr"}),
            "model.tasks[0].loss: SOFTMAX_CROSS_ENTROPY needs a label that is a class: give column "
            "'click' a vocabulary or numeric_label");
}

// A job in libsvm or libffm format with one task.
JobConfig TokensJob(const std::string& format, const std::string& loss) {
  const std::string feature = format.substr(0, 6) == "libffm" ? "0" : "features";
  JobConfig job = JobWithData(
      absl::StrCat(format, " train_files: 'a' features { name: '", feature, "' table: 'ids' }"));
  job.mutable_evaluation()->set_metric(loss == "MSE" ? MSE : LOGLOSS);
  ModelConfig model;
  CHECK_OK(ParseText(absl::StrCat("tasks { name: 't' loss: ", loss, " }"), "model", &model));
  job.mutable_model()->MergeFrom(model);
  return job;
}

TEST(TasksTest, LabelsOfLibsvmAndLibffmMayBeClassesOrNumbers) {
  for (const std::string format : {"libsvm { ", "libffm { num_fields: 1 "}) {
    const std::string name = format.substr(0, 6);
    EXPECT_EQ(ProblemsOf(TokensJob(format + "}", "BCE")), "");
    EXPECT_EQ(ProblemsOf(TokensJob(format + "numeric_label: true }", "MSE")), "");
    EXPECT_EQ(ProblemsOf(TokensJob(format + "classes: [1, 2] }", "BCE")), "");
    for (const char* labels :
         {"numeric_label: true }", "classes: [1, 2] }", "classes: [1, 2, 3] }"}) {
      EXPECT_EQ(ProblemsOf(TokensJob(format + labels, "SOFTMAX_CROSS_ENTROPY")), "") << labels;
    }
    EXPECT_EQ(ProblemsOf(TokensJob(format + "}", "SOFTMAX_CROSS_ENTROPY")),
              absl::StrCat("model.tasks[0].loss: SOFTMAX_CROSS_ENTROPY needs a label that is a "
                           "class: set data.",
                           name, ".classes or data.", name, ".numeric_label"));
    EXPECT_EQ(
        ProblemsOf(TokensJob(format + "classes: [1, 2, 3] }", "BCE")),
        "model.tasks[0].loss: must be SOFTMAX_CROSS_ENTROPY for the classes of column 'label', "
        "got BCE");
  }
}

TEST(TasksTest, TheQueryOfALibsvmFileIsAGroup) {
  JobConfig job = TokensJob("libsvm { qid: true }", "BCE");
  EXPECT_TRUE(HasGroups(job.data()));
  EXPECT_FALSE(HasGroups(TokensJob("libsvm {}", "BCE").data()));
  EXPECT_EQ(ProblemsOf(job, {"evaluation.metric=GAUC"}), "");
}

TEST(TasksTest, TheMetricIsOneThatTheTaskHas) {
  const std::string mse = "model.tasks[1].loss=MSE";
  EXPECT_EQ(ProblemsOf(TwoTasks(), {mse, "evaluation.task=cvr"}),
            "evaluation.metric: must be one that task 'cvr' has (MAE, MSE, RMSE), got AUC");
  EXPECT_EQ(ProblemsOf(TwoTasks(), {mse, "evaluation.task=cvr", "evaluation.metric=RMSE"}), "");
  EXPECT_EQ(ProblemsOf(TwoTasks(), {"evaluation.metric=GAUC"}),
            "evaluation.metric: must be one that task 'ctr' has (AUC, LOGLOSS), got GAUC, which "
            "needs a GROUP column");
  EXPECT_EQ(ProblemsOf(TwoTasks("columns { name: 'g' kind: GROUP }"), {"evaluation.metric=GAUC"}),
            "");
  EXPECT_EQ(ProblemsOf(SmallJob(), {"evaluation.metric=MSE"}),
            "evaluation.metric: must be one that the model has (AUC, LOGLOSS), got MSE");
}

TEST(TasksTest, TheTaskOfAnEvaluationExists) {
  EXPECT_EQ(ProblemsOf(TwoTasks(), {"evaluation.task=x"}),
            "evaluation.task: must be the name of a task of model.tasks, got 'x'");
  EXPECT_EQ(ProblemsOf(SmallJob(), {"evaluation.task=x"}),
            "evaluation.task: must be empty without model.tasks, got 'x'");
}

TEST(TasksTest, ANumericLabelIsALabel) {
  const std::string path = "data.csv.columns[0].";
  EXPECT_EQ(ProblemsOf(TwoTasks(), {path + "numeric_label=true"}), "");
  EXPECT_EQ(ProblemsOf(TwoTasks(), {"data.csv.columns[1].numeric_label=true"}),
            "data.csv.columns[1].numeric_label: is for columns of kind LABEL, got ID");
  EXPECT_EQ(ProblemsOf(TwoTasks(), {path + "numeric_label=true", path + "positive_values=yes"}),
            "data.csv.columns[0].numeric_label: excludes vocabulary, positive_values and "
            "negative_values");
}

}  // namespace
}  // namespace satrap

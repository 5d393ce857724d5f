#include "common/config/tasks.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/check.h"
#include "common/config/data_streams.h"
#include "common/config/record_schema.h"

namespace satrap {
namespace {

int PositionOf(const std::vector<std::string>& names, const std::string& name) {
  const auto at = std::find(names.begin(), names.end(), name);
  return at == names.end() ? -1 : static_cast<int>(at - names.begin());
}

const std::string& OutputOf(const TaskConfig& task, const ModelConfig& model) {
  return task.output().empty() ? model.output() : task.output();
}

std::string LabelOf(const TaskConfig& task, const std::vector<std::string>& labels) {
  if (!task.label().empty()) return task.label();
  // A single label needs no name. With several labels, taking the first would silently train on the
  // wrong one.
  return labels.size() == 1 ? labels[0] : "";
}

// The column of the label `name`. Null if the format declares no columns.
const ColumnConfig* LabelColumn(const DataConfig& data, const std::string& name) {
  for (const auto* columns : {&data.csv().columns(), &data.record().columns()}) {
    for (const ColumnConfig& column : *columns) {
      if (column.kind() == ColumnConfig::LABEL && column.name() == name) return &column;
    }
  }
  return nullptr;
}

struct LabelKind {
  bool is_class = false;      // the label can only be a class
  bool may_be_class = false;  // a class may be written as a number
};

template <typename Format>
LabelKind KindOfTokenLabel(const Format& format) {
  // Two classes have the labels 0 and 1, which suit other losses, too. The labels of more classes
  // suit SOFTMAX_CROSS_ENTROPY alone.
  const int classes = format.classes_size();
  return {classes > 2, classes > 0 || format.numeric_label()};
}

// The kind of the label `name`.
LabelKind KindOfLabel(const DataConfig& data, const std::string& name) {
  if (data.has_libsvm()) return KindOfTokenLabel(data.libsvm());
  if (data.has_libffm()) return KindOfTokenLabel(data.libffm());
  const ColumnConfig* column = LabelColumn(data, name);
  if (column == nullptr) return {};
  const bool is_class = column->vocabulary_size() > 0;
  return {is_class, is_class || column->numeric_label()};
}

// For an error: how to change the job so that the label `name` has classes.
std::string HowToHaveClasses(const DataConfig& data, const std::string& name) {
  if (data.has_libsvm()) return "set data.libsvm.classes or data.libsvm.numeric_label";
  if (data.has_libffm()) return "set data.libffm.classes or data.libffm.numeric_label";
  return absl::StrCat("give column '", name, "' a vocabulary or numeric_label");
}

std::vector<Metric> MetricsOf(TaskConfig::Loss loss, bool groups) {
  std::vector<Metric> metrics;
  switch (loss) {
    case TaskConfig::BCE:
      metrics = {AUC, LOGLOSS};
      break;
    case TaskConfig::MSE:
      return {MAE, MSE, RMSE};
    case TaskConfig::BPR:
      metrics = {AUC};
      break;
    case TaskConfig::SOFTMAX_CROSS_ENTROPY:
      return {LOGLOSS};
    case TaskConfig::SAMPLED_SOFTMAX:
    case TaskConfig::NCE:
    case TaskConfig::IN_BATCH_SOFTMAX:
      return {};
  }
  if (groups) metrics.push_back(GAUC);
  return metrics;
}

bool IsPlainName(const std::string& name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || c == '.';
  });
}

// Checks one task, at `path`, and adds to `read` the names of the LABEL columns that it reads.
void ValidateTask(const JobConfig& job, const TaskConfig& task, const std::string& path,
                  std::set<std::string>* read, Problems* problems) {
  const std::vector<std::string> labels = LabelsOf(job.data());
  const std::string known = absl::StrJoin(labels, ", ");
  if (!IsPlainName(task.name())) {
    problems->Add(
        path + ".name",
        absl::StrCat("must consist of letters, digits, '_', '-' and '.', got '", task.name(), "'"));
  }
  const std::string label = LabelOf(task, labels);
  if (PositionOf(labels, label) < 0) {
    problems->Add(path + ".label",
                  absl::StrCat("must be a LABEL column (", known, "), got '", label, "'"));
    // The checks below need the kind of the label, which is unknown here.
    return;
  }
  read->insert(label);
  if (!task.mask().empty() && PositionOf(labels, task.mask()) < 0) {
    problems->Add(path + ".mask", absl::StrCat("must be a LABEL column (", known,
                                               ") or empty, got '", task.mask(), "'"));
  }
  read->insert(task.mask());
  const LabelKind kind = KindOfLabel(job.data(), label);
  // A numeric label suits any loss, because a class may be written as a number. A label that can
  // only be a class suits SOFTMAX_CROSS_ENTROPY alone.
  if (kind.is_class && task.loss() != TaskConfig::SOFTMAX_CROSS_ENTROPY) {
    problems->Add(path + ".loss",
                  absl::StrCat("must be SOFTMAX_CROSS_ENTROPY for the classes of column '", label,
                               "', got ", TaskConfig::Loss_Name(task.loss())));
  }
  if (!kind.may_be_class && task.loss() == TaskConfig::SOFTMAX_CROSS_ENTROPY) {
    problems->Add(path + ".loss",
                  absl::StrCat("SOFTMAX_CROSS_ENTROPY needs a label that is a class: ",
                               HowToHaveClasses(job.data(), label)));
  }
}

void ValidateMetric(const JobConfig& job, Problems* problems) {
  const EvaluationConfig& evaluation = job.evaluation();
  TaskConfig::Loss loss = TaskConfig::BCE;
  std::string of = "the model";
  if (job.model().tasks_size() > 0) {
    const auto& tasks = job.model().tasks();
    const auto named = evaluation.task().empty()
                           ? tasks.begin()
                           : std::find_if(tasks.begin(), tasks.end(), [&](const TaskConfig& task) {
                               return task.name() == evaluation.task();
                             });
    if (named == tasks.end()) {
      problems->Add(
          "evaluation.task",
          absl::StrCat("must be the name of a task of model.tasks, got '", evaluation.task(), "'"));
      return;
    }
    loss = named->loss();
    of = absl::StrCat("task '", named->name(), "'");
  } else if (!evaluation.task().empty()) {
    problems->Add("evaluation.task",
                  absl::StrCat("must be empty without model.tasks, got '", evaluation.task(), "'"));
  }
  const std::vector<Metric> metrics = MetricsOf(loss, HasGroups(job.data()));
  if (metrics.empty()) {
    // Validation has no metric for a loss with candidates, because a part has only some of the
    // items. `satrap retrieve` measures the ranking among all items.
    if (job.action() == JobConfig::TRAIN && HasValidData(job.data())) {
      problems->Add("evaluation.task",
                    absl::StrCat(of, " has no metric to validate by, because its loss is ",
                                 TaskConfig::Loss_Name(loss),
                                 ": leave out the validation data, or name another task"));
    }
    return;
  }
  if (std::find(metrics.begin(), metrics.end(), evaluation.metric()) != metrics.end()) return;
  const std::string names = absl::StrJoin(metrics, ", ", [](std::string* out, Metric metric) {
    absl::StrAppend(out, Metric_Name(metric));
  });
  problems->Add("evaluation.metric",
                absl::StrCat("must be one that ", of, " has (", names, "), got ",
                             Metric_Name(evaluation.metric()),
                             evaluation.metric() == GAUC ? ", which needs a GROUP column" : ""));
}

}  // namespace

std::vector<std::string> LabelsOf(const DataConfig& data) { return TextSchemaOf(data).labels; }

bool HasGroups(const DataConfig& data) { return TextSchemaOf(data).has_group; }

std::vector<ModelTask> TasksOf(const JobConfig& job) {
  if (job.model().tasks().empty()) {
    ModelTask task;
    task.output = job.model().output();
    return {task};
  }
  const std::vector<std::string> labels = LabelsOf(job.data());
  std::vector<ModelTask> tasks;
  for (const TaskConfig& config : job.model().tasks()) {
    ModelTask task;
    task.name = config.name();
    task.output = OutputOf(config, job.model());
    task.loss = config.loss();
    task.weight = static_cast<float>(config.weight());
    // Roles get a validated job, so a name that does not exist is a bug.
    const int label = PositionOf(labels, LabelOf(config, labels));
    CHECK(label >= 0) << "task " << config.name() << " has no label";
    task.label = static_cast<size_t>(label);
    if (!config.mask().empty()) task.mask = PositionOf(labels, config.mask());
    tasks.push_back(std::move(task));
  }
  return tasks;
}

size_t MainTaskOf(const JobConfig& job) {
  const std::string& name = job.evaluation().task();
  if (name.empty()) return 0;
  for (int i = 0; i < job.model().tasks_size(); ++i) {
    if (job.model().tasks(i).name() == name) return static_cast<size_t>(i);
  }
  CHECK(false) << "no task " << name;
  return 0;
}

void ValidateTasks(const JobConfig& job, Problems* problems) {
  std::set<std::string> names, outputs, read;
  for (int i = 0; i < job.model().tasks_size(); ++i) {
    const TaskConfig& task = job.model().tasks(i);
    const std::string path = absl::StrCat("model.tasks[", i, "]");
    ValidateTask(job, task, path, &read, problems);
    if (!names.insert(task.name()).second) {
      problems->Add(path + ".name", absl::StrCat("the name '", task.name(), "' is taken"));
    }
    const std::string& output = OutputOf(task, job.model());
    // An output has only one gradient, so only one task's loss may write it.
    if (!outputs.insert(output).second) {
      problems->Add(path + ".output",
                    absl::StrCat("must not be the output of another task, got '", output, "'"));
    }
  }
  if (job.model().tasks_size() > 0) {
    // Refuses a column that no task reads, because a bad value in it would still make a record bad.
    for (const std::string& label : LabelsOf(job.data())) {
      if (read.count(label) == 0) {
        problems->Add("model.tasks",
                      absl::StrCat("no task reads the LABEL column '", label,
                                   "'; set its kind to IGNORE, or make it the label or the mask ",
                                   "of a task"));
      }
    }
  }
  ValidateMetric(job, problems);
}

}  // namespace satrap

// What a job predicts (ModelConfig.tasks). Names of columns are resolved to positions.
//
// Thread-safe: the functions depend only on their arguments.

#ifndef SATRAP_COMMON_CONFIG_TASKS_H_
#define SATRAP_COMMON_CONFIG_TASKS_H_

#include <string>
#include <vector>

#include "common/base/problems.h"
#include "proto/job.pb.h"

namespace satrap {

// One task. The defaults are those of a job without model.tasks.
struct ModelTask {
  std::string name;    // empty if there are no model.tasks
  std::string output;  // a layer
  TaskConfig::Loss loss = TaskConfig::BCE;
  float weight = 1;
  size_t label = 0;  // position in LabelsOf
  int mask = -1;     // position in LabelsOf; -1: none
};

// The names of the LABEL columns, in the order of a record's labels. Formats that declare no
// columns have the single label "label".
std::vector<std::string> LabelsOf(const DataConfig& data);
// Whether the records have a GROUP column.
bool HasGroups(const DataConfig& data);

// All tasks, at least one. REQUIRES: the job is validated
std::vector<ModelTask> TasksOf(const JobConfig& job);
// The position of the task that evaluation.task names. REQUIRES: the job is validated
size_t MainTaskOf(const JobConfig& job);

// Checks model.tasks, and the settings of `evaluation` that refer to them, as a part of
// ValidateJob. The network checks the shapes of outputs. REQUIRES: defaults are filled in
void ValidateTasks(const JobConfig& job, Problems* problems);

}  // namespace satrap

#endif  // SATRAP_COMMON_CONFIG_TASKS_H_

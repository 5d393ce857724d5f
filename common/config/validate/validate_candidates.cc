#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/config/candidates.h"
#include "common/config/field_path.h"
#include "common/config/job_facts.h"
#include "common/config/record_schema.h"
#include "common/config/validate/validate_job.h"

namespace satrap {
namespace {

const std::string& OutputOf(const TaskConfig& task, const ModelConfig& model) {
  return task.output().empty() ? model.output() : task.output();
}

const LayerConfig* LayerOf(const ModelConfig& model, const std::string& name) {
  const auto at = std::find_if(model.layers().begin(), model.layers().end(),
                               [&](const LayerConfig& layer) { return layer.name() == name; });
  return at == model.layers().end() ? nullptr : &*at;
}

// Checks that the output of each candidate loss is a layer of the kind that this loss needs, and
// that each layer of such a kind is the output of a candidate loss.
void ValidateHeads(const ModelConfig& model, Problems* problems) {
  for (int i = 0; i < model.tasks_size(); ++i) {
    const TaskConfig& task = model.tasks(i);
    if (!IsCandidateLoss(task.loss())) continue;
    const bool in_batch = task.loss() == TaskConfig::IN_BATCH_SOFTMAX;
    const LayerConfig* const layer = LayerOf(model, OutputOf(task, model));
    if (layer != nullptr &&
        (in_batch ? layer->has_in_batch_logits() : layer->has_candidate_logits())) {
      continue;
    }
    problems->Add(
        absl::StrCat("model.tasks[", i, "].output"),
        absl::StrCat("must be a layer of kind ", in_batch ? "in_batch_logits" : "candidate_logits",
                     " for ", TaskConfig::Loss_Name(task.loss()), ", got '", OutputOf(task, model),
                     "'"));
  }
  for (int i = 0; i < model.layers_size(); ++i) {
    const LayerConfig& layer = model.layers(i);
    if (!layer.has_candidate_logits() && !layer.has_in_batch_logits()) continue;
    const bool read =
        std::any_of(model.tasks().begin(), model.tasks().end(), [&](const TaskConfig& task) {
          return IsCandidateLoss(task.loss()) && OutputOf(task, model) == layer.name();
        });
    if (read) continue;
    problems->Add(
        absl::StrCat("model.layers", LayerSelector(model, i)),
        absl::StrCat("must be the output of a task of model.tasks with loss ",
                     layer.has_in_batch_logits() ? "IN_BATCH_SOFTMAX" : "SAMPLED_SOFTMAX or NCE"));
  }
}

bool HasLoss(const ModelConfig& model, bool in_batch) {
  return std::any_of(model.tasks().begin(), model.tasks().end(), [&](const TaskConfig& task) {
    return IsCandidateLoss(task.loss()) &&
           (task.loss() == TaskConfig::IN_BATCH_SOFTMAX) == in_batch;
  });
}

// Whether the feature reads a column that has at most one id in each sample.
bool ReadsOneId(const FeatureConfig& feature, const DataConfig& data) {
  return feature.cross_columns_size() == 0 &&
         feature.from_numeric_case() == FeatureConfig::FROM_NUMERIC_NOT_SET &&
         SchemaOf(data).IndexOfId(ColumnOf(feature)) >= 0;
}

void ValidateFeature(const JobConfig& job, Problems* problems) {
  const std::string path = "model.candidates.feature";
  const int index = CandidateFeatureOf(job);
  if (index < 0) {
    problems->Add(path, absl::StrCat("must be a feature of data.features, got '",
                                     job.model().candidates().feature(), "'"));
    return;
  }
  const FeatureConfig& feature = job.data().features(index);
  const bool one_id = ReadsOneId(feature, job.data()) && feature.missing() == FeatureConfig::AS_ID;
  if (!one_id || feature.pooling() != FeatureConfig::SUM ||
      feature.transfer() == FeatureConfig::POOLED) {
    problems->Add(path, absl::StrCat("every sample must have exactly one id: feature '",
                                     feature.name(), "' must read an ID column, with ",
                                     "`missing: AS_ID`, `pooling: SUM`, and `transfer: AUTO` or ",
                                     "`transfer: ROWS`"));
  }
}

void ValidateList(const JobConfig& job, Problems* problems) {
  const CandidatesConfig& candidates = job.model().candidates();
  if (!candidates.list().empty() || !NeedsCandidateList(job)) return;
  if (job.data().has_kafka()) {
    problems->Add("model.candidates.list",
                  "must name a file, because the items of topics cannot be counted when the run "
                  "begins");
  }
}

}  // namespace

void ValidateCandidates(const JobConfig& job, Problems* problems) {
  const ModelConfig& model = job.model();
  ValidateHeads(model, problems);
  const bool drawn = HasLoss(model, /*in_batch=*/false);
  const bool in_batch = HasLoss(model, /*in_batch=*/true);
  if (!model.has_candidates()) {
    if (drawn || in_batch) {
      problems->Add(
          "model.candidates",
          "must name the feature whose ids are the items, for the losses SAMPLED_SOFTMAX, NCE "
          "and IN_BATCH_SOFTMAX");
    }
    return;
  }
  if (!drawn && !in_batch) {
    problems->Add(
        "model.candidates",
        "needs a task with loss SAMPLED_SOFTMAX, NCE or IN_BATCH_SOFTMAX, but the job has "
        "none");
    return;
  }
  const CandidatesConfig& candidates = model.candidates();
  if (drawn != (candidates.count() > 0)) {
    problems->Add("model.candidates.count",
                  absl::StrCat(drawn ? "must be at least 1 with SAMPLED_SOFTMAX or NCE, got "
                                     : "must be 0 with IN_BATCH_SOFTMAX, got ",
                               candidates.count()));
  }
  ValidateFeature(job, problems);
  ValidateList(job, problems);
}

}  // namespace satrap

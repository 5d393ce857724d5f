#include "nn_worker/trainer/memory_plan/part_layout.h"

#include <utility>

#include "common/base/check.h"
#include "common/batch/transfer.h"
#include "common/config/candidates.h"
#include "common/config/job_facts.h"

namespace satrap {

int64_t MaxSamplesOfPart(const JobConfig& job) {
  const int64_t ranks = job.nn_worker().replicas();
  return (job.global_batch_size() + ranks - 1) / ranks;
}

int64_t MinSamplesOfFullPart(const JobConfig& job) {
  return job.global_batch_size() / job.nn_worker().replicas();
}

PartLayout MakePartLayout(const JobConfig& job) {
  PartLayout layout;
  for (const TableConfig& config : job.tables()) {
    TableLayout table;
    table.name = config.name();
    table.id = config.id();
    table.row_values = static_cast<size_t>(RowValues(config));
    layout.tables.push_back(std::move(table));
  }
  layout.numerics = job.data().numerics_size();
  layout.labels = LabelsOf(job.data()).size();
  layout.groups = HasGroups(job.data());
  layout.tasks = TasksOf(job);
  layout.main_task = MainTaskOf(job);
  layout.inputs.numeric_width = job.data().numerics_size();
  int input = 1;  // after "numeric"
  for (const FeatureConfig& config : job.data().features()) {
    FeatureLayout feature;
    feature.name = config.name();
    feature.table = TableIndexOf(config, job);
    CHECK(feature.table >= 0) << "feature " << config.name() << " has no table";
    feature.pooling = config.pooling();
    feature.pooled_at_worker = TransferOf(config, job) == FeatureConfig::POOLED;
    if (config.pooling() == FeatureConfig::NONE) feature.max_length = config.max_length();
    if (!feature.pooled_at_worker) layout.tables[feature.table].sends_rows = true;
    size_t column = 0;
    for (const SegmentConfig& segment : job.tables(feature.table).segments()) {
      const size_t width = segment.dim();
      feature.segments.push_back({input++, column, width});
      column += width;
      FeatureSegment graph_input;
      graph_input.feature = config.name();
      graph_input.segment = segment.name();
      graph_input.dim = segment.dim();
      graph_input.max_length = static_cast<int64_t>(feature.max_length);
      layout.inputs.segments.push_back(std::move(graph_input));
    }
    layout.features.push_back(std::move(feature));
  }
  for (FeatureLayout& feature : layout.features) {
    if (feature.pooling != FeatureConfig::NONE) continue;
    feature.length_input = input++;
    layout.inputs.sequences.push_back(feature.name);
  }
  layout.inputs.max_samples = MaxSamplesOfPart(job);
  layout.candidate_feature = CandidateFeatureOf(job);
  if (layout.candidate_feature < 0) return layout;
  layout.log_q = job.model().candidates().subtract_log_q();
  layout.inputs.max_candidates = job.model().candidates().count();
  if (layout.inputs.max_candidates == 0) return layout;
  const FeatureLayout& feature = layout.features[layout.candidate_feature];
  int s = 0;
  for (const SegmentLayout& segment : feature.segments) {
    layout.candidate_segments.push_back({input++, segment.column, segment.width});
    layout.inputs.candidates.push_back({kCandidateInput,
                                        job.tables(feature.table).segments(s++).name(),
                                        static_cast<int64_t>(segment.width), 0});
  }
  return layout;
}

}  // namespace satrap

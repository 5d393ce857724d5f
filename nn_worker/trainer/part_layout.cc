#include "nn_worker/trainer/part_layout.h"

#include <utility>

#include "common/base/check.h"
#include "common/batch/transfer.h"
#include "common/config/job_config.h"

namespace satrap {

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
  return layout;
}

}  // namespace satrap

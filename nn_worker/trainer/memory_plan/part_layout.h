// How the answers to NextBatch map to the inputs of the dense network, and to its tasks. Depends on
// the job alone.

#ifndef SATRAP_NN_WORKER_TRAINER_MEMORY_PLAN_PART_LAYOUT_H_
#define SATRAP_NN_WORKER_TRAINER_MEMORY_PLAN_PART_LAYOUT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "common/config/tasks.h"
#include "nn_worker/graph/model/graph_inputs.h"
#include "proto/job.pb.h"

namespace satrap {

// A segment of a feature's row, and the graph input that it feeds.
struct SegmentLayout {
  int input = 0;  // of the Network: 0 is "numeric"
  size_t column = 0;
  size_t width = 0;
};

struct FeatureLayout {
  std::string name;
  int table = 0;  // index in PartLayout.tables
  FeatureConfig::Pooling pooling = FeatureConfig::SUM;
  bool pooled_at_worker = false;  // its values come as FeatureRows.pooled
  size_t max_length = 0;          // pooling NONE
  int length_input = -1;          // pooling NONE: the graph input of the sequence's length
  std::vector<SegmentLayout> segments;
};

struct TableLayout {
  std::string name;
  uint32_t id = 0;
  size_t row_values = 0;
  bool sends_rows = false;  // a feature of it is pooled here, so its rows are sent
};

struct PartLayout {
  std::vector<TableLayout> tables;      // in the order of JobConfig.tables
  std::vector<FeatureLayout> features;  // in the order of DataConfig.features
  // The feature whose items are candidates (ModelConfig.candidates); -1: none.
  int candidate_feature = -1;
  std::vector<SegmentLayout> candidate_segments;  // empty if none are drawn
  bool log_q = false;                             // parts come with log Q
  size_t numerics = 0;
  GraphInputs inputs;
  size_t labels = 1;  // LABEL columns
  bool groups = false;
  std::vector<ModelTask> tasks;
  size_t main_task = 0;  // the one that evaluation.task names
};

// The most samples of a part: a global batch is divided into parts that differ by one sample at
// most.
int64_t MaxSamplesOfPart(const JobConfig& job);
// The fewest samples of a part that belongs to a batch of global_batch_size samples.
int64_t MinSamplesOfFullPart(const JobConfig& job);

// REQUIRES: `job` is validated (common/config/validate/validate_job.h)
PartLayout MakePartLayout(const JobConfig& job);

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_TRAINER_MEMORY_PLAN_PART_LAYOUT_H_

#include "common/learning_rate/batch_scaling.h"

#include <cmath>

#include "absl/strings/str_cat.h"

namespace satrap {

BatchScaling BatchScalingOf(const JobConfig& job) {
  BatchScaling scaling;
  if (!job.has_batch_scaling()) return scaling;
  const BatchScalingConfig& config = job.batch_scaling();
  scaling.ratio = static_cast<double>(job.global_batch_size()) / config.base_batch_size();
  const double root = std::sqrt(scaling.ratio);
  switch (config.rule()) {
    case BatchScalingConfig::NO_SCALING:
      break;
    case BatchScalingConfig::SQRT:
      scaling.sparse_rate = scaling.sparse_l2 = scaling.dense_rate = root;
      break;
    case BatchScalingConfig::LINEAR:
      scaling.sparse_rate = scaling.dense_rate = scaling.ratio;
      break;
    case BatchScalingConfig::COWCLIP:
      scaling.sparse_l2 = scaling.ratio;
      scaling.dense_rate = root;
      break;
  }
  const int64_t batch = job.global_batch_size();
  scaling.dense_warmup = (config.dense_warmup_samples() + batch - 1) / batch;
  return scaling;
}

TableConfig EffectiveTable(const JobConfig& job, const TableConfig& table) {
  const BatchScaling scaling = BatchScalingOf(job);
  TableConfig effective = table;
  if (!job.has_batch_scaling()) return effective;
  for (SegmentConfig& segment : *effective.mutable_segments()) {
    SparseOptimizerConfig* optimizer = segment.mutable_optimizer();
    optimizer->set_learning_rate(
        static_cast<float>(scaling.sparse_rate * optimizer->learning_rate()));
    segment.set_l2(static_cast<float>(scaling.sparse_l2 * segment.l2()));
  }
  return effective;
}

DenseOptimizerConfig EffectiveDenseOptimizer(const JobConfig& job) {
  const BatchScaling scaling = BatchScalingOf(job);
  DenseOptimizerConfig effective = job.dense_optimizer();
  if (!job.has_batch_scaling()) return effective;
  effective.set_learning_rate(static_cast<float>(scaling.dense_rate * effective.learning_rate()));
  if (scaling.dense_warmup > 0) {
    effective.mutable_learning_rate_schedule()->set_warmup_steps(scaling.dense_warmup);
  }
  return effective;
}

std::string BatchScalingText(const JobConfig& job) {
  if (!job.has_batch_scaling()) return "";
  std::string text =
      absl::StrCat("batch ", job.global_batch_size(), " is ", BatchScalingOf(job).ratio, " x ",
                   job.batch_scaling().base_batch_size(), ", rule ",
                   BatchScalingConfig::Rule_Name(job.batch_scaling().rule()), ":");
  for (const TableConfig& table : job.tables()) {
    const TableConfig effective = EffectiveTable(job, table);
    for (const SegmentConfig& segment : effective.segments()) {
      absl::StrAppend(&text, " ", effective.name(), ".", segment.name(), " learning rate ",
                      segment.optimizer().learning_rate(), ", l2 ", segment.l2(), ";");
    }
  }
  const DenseOptimizerConfig dense = EffectiveDenseOptimizer(job);
  return absl::StrCat(text, " dense learning rate ", dense.learning_rate(), ", warm-up ",
                      dense.learning_rate_schedule().warmup_steps(), " steps");
}

}  // namespace satrap

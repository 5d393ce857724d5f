#include "nn_worker/rank/rank_options.h"

#include "common/config/data_streams.h"

namespace satrap {

RankOptions MakeRankOptions(const JobConfig& job, int rank, const Envelope& envelope,
                            const RunPosition& position) {
  RankOptions options;
  options.rank = rank;
  options.num_ranks = job.nn_worker().replicas();
  options.envelope = envelope;
  options.train = job.action() == JobConfig::TRAIN;
  options.ordered = job.mode() == JobConfig::SYNC;
  options.max_staleness = options.ordered ? 1 : job.max_staleness();
  options.staleness_warmup_steps = static_cast<uint64_t>(job.staleness_warmup_steps());
  options.max_skipped_steps_in_a_row = static_cast<uint64_t>(job.max_skipped_steps_in_a_row());
  options.lanes = job.lanes();
  options.epochs = job.epochs();
  options.max_steps = job.max_steps();
  options.idle_step_ms = job.nn_worker().idle_step_ms();
  options.evaluation = job.evaluation();
  options.has_valid = HasValidData(job.data());
  options.has_test = HasTestData(job.data()) || !options.train;
  const LossScaleConfig& loss_scale = job.nn_worker().loss_scale();
  if (job.nn_worker().precision() == NnWorkerConfig::F16 && loss_scale.dynamic()) {
    options.traits.moving_loss_scale = loss_scale.initial();
  }
  options.traits.has_record_order = !job.data().has_kafka();
  for (const TableConfig& table : job.tables()) {
    if (table.frozen()) options.frozen_tables.push_back(table.id());
  }
  options.position = position;
  options.checkpoint = job.checkpoint();
  return options;
}

}  // namespace satrap

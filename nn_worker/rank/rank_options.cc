#include "nn_worker/rank/rank_options.h"

namespace satrap {
namespace {

bool HasValid(const DataConfig& data) {
  return data.valid_files_size() > 0 || data.seeded_split().valid_fraction() > 0 ||
         (data.has_synthetic() && data.synthetic().valid_samples() > 0);
}

bool HasTest(const DataConfig& data) {
  return data.test_files_size() > 0 || data.seeded_split().test_fraction() > 0 ||
         (data.has_synthetic() && data.synthetic().test_samples() > 0);
}

}  // namespace

RankOptions MakeRankOptions(const JobConfig& job, int rank, const Envelope& envelope) {
  RankOptions options;
  options.rank = rank;
  options.num_ranks = job.nn_worker().replicas();
  options.envelope = envelope;
  options.train = job.action() == JobConfig::TRAIN;
  options.ordered = job.mode() == JobConfig::SYNC;
  options.max_staleness = options.ordered ? 1 : job.max_staleness();
  options.lanes = job.lanes();
  options.epochs = job.epochs();
  options.max_steps = job.max_steps();
  options.idle_step_ms = job.nn_worker().idle_step_ms();
  options.evaluation = job.evaluation();
  options.has_valid = HasValid(job.data());
  options.has_test = HasTest(job.data()) || !options.train;
  return options;
}

}  // namespace satrap

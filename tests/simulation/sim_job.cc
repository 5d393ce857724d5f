#include "tests/simulation/sim_job.h"

#include "tests/simulation/lives/sim_deaths.h"

namespace satrap::simulation {

JobConfig SimJob(const WorldShape& shape, const JobConfig& files, const std::string& run_dir,
                 int max_restarts, const std::vector<KillPoint>& kill_points) {
  JobConfig job = MakeJob(shape);
  job.set_data_root(files.data_root());
  *job.mutable_data()->mutable_train_files() = files.data().train_files();
  *job.mutable_data()->mutable_valid_files() = files.data().valid_files();
  *job.mutable_data()->mutable_test_files() = files.data().test_files();
  job.set_run_dir(run_dir);
  job.set_max_restarts(max_restarts);
  for (const KillPoint& point : kill_points) *job.add_kill_points() = point;
  return job;
}

WorldShape ShapeOf(WorldShape shape, const JobConfig& job) {
  shape.loaders = job.data_loader().replicas();
  shape.workers = job.embedding_worker().replicas();
  shape.ps = job.embedding_ps().replicas();
  shape.ranks = job.nn_worker().replicas();
  // With fewer ranks, the rank that asks for a stop might not exist.
  if (shape.stop_rank >= 0) shape.stop_rank %= shape.ranks;
  return shape;
}

bool CanBegin(const JobConfig& job) { return job.stop_seconds() != kCannotBegin; }

}  // namespace satrap::simulation

// The jobs of a world's lives.
//
// Thread-safe: functions of their arguments.

#ifndef SATRAP_TESTS_SIMULATION_SIM_JOB_H_
#define SATRAP_TESTS_SIMULATION_SIM_JOB_H_

#include <string>
#include <vector>

#include "proto/job.pb.h"
#include "tests/simulation/data/sim_data.h"

namespace satrap::simulation {

// The job of a world that reads the files that `files` names.
JobConfig SimJob(const WorldShape& shape, const JobConfig& files, const std::string& run_dir,
                 int max_restarts, const std::vector<KillPoint>& kill_points);
// The world's shape, but with the numbers of replicas that `job` has.
WorldShape ShapeOf(WorldShape shape, const JobConfig& job);
// Whether processes can run the job (kCannotBegin in sim_deaths.h).
bool CanBegin(const JobConfig& job);

}  // namespace satrap::simulation

#endif  // SATRAP_TESTS_SIMULATION_SIM_JOB_H_

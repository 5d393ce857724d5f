// What ordered training comes to, computed on one machine from the samples alone: it knows lanes
// and batches, but no messages, roles or schedules.

#ifndef SATRAP_TESTS_SIMULATION_SIM_ORACLE_H_
#define SATRAP_TESTS_SIMULATION_SIM_ORACLE_H_

#include <array>
#include <cstdint>
#include <map>
#include <vector>

#include "tests/simulation/sim_data.h"

namespace satrap::simulation {

struct OracleResult {
  // Table "rows" by key. Keys that no counted finite step has trained are absent.
  std::map<uint64_t, std::array<double, kRowValues>> rows;
  uint64_t steps = 0;  // counted
};

// The batches of one lane in one epoch: ids of samples. At least one batch, perhaps of no sample.
std::vector<std::vector<uint64_t>> BatchesOfLane(const WorldShape& shape, int lane);

// Trains until the data or `max_steps` counted steps have ended. REQUIRES: shape.ordered
OracleResult TrainOracle(const WorldShape& shape, uint64_t max_steps);

}  // namespace satrap::simulation

#endif  // SATRAP_TESTS_SIMULATION_SIM_ORACLE_H_

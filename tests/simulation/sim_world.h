// A world: the real engines of all roles, in one thread, on one seed's network, with simulated data
// and a simulated dense network. It runs until every rank has finished, and then says what was not
// as promised.

#ifndef SATRAP_TESTS_SIMULATION_SIM_WORLD_H_
#define SATRAP_TESTS_SIMULATION_SIM_WORLD_H_

#include <cstdint>
#include <string>
#include <vector>

#include "tests/simulation/sim_data.h"
#include "tests/simulation/sim_network.h"

namespace satrap::simulation {

// Faults that are planted into the engines' surroundings, to show that the simulation finds them.
enum class Plant {
  kNone,
  kForgetfulWindow,    // an embedding PS sees each attempt of an Update as a call of its own
  kLookupCreatesRows,  // a Lookup leaves rows behind
  kRoomPerWorker,      // an embedding worker counts its room over all lanes and parts together
};

struct WorldResult {
  std::vector<std::string> violations;  // empty: all as promised
  int64_t events = 0;
  int64_t simulated_us = 0;
  uint64_t steps = 0;
  uint64_t trained_samples = 0;
};

// Deterministic: the same arguments give the same result.
WorldResult RunWorld(const WorldShape& shape, Plant plant = Plant::kNone,
                     const NetworkFaults& faults = {});

// One line that tells a world from another.
std::string Describe(const WorldShape& shape);

}  // namespace satrap::simulation

#endif  // SATRAP_TESTS_SIMULATION_SIM_WORLD_H_

// Searches for the first seed whose world shows a planted fault (sim_fault.h).

#ifndef SATRAP_TESTS_SIMULATION_SIM_FAULTS_H_
#define SATRAP_TESTS_SIMULATION_SIM_FAULTS_H_

#include <cstdint>
#include <string>

#include "tests/simulation/plants/sim_plants.h"

namespace satrap::simulation {

struct FaultSearch {
  uint64_t seed = 0;    // the first that finds the fault; 0: none does
  std::string finding;  // the first promise that its world broke
};

// Runs, in a child process, the worlds of seeds 1 to `last_seed` that the fault applies to. If a
// CHECK ends a world, the fault counts as found, too.
FaultSearch SearchFault(const Fault& fault, uint64_t last_seed);

}  // namespace satrap::simulation

#endif  // SATRAP_TESTS_SIMULATION_SIM_FAULTS_H_

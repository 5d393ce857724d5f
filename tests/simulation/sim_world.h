// A world has the real engines of all roles, loaders that read real files, drawn samples, a
// simulated dense network, and a communication network whose faults follow from the seed. All of it
// runs in one thread, until every rank has finished. The world reports every promise that was
// broken.
//
// Deaths. With a DeathPlan a process dies at a drawn event, which ends the life of all roles
// (sim_life.h). The other processes die at once, later, or never, and may be suspended in between,
// while the next life begins at the same addresses. Processes and messages of an earlier life must
// not disturb it: the last life is checked for everything that a world without deaths promises.

#ifndef SATRAP_TESTS_SIMULATION_SIM_WORLD_H_
#define SATRAP_TESTS_SIMULATION_SIM_WORLD_H_

#include <cstdint>
#include <string>
#include <vector>

#include "tests/simulation/data/sim_data.h"
#include "tests/simulation/lives/sim_deaths.h"
#include "tests/simulation/machine/sim_network.h"
#include "tests/simulation/plants/sim_plants.h"

namespace satrap::simulation {

struct WorldResult {
  std::vector<std::string> violations;  // empty: every promise was kept
  int64_t events = 0;
  int64_t simulated_us = 0;
  uint64_t steps = 0;
  uint64_t trained_samples = 0;
  size_t validations = 0;
  uint64_t non_finite_steps = 0;
  bool stopped_early = false;  // patience had run out
  bool stopped_by_wish = false;
  bool restored = false;  // the best model was restored before the test
  int lives = 1;
  int cuts = 0;  // in the log
  int64_t failed_writes = 0;
  int64_t failed_reads = 0;
  int cuts_abandoned_at_log = 0;          // because of the log, or of an unreadable file
  bool compacted = false;                 // the log was compacted
  int jobs_that_cannot_begin = 0;         // generations of such jobs
  int moves = 0;                          // processes that were asked to leave their machines
  int absences = 0;                       // lives without one of their members
  int twins = 0;                          // lives with a second process for a member's place
  int rival_claims = 0;                   // of generations that two coordinators claimed at once
  int pinned_reads = 0;                   // by another command, of cuts that it had pinned
  int64_t chunks = 0;                     // requests for chunks of large messages
  int64_t requests_to_the_next_life = 0;  // from processes that outlived their life, or under way
};

// `fault` is planted, unless it is null. Deterministic: the same arguments give the same result.
WorldResult RunWorld(const WorldShape& shape, const Fault* fault = nullptr,
                     const NetworkFaults& faults = {}, const DeathPlan& deaths = {});

class Life;
// Adds to the result what the training of all lives has come to. `last` has finished.
void AddTraining(const Life& last, WorldResult* result);

// One line that describes a world.
std::string Describe(const WorldShape& shape);
// The kinds that a world belongs to, so that worlds can be counted by kind.
std::vector<std::string> KindsOf(const WorldShape& shape, const WorldResult& result);
// The command that runs only the world of this seed.
std::string ReplayCommand(uint64_t seed, bool with_deaths = false);

}  // namespace satrap::simulation

#endif  // SATRAP_TESTS_SIMULATION_SIM_WORLD_H_

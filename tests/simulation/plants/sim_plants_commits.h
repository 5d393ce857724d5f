// Faults of what coordinators write into the log. They own nothing that they are given.
//
// Not thread-safe: it lives on the SimLoop's thread.

#ifndef SATRAP_TESTS_SIMULATION_PLANTS_SIM_PLANTS_COMMITS_H_
#define SATRAP_TESTS_SIMULATION_PLANTS_SIM_PLANTS_COMMITS_H_

#include <memory>
#include <string>

#include "common/file/file_system.h"
#include "common/rpc/rpc.h"
#include "tests/simulation/machine/sim_loop.h"

namespace satrap::simulation {

// A coordinator that takes up to a second for each commit and may end in the meantime. If it does
// not, the engine commits. If it tells members of an end during this time, which the engine would
// have put off, the entry is linked up to 1 ms later, under the number that was free when the
// commit came.
std::unique_ptr<rpc::Handler> NewUnguardedCommits(rpc::Handler* coordinator,
                                                  const std::string& run_dir, FileSystem* disk,
                                                  SimLoop* loop);

// If the newest generation has not run, and its job differs from that of the last generation that
// has, says in the log that this job is dropped, whatever ended the generation.
void DropUnprovenChange(const std::string& run_dir, FileSystem* disk);

}  // namespace satrap::simulation

#endif  // SATRAP_TESTS_SIMULATION_PLANTS_SIM_PLANTS_COMMITS_H_

// The disk of a process, with a fault planted into it (sim_plant_list.h).
//
// Not thread-safe: it lives on the SimLoop's thread.

#ifndef SATRAP_TESTS_SIMULATION_SIM_PLANTS_DISK_H_
#define SATRAP_TESTS_SIMULATION_SIM_PLANTS_DISK_H_

#include <memory>

#include "common/checkpoint/file_system.h"
#include "proto/control.pb.h"
#include "tests/simulation/sim_plant_list.h"
#include "tests/simulation/sim_plants_cuts.h"

namespace satrap::simulation {

// A disk of a process of `role` whose files are never synced, on which the next free name is
// linked, on which manifests get the ledger of `ledger`, or which shows or writes another log of
// the run; `disk` itself where the plant has nothing to do with it. `ledger` is not owned.
std::unique_ptr<FileSystem> NewPlantedDisk(Plant plant, Role role, std::unique_ptr<FileSystem> disk,
                                           const ForgetfulLedger* ledger);

}  // namespace satrap::simulation

#endif  // SATRAP_TESTS_SIMULATION_SIM_PLANTS_DISK_H_

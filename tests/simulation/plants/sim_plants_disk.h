// The disk of a process, with a fault planted into it (sim_plant_list.h).
//
// Not thread-safe: it lives on the SimLoop's thread.

#ifndef SATRAP_TESTS_SIMULATION_PLANTS_SIM_PLANTS_DISK_H_
#define SATRAP_TESTS_SIMULATION_PLANTS_SIM_PLANTS_DISK_H_

#include <memory>

#include "common/file/file_system.h"
#include "proto/control.pb.h"
#include "tests/simulation/plants/sim_plant_list.h"
#include "tests/simulation/plants/sim_plants_cuts.h"

namespace satrap::simulation {

// Wraps the disk of a process of `role` with the plant's fault: files are never synced, links take
// the next free name, manifests get the ledger of `ledger`, or another log of the run is shown or
// written. Returns `disk` itself for other plants. `ledger` is not owned.
std::unique_ptr<FileSystem> NewPlantedDisk(Plant plant, Role role, std::unique_ptr<FileSystem> disk,
                                           const ForgetfulLedger* ledger);

}  // namespace satrap::simulation

#endif  // SATRAP_TESTS_SIMULATION_PLANTS_SIM_PLANTS_DISK_H_

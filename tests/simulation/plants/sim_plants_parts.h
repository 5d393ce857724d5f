// Faults in what loaders send: part sources that leave out or repeat parts, and provenance that is
// not true (sim_plants.h).
//
// Not thread-safe: they live on the SimLoop's thread.

#ifndef SATRAP_TESTS_SIMULATION_PLANTS_SIM_PLANTS_PARTS_H_
#define SATRAP_TESTS_SIMULATION_PLANTS_SIM_PLANTS_PARTS_H_

#include <memory>

#include "data_loader/engine/part_source.h"
#include "proto/hot.pb.h"
#include "tests/simulation/plants/sim_plants.h"

namespace satrap::simulation {

// Null if the plant leaves the sources of `stream` alone. `source` is not owned.
std::unique_ptr<PartSource> NewPlantedSource(Plant plant, const WorldShape& shape, Stream stream,
                                             PartSource* source);

// kProvenanceOffByOne and kOtherBlock falsify a part's provenance. kIdentityShuffle names the
// unshuffled records as if they were the first ones of each shuffled block.
void ChangeProvenance(Plant plant, const WorldShape& shape, PartDescription* part);

}  // namespace satrap::simulation

#endif  // SATRAP_TESTS_SIMULATION_PLANTS_SIM_PLANTS_PARTS_H_

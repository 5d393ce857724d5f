// Handlers and channels that are put next to those which cut and join large messages, and that make
// these break one promise (common/chunk/chunked_handler.h). None owns the handler that it is given.
//
// Not thread-safe: they live on the SimLoop's thread.

#ifndef SATRAP_TESTS_SIMULATION_PLANTS_SIM_PLANTS_CHUNKS_H_
#define SATRAP_TESTS_SIMULATION_PLANTS_SIM_PLANTS_CHUNKS_H_

#include <cstdint>
#include <memory>

#include "common/rpc/rpc.h"
#include "tests/simulation/plants/sim_plant_list.h"

namespace satrap::simulation {

// What the plants before and after one ChunkedHandler share.
struct ChunkPassage {
  bool joins = false;  // a chunk is being handed to the ChunkedHandler
};

// Goes before the ChunkedHandler `chunks`, so it sees single chunks. Null if the plant does nothing
// there.
std::unique_ptr<rpc::Handler> NewPlantBeforeChunks(Plant plant, rpc::Handler* chunks,
                                                   std::shared_ptr<ChunkPassage> passage);
// Goes after the ChunkedHandler, so it sees whole requests.
std::unique_ptr<rpc::Handler> NewPlantBehindChunks(Plant plant, rpc::Handler* engine,
                                                   std::shared_ptr<ChunkPassage> passage);
// Goes below a ChunkedChannel. Returns `channel` itself if the plant does nothing there.
std::unique_ptr<rpc::Channel> PlantBelowChunks(Plant plant, std::unique_ptr<rpc::Channel> channel);
// How long an incomplete message is held with this plant.
int64_t PlantedChunkDeadlineUs(Plant plant, int64_t deadline_us);

}  // namespace satrap::simulation

#endif  // SATRAP_TESTS_SIMULATION_PLANTS_SIM_PLANTS_CHUNKS_H_

// Reads a committed cut as a generation that begins from it would: its manifest, and its rows
// through an embedding PS that exists only for this. A call runs on a loop of its own and returns
// when the cut is read, so it may be made in the middle of an event of the world.
//
// Not thread-safe: it lives on the SimLoop's thread.

#ifndef SATRAP_TESTS_SIMULATION_SIM_CUT_READER_H_
#define SATRAP_TESTS_SIMULATION_SIM_CUT_READER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "common/file/file_system.h"
#include "common/rpc/rpc.h"
#include "proto/hot.pb.h"
#include "proto/job.pb.h"
#include "tests/simulation/machine/sim_loop.h"
#include "tests/simulation/sim_history.h"

namespace satrap::simulation {

// Returns the row of a key at the embedding PS `ps`, read by a Lookup for an evaluation; nothing if
// there is no row. The Lookup is sent in the name of embedding worker 0, with a number above those
// of the worker's own calls. `nth` counts these Lookups to the PS. Runs events of `loop` until the
// answer has arrived.
absl::optional<std::vector<float>> ReadRowOf(rpc::Handler* ps, const Envelope& envelope,
                                             uint64_t nth, uint32_t table, uint64_t key,
                                             SimLoop* loop);

// Reads the cut in `folder`. `file_system` is not owned and must outlive the result.
absl::StatusOr<CutContent> ReadCutIn(const std::string& folder, const JobConfig& job,
                                     FileSystem* file_system);

}  // namespace satrap::simulation

#endif  // SATRAP_TESTS_SIMULATION_SIM_CUT_READER_H_

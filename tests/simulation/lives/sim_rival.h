// Two coordinators that claim the same generation: the second may make its claim in the middle of
// the first one's claim.
//
// Not thread-safe: it lives on the SimLoop's thread.

#ifndef SATRAP_TESTS_SIMULATION_LIVES_SIM_RIVAL_H_
#define SATRAP_TESTS_SIMULATION_LIVES_SIM_RIVAL_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "common/file/file_system.h"
#include "deploy/coordinator/claim/generation_claim.h"
#include "tests/simulation/machine/sim_process.h"

namespace satrap::simulation {

// A coordinator, its disk, and what it has claimed.
struct Claimer {
  Claimer(std::unique_ptr<SimProcess> process, std::unique_ptr<FileSystem> disk)
      : process(std::move(process)), disk(std::move(disk)) {}

  std::unique_ptr<SimProcess> process;
  std::unique_ptr<FileSystem> disk;
  absl::StatusOr<ClaimedGeneration> claimed = absl::UnknownError("nothing was claimed");
};

// Makes the claim `request` for `first`. Before its `at`-th disk operation, counted from 1, `rival`
// makes the same claim from beginning to end; if the claim has fewer operations, `rival` makes
// none. Returns the claimer that has the newest generation, or `first` with its error if neither
// has one. Calls `violated` if both have the same generation of a run that goes on, or if `first`
// fails with NOT_FOUND (files are missing) or UNAVAILABLE.
Claimer ClaimAgainst(Claimer rival, int64_t at, Claimer first, const ClaimRequest& request,
                     const std::function<void(std::string)>& violated);

// Like the function above, for two coordinators that `make` makes, each with its own mount. The
// coordinator that loses exits with 75 and does not join. If `at` is 0, only one coordinator
// claims.
Claimer ClaimMaybeAgainst(const std::function<Claimer()>& make, int64_t at,
                          const ClaimRequest& request,
                          const std::function<void(std::string)>& violated);

}  // namespace satrap::simulation

#endif  // SATRAP_TESTS_SIMULATION_LIVES_SIM_RIVAL_H_

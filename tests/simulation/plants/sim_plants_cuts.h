// The ledger of a rank 0 that forgets (see the faults of cuts, sim_plants_cuts.cc). It owns none of
// its arguments.

#ifndef SATRAP_TESTS_SIMULATION_PLANTS_SIM_PLANTS_CUTS_H_
#define SATRAP_TESTS_SIMULATION_PLANTS_SIM_PLANTS_CUTS_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "common/file/file_system.h"
#include "nn_worker/rank/schedule/cut_plan.h"
#include "proto/position.pb.h"
#include "tests/simulation/plants/sim_fault.h"

namespace satrap::simulation {

// The ledger of a rank 0 that forgets what was handed over with a cut when that cut is abandoned.
class ForgetfulLedger {
 public:
  // Starts from the ledger that the generation begins with.
  void Start(LedgerState ledger) { start_ = std::move(ledger); }
  // Call once for each rank and cut, in the order of the cuts.
  void HandOver(const CutPlan& plan) { handed_over_.push_back(plan); }
  void Abandon(uint64_t cut);
  // Replaces the ledger in the manifest of the cut in `folder`.
  void Rewrite(const std::string& folder, FileSystem* disk) const;

 private:
  LedgerState AsOf(uint64_t cut) const;

  LedgerState start_;
  std::vector<CutPlan> handed_over_;
};

// A disk for a rank: each manifest that is written to it gets the ledger of Site::ledger.
DiskHook RewrittenManifests();

}  // namespace satrap::simulation

#endif  // SATRAP_TESTS_SIMULATION_PLANTS_SIM_PLANTS_CUTS_H_

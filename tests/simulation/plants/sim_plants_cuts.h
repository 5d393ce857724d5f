// Faults of cuts: handlers in front of an embedding PS or of the coordinator, and the ledger of a
// rank 0 that forgets. None owns what it is given.
//
// Not thread-safe: they live on the SimLoop's thread.

#ifndef SATRAP_TESTS_SIMULATION_PLANTS_SIM_PLANTS_CUTS_H_
#define SATRAP_TESTS_SIMULATION_PLANTS_SIM_PLANTS_CUTS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/file/file_system.h"
#include "common/rpc/rpc.h"
#include "nn_worker/rank/schedule/cut_plan.h"
#include "proto/position.pb.h"
#include "tests/simulation/machine/sim_loop.h"

namespace satrap::simulation {

// Answers BeginCut at once; the PS gets it up to 50 ms later.
std::unique_ptr<rpc::Handler> NewLateMarks(rpc::Handler* ps, SimLoop* loop);

// Every attempt of a BeginCut marks anew, and AwaitCut refers to the newest mark. A copy of each
// BeginCut comes up to 20 ms later, as the network may deliver it.
std::unique_ptr<rpc::Handler> NewLateBeginCuts(rpc::Handler* ps, SimLoop* loop);

// If an Update comes while a cut is written, the cut's file has the counter row as it is after the
// Update, with right checksums. `disk` is the PS's.
std::unique_ptr<rpc::Handler> NewMissedCopyOuts(rpc::Handler* ps, FileSystem* disk);

// Answers CommitCut at once; the coordinator gets it up to 20 ms later.
std::unique_ptr<rpc::Handler> NewEarlyCommitAnswers(rpc::Handler* coordinator, SimLoop* loop);

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

}  // namespace satrap::simulation

#endif  // SATRAP_TESTS_SIMULATION_PLANTS_SIM_PLANTS_CUTS_H_

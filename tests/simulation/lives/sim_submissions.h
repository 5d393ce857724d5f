// Decides which submission of the run the coordinators of a world belong to, and checks how often
// the run begins without progress.
//
// Not thread-safe: it lives on the SimLoop's thread.

#ifndef SATRAP_TESTS_SIMULATION_LIVES_SIM_SUBMISSIONS_H_
#define SATRAP_TESTS_SIMULATION_LIVES_SIM_SUBMISSIONS_H_

#include <cstdint>
#include <functional>
#include <string>

#include "common/file/file_system.h"
#include "deploy/coordinator/claim/generation_claim.h"
#include "tests/simulation/lives/sim_deaths.h"
#include "tests/simulation/lives/sim_ends.h"
#include "tests/simulation/lives/sim_log.h"
#include "tests/simulation/plants/sim_fault.h"

namespace satrap::simulation {

class SimSubmissions {
 public:
  // Nothing is owned; `fault` may be null. `violated` is called for each broken promise.
  SimSubmissions(const DeathPlan& deaths, const Fault* fault, SimEnds* ends,
                 std::function<void(std::string)> violated);

  // Fills in the submission and the pod of the coordinator of life `life` that is about to claim,
  // and lets the fault change what it asks for. A claim that follows a failed one belongs to the
  // same submission.
  void Fill(int life, FileSystem* disk, ClaimRequest* request);
  void OnClaimed() { failed_ = false; }
  void OnClaimFailed() { failed_ = true; }
  // Wakes up the coordinators of earlier lives that the plan wakes up during life `life`: one of
  // the previous submission, and one in an earlier pod. They must claim nothing.
  void WakeStale(int life, const ClaimRequest& request, FileSystem* disk);

  // Checks that a run that makes no cuts is not restarted for ever.
  void CheckRestarts(const SimLogEntries& entries);

 private:
  void Plant(FileSystem* disk, bool is_stale, ClaimRequest* request) const;
  void WakeEarlier(ClaimRequest request, FileSystem* disk);
  void WakeTwin(ClaimRequest request, FileSystem* disk);
  static std::string PodOf(int pod);

  const DeathPlan deaths_;
  const Fault* const fault_;
  SimEnds* const ends_;
  const std::function<void(std::string)> violated_;
  uint64_t submission_ = 1;
  int pod_ = 1;  // of the newest coordinator
  bool failed_ = false;
};

}  // namespace satrap::simulation

#endif  // SATRAP_TESTS_SIMULATION_LIVES_SIM_SUBMISSIONS_H_

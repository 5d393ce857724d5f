// In pods: a member that nobody starts, as when its node is gone. It is missing from some life on,
// until the run has failed because of it and somebody resumes the run. Meanwhile the cluster is
// divided, so that one life follows another, but none has all its members. Even so the run must
// fail in time.
//
// Not thread-safe: it lives on the SimLoop's thread.

#ifndef SATRAP_TESTS_SIMULATION_LIVES_SIM_ABSENCE_H_
#define SATRAP_TESTS_SIMULATION_LIVES_SIM_ABSENCE_H_

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <utility>

#include "absl/types/optional.h"
#include "common/checkpoint/run_log.h"
#include "deploy/coordinator/claim/generation_claim.h"
#include "tests/simulation/lives/sim_deaths.h"

namespace satrap::simulation {

class SimAbsence {
 public:
  // For how long the run may lack members.
  static constexpr int64_t kLimitUs = 30 * 1000 * 1000;

  // `violated` is called for each broken promise.
  SimAbsence(const DeathPlan& deaths, std::function<void(std::string)> violated)
      : deaths_(deaths), violated_(std::move(violated)) {}

  // Call when life `life` begins. Returns the member that this life lacks, modulo the number of
  // members; nothing if all come.
  absl::optional<uint64_t> Begin(int life, const ClaimedGeneration& claimed, int64_t now_us);
  // Whether the newest life lacks a member, so that the run may fail.
  bool lacks_member() const { return lacks_; }
  // How the newest life, `life`, ends if the other half of the cluster takes over the run now.
  // Checks that the run fails in time, unless the log may refuse the entry that says so.
  absl::optional<LifeEnd> Tear(int life, int64_t now_us, bool disk_has_failed);
  // Call when the run has failed. If it lacked a member, the member is back when somebody resumes
  // the run.
  void OnFailed() { is_over_ |= lacks_; }
  // What the log says of a generation that lacked a member.
  void OnLog(const RunLog& log);

 private:
  const DeathPlan deaths_;
  const std::function<void(std::string)> violated_;
  bool is_over_ = false;
  bool lacks_ = false;
  int64_t began_us_ = 0;            // the newest life
  int64_t since_us_ = 0;            // the run lacks a member
  std::pair<uint64_t, int> run_;    // its submission, and how many jobs it has dropped, then
  std::set<uint64_t> generations_;  // that lacked a member
};

}  // namespace satrap::simulation

#endif  // SATRAP_TESTS_SIMULATION_LIVES_SIM_ABSENCE_H_

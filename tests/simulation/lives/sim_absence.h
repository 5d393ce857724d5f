// A member that nobody starts, in pods, as when its node is gone: from a life on, until the run has
// failed for it and somebody resumes it. Meanwhile the cluster is torn, so that one life follows
// another and none has all its members. The run must fail in time all the same.
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
#include "deploy/coordinator/claim/generation_claim.h"
#include "tests/simulation/lives/sim_deaths.h"
#include "tests/simulation/lives/sim_log.h"

namespace satrap::simulation {

class SimAbsence {
 public:
  // For how long the run may lack members.
  static constexpr int64_t kLimitUs = 30 * 1000 * 1000;

  // `violated` is called for each broken promise.
  SimAbsence(const DeathPlan& deaths, std::function<void(std::string)> violated)
      : deaths_(deaths), violated_(std::move(violated)) {}

  // Life `life` begins. Returns the member that it lacks, modulo their number; nothing if all come.
  absl::optional<uint64_t> Begin(int life, const ClaimedGeneration& claimed, int64_t now_us);
  // Whether the newest life lacks a member, so that the run may fail.
  bool lacks_member() const { return lacks_; }
  // How the newest life, `life`, ends if the other half of the cluster takes the run now. Checks
  // that the run fails in time, unless its log may refuse to say so.
  absl::optional<LifeEnd> Tear(int life, int64_t now_us, bool disk_has_failed);
  // The run has failed. If it lacked a member, whoever resumes it has brought the member back.
  void OnFailed() { is_over_ |= lacks_; }
  // What the log says of a generation that lacked a member.
  void OnLog(const SimLog& log);

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

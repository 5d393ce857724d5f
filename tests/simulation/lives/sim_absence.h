// In pods: a member that nobody starts, as when its node is gone. It is missing from some life on,
// until the run has failed because of it and somebody resumes the run. Meanwhile the cluster is
// divided, so that one life follows another, but none has all its members. Even so the run must
// fail in time.
//
// A process of an earlier life may still ask for a place. If it gets that of the missing member,
// the generation has all its members.
//
// Not thread-safe: it lives on the SimLoop's thread.

#ifndef SATRAP_TESTS_SIMULATION_LIVES_SIM_ABSENCE_H_
#define SATRAP_TESTS_SIMULATION_LIVES_SIM_ABSENCE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "absl/types/optional.h"
#include "deploy/coordinator/claim/generation_claim.h"
#include "proto/control.pb.h"
#include "proto/job.pb.h"
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

  // A member's role and index.
  using Place = std::pair<Role, int>;

  // Life `life` begins. Returns the place of the member that it lacks; nothing if all come.
  absl::optional<Place> Begin(int life, const ClaimedGeneration& claimed, int64_t now_us);
  // Whether the newest life lacks a member, so that the run may fail.
  bool lacks_member() const { return lacks_; }
  // How the newest life, `life`, ends if the other half of the cluster takes over the run now.
  // Checks that the run fails in time, unless the log may refuse the entry that says so.
  absl::optional<LifeEnd> Tear(int life, int64_t now_us, bool disk_has_failed);
  // The coordinator has answered the heartbeat of a member.
  void OnHeard(const HeartbeatRequest& beat, int64_t now_us);
  // The run has failed. If it lacked a member, whoever resumes it has brought the member back.
  void OnFailed() { is_over_ |= lacks_; }
  // Checks that the log calls no generation complete in which nobody took the missing place.
  void OnLog(const SimLog& log);

 private:
  const DeathPlan deaths_;
  const std::function<void(std::string)> violated_;
  bool is_over_ = false;
  bool lacks_ = false;
  int64_t began_us_ = 0;               // the newest life
  int64_t since_us_ = 0;               // the run lacks a member
  std::pair<uint64_t, int> run_;       // its submission, and how many jobs it has dropped, then
  std::map<uint64_t, Place> missing_;  // by generation: the member that nobody starts
  std::set<uint64_t> stood_in_;        // generations in which another process has taken its place
};

}  // namespace satrap::simulation

#endif  // SATRAP_TESTS_SIMULATION_LIVES_SIM_ABSENCE_H_

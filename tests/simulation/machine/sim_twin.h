// A second process that asks for the place of a member: a twin in another pod, or a process that
// was started in the member's pod while the member still counts as alive. It only registers and
// sends heartbeats, so it never becomes ready.
//
// Not thread-safe: it lives on the SimLoop's thread. It must outlive the loop's tasks.

#ifndef SATRAP_TESTS_SIMULATION_MACHINE_SIM_TWIN_H_
#define SATRAP_TESTS_SIMULATION_MACHINE_SIM_TWIN_H_

#include <cstdint>
#include <map>
#include <memory>
#include <utility>

#include "common/rpc/rpc.h"
#include "proto/control.pb.h"
#include "tests/simulation/machine/sim_loop.h"
#include "tests/simulation/machine/sim_member.h"
#include "tests/simulation/machine/sim_network.h"
#include "tests/simulation/machine/sim_process.h"

namespace satrap::simulation {

class SimTwin {
 public:
  struct Options {
    RegisterRequest registration;
    int life = 1;
    int64_t starting_period_ms = 100;  // of heartbeats
    // Whether it reports a failure instead of its first heartbeat. If so, it starts only after
    // `member` was heard, and not at all if that takes too long.
    bool fails = false;
    int64_t starts_after_us = 0;
    int64_t dies_after_us = 0;  // after its start
  };
  // Nothing is owned. The process asks for the place of `member`.
  SimTwin(const Options& options, const SimMember* member, SimLoop* loop, SimNetwork* network,
          SimNetwork::Address coordinator);
  SimTwin(const SimTwin&) = delete;
  SimTwin& operator=(const SimTwin&) = delete;

 private:
  void Start(int tries);

  const Options options_;
  const SimMember* const member_;
  SimProcess process_;
  std::unique_ptr<rpc::Channel> channel_;
  std::unique_ptr<SimMember> own_;
};

// Finds out whether the coordinator has not heard a member for so long that a process of another
// pod may have taken the member's place.
class SimSilence {
 public:
  // Call when a heartbeat of the member has arrived.
  void OnBeat(Role role, int index, int64_t now_us);
  bool HasBeen(int64_t now_us) const;

 private:
  std::map<std::pair<Role, int>, int64_t> last_us_;
  bool has_been_ = false;
};

}  // namespace satrap::simulation

#endif  // SATRAP_TESTS_SIMULATION_MACHINE_SIM_TWIN_H_

// Stands in for RoleRuntime (common/role/role_runtime.h) around an engine: a member of a run that
// registers, sends heartbeats, learns that all are ready, reports failures, and exits.
//
//     Start -> registered: load what the answer says, then Ready
//           -> joined: every member is ready; connect to peers and begin
//           -> exited, at any time: with 0 (the run has finished or stopped), 1 (it has failed) or
//              75 (this generation is over, start me again)
//
// A member that registers when its generation is already over waits, and registers again. One with
// a holder also waits while another process has its place, as long as the coordinator answers. If
// it learns only from a heartbeat that another process has its place, it continues as a new process
// with another incarnation, as if it had exited with 75 and been started again. A member knows the
// other members after an answer has listed them, in state RUNNING at the latest.
//
// If a member exits with another code than 0, its process dies. If it exits with 0, the process
// stays, so that checks can read what it holds.
//
// As in RoleRuntime, the time during which the process itself was suspended does not count as the
// coordinator's silence. A failure that only says that a peer is of another generation is not
// reported.
//
// Not thread-safe: it lives on the SimLoop's thread. It must outlive the loop's tasks.

#ifndef SATRAP_TESTS_SIMULATION_MACHINE_SIM_MEMBER_H_
#define SATRAP_TESTS_SIMULATION_MACHINE_SIM_MEMBER_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/types/optional.h"
#include "common/rpc/rpc.h"
#include "proto/control.pb.h"
#include "tests/simulation/machine/sim_process.h"

namespace satrap::simulation {

// Exit codes of roles and coordinators.
enum class Exit { kDone = 0, kFailed = 1, kStartAgain = 75 };

class SimMember {
 public:
  struct Options {
    RegisterRequest registration;
    SimProcess* process = nullptr;
    rpc::Channel* coordinator = nullptr;  // of this process
    int64_t starting_period_ms = 100;     // of heartbeats, until all members are ready
    int64_t period_ms = 1000;             // afterwards
    int64_t attempt_timeout_ms = 60;
    int64_t silence_timeout_ms = 8000;
    bool fails_unheard = false;  // it reports a failure at once, and not after its first heartbeat
    int most_waits = 3;          // for the next generation, if one is over; no limit with a holder
  };
  struct Events {
    std::function<void(const RegisterAnswer&)> registered;
    std::function<void()> joined;
    std::function<void(const CutWish&)> wished;  // repeatedly; may be null
    std::function<void(Exit, const std::string& why)> exited;
  };

  // Owns nothing in `options`.
  SimMember(const Options& options, Events events);
  SimMember(const SimMember&) = delete;
  SimMember& operator=(const SimMember&) = delete;

  void Start();
  // Call when the member has loaded what it needs. REQUIRES: after `registered`
  void Ready() { ready_ = true; }
  // Call when the process has to leave its machine. From then on every heartbeat says so.
  void Leave() { leaving_ = true; }
  // For engines' failure sinks: the first failure counts, and the member exits when the coordinator
  // has received it.
  void Fail(absl::Status status);
  // Does what rank 0 does at the end: sends the result until the coordinator has received it.
  void Finish(const RunResult& result);

  const Envelope& envelope() const { return registered_.envelope(); }
  const HeartbeatAnswer& last_answer() const { return last_answer_; }  // fingerprint
  absl::optional<Exit> exit() const { return exit_; }
  uint64_t incarnation() const { return registration_.incarnation(); }
  bool is_heard() const { return is_heard_; }  // as a member, by a heartbeat

 private:
  // Makes one attempt. If the process took the answer late, first moves last_heard_us_ on by that
  // delay, and then runs `done`.
  void Call(const rpc::Method& method, std::string request,
            std::function<void(absl::StatusOr<rpc::Message>)> done);
  void Register();
  void RegisterLater();
  void OnRegistered(const absl::StatusOr<rpc::Message>& answer);
  void Heartbeat();
  void HeartbeatLater();
  void OnHeartbeat(const absl::StatusOr<rpc::Message>& answer);
  void ReportFailure();
  void CheckSilence();
  void End(Exit exit, const std::string& why);
  void EndAs(RunState state, const std::string& why);

  const Options options_;
  const Events events_;
  RegisterRequest registration_;
  RegisterAnswer registered_;
  HeartbeatAnswer last_answer_;
  bool ready_ = false;
  bool joined_ = false;
  bool leaving_ = false;
  bool is_heard_ = false;
  int members_ = 0;  // that it knows of
  int waits_ = 0;
  int64_t last_heard_us_ = 0;
  absl::Status failure_;
  uint64_t failed_in_ = 0;  // the generation
  absl::optional<Exit> exit_;
};

}  // namespace satrap::simulation

#endif  // SATRAP_TESTS_SIMULATION_MACHINE_SIM_MEMBER_H_

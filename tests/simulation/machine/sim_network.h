// A network that loses, repeats, delays, reorders and refuses messages. Requests and answers are
// delayed independently, so they overtake one another; either may be lost; a request may arrive
// twice; some messages arrive long after the sender gave up the attempt; and an attempt may end
// with UNAVAILABLE, before the receiver has seen the request or after it has run the call.
//
// Processes and addresses. A request is delivered to a process that is alive and listens at the
// address when the request arrives. This is the process of the sender's life, or a process of a
// later life if the first one has died or a new connection has reached another one. If there is
// none, the request is refused with UNAVAILABLE or lost. A sender never reaches a process of an
// earlier life than its own. An answer reaches its caller if the caller is still alive. A suspended
// process gets its requests and answers when it resumes.
//
// Not thread-safe: it lives on the SimLoop's thread.

#ifndef SATRAP_TESTS_SIMULATION_MACHINE_SIM_NETWORK_H_
#define SATRAP_TESTS_SIMULATION_MACHINE_SIM_NETWORK_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "common/rpc/rpc.h"
#include "tests/simulation/machine/sim_loop.h"
#include "tests/simulation/machine/sim_process.h"

namespace satrap::simulation {

struct NetworkFaults {
  double lose = 0.05;       // of requests, and of answers
  double repeat = 0.05;     // of requests
  double very_late = 0.01;  // of messages
  // The probability that a request ends with UNAVAILABLE instead of being delivered, and that an
  // answer is replaced by UNAVAILABLE.
  double unavailable = 0.02;
  int64_t delay_max_us = 2000;
  int64_t very_late_max_us = 3000000;
};

class SimNetwork {
 public:
  using Address = int;

  // `loop` must outlive the network. Requests and answers of bulk methods whose frames have more
  // than `max_message_bytes` are refused with RESOURCE_EXHAUSTED; 0: no limit.
  SimNetwork(SimLoop* loop, const NetworkFaults& faults, int64_t max_message_bytes = 0)
      : loop_(loop), faults_(faults), max_message_bytes_(max_message_bytes) {}

  // Makes an address at which nobody listens yet.
  Address NewAddress();
  // From now on `process` (null: one that never dies) serves `handler` at `address`, until the
  // process dies. Nothing is owned; all must outlive the loop's events.
  void Listen(Address address, SimProcess* process, rpc::Handler* handler);
  // A connection of `from` to `to`. If `from` is null, the sender never dies and is older than all
  // lives.
  std::unique_ptr<rpc::Channel> Connect(Address to, SimProcess* from = nullptr);

  struct Counts {
    int64_t calls = 0;
    int64_t chunks = 0;  // calls of large messages' chunks
    int64_t lost = 0;
    int64_t repeated = 0;
    int64_t very_late = 0;
    int64_t unavailable = 0;
    int64_t to_nobody = 0;    // requests that arrived where no process lives
    int64_t to_the_next = 0;  // requests that a process got from one of an earlier life
  };
  const Counts& counts() const { return counts_; }

 private:
  friend class SimChannel;
  struct Listener {
    SimProcess* process;
    rpc::Handler* handler;
  };

  // The process that gets a request of `from`; null if none lives there. `connected_to` is the
  // process that got the last request over this connection. It usually gets the next one, too.
  const Listener* Resolve(Address address, SimProcess* from, SimProcess** connected_to);
  absl::Status CheckSize(absl::string_view kind, const rpc::Method& method,
                         const rpc::Message& message) const;
  int64_t DrawDelayUs();
  bool Draw(double probability) { return loop_->random()->NextDouble() < probability; }

  SimLoop* const loop_;
  const NetworkFaults faults_;
  const int64_t max_message_bytes_;
  std::vector<std::vector<Listener>> listeners_;  // by address, in the order of Listen
  Counts counts_;
};

}  // namespace satrap::simulation

#endif  // SATRAP_TESTS_SIMULATION_MACHINE_SIM_NETWORK_H_

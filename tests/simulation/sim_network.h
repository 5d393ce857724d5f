// A network that loses, repeats, delays, reorders and refuses. Requests and answers are delayed
// independently, so they overtake one another; either may be lost; a request may arrive twice; some
// messages arrive very late, long after their attempt was given up; and an attempt may end with
// UNAVAILABLE, before the receiver saw the request or after it has run it.
//
// Not thread-safe: it lives on the SimLoop's thread.

#ifndef SATRAP_TESTS_SIMULATION_SIM_NETWORK_H_
#define SATRAP_TESTS_SIMULATION_SIM_NETWORK_H_

#include <cstdint>
#include <memory>

#include "common/rpc/rpc.h"
#include "tests/simulation/sim_loop.h"

namespace satrap::simulation {

struct NetworkFaults {
  double lose = 0.05;       // of requests, and of answers
  double repeat = 0.05;     // of requests
  double very_late = 0.01;  // of messages
  // Of requests that are not delivered, and of answers that are replaced.
  double unavailable = 0.02;
  int64_t delay_max_us = 2000;
  int64_t very_late_max_us = 3000000;
};

class SimNetwork {
 public:
  // `loop` must outlive the network.
  SimNetwork(SimLoop* loop, const NetworkFaults& faults) : loop_(loop), faults_(faults) {}

  // A connection to what `handler` serves. `handler` must outlive the loop's events.
  std::unique_ptr<rpc::Channel> Connect(rpc::Handler* handler);

  struct Counts {
    int64_t calls = 0;
    int64_t lost = 0;
    int64_t repeated = 0;
    int64_t very_late = 0;
    int64_t unavailable = 0;
  };
  const Counts& counts() const { return counts_; }

 private:
  friend class SimChannel;
  int64_t DrawDelayUs();
  bool Draw(double probability) { return loop_->random()->NextDouble() < probability; }

  SimLoop* const loop_;
  const NetworkFaults faults_;
  Counts counts_;
};

}  // namespace satrap::simulation

#endif  // SATRAP_TESTS_SIMULATION_SIM_NETWORK_H_

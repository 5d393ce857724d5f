// Faults between the lives of a run: handlers in front of an engine that accept what processes of
// an earlier life have sent. None owns what it is given.
//
// Not thread-safe: they live on the SimLoop's thread.

#ifndef SATRAP_TESTS_SIMULATION_PLANTS_SIM_PLANTS_LIVES_H_
#define SATRAP_TESTS_SIMULATION_PLANTS_SIM_PLANTS_LIVES_H_

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "common/rpc/rpc.h"
#include "proto/hot.pb.h"
#include "tests/simulation/machine/sim_loop.h"

namespace satrap::simulation {

// What all lives of a world share.
struct LifeMemory {
  struct Lease {
    uint64_t generation = 0;
    rpc::Message request;
  };

  // Calls that an embedding PS has run, by PS: sender and number.
  std::map<int, std::set<std::pair<uint32_t, uint64_t>>> windows;
  std::map<uint32_t, Lease> leases;  // the last of each loader
};

// Gives every request `*envelope`, whatever it came with.
std::unique_ptr<rpc::Handler> NewForgedEnvelopes(rpc::Handler* engine, const Envelope* envelope);

// Gives every LeaseSplit `*envelope`. After a loader's first LeaseSplit of a life comes the last
// one of the life before once more, as the network may deliver it.
std::unique_ptr<rpc::Handler> NewForgedLeases(rpc::Handler* coordinator, const Envelope* envelope,
                                              LifeMemory* memory, SimLoop* loop);

// Answers Updates whose sender and number are in `window` with DONE; adds the others to it.
std::unique_ptr<rpc::Handler> NewKeptWindow(rpc::Handler* ps,
                                            std::set<std::pair<uint32_t, uint64_t>>* window);

// Sends the list of members with one answer to each process, whether or not that arrives.
std::unique_ptr<rpc::Handler> NewMembersToldOnce(rpc::Handler* coordinator);

// Ends the first call of Register of each process with CANCELLED, as gRPC does where the other side
// ends a call; a channel says UNAVAILABLE instead (common/rpc/grpc_channel.h).
std::unique_ptr<rpc::Handler> NewEndedRegistrations(rpc::Handler* coordinator);

}  // namespace satrap::simulation

#endif  // SATRAP_TESTS_SIMULATION_PLANTS_SIM_PLANTS_LIVES_H_

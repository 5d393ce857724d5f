// Handlers that stand before an embedding PS or an embedding worker and break one promise of it.

#ifndef SATRAP_TESTS_SIMULATION_SIM_PLANTS_H_
#define SATRAP_TESTS_SIMULATION_SIM_PLANTS_H_

#include <memory>

#include "common/rpc/rpc.h"

namespace satrap::simulation {

// Renumbers the calls of a method, Update or PutBatch, so that a repeated one is taken for a new
// one. `engine` is not owned.
std::unique_ptr<rpc::Handler> NewForgetfulWindow(rpc::Handler* engine, const rpc::Method& method);

// Answers the calls of a method, Update or Ack, and does nothing. `engine` is not owned.
std::unique_ptr<rpc::Handler> NewSwallower(rpc::Handler* engine, const rpc::Method& method);

// Answers Lookups of evaluation as if they were of training. `ps` is not owned.
std::unique_ptr<rpc::Handler> NewTrainingLookups(rpc::Handler* ps);

// After a Lookup, updates its keys of table "rows" with zeros, which creates their rows and changes
// no value. `ps` is not owned. Unordered worlds only.
std::unique_ptr<rpc::Handler> NewRowCreatingLookup(rpc::Handler* ps, int ranks);

}  // namespace satrap::simulation

#endif  // SATRAP_TESTS_SIMULATION_SIM_PLANTS_H_

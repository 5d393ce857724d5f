// Handlers that stand before an embedding PS and break one promise of it.

#ifndef SATRAP_TESTS_SIMULATION_SIM_PLANTS_H_
#define SATRAP_TESTS_SIMULATION_SIM_PLANTS_H_

#include <memory>

#include "common/rpc/rpc.h"

namespace satrap::simulation {

// Renumbers Updates, so that the PS takes a repeated one for a new one. `ps` is not owned.
std::unique_ptr<rpc::Handler> NewForgetfulWindow(rpc::Handler* ps);

// After a Lookup, updates its keys of table "rows" with zeros, which creates their rows and changes
// no value. `ps` is not owned. Unordered worlds only.
std::unique_ptr<rpc::Handler> NewRowCreatingLookup(rpc::Handler* ps, int ranks);

}  // namespace satrap::simulation

#endif  // SATRAP_TESTS_SIMULATION_SIM_PLANTS_H_

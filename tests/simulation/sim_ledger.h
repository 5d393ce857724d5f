// Interprets a LedgerState (proto/position.proto) from the format alone: it shares no code with
// common/checkpoint/ledger/ledger.h.
//
// Thread-safe: the functions depend only on their arguments.

#ifndef SATRAP_TESTS_SIMULATION_SIM_LEDGER_H_
#define SATRAP_TESTS_SIMULATION_SIM_LEDGER_H_

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>

#include "proto/position.pb.h"
#include "tests/simulation/data/sim_data.h"
#include "tests/simulation/sim_trainer.h"

namespace satrap::simulation {

// The ids of the samples that the ledger holds as consumed in `epoch`. Calls `violated` if the
// ledger contradicts the files or itself: a record that does not exist or occurs twice, a wrong
// number. Returns no ids for an epoch of which only the totals are left.
std::set<uint64_t> SamplesOfLedger(const WorldShape& shape, const EpochLedger& epoch,
                                   const std::function<void(std::string)>& violated);

// Checks that the ledger is the union of the provenance of the parts that ranks have got (`seen`,
// of the train stream), with each sample once in its epoch and no other sample. REQUIRES: every
// part that ranks have got is released
void CheckLedger(const WorldShape& shape, const LedgerState& ledger, const SimTraining::Seen& seen,
                 const std::function<void(std::string)>& violated);

}  // namespace satrap::simulation

#endif  // SATRAP_TESTS_SIMULATION_SIM_LEDGER_H_

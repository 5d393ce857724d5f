// The results that a run must have. Ordered training is computed on one machine from the samples
// alone: the oracle knows lanes and batches, but no messages, roles or schedules. Its keys,
// shuffles and optimizer steps share no code with the engines. What must follow from validations is
// computed from their metrics alone.

#ifndef SATRAP_TESTS_SIMULATION_DATA_SIM_ORACLE_H_
#define SATRAP_TESTS_SIMULATION_DATA_SIM_ORACLE_H_

#include <cstdint>
#include <map>
#include <vector>

#include "absl/types/optional.h"
#include "tests/simulation/data/sim_data.h"
#include "tests/simulation/data/sim_row.h"

namespace satrap::simulation {

struct OracleResult {
  // The rows of table "rows", by key. A key is absent if no counted finite step has trained it.
  std::map<uint64_t, SimRow> rows;
  uint64_t steps = 0;                // counted
  std::vector<uint64_t> epoch_ends;  // counted steps by the end of each epoch that has ended
};

// The batches of one lane in one epoch, as ids of samples. There is at least one batch, which may
// be empty.
std::vector<std::vector<uint64_t>> BatchesOfLane(const WorldShape& shape, int lane, uint32_t epoch);

// A validation: its metrics, and the number of counted steps before it.
struct Validation {
  uint64_t step = 0;
  MetricValues values;
};

// The factor of the learning rates in counted step `step` (from 0) after these validations.
double RateAt(const WorldShape& shape, const std::vector<Validation>& validations, uint64_t step);

// Trains until the data or `max_steps` counted steps have ended. The learning rates are those that
// follow from `validations`. REQUIRES: shape.ordered
OracleResult TrainOracle(const WorldShape& shape, uint64_t max_steps,
                         const std::vector<Validation>& validations = {});

struct ValidationVerdict {
  uint64_t best_step = 0;                // of the saved model; without a best one, the last step
  absl::optional<size_t> best;           // of the validations
  absl::optional<size_t> patience_ends;  // the first validation after which training must end
};
ValidationVerdict JudgeValidations(const WorldShape& shape,
                                   const std::vector<Validation>& validations, uint64_t last_step);

// The steps at which an ordered run that ends after `oracle`'s steps must validate.
std::vector<uint64_t> ValidationSteps(const WorldShape& shape, const OracleResult& oracle);

}  // namespace satrap::simulation

#endif  // SATRAP_TESTS_SIMULATION_DATA_SIM_ORACLE_H_

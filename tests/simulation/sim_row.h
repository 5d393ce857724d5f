// One row of table "rows", stepped in double precision, one value after another, by the formulas of
// proto/table.proto: division by the step's weight, L2, clipping, each segment's optimizer, weight
// bound. It shares no code with embedding_ps.
//
// Not thread-safe.

#ifndef SATRAP_TESTS_SIMULATION_SIM_ROW_H_
#define SATRAP_TESTS_SIMULATION_SIM_ROW_H_

#include <array>

#include "tests/simulation/sim_data.h"

namespace satrap::simulation {

using RowGradient = std::array<double, kRowValues>;  // a sum over samples

struct SimRow {
  // A row that has just been created.
  SimRow();

  // One optimizer step. `normalizer` is what the sums are divided by: NormalizerOf of the step.
  void Step(const WorldShape& shape, const RowGradient& sum, double normalizer);

  RowGradient values;
  RowGradient accumulator;  // Adagrad; row-wise Adagrad: one for a segment, at its first value
  RowGradient first{}, second{};  // moments of Adam
  int steps = 0;                  // of this row
};

}  // namespace satrap::simulation

#endif  // SATRAP_TESTS_SIMULATION_SIM_ROW_H_

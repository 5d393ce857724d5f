// One row of table "rows", stepped in double precision, one value after another, by the formulas of
// proto/table.proto, for each segment: division by the step's weight, L2 of mode TOUCHED, clipping,
// optimizer, weight bound. It shares no code with embedding_ps.
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

  // What is applied to a row at once: a step, or in hybrid a part of it.
  struct Pull {
    RowGradient sum;
    double normalizer = 1;  // what the sum is divided by: NormalizerOf of the step
    double share = 1;       // of the step's clip norm: the part's weight divided by the normalizer
    int64_t step = 0;
  };
  // One optimizer step.
  void Step(const WorldShape& shape, const Pull& pull);

  RowGradient values;
  RowGradient accumulator;  // Adagrad; row-wise Adagrad: one for a segment, at its first value
  RowGradient first{}, second{};  // moments of Adam
  int steps = 0;                  // of this row
  int64_t l2_step = -1;           // the last step of the job that added L2
};

}  // namespace satrap::simulation

#endif  // SATRAP_TESTS_SIMULATION_SIM_ROW_H_

// Steps one row of table "rows" in double precision, one value after another, by the formulas of
// proto/table.proto. For each segment a step consists of division by the step's weight, L2 of mode
// TOUCHED or DENSE, clipping, the optimizer and the weight bound. StepTable makes this step for a
// whole table; the gradients of its rows may be clipped together. Shares no code with embedding_ps.
//
// Not thread-safe.

#ifndef SATRAP_TESTS_SIMULATION_DATA_SIM_ROW_H_
#define SATRAP_TESTS_SIMULATION_DATA_SIM_ROW_H_

#include <array>
#include <cstdint>
#include <map>

#include "tests/simulation/data/sim_data.h"

namespace satrap::simulation {

using RowGradient = std::array<double, kRowValues>;  // a sum over samples

struct SimRow {
  // A row that has just been created.
  SimRow();

  // What is applied to a row at once: a step or, in hybrid mode, one part of a step.
  struct Pull {
    RowGradient sum;
    double normalizer = 1;  // what the sum is divided by: NormalizerOf of the step
    double share = 1;       // of the step's clip norm: the part's weight divided by the normalizer
    int64_t step = 0;
    bool held = true;        // by a sample; false: semantics GLOBAL asks for the step
    double rate = 1;         // on top of the optimizers' learning rates
    double clip_factor = 1;  // a factor of all gradients of the step
  };
  // The gradient that the optimizer gets for a pull, before it is multiplied by clip_factor.
  RowGradient Gradient(const WorldShape& shape, const Pull& pull) const;
  // One optimizer step.
  void Step(const WorldShape& shape, const Pull& pull);

  RowGradient values;
  RowGradient accumulator;  // Adagrad; row-wise Adagrad: one for a segment, at its first value
  RowGradient first{}, second{};  // moments of Adam
  int steps = 0;                  // of this row
  int64_t l2_step = -1;           // the last step of the job that added L2 of mode TOUCHED
};

// What is the same for all rows in a step, as in SimRow::Pull.
struct StepOfRows {
  double normalizer = 1;
  int64_t step = 0;
  double rate = 1;
};

// Makes an ordered step of the rows of a table. It updates the rows whose keys `sums` holds, and
// creates them if they are absent; with semantics GLOBAL, it updates all other rows, too. With
// shape.step_clip_norm the rows' gradients are clipped together with those of the dense network.
// Returns the sum of the squares of all gradients before clipping.
double StepTable(const WorldShape& shape, const std::map<uint64_t, RowGradient>& sums,
                 const StepOfRows& step, std::map<uint64_t, SimRow>* rows);

}  // namespace satrap::simulation

#endif  // SATRAP_TESTS_SIMULATION_DATA_SIM_ROW_H_

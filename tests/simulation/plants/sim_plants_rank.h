// Trainers and observers that are put between a rank and its simulated network and break one
// promise (sim_plants.h). None owns what it is given.
//
// Not thread-safe: they live on the SimLoop's thread.

#ifndef SATRAP_TESTS_SIMULATION_PLANTS_SIM_PLANTS_RANK_H_
#define SATRAP_TESTS_SIMULATION_PLANTS_SIM_PLANTS_RANK_H_

#include <memory>

#include "nn_worker/rank/rank_observer.h"
#include "nn_worker/rank/step_trainer.h"
#include "tests/simulation/data/sim_data.h"
#include "tests/simulation/machine/sim_loop.h"
#include "tests/simulation/plants/sim_plant_list.h"
#include "tests/simulation/plants/sim_plants_cuts.h"

namespace satrap::simulation {

// Null if the plant leaves this rank's trainer alone. `ledger` is what rank 0 remembers.
std::unique_ptr<StepTrainer> NewPlantedTrainer(Plant plant, const WorldShape& shape, int rank,
                                               StepTrainer* trainer, ForgetfulLedger* ledger,
                                               SimLoop* loop);

// kTieIsBest and kNanIsBest show a rank metrics that differ a little from the true ones, so that it
// mistakes a tie, or NaN, for better than all before. This function gives the true ones back.
MetricValues Undisguised(const MetricValues& values);
std::unique_ptr<RankObserver> NewUndisguisedObserver(RankObserver* observer);

}  // namespace satrap::simulation

#endif  // SATRAP_TESTS_SIMULATION_PLANTS_SIM_PLANTS_RANK_H_

// The disguise of metrics (Fault::disguise). None owns what it is given.

#ifndef SATRAP_TESTS_SIMULATION_PLANTS_SIM_PLANTS_RANK_H_
#define SATRAP_TESTS_SIMULATION_PLANTS_SIM_PLANTS_RANK_H_

#include <functional>
#include <memory>

#include "nn_worker/rank/rank_observer.h"
#include "nn_worker/rank/step_trainer.h"
#include "tests/simulation/plants/sim_fault.h"

namespace satrap::simulation {

// Gives the rank disguised metrics, and `trainer` the true ones.
std::unique_ptr<StepTrainer> NewDisguisedTrainer(
    const Site& site, StepTrainer* trainer,
    std::function<void(int merges, MetricValues*)> disguise);
// Shows `observer` the true metrics.
std::unique_ptr<RankObserver> NewUndisguisedObserver(RankObserver* observer);
// The true metrics of disguised ones.
MetricValues Undisguised(const MetricValues& values);

}  // namespace satrap::simulation

#endif  // SATRAP_TESTS_SIMULATION_PLANTS_SIM_PLANTS_RANK_H_

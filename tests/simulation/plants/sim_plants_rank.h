// Falsified metrics (Fault::disguise). Nothing is owned.

#ifndef SATRAP_TESTS_SIMULATION_PLANTS_SIM_PLANTS_RANK_H_
#define SATRAP_TESTS_SIMULATION_PLANTS_SIM_PLANTS_RANK_H_

#include <functional>
#include <memory>

#include "nn_worker/rank/rank_observer.h"
#include "nn_worker/rank/step_trainer.h"
#include "tests/simulation/plants/sim_fault.h"

namespace satrap::simulation {

// A trainer that shows the rank falsified metrics, but gives `trainer` the true ones.
std::unique_ptr<StepTrainer> NewDisguisedTrainer(
    const Site& site, StepTrainer* trainer,
    std::function<void(int merges, MetricValues*)> disguise);
// An observer that shows `observer` the true metrics.
std::unique_ptr<RankObserver> NewUndisguisedObserver(RankObserver* observer);
// Restores the true metrics from falsified ones.
MetricValues Undisguised(const MetricValues& values);

}  // namespace satrap::simulation

#endif  // SATRAP_TESTS_SIMULATION_PLANTS_SIM_PLANTS_RANK_H_

// The checks of a life whose ranks have all finished. Whatever the life began with counts as its
// own work, so the checks cover all lives (SimTraining::State).
//
// Not thread-safe: it lives on the SimLoop's thread.

#ifndef SATRAP_TESTS_SIMULATION_SIM_CHECKS_H_
#define SATRAP_TESTS_SIMULATION_SIM_CHECKS_H_

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/types/optional.h"
#include "embedding_ps/ps_engine.h"
#include "embedding_worker/embedding_worker_engine.h"
#include "nn_worker/rank/rank_observer.h"
#include "tests/simulation/data/sim_oracle.h"
#include "tests/simulation/sim_trainer.h"

namespace satrap::simulation {

// Records the steps and evaluations that a rank reports.
class RecordingObserver final : public RankObserver {
 public:
  void OnPhase(absl::string_view) override {}
  void OnStep(const StepEvent& event) override {
    largest_staleness = std::max(largest_staleness, event.staleness);
  }
  void OnEvaluation(const EvaluationEvent& event) override;

  std::string text;                     // all events
  std::vector<Validation> validations;  // of all lives
  int tests = 0;
  int largest_staleness = 0;
};

// Nothing is owned.
struct FinishedWorld {
  const WorldShape* shape;
  const SimTraining* training;
  uint64_t steps_before = 0;      // counted in earlier lives
  size_t validations_before = 0;  // made in earlier lives
  const std::vector<RunResult>* results;
  const std::vector<RecordingObserver>* observers;  // by rank
  std::map<Stream, uint32_t> last_epochs;           // or passes: the last that loaders sent
  // The number of counted steps when RequestStop was called on a rank.
  absl::optional<uint64_t> stop_wished_at;
  uint64_t saved_step = 0;  // of the run's model
  std::vector<const EmbeddingWorkerEngine*> workers;
  std::vector<const PsEngine*> pss;
  // Returns the row of a key; nothing if there is no row.
  std::function<absl::optional<std::vector<float>>(int ps, uint32_t table, uint64_t key)> read_row;
  std::function<void(std::string)> violated;  // called for each broken promise
};

// Tables that are read from living PSs or from the files of a cut.
struct TablesToCheck {
  uint64_t rows = 0;  // of table "rows"
  // Returns the row of a key; nothing if there is no row.
  std::function<absl::optional<std::vector<float>>(uint32_t table, uint64_t key)> read_row;
};

// Checks that the tables hold the expected rows and no others, and each push once.
void CheckTables(const SimTables::Content& expected, const TablesToCheck& tables,
                 const std::function<void(std::string)>& violated);

void CheckFinishedWorld(const FinishedWorld& world);

}  // namespace satrap::simulation

#endif  // SATRAP_TESTS_SIMULATION_SIM_CHECKS_H_

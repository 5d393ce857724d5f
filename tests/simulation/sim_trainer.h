// The trainers of all ranks of one life of a world, with the collective between them. Gradients are small
// integers, so the result of a step is known beforehand; everything that the protocol promises
// about parts, rows and the order of things is checked as it happens.
//
// What the tables must hold is replayed here row by row (sim_row.h). Ordered: each step once, when
// its allreduce ends. Unordered: each push in the order in which the embedding PSs applied it,
// which OnUpdateApplied tells.
//
// Not thread-safe: it lives on the SimLoop's thread.

#ifndef SATRAP_TESTS_SIMULATION_SIM_TRAINER_H_
#define SATRAP_TESTS_SIMULATION_SIM_TRAINER_H_

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "nn_worker/rank/cut_plan.h"
#include "nn_worker/rank/step_trainer.h"
#include "tests/simulation/sim_data.h"
#include "tests/simulation/sim_loop.h"
#include "tests/simulation/sim_oracle.h"
#include "tests/simulation/sim_part.h"
#include "tests/simulation/sim_process.h"
#include "tests/simulation/sim_row.h"

namespace satrap::simulation {

class SimTraining {
 public:
  // What the trainers need from the world.
  struct Surroundings {
    std::function<void(std::string)> violated;    // called for each broken promise
    std::function<void(uint64_t steps)> counted;  // after each step that counted
    // What rank 0 does at a cut: the arguments of CutEngine::Begin, without the dense network.
    std::function<void(CutPlan plan, std::vector<LedgerState> released,
                       std::function<void()> marked,
                       std::function<void(absl::StatusOr<CutOutcome>)> ended)>
        begin_cut;
    // Rank 0 loads a cut into the tables of all PSs.
    std::function<void(const std::string& cut, std::function<void(absl::Status)> done)> restore;
  };
  // What the tables must hold.
  struct Tables {
    std::map<uint64_t, SimRow> rows;              // unordered: by the Updates that were applied
    std::array<uint64_t, kMaxRanks> pushes = {};  // by rank: made, with gradients
  };
  // How often each sample was in a step's part (counted or not) or was scored, by (stream, epoch or
  // pass).
  using Seen = std::map<std::pair<int, uint32_t>, std::map<uint64_t, int>>;
  // What a cut must hold, known without asking any engine. A life that begins from a cut begins
  // with it, so that everything that is checked at the end is checked over all lives.
  struct State {
    Tables tables;
    uint64_t steps = 0;
    uint64_t samples = 0;
    uint64_t non_finite_steps = 0;
    uint64_t merges = 0;  // of metrics: a validation that is made again gets the same ones
    absl::optional<uint64_t> stop_step;
    uint64_t most_after_stop = 0;
    std::vector<uint64_t> most_after;
    Seen seen;                            // of the train stream
    std::vector<Validation> validations;  // state() leaves them out: observers have them
  };

  // The trainers of one life, whose ranks are `ranks`; a dead one does nothing. `loop` and `ranks`
  // are not owned. `from`: what the life begins with.
  SimTraining(const WorldShape& shape, SimLoop* loop, std::vector<SimProcess*> ranks,
              Surroundings surroundings, const State& from);
  ~SimTraining();

  StepTrainer* trainer(int rank);

  // Unordered: embedding PS `ps` has applied the Update of push `number` (CallId) of `rank`.
  // REQUIRES: once for each
  void OnUpdateApplied(int ps, uint32_t rank, uint64_t number);

  // What has happened so far.
  uint64_t counted_steps() const { return counted_steps_; }
  uint64_t counted_samples() const { return counted_samples_; }
  // Steps whose gradients were not finite.
  uint64_t non_finite_steps() const { return non_finite_steps_; }
  // Counted steps when a rank's request to stop first came into an allreduce.
  absl::optional<uint64_t> stop_step() const { return stop_step_; }
  // The most counted steps that there may be if that request, or counted step `step`, ends
  // training: each part that a rank may hold then makes one more.
  uint64_t most_after_stop() const { return most_after_stop_; }
  uint64_t most_after(uint64_t step) const { return most_after_[step - 1]; }
  const Seen& seen() const { return seen_; }
  const Tables& tables() const { return tables_; }
  // What a cut that is marked now must hold. REQUIRES: nothing is in flight: updates_due() is 0
  State state() const;
  // Updates that an embedding PS must still apply.
  size_t updates_due() const { return updates_due_.size(); }
  // Whether another model than the last was loaded for the test; then its tables are expected.
  bool restored() const { return restored_; }
  void SetRestored(const Tables& tables) { tables_ = tables; }

 private:
  class Trainer;
  struct Joiner {
    bool there = false;
    uint64_t step = 0;
    absl::optional<PartInput> part;
    StepFlags flags;
    absl::AnyInvocable<void(absl::StatusOr<StepResult>)> done;
  };

  // A rank that begins a cut.
  struct Planner {
    CutPlan plan;
    absl::AnyInvocable<void(absl::StatusOr<CutMarked>)> done;
    absl::AnyInvocable<void(absl::StatusOr<CutOutcome>)> ended;
  };
  // A cut, as its callbacks know it.
  struct Cut {
    std::vector<absl::optional<Planner>> planners;  // by rank
    CutMarked told;
    bool marked = false;
    absl::optional<absl::StatusOr<bool>> committed;  // once it has ended
  };

  void Join(int rank, Joiner joiner);
  void FinishStep();
  StepResult SumUp(const std::vector<SimPart>& parts);
  // Parts that a rank may hold when it asks for one that is trained in the step after the counted
  // ones.
  int Permits() const;
  // The most parts that ranks may hold besides those of this step.
  uint64_t MostHeld() const;
  // Records the part's samples as seen. A part may be seen only once.
  void See(const SimPart& part);
  void CheckOrderedParts(const std::vector<SimPart>& parts);
  void CheckCounters(int rank, const SimPart& part, bool exact);
  // For parts that were looked up when all pushes were applied: the values are those of the tables.
  void CheckValues(const SimPart& part, double absent);
  // Rows that no push has touched have their initial values.
  void CheckUntouched(const SimPart& part);
  void CheckValue(const SimPart& part, size_t sample, int feature, double absent);
  // Adds a part's sums of gradients, by key.
  void AddGradients(const SimPart& part, std::map<uint64_t, RowGradient>* sums) const;
  void StepRow(uint64_t key, const RowGradient& sum, double normalizer);
  // Records what the Updates of a push, made in a step that counts, must do.
  void NotePush(int rank, const SimPart& part, bool finite, double normalizer);
  void Score(int rank, const PartInput& input);
  // The collectives of cuts.
  void PlanCut(int rank, Planner planner);
  void CheckPlan(int rank, const CutPlan& plan);
  void BeginCut();
  void AwaitCut(int rank, absl::AnyInvocable<void(absl::StatusOr<bool>)> done);
  void AnswerWaiting();
  void Restore(int rank, const std::string& cut, absl::AnyInvocable<void(absl::Status)> done);
  void CheckNotSaving(int rank, const char* what);
  void Barrier(int rank, absl::AnyInvocable<void()> done);

  const WorldShape shape_;
  SimLoop* const loop_;
  const std::vector<SimProcess*> ranks_;
  const Surroundings surroundings_;
  std::vector<std::unique_ptr<Trainer>> trainers_;
  std::vector<Joiner> joiners_;
  std::vector<absl::AnyInvocable<void()>> barrier_;
  std::vector<bool> at_barrier_;
  uint64_t counted_steps_ = 0;
  uint64_t counted_samples_ = 0;
  uint64_t non_finite_steps_ = 0;
  absl::optional<uint64_t> stop_step_;
  uint64_t most_after_stop_ = 0;
  std::vector<uint64_t> most_after_;
  Seen seen_;
  std::set<std::tuple<int, uint32_t, uint32_t, uint64_t, uint32_t>> parts_seen_;
  // A push as its Updates must apply it.
  struct Push {
    std::map<uint64_t, RowGradient> sums;
    double normalizer;
  };
  std::vector<std::vector<Push>> pushes_;                 // by rank; call number n at n - 1
  std::set<std::tuple<int, int, uint64_t>> updates_due_;  // embedding PS, rank, call number
  std::set<uint64_t> touched_;                            // keys of all pushes made
  Tables tables_;
  std::vector<absl::optional<Planner>> planners_;  // by rank
  std::shared_ptr<Cut> cut_;                       // the one that was begun last
  std::vector<absl::AnyInvocable<void(absl::StatusOr<bool>)>> awaiting_;  // by rank; null: not
  bool restored_ = false;
  uint64_t merges_ = 0;
  uint64_t scored_ = 0;  // samples since the last merge
  MetricValues merged_;
};

}  // namespace satrap::simulation

#endif  // SATRAP_TESTS_SIMULATION_SIM_TRAINER_H_

// The trainers of all ranks of one life of a world, with the collective between them. Gradients are
// small integers, so the result of a step is known beforehand. Everything that the protocol
// promises about parts, rows and the order of events is checked while it happens.
//
// Not thread-safe: it lives on the SimLoop's thread.

#ifndef SATRAP_TESTS_SIMULATION_SIM_TRAINER_H_
#define SATRAP_TESTS_SIMULATION_SIM_TRAINER_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "nn_worker/rank/schedule/cut_plan.h"
#include "nn_worker/rank/step_trainer.h"
#include "tests/simulation/data/sim_data.h"
#include "tests/simulation/data/sim_oracle.h"
#include "tests/simulation/data/sim_part.h"
#include "tests/simulation/data/sim_tables.h"
#include "tests/simulation/machine/sim_loop.h"
#include "tests/simulation/machine/sim_process.h"
#include "tests/simulation/sim_cut_collective.h"

namespace satrap::simulation {

class SimTraining {
 public:
  // What the trainers need from the world.
  struct Surroundings {
    std::function<void(std::string)> violated;    // called for each broken promise
    std::function<void(uint64_t steps)> counted;  // after each step that counted
    SimCutCollective::BeginCut begin_cut;
    // Rank 0 loads a cut into the tables of all PSs.
    std::function<void(const std::string& cut, std::function<void(absl::Status)> done)> restore;
  };
  // How often each sample was seen. It is seen when a part of a step has it, whether or not the
  // step counts, and when it is scored. The key is (stream, epoch or pass).
  using Seen = std::map<std::pair<int, uint32_t>, std::map<uint64_t, int>>;
  // The state that a cut must hold, known without asking any engine. A life that begins from a cut
  // begins with the cut's state, so the checks at the end cover all lives.
  struct State {
    SimTables::Content tables;
    uint64_t steps = 0;
    uint64_t samples = 0;
    uint64_t non_finite_steps = 0;
    uint64_t merges = 0;  // merges of metrics: a validation that is repeated gets the same ones
    absl::optional<uint64_t> stop_step;
    uint64_t most_after_stop = 0;
    std::vector<uint64_t> most_after;
    std::vector<float> rates;             // as rates()
    Seen seen;                            // of the train stream
    std::vector<Validation> validations;  // state() leaves them out: observers have them
  };

  // The trainers of one life, whose ranks are `ranks`; a dead rank does nothing. `loop` and `ranks`
  // are not owned. The life begins with the state `from`.
  SimTraining(const WorldShape& shape, SimLoop* loop, std::vector<SimProcess*> ranks,
              Surroundings surroundings, const State& from);
  ~SimTraining();

  StepTrainer* trainer(int rank);

  // The tables of this life. In unordered worlds they must be told which Updates the embedding PSs
  // apply.
  SimTables* tables() { return &tables_; }
  const SimTables& tables() const { return tables_; }

  // Counts of what has happened so far.
  uint64_t counted_steps() const { return counted_steps_; }
  uint64_t counted_samples() const { return counted_samples_; }
  uint64_t non_finite_steps() const { return non_finite_steps_; }  // by their gradients
  // The number of counted steps when a rank's request to stop first came into an allreduce.
  absl::optional<uint64_t> stop_step() const { return stop_step_; }
  // The most counted steps that are allowed if a rank's request to stop ends training
  // (most_after_stop), or if counted step `step` does (most_after). Each part that a rank may hold
  // at that moment makes one more step.
  uint64_t most_after_stop() const { return most_after_stop_; }
  uint64_t most_after(uint64_t step) const { return most_after_[step - 1]; }
  const Seen& seen() const { return seen_; }
  const std::vector<float>& rates() const { return rates_; }  // factor of each counted step
  // The state that a cut must hold if it is marked now. REQUIRES: nothing is in flight:
  // updates_due() is 0
  State state() const;
  size_t updates_due() const { return tables_.updates_due(); }  // that a PS must still apply
  // Whether a model other than the last one was loaded for the test.
  bool restored() const { return restored_; }

 private:
  class Trainer;
  // A part that was decoded when it was prepared.
  struct PreparedSimPart final : PreparedPart {
    uint64_t number = 0;  // of the rank's prepared parts
    PartInput input;
    SimPart part;
  };
  struct Joiner {
    bool there = false;
    uint64_t step = 0;
    std::unique_ptr<PreparedSimPart> part;  // null: without one
    StepFlags flags;
    absl::AnyInvocable<void(absl::StatusOr<StepResult>)> done;
  };

  void Join(int rank, Joiner joiner);
  void CheckSquares(int rank, double squares);
  void FinishStep();
  StepResult SumUp(const std::vector<SimPart>& parts);
  // The number of parts that a rank may hold, this one included, when it requests a part for the
  // next step.
  int Permits() const;
  // The most parts that ranks may hold in addition to those of this step.
  uint64_t MostHeld() const;
  // Records the part's samples as seen. A part may be seen only once.
  void See(const SimPart& part);
  void CheckOrderedParts(const std::vector<SimPart>& parts);
  void Score(int rank, const PartInput& input);
  void CheckPlan(const CutPlan& plan) const;
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
  uint64_t counted_steps_ = 0, counted_samples_ = 0, non_finite_steps_ = 0;
  absl::optional<uint64_t> stop_step_;
  uint64_t most_after_stop_ = 0;
  std::vector<uint64_t> most_after_;
  std::vector<float> rates_;
  Seen seen_;
  std::set<std::tuple<int, uint32_t, uint32_t, uint64_t, uint32_t>> parts_seen_;
  SimTables tables_;
  SimCutCollective cuts_;
  bool restored_ = false;
  double squares_ = 0;                // the sum of those of the last step's gradients
  uint64_t merges_ = 0, scored_ = 0;  // scored: samples since the last merge
  MetricValues merged_;
};

}  // namespace satrap::simulation

#endif  // SATRAP_TESTS_SIMULATION_SIM_TRAINER_H_

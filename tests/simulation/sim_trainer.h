// The trainers of all ranks of a world, with the collective between them. Arithmetic is small
// integers, so the results of a step can be known beforehand; everything that the protocol promises
// about parts and rows is checked as it happens.
//
// Not thread-safe: it lives on the SimLoop's thread.

#ifndef SATRAP_TESTS_SIMULATION_SIM_TRAINER_H_
#define SATRAP_TESTS_SIMULATION_SIM_TRAINER_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "nn_worker/rank/step_trainer.h"
#include "tests/simulation/sim_data.h"
#include "tests/simulation/sim_loop.h"

namespace satrap::simulation {

class SimTraining {
 public:
  // `violated` is told what was broken; it may be called more than once.
  SimTraining(const WorldShape& shape, SimLoop* loop, std::function<void(std::string)> violated);
  ~SimTraining();

  StepTrainer* trainer(int rank);

  // What has happened so far.
  uint64_t counted_steps() const { return counted_steps_; }
  // Of them, those whose gradients were not finite.
  uint64_t non_finite_steps() const { return non_finite_steps_; }
  // Times that each train sample was in a step's part (counted or not).
  const std::map<uint64_t, int>& trained() const { return trained_; }
  // Times that each sample was scored, by (stream, pass).
  const std::map<std::pair<int, uint64_t>, std::map<uint64_t, int>>& scored() const {
    return scored_;
  }
  // Pushes of a rank that carried gradients: what its counter must come to.
  const std::vector<uint64_t>& pushes_with_gradients() const { return pushes_; }
  // What the rows of table "rows" must come to, if each push was applied once (unordered worlds).
  const std::map<uint64_t, std::vector<double>>& expected_rows() const { return expected_rows_; }

 private:
  class Trainer;
  struct Joiner {
    bool there = false;
    uint64_t step = 0;
    absl::optional<PartInput> part;
    StepFlags flags;
    absl::AnyInvocable<void(absl::StatusOr<StepResult>)> done;
  };
  // A decoded part: its samples, and the pooled vectors that came with it.
  struct Decoded {
    std::vector<SimSample> samples;
    std::vector<std::vector<float>> rows_of_table;  // by TableRows
    std::vector<std::vector<uint32_t>> indices;     // by feature; empty if pooled
    std::vector<std::vector<uint32_t>> offsets;     // by feature
    std::vector<std::vector<float>> pooled;         // by feature [samples, row values]
  };

  void Join(int rank, Joiner joiner);
  void FinishStep();
  // The effect of a part's step on the rows, as far as it is known without the order of steps.
  void ExpectRows(const Decoded& decoded, float weight);
  Decoded Decode(const PartInput& part);
  PartGradients MakeGradients(int rank, const PartInput& part, const Decoded& decoded,
                              float weight);
  void CheckCounters(int rank, const Decoded& decoded, bool exact);
  void Barrier(int rank, absl::AnyInvocable<void()> done);

  const WorldShape shape_;
  SimLoop* const loop_;
  const std::function<void(std::string)> violated_;
  std::vector<std::unique_ptr<Trainer>> trainers_;
  std::vector<Joiner> joiners_;
  std::vector<absl::AnyInvocable<void()>> barrier_;
  std::vector<bool> at_barrier_;
  uint64_t counted_steps_ = 0;
  uint64_t non_finite_steps_ = 0;
  std::map<uint64_t, int> trained_;
  std::map<std::pair<int, uint64_t>, std::map<uint64_t, int>> scored_;
  std::vector<uint64_t> pushes_;
  std::map<uint64_t, std::vector<double>> expected_rows_;
};

}  // namespace satrap::simulation

#endif  // SATRAP_TESTS_SIMULATION_SIM_TRAINER_H_

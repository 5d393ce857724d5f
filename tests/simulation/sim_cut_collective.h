// The collectives of cuts among the ranks of a life: all ranks plan the same cut, rank 0 begins it,
// and all ranks are told when every PS has marked. Ranks that wait for the cut are told together
// how it has ended.
//
// Not thread-safe: it lives on the SimLoop's thread.

#ifndef SATRAP_TESTS_SIMULATION_SIM_CUT_COLLECTIVE_H_
#define SATRAP_TESTS_SIMULATION_SIM_CUT_COLLECTIVE_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "nn_worker/rank/schedule/cut_plan.h"
#include "tests/simulation/machine/sim_loop.h"
#include "tests/simulation/machine/sim_process.h"

namespace satrap::simulation {

class SimCutCollective {
 public:
  // What rank 0 does at a cut: the arguments of CutEngine::Begin, without the dense network.
  using BeginCut = std::function<void(CutPlan plan, std::vector<LedgerState> released,
                                      std::function<void()> marked,
                                      std::function<void(absl::StatusOr<CutOutcome>)> ended)>;
  // The arguments with which a rank has called StepTrainer::BeginCut.
  struct Planner {
    CutPlan plan;
    absl::AnyInvocable<void(absl::StatusOr<CutMarked>)> done;
    absl::AnyInvocable<void(absl::StatusOr<CutOutcome>)> ended;
  };

  // `violated` is called for each broken promise. `loop` and `ranks` are not owned.
  SimCutCollective(SimLoop* loop, std::vector<SimProcess*> ranks, BeginCut begin_cut,
                   std::function<void(std::string)> violated);

  void Plan(int rank, Planner planner);
  // Like StepTrainer::AwaitCut.
  void Await(int rank, absl::AnyInvocable<void(absl::StatusOr<bool>)> done);
  // Whether a cut that ranks wait for has begun and not ended.
  bool is_awaited() const;

 private:
  // The state of a cut that its callbacks share.
  struct Cut {
    std::vector<absl::optional<Planner>> planners;  // by rank
    CutMarked told;
    bool marked = false;
    absl::optional<absl::StatusOr<bool>> committed;  // once it has ended
  };

  int num_ranks() const { return static_cast<int>(ranks_.size()); }
  void Begin();
  void AnswerWaiting();

  SimLoop* const loop_;
  const std::vector<SimProcess*> ranks_;
  const BeginCut begin_cut_;
  const std::function<void(std::string)> violated_;
  std::vector<absl::optional<Planner>> planners_;  // by rank
  std::shared_ptr<Cut> cut_;                       // the one that was begun last
  std::vector<absl::AnyInvocable<void(absl::StatusOr<bool>)>> awaiting_;  // by rank; null: not
};

}  // namespace satrap::simulation

#endif  // SATRAP_TESTS_SIMULATION_SIM_CUT_COLLECTIVE_H_

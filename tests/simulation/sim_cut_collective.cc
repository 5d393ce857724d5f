#include "tests/simulation/sim_cut_collective.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace satrap::simulation {

SimCutCollective::SimCutCollective(SimLoop* loop, std::vector<SimProcess*> ranks,
                                   BeginCut begin_cut, std::function<void(std::string)> violated)
    : loop_(loop),
      ranks_(std::move(ranks)),
      begin_cut_(std::move(begin_cut)),
      violated_(std::move(violated)),
      planners_(ranks_.size()),
      awaiting_(ranks_.size()) {}

bool SimCutCollective::is_awaited() const {
  return cut_ != nullptr && cut_->told.waits && !cut_->committed.has_value();
}

void SimCutCollective::Plan(int rank, Planner planner) {
  if (planners_[rank].has_value()) {
    violated_(absl::StrCat("rank ", rank, " begins a cut twice"));
  }
  planners_[rank] = std::move(planner);
  for (const auto& other : planners_) {
    if (!other.has_value()) return;
  }
  Begin();
}

// Called when every rank has handed over its plan.
void SimCutCollective::Begin() {
  const auto cut = std::make_shared<Cut>();
  cut->planners.resize(num_ranks());
  cut->planners.swap(planners_);
  CutPlan plan = cut->planners[0]->plan;
  std::vector<LedgerState> released;
  for (auto& planner : cut->planners) {
    released.push_back(std::move(planner->plan.released));
    RunPosition position = planner->plan.position;
    position.set_train_seconds(plan.position.train_seconds());
    if (position.SerializeAsString() != plan.position.SerializeAsString() ||
        planner->plan.number != plan.number || planner->plan.best != plan.best ||
        planner->plan.last != plan.last) {
      violated_(absl::StrCat("ranks plan the cuts {", plan.position.ShortDebugString(), "} and {",
                             position.ShortDebugString(), "}"));
    }
  }
  cut->told = CutMarked{IsWaitedFor(plan), plan.leave};
  cut_ = cut;
  const auto mark = [this, cut] {
    if (std::exchange(cut->marked, true)) return;
    for (int rank = 0; rank < num_ranks(); ++rank) {
      ranks_[rank]->PostAfter(static_cast<int64_t>(loop_->random()->Below(300)),
                              [cut, rank] { cut->planners[rank]->done(cut->told); });
    }
  };
  const auto end = [this, cut, mark](absl::StatusOr<CutOutcome> outcome) {
    cut->committed.emplace(outcome.ok() ? absl::StatusOr<bool>(outcome->committed)
                                        : absl::StatusOr<bool>(outcome.status()));
    const absl::Status status = outcome.status();
    cut->planners[0]->ended(std::move(outcome));
    // If rank 0 fails, the other ranks wait in vain, as in a collective whose peer is lost.
    if (status.ok()) mark();
    AnswerWaiting();
  };
  begin_cut_(std::move(plan), std::move(released), mark, end);
}

void SimCutCollective::Await(int rank, absl::AnyInvocable<void(absl::StatusOr<bool>)> done) {
  awaiting_[rank] = std::move(done);
  AnswerWaiting();
}

// Answers only when the cut has ended and every rank waits for it: in a real collective, too, each
// rank waits for all others.
void SimCutCollective::AnswerWaiting() {
  if (cut_ == nullptr || !cut_->committed.has_value()) return;
  for (const auto& waiting : awaiting_) {
    if (waiting == nullptr) return;
  }
  for (int rank = 0; rank < num_ranks(); ++rank) {
    auto done = std::move(awaiting_[rank]);
    awaiting_[rank] = nullptr;
    if (rank > 0 && !cut_->committed->ok()) continue;
    ranks_[rank]->Post([done = std::move(done), committed = *cut_->committed]() mutable {
      done(std::move(committed));
    });
  }
}

}  // namespace satrap::simulation

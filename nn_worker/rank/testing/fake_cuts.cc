#include "nn_worker/rank/testing/fake_cuts.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/checkpoint/run_log.h"

namespace satrap {
namespace {

constexpr int64_t kPollUs = 1000;

std::string Describe(const CutPlan& plan) {
  return absl::StrCat(plan.position.step(), plan.best ? " best" : "", plan.last ? " last" : "",
                      plan.wish > 0 ? " wished" : "", plan.leave ? " leave" : "");
}

}  // namespace

FakeCuts::FakeCuts(const RankOptions& options, ManualExecutor* executor, const FakeOrders* orders,
                   FakeRecord* record, const PartCustody* custody)
    : options_(options), executor_(executor), orders_(orders), record_(record), custody_(custody) {}

void FakeCuts::Begin(int rank, CutPlan plan, Marked marked, Ended ended) {
  planners_.push_back({std::move(plan), std::move(marked), std::move(ended)});
  if (rank == 0) std::swap(planners_.front(), planners_.back());
  if (static_cast<int>(planners_.size()) == options_.num_ranks) Mark();
}

// Called when all ranks have reached the cut. If another cut is still being written, waits until
// that cut has ended.
void FakeCuts::Mark() {
  if (writing_) {
    executor_->PostAfter(kPollUs, [this] { Mark(); });
    return;
  }
  CheckPlans();
  FakeCut cut;
  cut.plan = planners_[0].plan;
  cut.name = CutName(options_.envelope.generation(), cut.plan.number);
  cut.released = custody_->ended_names();
  cut.ledger = ledger_;
  const CutMarked marked = {IsWaitedFor(cut.plan), cut.plan.leave};
  record_->saved.push_back(Describe(cut.plan));
  record_->cuts.push_back(std::move(cut));
  writing_ = true;
  ended_ = std::move(planners_[0].ended);
  executor_->PostAfter(orders_->cut_writing_ms * 1000,
                       [this, i = record_->cuts.size() - 1] { End(i); });
  for (Planner& planner : std::exchange(planners_, {})) planner.marked(marked);
}

void FakeCuts::CheckPlans() {
  custody_->CheckNoneIsHeld();
  const CutPlan& first = planners_[0].plan;
  for (const Planner& planner : planners_) {
    const CutPlan& plan = planner.plan;
    CHECK(plan.number == first.number && plan.best == first.best && plan.last == first.last);
    RunPosition position = plan.position;
    position.set_train_seconds(first.position.train_seconds());  // each rank's own clock
    CHECK(position.SerializeAsString() == first.position.SerializeAsString())
        << position.ShortDebugString() << " and " << first.position.ShortDebugString();
    CHECK_OK(ledger_.Merge(*Ledger::FromState(plan.released)));
  }
  CHECK(ledger_.ToState().SerializeAsString() == custody_->ended().ToState().SerializeAsString())
      << ledger_.ToState().ShortDebugString() << " and "
      << custody_->ended().ToState().ShortDebugString();
}

void FakeCuts::End(size_t cut) {
  writing_ = false;
  if (!orders_->broken_cut.ok()) return ended_(orders_->broken_cut);
  FakeCut& begun = record_->cuts[cut];
  CutOutcome outcome;
  outcome.name = begun.name;
  outcome.seconds = static_cast<double>(orders_->cut_writing_ms) * 1e-3;
  outcome.committed = begun.committed = orders_->abandoned_cuts.count(begun.plan.number) == 0;
  if (!outcome.committed) record_->saved[cut] += " abandoned";
  ended_(std::move(outcome));
}

void FakeCuts::Await(absl::AnyInvocable<void(absl::StatusOr<bool>)> done) {
  if (writing_) {
    executor_->PostAfter(kPollUs,
                         [this, done = std::move(done)]() mutable { Await(std::move(done)); });
  } else if (!orders_->broken_cut.ok()) {
    done(orders_->broken_cut);
  } else {
    done(record_->cuts.back().committed);
  }
}

}  // namespace satrap

// The part of PsEngine that delays a step until its clip_factor is known
// (JobConfig.gradient_clip_norm).

#include <utility>
#include <vector>

#include "common/numeric/exact_sum.h"
#include "common/rpc/receivers.h"
#include "common/rpc/squares.h"
#include "embedding_ps/ps_engine.h"
#include "embedding_ps/table/step_of_table.h"
#include "embedding_ps/table_sweep.h"

namespace satrap {

void PsEngine::AnswerWithSquares(StepSum sum) {
  ExactSum squares;
  const StepContext context = ContextOf(sum.header, /*part_share=*/1);
  for (const TableGradient& table : sum.tables) {
    StepOfTable(tables_[table.table].get(), context, &squares)
        .Add(table.keys, table.gradients, table.sample_counts);
  }
  AddIdleSquares(tables_, context, job_.embedding_ps().threads(), options_.executor, squares,
                 [this, sum = std::move(sum)](const ExactSum& all) mutable {
                   AwaitApplyStep(std::move(sum), all);
                 });
}

void PsEngine::AwaitApplyStep(StepSum sum, const ExactSum& squares) {
  std::vector<rpc::PendingAnswer> calls;
  for (const StepCollector::Part& part : sum.parts) calls.push_back(part.call);
  {
    // The step must be waiting before its Updates are answered, because ApplyStep may arrive at
    // once. The waiting step counts as an open Update, so that no cut and no load can begin between
    // summing and applying it.
    MutexLock lock(&mutex_);
    gate_.Open();
    clipped_.Begin(std::move(sum));
  }
  const rpc::Message answer = rpc::AnswerOfSquares(squares);
  for (const rpc::PendingAnswer& call : calls) FinishUpdate(call, answer);
}

void PsEngine::OnApplyStep(const rpc::PendingAnswer& call, ApplyStepHeader header, const Buffer&) {
  options_.executor->Post([this, call, header = std::move(header)] { RunApplyStep(call, header); });
}

void PsEngine::RunApplyStep(const rpc::PendingAnswer& call, const ApplyStepHeader& header) {
  absl::StatusOr<ClippedStep::Action> action;
  {
    MutexLock lock(&mutex_);
    action = clipped_.Add(header.step(), header.clip_factor(), call);
  }
  if (!action.ok()) return call.Finish(action.status());
  if (action->apply.has_value()) {
    if (options_.kill_points != nullptr) {
      options_.kill_points->Reach(KillPoint::PS_BETWEEN_HALVES);
    }
    ApplySum(*std::move(action->apply), header.clip_factor(), [this](const StepSum&) {
      std::vector<rpc::PendingAnswer> calls;
      {
        MutexLock lock(&mutex_);
        gate_.Finish();
        calls = clipped_.End();
      }
      for (const rpc::PendingAnswer& waiting : calls)
        waiting.Finish(rpc::Done<ApplyStepAnswerHeader>());
    });
  } else if (action->answer) {
    call.Finish(rpc::Done<ApplyStepAnswerHeader>());
  }
}

}  // namespace satrap

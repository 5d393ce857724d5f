#include "nn_worker/rank/testing/fake_allreduce.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "nn_worker/operation/step_normalizer.h"
#include "nn_worker/rank/testing/fake_part.h"

namespace satrap {

FakeAllreduce::FakeAllreduce(int num_ranks, ManualExecutor* executor, int64_t delay_us,
                             const FakeOrders* orders, FakeRecord* record)
    : executor_(executor),
      delay_us_(delay_us),
      orders_(orders),
      record_(record),
      joiners_(num_ranks),
      barrier_count_(num_ranks, 0) {}

void FakeAllreduce::JoinStep(int rank, Joiner joiner) {
  CHECK(!joiners_[rank].has_value());
  joiners_[rank] = std::move(joiner);
  if (std::all_of(joiners_.begin(), joiners_.end(), [](const auto& j) { return j.has_value(); })) {
    FinishStep();
  }
}

void FakeAllreduce::FinishStep() {
  StepResult all;
  all.learning_rate_factor = joiners_[0]->flags.learning_rate_factor;
  FakeRecord::Step step{joiners_[0]->step, 0, 0, {}};
  for (size_t rank = 0; rank < joiners_.size(); ++rank) {
    const Joiner& joiner = *joiners_[rank];
    CHECK(joiner.step == step.number) << "ranks disagree on the step";
    CHECK(!joiner.flags.idle || !joiner.part.has_value());
    CHECK(joiner.flags.learning_rate_factor == all.learning_rate_factor)
        << "ranks disagree on the learning rate";
    CHECK(!joiner.flags.cut || rank == 0) << "another rank than 0 asks for a cut";
    if (joiner.flags.idle) ++all.idle_ranks;
    if (joiner.flags.stop) all.stop = true;
    if (joiner.flags.cut) all.cut = true;
    CHECK(!joiner.flags.validation || rank == 0) << "another rank than 0 asks for a validation";
    if (joiner.flags.validation) all.validation = true;
    if (joiner.part.has_value()) {
      const PartDescription& part = joiner.part->header.part();
      all.samples += part.samples();
      all.weight += static_cast<float>(WeightOf(part));
      step.parts.push_back(NameOf(part.id()));
    } else {
      step.parts.push_back("-");
    }
  }
  all.finite = orders_->not_finite_steps.count(step.number) == 0;
  if (orders_->label_rate != nullptr) {
    all.labelled = all.samples;
    all.positives = orders_->label_rate(step.number) * static_cast<double>(all.samples);
  }
  all.large = all.finite && orders_->large_steps.count(step.number) > 0;
  if (all.weight > 0) {
    all.normalizer = StepNormalizer(all.weight, all.samples, orders_->global_batch_size);
  }
  if (all.weight > 0 && all.finite && orders_->dense_squares > 0) {
    all.dense_squares = orders_->dense_squares;
  }
  step.weight = all.weight;
  step.idle_ranks = all.idle_ranks;
  record_->steps.push_back(step);
  for (absl::optional<Joiner>& joiner : joiners_) {
    StepResult result = all;
    if (joiner->part.has_value() && result.weight > 0 && result.finite) {
      result.gradients.header.add_tables();
    }
    auto done = std::make_shared<Joiner>(*std::exchange(joiner, absl::nullopt));
    executor_->PostAfter(delay_us_, [done, result] { done->done(result); });
  }
}

void FakeAllreduce::Barrier(int rank, const std::string& what, absl::AnyInvocable<void()> done,
                            absl::AnyInvocable<void()> last) {
  auto& waiting = barriers_[absl::StrCat(what, " ", barrier_count_[rank]++)];
  waiting.push_back(std::move(done));
  if (waiting.size() < joiners_.size()) return;
  for (auto& callback : waiting) callback();
  last();
}

}  // namespace satrap

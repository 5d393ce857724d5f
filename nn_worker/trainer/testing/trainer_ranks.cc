#include "nn_worker/trainer/testing/trainer_ranks.h"

#include <algorithm>
#include <cmath>
#include <future>

#include "common/numeric/clip_factor.h"

namespace satrap {

StepResult TrainerRanks::Step(uint64_t step, const std::vector<FakeSample>& batch,
                              std::vector<size_t> cuts, WireDtype dtype) {
  cuts.insert(cuts.begin(), 0);
  std::vector<PartInput> parts;
  std::vector<std::future<absl::StatusOr<StepResult>>> results;
  for (size_t r = 0; r < trainers_.size(); ++r) {
    const std::vector<FakeSample> samples(batch.begin() + cuts[r], batch.begin() + cuts[r + 1]);
    parts.push_back(tables_.MakePart(samples, cuts[r], dtype));
  }
  for (size_t r = 0; r < trainers_.size(); ++r) {
    auto promise = std::make_shared<std::promise<absl::StatusOr<StepResult>>>();
    results.push_back(promise->get_future());
    trainers_[r]->JoinStep(
        step, trainers_[r]->Prepare(parts[r]), StepFlags(),
        [promise](absl::StatusOr<StepResult> result) { promise->set_value(std::move(result)); });
  }
  StepResult last;
  for (size_t r = 0; r < trainers_.size(); ++r) {
    auto result = results[r].get();
    CHECK(result.ok()) << result.status().ToString();
    last = *result;
    if (last.weight > 0 && last.finite) tables_.Push(parts[r], last.gradients);
  }
  if (last.weight == 0 || !last.finite) return last;
  double squares = 0;
  if (last.dense_squares.has_value()) {
    squares = *last.dense_squares + tables_.Squares(last.normalizer);
    EndStep(squares);
  }
  tables_.Apply(last.normalizer, last.dense_squares.has_value()
                                     ? ClipFactor(job_.gradient_clip_norm(), squares)
                                     : 1);
  return last;
}

void TrainerRanks::EndStep(double squares) {
  std::vector<std::future<absl::Status>> ends;
  for (const auto& trainer : trainers_) {
    auto promise = std::make_shared<std::promise<absl::Status>>();
    ends.push_back(promise->get_future());
    trainer->EndStep(squares,
                     [promise](absl::StatusOr<StepEnd> end) { promise->set_value(end.status()); });
  }
  for (std::future<absl::Status>& end : ends) CHECK_OK(end.get());
}

MetricValues TrainerRanks::Score(const std::vector<FakeSample>& batch,
                                 const std::vector<size_t>& cuts) {
  size_t begin = 0;
  std::vector<std::future<absl::StatusOr<MetricValues>>> results;
  for (size_t r = 0; r < trainers_.size(); ++r) {
    const std::vector<FakeSample> samples(batch.begin() + begin, batch.begin() + cuts[r]);
    begin = cuts[r];
    PartInput part = tables_.MakePart(samples, 0, F32);
    part.header.mutable_part()->mutable_id()->set_stream(VALID_STREAM);
    part.header.clear_candidates();
    trainers_[r]->Score(std::move(part),
                        [](absl::Status status) { CHECK(status.ok()) << status.ToString(); });
    auto promise = std::make_shared<std::promise<absl::StatusOr<MetricValues>>>();
    results.push_back(promise->get_future());
    trainers_[r]->MergeEvaluation(
        [promise](absl::StatusOr<MetricValues> values) { promise->set_value(std::move(values)); });
  }
  MetricValues first = results[0].get().value();
  for (size_t r = 1; r < results.size(); ++r) {
    EXPECT_EQ(results[r].get().value().SerializeAsString(), first.SerializeAsString());
  }
  return first;
}

float LargestDifference(const std::vector<float>& a, const std::vector<float>& b) {
  EXPECT_EQ(a.size(), b.size());
  float largest = 0;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    largest = std::max(largest, std::abs(a[i] - b[i]));
  }
  return largest;
}

}  // namespace satrap

// What the coordinator reports about a generation.

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "deploy/coordinator/coordinator_rep.h"

namespace satrap {

namespace {

// Rank 0 knows the run's number of samples only if the job states it. Otherwise each loader
// estimates the samples of an epoch from what it has read, and `expected` is the mean of these
// estimates times the number of epochs.
void SetExpectedSamples(uint64_t expected, TrainProgress* progress) {
  if (progress->expected_samples() > 0 || expected == 0) return;
  progress->set_expected_samples(expected);
  if (progress->samples_per_second() <= 0) return;
  const uint64_t left = std::max(expected, progress->samples()) - progress->samples();
  progress->set_seconds_left(static_cast<double>(left) / progress->samples_per_second());
}

}  // namespace

absl::StatusOr<StatusAnswer> CoordinatorEngine::Rep::Status(const StatusRequest& request) {
  if (request.has_run_id() && request.run_id() != envelope.run_id()) {
    return absl::FailedPreconditionError(absl::StrCat("this is the coordinator of run ",
                                                      absl::Hex(envelope.run_id()), ", not of ",
                                                      absl::Hex(request.run_id())));
  }
  const int64_t now_us = executor->NowUs();
  StatusAnswer answer;
  answer.set_job_name(job.name());
  answer.set_state(end.state());
  if (end.has_ended()) *answer.mutable_ending() = end.ending();
  *answer.mutable_train() = train;
  SetExpectedSamples(places.members().ExpectedTrainSamples() * static_cast<uint64_t>(job.epochs()),
                     answer.mutable_train());
  places.AddTo(&answer, now_us);
  topics.AddTo(&answer);
  if (result.has_value()) *answer.mutable_result() = *result;
  answer.set_seconds(static_cast<double>(now_us - start_us) * 1e-6);
  answer.set_run_id(envelope.run_id());
  answer.set_generation(envelope.generation());
  for (const Restart& restart : restarts) *answer.add_restarts() = restart;
  if (last_cut.has_value()) {
    CutStatus* cut = answer.mutable_last_cut();
    cut->set_cut(last_cut->cut());
    cut->set_step(last_cut->step());
    cut->set_bytes(last_cut->bytes());
    cut->set_seconds(last_cut->seconds());
    const int64_t age_ms = std::max<int64_t>(options.unix_ms() - last_cut_unix_ms, 0);
    cut->set_age_seconds(static_cast<double>(age_ms) * 1e-3);
  }
  *answer.mutable_cuts() = cuts;
  answer.set_fulfilled_wish(wishes.fulfilled());
  answer.set_submission(submission);
  if (const Ending* due = end.ending_due(); due != nullptr) {
    answer.set_writes_end(true);
    *answer.mutable_ending() = *due;
  }
  return answer;
}

}  // namespace satrap

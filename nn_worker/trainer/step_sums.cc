#include "nn_worker/trainer/step_sums.h"

#include <cmath>

#include "absl/types/span.h"
#include "common/base/status_macros.h"
#include "nn_worker/operation/step_normalizer.h"

namespace satrap {
namespace {

enum ReducedSum {
  kSamples,
  kWeight,
  kLoss,
  kIdle,
  kNotFinite,
  kStop,
  kCut,
  kValidation,
  kLabelled,
  kPositives,
  kLarge,
  kNumReducedSums
};

}  // namespace

absl::StatusOr<SummedStep> SumStepOfRanks(const RankSums& own, int64_t global_batch_size,
                                          Collective* collective) {
  float sums[kNumReducedSums];
  sums[kSamples] = static_cast<float>(own.samples);
  sums[kWeight] = static_cast<float>(own.loss.weight);
  sums[kLoss] = static_cast<float>(own.loss.loss);
  sums[kIdle] = own.flags.idle ? 1 : 0;
  sums[kNotFinite] = own.finite ? 0 : 1;
  sums[kStop] = own.flags.stop ? 1 : 0;
  sums[kCut] = own.flags.cut ? 1 : 0;
  sums[kValidation] = own.flags.validation ? 1 : 0;
  sums[kLabelled] = static_cast<float>(own.labels.samples);
  sums[kPositives] = static_cast<float>(own.labels.positives);
  sums[kLarge] = own.large ? 1 : 0;
  RETURN_IF_ERROR(collective->AllReduceSum(absl::MakeSpan(sums)));
  SummedStep step;
  StepResult& result = step.result;
  result.learning_rate_factor = own.flags.learning_rate_factor;
  result.samples = static_cast<uint64_t>(std::llround(sums[kSamples]));
  result.weight = sums[kWeight];
  result.loss = sums[kLoss];
  result.idle_ranks = static_cast<int>(std::lround(sums[kIdle]));
  result.finite = sums[kNotFinite] == 0;
  result.large = result.finite && sums[kLarge] > 0;
  result.stop = sums[kStop] > 0;
  result.cut = sums[kCut] > 0;
  result.validation = sums[kValidation] > 0;
  result.labelled = static_cast<uint64_t>(std::llround(sums[kLabelled]));
  result.positives = sums[kPositives];
  if (result.weight > 0) {
    result.normalizer = StepNormalizer(result.weight, result.samples, global_batch_size);
  }
  step.totals = {sums[kSamples], sums[kWeight], sums[kNotFinite]};
  return step;
}

}  // namespace satrap

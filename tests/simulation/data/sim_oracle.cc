#include "tests/simulation/data/sim_oracle.h"

#include <algorithm>
#include <cmath>
#include <set>

namespace satrap::simulation {
namespace {

double ValueOf(const OracleResult& result, uint64_t key, int d) {
  const auto row = result.rows.find(key);
  return row == result.rows.end() ? kInitialRowValue : row->second.values[d];
}

// Larger is better, whichever the metric.
double ValueOf(const WorldShape& shape, const MetricValues& values) {
  return shape.metric == AUC ? values.auc() : -values.logloss();
}

void TrainBatch(const WorldShape& shape, const std::vector<uint64_t>& batch,
                const PartId& id_of_batch, const std::vector<Validation>& validations,
                OracleResult* result) {
  double weight = 0;
  std::map<uint64_t, RowGradient> gradients;
  const std::vector<uint64_t> candidates = CandidateKeys(shape, id_of_batch);
  for (const uint64_t key : candidates) gradients[key];
  for (const uint64_t id : batch) {
    const SimSample sample = SampleOfId(shape, id);
    for (size_t j = 0; j < candidates.size(); ++j) {
      for (int d = 0; d < kRowValues; ++d) {
        gradients[candidates[j]][d] +=
            CandidateGradient(sample, j, d, PullOf(shape), ValueOf(*result, candidates[j], d));
      }
    }
    weight += sample.weight;
    std::vector<uint64_t> several;
    for (const uint64_t value : sample.several) several.push_back(SeveralKey(value));
    const std::vector<uint64_t> keys_of_feature[] = {{SingleKey(sample.single)}, several};
    for (int f = 0; f < 2; ++f) {
      for (int d = 0; d < kRowValues; ++d) {
        double pooled = 0;
        for (const uint64_t key : keys_of_feature[f]) pooled += ValueOf(*result, key, d);
        const float gradient = SampleGradient(sample, f, d, PullOf(shape), pooled);
        for (const uint64_t key : keys_of_feature[f]) gradients[key][d] += gradient;
      }
    }
  }
  // A step of weight 0 does not count. A step that is not finite counts but changes nothing.
  if (weight == 0) return;
  const auto step = static_cast<int64_t>(result->steps++);
  if (!IsFiniteStep(shape, step)) return;
  const double normalizer = NormalizerOf(shape, weight, batch.size());
  const double rate = RateAt(shape, validations, static_cast<uint64_t>(step));
  StepTable(shape, gradients, {normalizer, step, rate}, &result->rows);
}

}  // namespace

std::vector<std::vector<uint64_t>> BatchesOfLane(const WorldShape& shape, int lane,
                                                 uint32_t epoch) {
  std::vector<std::vector<uint64_t>> batches(1);
  const std::vector<int>& splits = shape.split_rows[TRAIN_STREAM];
  for (size_t split = lane; split < splits.size(); split += shape.lanes) {
    for (const int row : RowOrder(shape, TRAIN_STREAM, static_cast<int>(split), epoch)) {
      if (static_cast<int>(batches.back().size()) == shape.global_batch_size)
        batches.emplace_back();
      batches.back().push_back(MakeSample(shape, TRAIN_STREAM, static_cast<int>(split), row).id);
    }
  }
  return batches;
}

double RateAt(const WorldShape& shape, const std::vector<Validation>& validations, uint64_t step) {
  double rate = 1;
  if (shape.plateau_patience == 0) return rate;
  absl::optional<double> best;
  int worse_in_a_row = 0;
  for (const Validation& validation : validations) {
    if (validation.step > step) break;
    const double value = ValueOf(shape, validation.values);
    const bool known = validation.values.samples() > 0 && !std::isnan(value);
    if (known && (!best.has_value() || value > *best)) {
      best = value;
      worse_in_a_row = 0;
    } else if (++worse_in_a_row >= shape.plateau_patience && rate > kLeastPlateauFactor) {
      rate *= kPlateauFactor;
      worse_in_a_row = 0;
    }
  }
  return rate;
}

OracleResult TrainOracle(const WorldShape& shape, uint64_t max_steps,
                         const std::vector<Validation>& validations) {
  OracleResult result;
  for (int epoch = 0; epoch < shape.epochs; ++epoch) {
    std::vector<std::vector<std::vector<uint64_t>>> lanes;
    size_t longest = 0;
    for (int lane = 0; lane < shape.lanes; ++lane) {
      lanes.push_back(BatchesOfLane(shape, lane, static_cast<uint32_t>(epoch)));
      longest = std::max(longest, lanes.back().size());
    }
    for (size_t seq = 0; seq < longest; ++seq) {
      for (const auto& lane : lanes) {
        if (result.steps == max_steps) return result;
        if (seq >= lane.size()) continue;
        PartId id;
        id.set_epoch(static_cast<uint32_t>(epoch));
        id.set_lane(static_cast<uint32_t>(&lane - lanes.data()));
        id.set_seq(seq);
        TrainBatch(shape, lane[seq], id, validations, &result);
      }
    }
    result.epoch_ends.push_back(result.steps);
  }
  return result;
}

ValidationVerdict JudgeValidations(const WorldShape& shape,
                                   const std::vector<Validation>& validations, uint64_t last_step) {
  ValidationVerdict verdict;
  verdict.best_step = last_step;
  double best = 0;
  int worse_in_a_row = 0;
  for (size_t i = 0; i < validations.size(); ++i) {
    const MetricValues& values = validations[i].values;
    const double value = ValueOf(shape, values);
    const bool known = values.samples() > 0 && !std::isnan(value);
    if (known && (!verdict.best.has_value() || value > best)) {
      best = value;
      verdict.best = i;
      verdict.best_step = validations[i].step;
      worse_in_a_row = 0;
    } else if (++worse_in_a_row == shape.patience && !verdict.patience_ends.has_value()) {
      verdict.patience_ends = i;
    }
  }
  return verdict;
}

std::vector<uint64_t> ValidationSteps(const WorldShape& shape, const OracleResult& oracle) {
  std::set<uint64_t> steps;
  const auto every = static_cast<uint64_t>(shape.evaluate_every_steps);
  for (uint64_t step = every; every > 0 && step <= oracle.steps; step += every) steps.insert(step);
  if (shape.evaluate_at_epoch_end) {
    steps.insert(oracle.epoch_ends.begin(), oracle.epoch_ends.end());
    steps.insert(oracle.steps);
  }
  return {steps.begin(), steps.end()};
}

}  // namespace satrap::simulation

#include "nn_worker/metrics/testing/scored_pass.h"

#include <cmath>
#include <thread>

#include "common/base/check.h"
#include "common/numeric/random.h"
#include "common/thread/clock.h"
#include "nn_worker/metrics/auc.h"
#include "nn_worker/metrics/group_auc.h"
#include "nn_worker/metrics/testing/live_bytes.h"

namespace satrap {
namespace {

constexpr size_t kPartSamples = 1000;
constexpr size_t kSamplesOfAGroup = 50;

class AucOfPass final : public PassMetric {
 public:
  void Add(const ScoredSamples& samples) override {
    for (size_t i = 0; i < samples.labels.size(); ++i) {
      auc_.Add(samples.scores[i], samples.labels[i], 1);
    }
  }
  absl::Status Merge(Collective* collective) override { return auc_.Merge(collective); }
  void Finish(MetricValues* values) override { values->set_auc(auc_.Compute().value); }

 private:
  Auc auc_;
};

void AddPart(const ScoredPass& pass, size_t first, PassMetric* metric) {
  std::vector<float> scores, labels;
  std::vector<uint64_t> groups;
  for (size_t i = first; i < pass.samples && labels.size() < kPartSamples; i += pass.ranks.size()) {
    SplitMix64 random(i + 1);
    const double logit = 2 * (random.NextDouble() + random.NextDouble() - 1);
    labels.push_back(random.NextDouble() < 1 / (1 + std::exp(1.5 - logit)) ? 1.0f : 0.0f);
    scores.push_back(static_cast<float>(logit));
    groups.push_back(random.Below(pass.samples / kSamplesOfAGroup + 1));
  }
  ScoredSamples samples;
  samples.scores = scores;
  samples.labels = labels;
  samples.groups = groups;
  metric->Add(samples);
}

}  // namespace

PassCost Run(const ScoredPass& pass) {
  PassCost cost;
  const size_t ranks = pass.ranks.size();
  std::vector<MetricValues> values(ranks);
  const double begin_s = MonotonicSeconds();
  const int64_t before = LiveBytes();
  ResetMostLiveBytes();
  std::vector<std::thread> threads;
  for (size_t rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      const std::unique_ptr<PassMetric> metric = pass.make_metric();
      for (size_t first = rank; first < pass.samples; first += kPartSamples * ranks) {
        AddPart(pass, first, metric.get());
      }
      CHECK_OK(metric->Merge(pass.ranks[rank].get()));
      metric->Finish(&values[rank]);
    });
  }
  for (std::thread& thread : threads) thread.join();
  cost.seconds = MonotonicSeconds() - begin_s;
  cost.bytes_a_sample =
      static_cast<double>(MostLiveBytes() - before) / static_cast<double>(pass.samples);
  cost.values = values[0];
  return cost;
}

std::unique_ptr<PassMetric> NewAucMetric() { return std::make_unique<AucOfPass>(); }
std::unique_ptr<PassMetric> NewGroupAucMetric() { return std::make_unique<GroupAuc>(); }

}  // namespace satrap

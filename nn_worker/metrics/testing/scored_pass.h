// Measures the cost of a metric in a pass over synthetic samples. The ranks that score the samples
// are threads of one program.

#ifndef SATRAP_NN_WORKER_METRICS_TESTING_SCORED_PASS_H_
#define SATRAP_NN_WORKER_METRICS_TESTING_SCORED_PASS_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "nn_worker/collective/collective.h"
#include "nn_worker/metrics/pass_metric.h"

namespace satrap {

struct ScoredPass {
  size_t samples = 0;  // over all ranks, in groups of 50 in the mean
  std::function<std::unique_ptr<PassMetric>()> make_metric;
  std::vector<std::unique_ptr<Collective>> ranks;
};

struct PassCost {
  MetricValues values;        // of rank 0
  double bytes_a_sample = 0;  // the most that all ranks held together, Merge included
  double seconds = 0;
};

// Adds sample i to rank i mod W, part by part, and merges. REQUIRES: live_bytes is linked
PassCost Run(const ScoredPass& pass);

// The metrics that hold samples until they are merged.
std::unique_ptr<PassMetric> NewAucMetric();
std::unique_ptr<PassMetric> NewGroupAucMetric();

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_METRICS_TESTING_SCORED_PASS_H_

// Measures the cost of the metrics that need all samples of a pass, by number of ranks, over Gloo:
//
//   bazel run //nn_worker/metrics:pass_benchmark [-- SAMPLES]

#include <csignal>
#include <cstdint>
#include <thread>

#include "common/base/check.h"
#include "common/base/cpu_name.h"
#include "common/flags/flags.h"
#include "common/json/json.h"
#include "nn_worker/collective/gloo_collective.h"
#include "nn_worker/collective/local_collective.h"
#include "nn_worker/collective/testing/in_memory_rendezvous_store.h"
#include "nn_worker/metrics/testing/scored_pass.h"
#include "proto/benchmark.pb.h"

namespace satrap {
namespace {

std::vector<std::unique_ptr<Collective>> Connect(int size) {
  if (size == 1) return NewLocalCollectives(1);
  const std::unique_ptr<RendezvousStore> store = NewInMemoryRendezvousStore();
  std::vector<std::unique_ptr<Collective>> ranks(size);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      GlooOptions options;
      options.rank = rank;
      options.size = size;
      auto collective = NewGlooCollective(options, store.get());
      CHECK_OK(collective.status());
      ranks[rank] = std::move(*collective);
    });
  }
  for (std::thread& thread : threads) thread.join();
  return ranks;
}

void PrintRow(const char* name, int ranks, size_t samples, std::unique_ptr<PassMetric> (*make)()) {
  ScoredPass pass;
  pass.samples = samples;
  pass.make_metric = make;
  pass.ranks = Connect(ranks);
  const PassCost cost = Run(pass);
  const double value = cost.values.has_auc() ? cost.values.auc() : cost.values.gauc_by_samples();
  PassLine line;
  line.set_metric(name);
  line.set_ranks(ranks);
  line.set_samples(samples);
  line.set_bytes_a_sample(cost.bytes_a_sample);
  line.set_seconds(cost.seconds);
  line.set_value(value);
  line.set_cpu(CpuName());
  PrintJson(line, kShortestNumbers);
}

void Main(size_t samples) {
  std::signal(SIGPIPE, SIG_IGN);
  for (const int ranks : {1, 2, 4}) PrintRow("AUC", ranks, samples, &NewAucMetric);
  for (const int ranks : {1, 2, 4}) PrintRow("GAUC", ranks, samples, &NewGroupAucMetric);
}

}  // namespace
}  // namespace satrap

int main(int argc, char** argv) {
  uint64_t samples = 2000000;
  const auto code = satrap::TakeProgramFlags(
      argc, argv, "usage: pass_benchmark [SAMPLES]",
      {satrap::NumberFlag("samples", "N", "of the pass (default: 2000000)", &samples, 1)},
      /*in_order=*/1);
  if (code.has_value()) return *code;
  satrap::Main(samples);
  return 0;
}

// Measures the cost of a sample outside the dense network: reading the answer, writing the inputs
// and collecting the gradients, for parts of the Criteo shape (4096 samples, 26 features of one id,
// rows of 1 + 16 values) in f32 and bf16, on one and two threads.
//
//   bazel run -c opt //nn_worker/trainer:exchange_benchmark

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "benchmark/benchmark.h"
#include "common/base/check.h"
#include "common/numeric/random.h"
#include "common/thread/fork_join_pool.h"
#include "nn_worker/backend/cpu/cpu_backend.h"
#include "nn_worker/collective/local_collective.h"
#include "nn_worker/graph/network.h"
#include "nn_worker/trainer/embedding_exchange.h"
#include "nn_worker/trainer/part_view.h"
#include "nn_worker/trainer/testing/fake_tables.h"

namespace satrap {
namespace {

constexpr int kFeatures = 26;
constexpr int kNumerics = 13;
constexpr size_t kSamples = 4096;
constexpr uint64_t kVocabulary = 4000;  // a feature's: about half of the ids of a part are unique

JobConfig Job() {
  JobConfig job;
  TableConfig* table = job.add_tables();
  table->set_name("t");
  table->add_segments()->set_name("linear");
  table->mutable_segments(0)->set_dim(1);
  table->add_segments()->set_name("embedding");
  table->mutable_segments(1)->set_dim(16);
  for (int f = 0; f < kFeatures; ++f) {
    FeatureConfig* feature = job.mutable_data()->add_features();
    feature->set_name(absl::StrCat("f", f));
    feature->set_table("t");
    feature->set_transfer(FeatureConfig::ROWS);
  }
  for (int n = 0; n < kNumerics; ++n) {
    job.mutable_data()->add_numerics()->set_name(absl::StrCat("n", n));
  }
  ModelConfig* model = job.mutable_model();
  LayerConfig* all = model->add_layers();
  all->set_name("all");
  all->add_inputs("numeric");
  all->add_inputs("*.embedding");
  all->mutable_concat();
  LayerConfig* linear = model->add_layers();
  linear->set_name("linear");
  linear->add_inputs("all");
  linear->mutable_linear()->set_units(1);
  LayerConfig* first = model->add_layers();
  first->set_name("first");
  first->add_inputs("*.linear");
  first->mutable_sum();
  LayerConfig* logit = model->add_layers();
  logit->set_name("logit");
  logit->add_inputs("linear");
  logit->add_inputs("first");
  logit->mutable_add();
  job.mutable_dense_optimizer()->mutable_sgd();
  return job;
}

struct Setup {
  Setup(WireDtype dtype, int threads) : pool(threads) {
    NetworkOptions options;
    options.model = job.model();
    options.inputs = layout.inputs;
    options.optimizer = job.dense_optimizer();
    options.max_samples = kSamples;
    options.backend = backend.get();
    options.collective = collectives[0].get();
    auto made = Network::Create(options);
    CHECK(made.ok()) << made.status().ToString();
    network = *std::move(made);
    SplitMix64 random(1);
    std::vector<FakeSample> samples(kSamples);
    for (FakeSample& sample : samples) {
      sample.numeric.resize(kNumerics, .5f);
      for (uint64_t f = 0; f < kFeatures; ++f) {
        sample.ids.push_back({f * kVocabulary + random.Below(kVocabulary)});
      }
      sample.label = random.Below(2) == 0 ? 0 : 1;
    }
    FakeTables tables(&layout);
    part = tables.MakePart(samples, 0, dtype);
  }

  JobConfig job = Job();
  PartLayout layout = MakePartLayout(job);
  ForkJoinPool pool;
  std::unique_ptr<Backend> backend = NewCpuBackend(&pool);
  std::vector<std::unique_ptr<Collective>> collectives = NewLocalCollectives(1);
  std::unique_ptr<Network> network;
  PartInput part;
};

void PerSample(benchmark::State& state) {
  state.SetItemsProcessed(state.iterations() * static_cast<int64_t>(kSamples));
}

void BM_ReadPart(benchmark::State& state) {
  Setup setup(static_cast<WireDtype>(state.range(0)), static_cast<int>(state.range(1)));
  for (auto _ : state) {
    benchmark::DoNotOptimize(ReadPart(setup.layout, kSamples, setup.part)->samples);
  }
  PerSample(state);
}

void BM_WriteInputs(benchmark::State& state) {
  Setup setup(static_cast<WireDtype>(state.range(0)), static_cast<int>(state.range(1)));
  EmbeddingExchange exchange(&setup.layout, setup.network.get(), &setup.pool);
  const PartView view = *ReadPart(setup.layout, kSamples, setup.part);
  for (auto _ : state) {
    CHECK_OK(exchange.Prepare(view, 0, &setup.pool));
    exchange.WriteInputs(0);
  }
  PerSample(state);
}

void BM_ReadGradients(benchmark::State& state) {
  Setup setup(static_cast<WireDtype>(state.range(0)), static_cast<int>(state.range(1)));
  EmbeddingExchange exchange(&setup.layout, setup.network.get(), &setup.pool);
  const PartView view = *ReadPart(setup.layout, kSamples, setup.part);
  CHECK_OK(exchange.Prepare(view, 0, &setup.pool));
  exchange.WriteInputs(0);
  CHECK(setup.network->Forward(kSamples, PassContext::Training(0, 0)).ok());
  setup.network->Loss(view.labels, {}, {});
  CHECK(setup.network->Backward().ok());
  bool finite = true;
  for (auto _ : state) {
    benchmark::DoNotOptimize(exchange.ReadGradients(0, &finite)->payload.data());
  }
  PerSample(state);
}

// The arguments: wire dtype, number of threads.
BENCHMARK(BM_ReadPart)->ArgsProduct({{F32, BF16}, {1}})->Unit(benchmark::kMicrosecond);
BENCHMARK(BM_WriteInputs)->ArgsProduct({{F32, BF16}, {1, 2}})->Unit(benchmark::kMicrosecond);
BENCHMARK(BM_ReadGradients)->ArgsProduct({{F32, BF16}, {1, 2}})->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace satrap

BENCHMARK_MAIN();

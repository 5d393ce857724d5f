// Measures the computing time of an embedding worker, on one core, for a part of 4096 samples with
// 26 single-valued features and rows of 17 f32 values:
//   - MakePlan: the plan of the part;
//   - LookupAndAnswer: the Lookups to two PSs, and the answer to NextBatch made of their answers;
//   - PushToUpdates: the Updates made of a push.
// Each is measured with one table (/1) and with one table per feature (/26). Ids are drawn with
// density proportional to 1 / rank from a vocabulary of 400,000 per feature, so that about half of
// them are unique.
//
//   bazel run -c opt //tests/benchmark:plan_benchmark

#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "benchmark/benchmark.h"
#include "common/base/check.h"
#include "common/base/cpu_name.h"
#include "common/numeric/random.h"
#include "common/rpc/payload.h"
#include "embedding_worker/embedding_layout.h"
#include "embedding_worker/gradient_push.h"
#include "embedding_worker/lookup_plan.h"
#include "embedding_worker/part_lookup.h"
#include "embedding_worker/planned_part.h"

namespace satrap {
namespace {

constexpr size_t kSamples = 4096;
constexpr int kFeatures = 26;
constexpr double kVocabulary = 400000;
constexpr int kNumPs = 2;
constexpr int kParts = 16;  // several, because branch predictors would learn a single one

EmbeddingLayout Layout(int num_tables) {
  JobConfig job;
  for (int t = 0; t < num_tables; ++t) {
    TableConfig* table = job.add_tables();
    table->set_name("t" + std::to_string(t));
    table->set_id(t);
    table->add_segments()->set_dim(17);
  }
  for (int f = 0; f < kFeatures; ++f) {
    FeatureConfig* feature = job.mutable_data()->add_features();
    feature->set_name("f" + std::to_string(f));
    feature->set_table("t" + std::to_string(f % num_tables));
  }
  return EmbeddingLayout::Make(job);
}

// A PutBatch of random ids.
std::pair<PutBatchHeader, Buffer> RandomPart(SplitMix64* random) {
  PutBatchHeader header;
  header.mutable_part()->set_samples(kSamples);
  rpc::PayloadBuilder builder;
  for (int f = 0; f < kFeatures; ++f) {
    FeatureIds* feature = header.add_features();
    feature->set_num_ids(kSamples);
    builder.Reserve<uint64_t>(kSamples, feature->mutable_ids());
  }
  builder.Allocate();
  for (const FeatureIds& feature : header.features()) {
    for (uint64_t& id : builder.Fill<uint64_t>(feature.ids())) {
      id = static_cast<uint64_t>(std::exp(random->NextDouble() * std::log(kVocabulary)));
    }
  }
  return {header, builder.Take()};
}

std::vector<PlannedPart> PlannedParts(const EmbeddingLayout& layout) {
  std::vector<PlannedPart> parts;
  PlanScratch scratch;
  SplitMix64 random(1);
  for (int p = 0; p < kParts; ++p) {
    auto [header, payload] = RandomPart(&random);
    absl::StatusOr<PlannedPart> part =
        PlannedPart::Make(layout, header, std::move(payload), &scratch);
    CHECK_OK(part.status());
    parts.push_back(*std::move(part));
  }
  return parts;
}

// The answer of a PS: rows of zeros.
rpc::Message AnswerTo(const rpc::Message& request) {
  LookupHeader header;
  CHECK(header.ParseFromString(request.header));
  LookupAnswerHeader answer;
  rpc::PayloadBuilder builder;
  for (const TableKeys& keys : header.tables()) {
    TableValues* table = answer.add_tables();
    table->set_table(keys.table());
    table->set_num_keys(keys.num_keys());
    table->set_row_values(17);
    builder.Reserve<float>(17 * keys.num_keys(), table->mutable_values());
  }
  builder.Allocate();
  for (const TableValues& table : answer.tables()) {
    std::memset(builder.Fill<uint8_t>(table.values()).data(), 0, table.values().size_bytes());
  }
  return {answer.SerializeAsString(), builder.Take()};
}

// A push with gradients of 1 for all rows.
std::pair<PushGradientsHeader, Buffer> PushOf(const EmbeddingLayout& layout,
                                              const LookupPlan& plan) {
  PushGradientsHeader header;
  rpc::PayloadBuilder builder;
  for (size_t t = 0; t < layout.tables.size(); ++t) {
    TableGradients* table = header.add_tables();
    table->set_table(layout.tables[t].id);
    table->set_num_rows(plan.tables[t].num_sent);
    table->set_row_values(17);
    builder.Reserve<float>(17 * plan.tables[t].num_sent, table->mutable_gradients());
  }
  builder.Allocate();
  for (const TableGradients& table : header.tables()) {
    for (float& value : builder.Fill<float>(table.gradients())) value = 1;
  }
  return {header, builder.Take()};
}

void CountSamples(benchmark::State& state) {
  state.counters["us_a_sample"] =
      benchmark::Counter(static_cast<double>(state.iterations() * kSamples) * 1e-6,
                         benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

void MakePlan(benchmark::State& state) {
  const EmbeddingLayout layout = Layout(static_cast<int>(state.range(0)));
  std::vector<std::pair<PutBatchHeader, Buffer>> parts;
  SplitMix64 random(1);
  for (int p = 0; p < kParts; ++p) parts.push_back(RandomPart(&random));
  PlanScratch scratch;
  int next = 0;
  size_t num_keys = 0;
  for (auto _ : state) {
    const auto& [header, payload] = parts[next++ % kParts];
    absl::StatusOr<PlannedPart> part = PlannedPart::Make(layout, header, payload, &scratch);
    CHECK_OK(part.status());
    num_keys = part->plan.NumKeys();
  }
  CountSamples(state);
  state.counters["unique_ratio"] = static_cast<double>(num_keys) / (kSamples * kFeatures);
}
BENCHMARK(MakePlan)->Arg(1)->Arg(26)->Unit(benchmark::kMicrosecond);

void LookupAndAnswer(benchmark::State& state) {
  const EmbeddingLayout layout = Layout(static_cast<int>(state.range(0)));
  const std::vector<PlannedPart> parts = PlannedParts(layout);
  std::vector<std::vector<rpc::Message>> answers;
  for (const PlannedPart& part : parts) {
    answers.emplace_back();
    for (const PsRequest& request : MakeLookups(layout, part.plan, kNumPs, LookupHeader())) {
      answers.back().push_back(AnswerTo(request.message));
    }
  }
  int next = 0;
  for (auto _ : state) {
    const int p = next++ % kParts;
    benchmark::DoNotOptimize(MakeLookups(layout, parts[p].plan, kNumPs, LookupHeader()));
    CHECK_OK(MakeNextBatchAnswer(layout, parts[p], kNumPs, answers[p], 1, F32).status());
  }
  CountSamples(state);
}
BENCHMARK(LookupAndAnswer)->Arg(1)->Arg(26)->Unit(benchmark::kMicrosecond);

void PushToUpdates(benchmark::State& state) {
  const EmbeddingLayout layout = Layout(static_cast<int>(state.range(0)));
  const std::vector<PlannedPart> parts = PlannedParts(layout);
  std::vector<std::pair<PushGradientsHeader, Buffer>> pushes;
  for (const PlannedPart& part : parts) pushes.push_back(PushOf(layout, part.plan));
  int next = 0;
  for (auto _ : state) {
    const int p = next++ % kParts;
    const auto& [header, payload] = pushes[p];
    CHECK_OK(MakeUpdates(layout, parts[p], header, payload, UpdateHeader(), kNumPs).status());
  }
  CountSamples(state);
}
BENCHMARK(PushToUpdates)->Arg(1)->Arg(26)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace satrap

int main(int argc, char** argv) {
  benchmark::AddCustomContext("cpu", satrap::CpuName());
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}

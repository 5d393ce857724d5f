// Measures what a step of a table with semantics GLOBAL costs in addition to its Update. This is
// the sweep of the rows that no sample holds; its time is given in milliseconds. For comparison,
// one thread copies one block of memory to another; a block has as many bytes as the rows.
//
//   sweep_benchmark [--rows=1000000] [--dim=10] [--threads=1] [--steps=20]
//
// A sweep and the copy take turns. The medians are printed as one JSON line for each optimizer and
// L2 mode. With one thread, times are the thread's processor time, so that other programs do not
// count. With more threads, the times of sweeps are wall-clock times; those of copies are still
// processor times.

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/base/check.h"
#include "common/base/cpu_name.h"
#include "common/flags/flags.h"
#include "common/json/json.h"
#include "common/numeric/denormals.h"
#include "common/numeric/hash.h"
#include "common/testing/measure.h"
#include "common/thread/clock.h"
#include "common/thread/mutex.h"
#include "common/thread/thread_pool_executor.h"
#include "embedding_ps/table/embedding_table.h"
#include "embedding_ps/table/page_block.h"
#include "embedding_ps/table/step_of_table.h"
#include "embedding_ps/table_sweep.h"
#include "proto/benchmark.pb.h"

namespace satrap {
namespace {

struct Flags {
  int64_t rows = 1000000;
  int64_t dim = 10;
  int64_t threads = 1;
  int64_t steps = 20;

  std::vector<Flag> Table() {
    return {
        NumberFlag("rows", "N", "of the table (default: 1000000)", &rows, 1),
        NumberFlag("dim", "N", "values of a row (default: 10)", &dim, 1),
        NumberFlag("threads", "N", "that sweep (default: 1)", &threads, 1),
        NumberFlag("steps", "N", "that are measured (default: 20)", &steps, 1),
    };
  }
};

std::unique_ptr<EmbeddingTable> NewTable(const Flags& flags, bool sgd, bool dense_l2) {
  TableConfig config;
  config.set_name("benchmark");
  config.set_semantics(TableConfig::GLOBAL);
  SegmentConfig* segment = config.add_segments();
  segment->set_name("embedding");
  segment->set_dim(static_cast<int>(flags.dim));
  if (sgd) {
    segment->mutable_optimizer()->mutable_sgd();
  } else {
    segment->mutable_optimizer()->mutable_adam();
  }
  if (dense_l2) {
    segment->set_l2(1e-5f);
    segment->set_l2_mode(SegmentConfig::DENSE);
  }
  auto table = EmbeddingTable::Create(config, EmbeddingTable::Options());
  CHECK_OK(table.status());
  constexpr int64_t kCallKeys = 16384;
  for (int64_t at = 0; at < flags.rows; at += kCallKeys) {
    std::vector<uint64_t> keys;
    for (int64_t i = at; i < std::min(at + kCallKeys, flags.rows); ++i) {
      keys.push_back(Mix64(static_cast<uint64_t>(i) + 1));
    }
    (*table)->Update(keys, std::vector<float>(keys.size() * flags.dim, 0.01f), {}, StepContext());
  }
  return *std::move(table);
}

class SweepBenchmark {
 public:
  explicit SweepBenchmark(const Flags& flags)
      : flags_(flags), executor_(static_cast<int>(flags.threads)) {}

  void Run(const char* name, bool sgd, bool dense_l2) {
    std::vector<std::unique_ptr<EmbeddingTable>> tables;
    tables.push_back(NewTable(flags_, sgd, dense_l2));
    const size_t bytes =
        tables[0]->layout().stride_bytes() * static_cast<size_t>(tables[0]->rows());
    PageBlock from(bytes), to(bytes);
    std::memset(from.data(), 1, bytes);
    std::memset(to.data(), 1, bytes);
    std::vector<double> sweeps, copies;
    StepContext context;
    Sweep(tables, context);  // of the rows that were just filled in; not measured
    for (int64_t i = 0; i < flags_.steps; ++i) {
      ++context.step;
      sweeps.push_back(Sweep(tables, context));
      const double start = ThreadCpuSeconds();
      std::memcpy(to.data(), from.data(), bytes);
      copies.push_back(ThreadCpuSeconds() - start);
      std::swap(from, to);
    }
    SweepLine line;
    line.set_benchmark("sweep");
    line.set_optimizer(name);
    line.set_rows(tables[0]->rows());
    line.set_dim(flags_.dim);
    line.set_row_bytes(tables[0]->layout().stride_bytes());
    line.set_threads(flags_.threads);
    line.set_ms_per_step(1e3 * Median(sweeps));
    line.set_probe_copy_ms(1e3 * Median(copies));
    line.set_ratio(Median(sweeps) / Median(copies));
    line.set_cpu(CpuName());
    PrintJson(line);
  }

 private:
  double Sweep(absl::Span<const std::unique_ptr<EmbeddingTable>> tables,
               const StepContext& context) {
    if (flags_.threads == 1) {
      const double start = ThreadCpuSeconds();
      for (int shard = 0; shard < tables[0]->num_shards(); ++shard) {
        StepOfTable(tables[0].get(), context).FinishIdleRows(shard);
      }
      return ThreadCpuSeconds() - start;
    }
    const int64_t start_us = MonotonicUs();
    Mutex mutex;
    CondVar ended;
    bool has_ended = false;
    SweepTables(tables, context, static_cast<int>(flags_.threads), &executor_, [&] {
      MutexLock lock(&mutex);
      has_ended = true;
      ended.NotifyAll();
    });
    MutexLock lock(&mutex);
    while (!has_ended) ended.Wait(&mutex);
    return 1e-6 * static_cast<double>(MonotonicUs() - start_us);
  }

  const Flags flags_;
  ThreadPoolExecutor executor_;
};

int Main(int argc, char** argv) {
  Flags flags;
  const auto code = TakeProgramFlags(argc, argv, "usage: sweep_benchmark [FLAGS]", flags.Table());
  if (code.has_value()) return *code;
  SetFlushToZero();  // as every thread of an embedding PS
  SweepBenchmark benchmark(flags);
  benchmark.Run("adam", /*sgd=*/false, /*dense_l2=*/false);
  benchmark.Run("adam, dense L2", /*sgd=*/false, /*dense_l2=*/true);
  benchmark.Run("sgd, dense L2", /*sgd=*/true, /*dense_l2=*/true);
  return 0;
}

}  // namespace
}  // namespace satrap

int main(int argc, char** argv) { return satrap::Main(argc, argv); }

// Lookups and Adagrad updates per second of the embedding table on one core, compared with the bare
// loop of table_probe.h.
//
//   table_benchmark [--rows=10000000] [--linear] [--call_keys=16384] [--calls=600]
//
// Both hold the same random keys, and each call takes `call_keys` of them at random. The probe's
// prefetch distance is tuned first; then table and probe take turns, call by call, and the medians
// are printed as one JSON line. Times are the thread's processor time. With --linear, the rows of
// the table have a second segment of one value, as in a model with linear weights; the probe's rows
// keep 16 values.

#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/string_view.h"
#include "common/base/check.h"
#include "common/base/cpu_name.h"
#include "common/numeric/random.h"
#include "embedding_ps/table/embedding_table.h"
#include "tests/benchmark/table_probe.h"

namespace satrap {
namespace {

struct Flags {
  int64_t rows = 10000000;
  int64_t call_keys = 16384;
  int64_t calls = 600;
  bool linear = false;
};

constexpr float kLearningRate = 0.01f;

// Processor time of this thread, so that other processes on the core do not count.
double SecondsNow() {
  timespec now;
  CHECK(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now) == 0);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

double Median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

TableConfig Config(bool linear) {
  TableConfig config;
  config.set_name("benchmark");
  SegmentConfig* segment = config.add_segments();
  segment->set_name("embedding");
  segment->set_dim(TableProbe::kDim);
  segment->mutable_optimizer()->mutable_adagrad();
  segment->mutable_optimizer()->set_learning_rate(kLearningRate);
  if (linear) {
    *config.add_segments() = *segment;
    config.mutable_segments(0)->set_name("linear");
    config.mutable_segments(0)->set_dim(1);
  }
  return config;
}

class TableBenchmark {
 public:
  explicit TableBenchmark(const Flags& flags) : flags_(flags), keys_(DistinctKeys(flags.rows)) {
    EmbeddingTable::Options options;
    auto table = EmbeddingTable::Create(Config(flags.linear), options);
    CHECK(table.ok()) << table.status().ToString();
    table_ = *std::move(table);
    row_values_ = static_cast<size_t>(table_->layout().num_values());
    values_.resize(flags.call_keys * row_values_);
    gradients_.resize(flags.call_keys * row_values_);
    presence_.resize((flags.call_keys + 7) / 8);
    SplitMix64 random(3);
    for (float& g : gradients_) g = static_cast<float>(random.NextDouble() - 0.5);
    FillTable();
    probe_ = std::make_unique<TableProbe>(keys_);
  }

  void Run() {
    const size_t lookup_ahead = Tune([&](size_t ahead) { return ProbeLookup(ahead); });
    const size_t update_ahead = Tune([&](size_t ahead) { return ProbeUpdate(ahead); });
    std::vector<double> probe_lookups, table_lookups, probe_updates, table_updates;
    for (int64_t call = 0; call < flags_.calls; ++call) {
      probe_lookups.push_back(ProbeLookup(lookup_ahead));
      table_lookups.push_back(TableLookup());
      probe_updates.push_back(ProbeUpdate(update_ahead));
      table_updates.push_back(TableUpdate());
    }
    const double lookup = Median(table_lookups), bare_lookup = Median(probe_lookups);
    const double update = Median(table_updates), bare_update = Median(probe_updates);
    std::printf(
        "{\"benchmark\":\"table\",\"rows\":%lld,\"row_values\":%zu,\"call_keys\":%lld,"
        "\"lookups_per_second\":%.0f,\"probe_lookups_per_second\":%.0f,\"lookup_ratio\":%.3f,"
        "\"updates_per_second\":%.0f,\"probe_updates_per_second\":%.0f,\"update_ratio\":%.3f,"
        "\"probe_ahead\":[%zu,%zu],\"inserts_per_second\":%.0f,\"bytes\":%lld,"
        "\"overhead_bytes_per_row\":%.1f,\"cpu\":\"%s\"}\n",
        static_cast<long long>(table_->rows()), row_values_,
        static_cast<long long>(flags_.call_keys), lookup, bare_lookup, lookup / bare_lookup, update,
        bare_update, update / bare_update, lookup_ahead, update_ahead, inserts_per_second_,
        static_cast<long long>(table_->bytes()), OverheadBytesPerRow(), CpuName().c_str());
  }

 private:
  static std::vector<uint64_t> DistinctKeys(int64_t n) {
    // Mix64 is a bijection, so all keys are different.
    std::vector<uint64_t> keys(n);
    for (int64_t i = 0; i < n; ++i) keys[i] = Mix64(static_cast<uint64_t>(i) + 1);
    return keys;
  }

  void FillTable() {
    const double start = SecondsNow();
    for (size_t at = 0; at < keys_.size(); at += flags_.call_keys) {
      const auto keys = absl::MakeConstSpan(keys_).subspan(at, flags_.call_keys);
      table_->Update(keys, absl::MakeConstSpan(gradients_).first(keys.size() * row_values_), {},
                     StepContext());
    }
    inserts_per_second_ = static_cast<double>(keys_.size()) / (SecondsNow() - start);
  }

  // What is neither values nor optimizer state: index, metadata, and the unused end of the last
  // huge page of each shard.
  double OverheadBytesPerRow() const {
    const double arena = static_cast<double>(table_->layout().stride_bytes()) * table_->rows();
    return (static_cast<double>(table_->bytes()) - arena) / static_cast<double>(table_->rows());
  }

  // Keys per second of one call; choosing the keys is not timed. The keys of a call are distinct,
  // as they are after the embedding worker's deduplication: one is drawn from each stride of keys_,
  // and then they are shuffled, or the calls would walk the memory in order.
  template <typename Call>
  double Rate(Call call) {
    std::vector<uint64_t> keys(flags_.call_keys);
    const size_t stride = keys_.size() / keys.size();
    for (size_t k = 0; k < keys.size(); ++k) keys[k] = keys_[k * stride + random_.Below(stride)];
    for (size_t k = keys.size() - 1; k > 0; --k) std::swap(keys[k], keys[random_.Below(k + 1)]);
    const double start = SecondsNow();
    call(keys);
    return static_cast<double>(keys.size()) / (SecondsNow() - start);
  }

  double ProbeLookup(size_t ahead) {
    return Rate(
        [&](absl::Span<const uint64_t> keys) { probe_->Lookup(keys, ahead, values_.data()); });
  }
  double ProbeUpdate(size_t ahead) {
    return Rate([&](absl::Span<const uint64_t> keys) {
      probe_->Update(keys, ahead, gradients_.data(), kLearningRate);
    });
  }
  double TableLookup() {
    return Rate([&](absl::Span<const uint64_t> keys) {
      table_->Lookup(keys, AbsentRows::kInitialValues, absl::MakeSpan(values_),
                     absl::MakeSpan(presence_));
    });
  }
  double TableUpdate() {
    return Rate([&](absl::Span<const uint64_t> keys) {
      table_->Update(keys, gradients_, {}, StepContext());
    });
  }

  // The prefetch distance with the highest median rate. The choices take turns, so that a slow
  // moment of the machine does not fall on one of them.
  template <typename RateOf>
  static size_t Tune(RateOf rate_of) {
    const std::vector<size_t> choices = {4, 6, 8, 12, 16, 20, 24, 32, 48};
    std::vector<std::vector<double>> rates(choices.size());
    for (int repeat = 0; repeat < 25; ++repeat) {
      for (size_t i = 0; i < choices.size(); ++i) rates[i].push_back(rate_of(choices[i]));
    }
    std::pair<double, size_t> best(0, 0);
    for (size_t i = 0; i < choices.size(); ++i) {
      best = std::max(best, std::make_pair(Median(rates[i]), choices[i]));
    }
    return best.second;
  }

  const Flags flags_;
  const std::vector<uint64_t> keys_;
  SplitMix64 random_{5};
  std::unique_ptr<EmbeddingTable> table_;
  std::unique_ptr<TableProbe> probe_;
  size_t row_values_ = 0;
  std::vector<float> values_;
  std::vector<float> gradients_;
  std::vector<uint8_t> presence_;
  double inserts_per_second_ = 0;
};

bool ParseFlag(absl::string_view argument, absl::string_view name, int64_t* value) {
  if (argument.substr(0, name.size()) != name) return false;
  return absl::SimpleAtoi(argument.substr(name.size()), value) && *value > 0;
}

int Main(int argc, char** argv) {
  Flags flags;
  for (int i = 1; i < argc; ++i) {
    const absl::string_view argument = argv[i];
    if (argument == "--linear") {
      flags.linear = true;
    } else if (!ParseFlag(argument, "--rows=", &flags.rows) &&
               !ParseFlag(argument, "--call_keys=", &flags.call_keys) &&
               !ParseFlag(argument, "--calls=", &flags.calls)) {
      std::fprintf(stderr, "table_benchmark: bad argument %s\n", argv[i]);
      return 1;
    }
  }
  TableBenchmark(flags).Run();
  return 0;
}

}  // namespace
}  // namespace satrap

int main(int argc, char** argv) { return satrap::Main(argc, argv); }

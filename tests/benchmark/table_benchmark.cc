// Measures lookups and Adagrad updates per second of the embedding table on one core, compared with
// the bare loop of table_probe.h. Also measures how fast cuts of the table are written and loaded,
// on one core.
//
//   table_benchmark [--rows=10000000] [--linear] [--call_keys=16384] [--calls=600] [--cuts=5]
//                   [--folder=/tmp]
//
// Table and probe hold the same random keys, and each call takes `call_keys` of them at random. The
// probe's prefetch distance is tuned first; then table and probe take turns, call by call, and the
// medians are printed as one JSON line. Times are the thread's processor time. With --linear, the
// rows of the table have a second segment of one value, as in a model with linear weights; the
// probe's rows keep 16 values.
//
// A second line of JSON has the rate of updates while a cut is under way, so that each row is
// copied out before it changes. The last line is about cuts: medians of rows per second of the
// process's processor time, which includes the kernel's time for files and memory. Writing is
// compared with a loop that gathers the rows in the order of their keys, computes a checksum and
// writes the same bytes. Loading is compared with a loop that reads these bytes, computes a
// checksum and copies them to memory that was touched before. Both read from the page cache.
// Nothing is synced. Files are written below `folder` and removed. With --cuts=0 these two lines
// are left out.

#include <stdlib.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/base/check.h"
#include "common/base/cpu_name.h"
#include "common/checkpoint/manifest.h"
#include "common/file/testing/forwarding_file_system.h"
#include "common/flags/flags.h"
#include "common/json/json.h"
#include "common/numeric/crc32c.h"
#include "common/numeric/hash.h"
#include "common/numeric/random.h"
#include "common/testing/measure.h"
#include "common/thread/clock.h"
#include "common/thread/executor.h"
#include "embedding_ps/checkpoint/cut_writer.h"
#include "embedding_ps/checkpoint/load_tables.h"
#include "embedding_ps/table/embedding_table.h"
#include "proto/benchmark.pb.h"
#include "tests/benchmark/table_probe.h"

namespace satrap {
namespace {

struct Flags {
  int64_t rows = 10000000;
  int64_t call_keys = 16384;
  int64_t calls = 600;
  int64_t cuts = 5;
  bool linear = false;
  std::string folder = "/tmp";

  std::vector<Flag> Table() {
    return {
        NumberFlag("rows", "N", "of the table (default: 10000000)", &rows, 0),
        NumberFlag("call_keys", "N", "keys of a call (default: 16384)", &call_keys, 0),
        NumberFlag("calls", "N", "that are measured (default: 600)", &calls, 0),
        NumberFlag("cuts", "N", "that are written and loaded (default: 5)", &cuts, 0),
        SwitchFlag("linear", "a segment of one value beside the embedding", &linear),
        TextFlag("folder", "DIR", "where the cuts go (default: /tmp)", &folder),
    };
  }
};

constexpr float kLearningRate = 0.01f;

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

// Runs tasks in the benchmark's own thread.
class OwnThread final : public Executor {
 public:
  void Post(Task task) override { tasks_.push_back(std::move(task)); }
  void PostAfter(int64_t, Task task) override { Post(std::move(task)); }
  int64_t NowUs() const override { return MonotonicUs(); }
  void Run() {
    for (; !tasks_.empty(); tasks_.pop_front()) std::exchange(tasks_.front(), nullptr)();
  }

 private:
  std::deque<Task> tasks_;
};

// The machine's own file system, but without syncs, because a sync takes time of the disk, not of
// the processor.
class UnsyncedFiles final : public ForwardingFileSystem {
 public:
  absl::StatusOr<std::unique_ptr<WritableFile>> Create(const std::string& path) override {
    auto file = disk()->Create(path);
    if (!file.ok()) return file.status();
    return std::make_unique<File>(*std::move(file));
  }
  absl::Status SyncFolder(const std::string&) override { return absl::OkStatus(); }

 private:
  class File final : public ForwardingFile {
   public:
    using ForwardingFile::ForwardingFile;
    absl::Status Sync() override { return absl::OkStatus(); }
  };
};

class CutBenchmark {
 public:
  CutBenchmark(const Flags& flags, EmbeddingTable* table, absl::Span<const uint64_t> keys)
      : flags_(flags),
        table_(table),
        floats_(static_cast<size_t>(table->layout().num_floats())),
        folder_(flags.folder + "/table_benchmark_XXXXXX") {
    CHECK(mkdtemp(folder_.data()) != nullptr) << folder_;
    // The rows lie in memory in the order of creation, but a writer visits them in the order of
    // keys.
    std::vector<std::pair<uint64_t, uint32_t>> order;
    for (size_t i = 0; i < keys.size(); ++i) order.emplace_back(keys[i], i);
    std::sort(order.begin(), order.end());
    for (const auto& [key, row] : order) probe_order_.push_back(row);
    probe_keys_.resize(keys.size());
    probe_rows_ = PageBlock(keys.size() * floats_ * sizeof(float));
    std::memset(probe_rows_.data(), 1, probe_rows_.size());
  }
  ~CutBenchmark() { CHECK_OK(DiskFileSystem()->Remove(folder_)); }

  void Run() {
    std::vector<double> writes, probe_writes, loads, probe_reads;
    for (int64_t i = 0; i < flags_.cuts; ++i) {
      probe_writes.push_back(Rate([&] { ProbeWrite(); }));
      writes.push_back(Rate([&] { Write(); }));
      CHECK_OK(WriteManifest(folder_, manifest_, &files_));
      // The memory is touched first, because the cost of fresh memory varies a lot.
      probe_loaded_ = PageBlock(table_->rows() * row_bytes() + (size_t{16} << 20));
      std::memset(probe_loaded_.data(), 1, probe_loaded_.size());
      ProbeRead();  // brings the files to the page cache, where writing leaves only their ends
      probe_reads.push_back(Rate([&] { ProbeRead(); }));
      probe_loaded_ = PageBlock();
      loads.push_back(Rate([&] { Load(); }));
      loaded_.reset();
    }
    const double write = Median(writes), load = Median(loads);
    CutRatesLine line;
    line.set_benchmark("cut");
    line.set_rows(table_->rows());
    line.set_row_floats(floats_);
    line.set_rows_written_per_second(write);
    line.set_probe_writes_per_second(Median(probe_writes));
    line.set_write_ratio(write / Median(probe_writes));
    line.set_rows_loaded_per_second(load);
    line.set_probe_reads_per_second(Median(probe_reads));
    line.set_load_ratio(load / Median(probe_reads));
    PrintJson(line);
  }

 private:
  // Bytes of a row in a file.
  size_t row_bytes() const { return sizeof(uint64_t) + floats_ * sizeof(float); }

  template <typename Call>
  double Rate(Call call) {
    const double start = ProcessUsageSeconds();
    call();
    return static_cast<double>(table_->rows()) / (ProcessUsageSeconds() - start);
  }

  void Write() {
    CutWriter::Options options;
    options.tables = {table_};
    options.directory = folder_;
    options.executor = &executor_;
    options.file_system = &files_;
    CutWriter::Mark(options)->Start([&](const CutWriter::Result& result) {
      CHECK_OK(result.status);
      manifest_.Clear();
      manifest_.set_version(kManifestVersion);
      SavedTable* saved = manifest_.add_tables();
      saved->set_id(table_->config().id());
      saved->set_fingerprint(TableFingerprint(table_->config()));
      for (const SavedFile& file : result.files) *manifest_.add_table_files() = file;
    });
    executor_.Run();
  }

  void Load() {
    EmbeddingTable::Options options;
    loaded_ = *EmbeddingTable::Create(table_->config(), options);
    LoadTables({{loaded_.get()}, folder_, 1, &executor_, &files_},
               [&](const LoadResult& result) { CHECK_OK(result.status); });
    executor_.Run();
    CHECK(loaded_->rows() == table_->rows());
  }

  // The probe works on one block at a time, as the writer does.
  static constexpr size_t kBlockRows = 2048;

  void ProbeWrite() {
    auto file = *files_.Create(folder_ + "/probe");
    const float* const rows = reinterpret_cast<const float*>(probe_rows_.data());
    std::vector<float> block(kBlockRows * floats_);
    for (size_t from = 0; from < probe_order_.size(); from += kBlockRows) {
      const size_t n = std::min(kBlockRows, probe_order_.size() - from);
      const uint32_t* const order = probe_order_.data() + from;
      constexpr size_t kAhead = 16;
      for (size_t i = 0; i < n; ++i) {
        if (i + kAhead < n) {
          const float* const ahead = rows + order[i + kAhead] * floats_;
          for (size_t at = 0; at < floats_; at += 16) __builtin_prefetch(ahead + at);
        }
        std::memcpy(block.data() + i * floats_, rows + order[i] * floats_, floats_ * sizeof(float));
      }
      for (const absl::string_view bytes :
           {absl::string_view(reinterpret_cast<const char*>(probe_keys_.data() + from),
                              n * sizeof(uint64_t)),
            absl::string_view(reinterpret_cast<const char*>(block.data()),
                              n * floats_ * sizeof(float))}) {
        probe_crc_ = ExtendCrc32c(probe_crc_, bytes);
        CHECK_OK(file->Append(bytes));
      }
    }
  }

  void ProbeRead() {
    std::vector<char> block(kBlockRows * row_bytes());
    uint8_t* to = probe_loaded_.data();
    for (const FileOfManifest& saved : FilesOf(manifest_)) {
      auto file = *files_.Open(folder_ + "/" + saved.name);
      while (const size_t n = *file->Read(absl::MakeSpan(block))) {
        probe_crc_ = ExtendCrc32c(probe_crc_, {block.data(), n});
        std::memcpy(to, block.data(), n);
        to += n;
      }
    }
  }

  const Flags flags_;
  EmbeddingTable* const table_;
  const size_t floats_;
  std::string folder_;
  OwnThread executor_;
  UnsyncedFiles files_;
  CheckpointManifest manifest_;
  std::unique_ptr<EmbeddingTable> loaded_;
  std::vector<uint32_t> probe_order_;
  std::vector<uint64_t> probe_keys_;
  PageBlock probe_rows_;
  PageBlock probe_loaded_;
  uint32_t probe_crc_ = 0;
};

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
    TableLine line;
    line.set_benchmark("table");
    line.set_rows(table_->rows());
    line.set_row_values(row_values_);
    line.set_call_keys(flags_.call_keys);
    line.set_lookups_per_second(lookup);
    line.set_probe_lookups_per_second(bare_lookup);
    line.set_lookup_ratio(lookup / bare_lookup);
    line.set_updates_per_second(update);
    line.set_probe_updates_per_second(bare_update);
    line.set_update_ratio(update / bare_update);
    line.add_probe_ahead(lookup_ahead);
    line.add_probe_ahead(update_ahead);
    line.set_inserts_per_second(inserts_per_second_);
    line.set_bytes(table_->bytes());
    line.set_overhead_bytes_per_row(OverheadBytesPerRow());
    line.set_cpu(CpuName());
    PrintJson(line);
  }

  // Measures three things: updates without a cut; updates while a cut is begun but not written, so
  // that each row is copied out once; and whole cuts.
  void RunCuts() {
    if (flags_.cuts == 0) return;
    probe_.reset();
    std::vector<double> plain, copying;
    for (int64_t call = 0; call < 100; ++call) {
      plain.push_back(TableUpdate());
      const auto budget = std::make_shared<CopyBudget>(int64_t{1} << 40);
      const uint64_t cut = table_->BeginCut(budget);
      copying.push_back(TableUpdate());
      CHECK(budget->rows() == flags_.call_keys) << budget->rows();
      table_->EndCut(cut);
    }
    CutUpdatesLine line;
    line.set_benchmark("cut_updates");
    line.set_updates_per_second(Median(plain));
    line.set_copying_updates_per_second(Median(copying));
    PrintJson(line);
    CutBenchmark(flags_, table_.get(), keys_).Run();
  }

 private:
  static std::vector<uint64_t> DistinctKeys(int64_t n) {
    // Mix64 is a bijection, so all keys are different.
    std::vector<uint64_t> keys(n);
    for (int64_t i = 0; i < n; ++i) keys[i] = Mix64(static_cast<uint64_t>(i) + 1);
    return keys;
  }

  void FillTable() {
    const double start = ThreadCpuSeconds();
    for (size_t at = 0; at < keys_.size(); at += flags_.call_keys) {
      const auto keys = absl::MakeConstSpan(keys_).subspan(at, flags_.call_keys);
      table_->Update(keys, absl::MakeConstSpan(gradients_).first(keys.size() * row_values_), {},
                     StepContext());
    }
    inserts_per_second_ = static_cast<double>(keys_.size()) / (ThreadCpuSeconds() - start);
  }

  // Memory that holds neither values nor optimizer state: index, metadata, and the unused end of
  // the last huge page of each shard.
  double OverheadBytesPerRow() const {
    const double arena = static_cast<double>(table_->layout().stride_bytes()) * table_->rows();
    return (static_cast<double>(table_->bytes()) - arena) / static_cast<double>(table_->rows());
  }

  // Keys per second of one call; choosing the keys is not timed. The keys of a call are distinct,
  // as they are after the embedding worker's deduplication: one key is drawn from each stride of
  // keys_. Then they are shuffled, because otherwise the calls would walk the memory in order.
  template <typename Call>
  double Rate(Call call) {
    std::vector<uint64_t> keys(flags_.call_keys);
    const size_t stride = keys_.size() / keys.size();
    for (size_t k = 0; k < keys.size(); ++k) keys[k] = keys_[k * stride + random_.Below(stride)];
    for (size_t k = keys.size() - 1; k > 0; --k) std::swap(keys[k], keys[random_.Below(k + 1)]);
    const double start = ThreadCpuSeconds();
    call(keys);
    return static_cast<double>(keys.size()) / (ThreadCpuSeconds() - start);
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

  // Finds the prefetch distance with the highest median rate. The distances take turns, so that a
  // slow moment of the machine does not affect only one of them.
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

int Main(int argc, char** argv) {
  Flags flags;
  const auto code = TakeProgramFlags(argc, argv, "usage: table_benchmark [FLAGS]", flags.Table());
  if (code.has_value()) return *code;
  TableBenchmark benchmark(flags);
  if (flags.calls > 0) benchmark.Run();
  benchmark.RunCuts();
  return 0;
}

}  // namespace
}  // namespace satrap

int main(int argc, char** argv) { return satrap::Main(argc, argv); }

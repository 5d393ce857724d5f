// How fast a loader turns Criteo TSV into parts on one core: read from the page cache, cut into
// lines, parsed, ids hashed, shuffled in blocks and encoded for the wire. Prints one JSON line:
//
//   mb_per_s        megabytes (10^6 bytes) of text a second, median over passes
//   mb_per_cpu_s    the same by the processor's time, which others on the machine do not lengthen
//   probe_mb_per_s  the same bytes read and scanned for line ends with memchr, and nothing else
//   ratio           of the two
//
// It writes a file of its own, of Criteo's shape: 40 columns, a quarter of the values missing.
//
// usage: parse_benchmark [rows [passes]]

#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/check.h"
#include "common/cpu_name.h"
#include "common/random.h"
#include "data_loader/batch/batch_maker.h"
#include "data_loader/source/byte_source.h"

namespace satrap {
namespace {

std::string MakeLine(SplitMix64* random) {
  std::string line = random->Below(4) == 0 ? "1" : "0";
  for (int i = 0; i < 13; ++i) {
    line += '\t';
    if (random->Below(4) == 0) continue;
    // Most counts are small, some have several digits.
    absl::StrAppend(&line, random->Below(uint64_t{1} << (1 + random->Below(16))));
  }
  for (int i = 0; i < 26; ++i) {
    line += '\t';
    if (random->Below(8) != 0) {
      line += absl::StrFormat("%08x", static_cast<uint32_t>(random->Next()));
    }
  }
  line += '\n';
  return line;
}

void WriteFile(const std::string& path, int rows) {
  SplitMix64 random(1);
  std::ofstream file(path, std::ios::binary);
  for (int i = 0; i < rows; ++i) file << MakeLine(&random);
  CHECK(file.good()) << path;
}

JobConfig MakeJob(const std::string& path) {
  JobConfig job;
  job.set_global_batch_size(4096);
  DataConfig* data = job.mutable_data();
  data->mutable_criteo_tsv();
  data->add_train_files(path);
  for (int i = 1; i <= 13; ++i) {
    NumericConfig* numeric = data->add_numerics();
    numeric->set_name(absl::StrCat("I", i));
    numeric->set_transform(NumericConfig::LOG1P);
  }
  for (int i = 1; i <= 26; ++i) data->add_features()->set_name(absl::StrCat("C", i));
  return job;
}

double Seconds(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double CpuSeconds() {
  timespec now;
  CHECK(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now) == 0);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

int64_t MakeAllBatches(const StreamPlan& plan, BatchMaker* maker, uint32_t epoch) {
  int64_t samples = 0;
  maker->BeginEpoch(epoch);
  for (uint32_t split = 0; split < plan.splits.size(); ++split) maker->AddSplit(split);
  maker->EndSplits();
  std::vector<Part> parts;
  while (true) {
    const auto result = maker->MakeBatch(&parts);
    CHECK_OK(result.status());
    if (*result == BatchMaker::Result::kEnd) return samples;
    for (const Part& part : parts) samples += part.header.part().samples();
  }
}

int64_t CountLines(const std::string& path) {
  auto source = OpenByteSource(path, Compression::kNone, 0);
  CHECK_OK(source.status());
  std::vector<char> chunk(256 << 10);
  int64_t lines = 0;
  while (true) {
    const auto got = (*source)->Read(chunk.data(), chunk.size());
    CHECK_OK(got.status());
    if (*got == 0) return lines;
    const char* at = chunk.data();
    const char* end = at + *got;
    while (const void* found = std::memchr(at, '\n', static_cast<size_t>(end - at))) {
      at = static_cast<const char*>(found) + 1;
      ++lines;
    }
  }
}

void Run(int rows, int passes, const std::string& path) {
  WriteFile(path, rows);
  const double megabytes = static_cast<double>(std::filesystem::file_size(path)) * 1e-6;
  const JobConfig job = MakeJob(path);
  ReadProgress progress{ReadProgress::Options()};
  const auto plan = StreamPlan::Make(job, TRAIN_STREAM, &progress);
  CHECK_OK(plan.status());
  const std::unique_ptr<BatchMaker> maker = NewBatchMaker(*plan);
  std::vector<double> rates, cpu_rates, probe_rates;
  for (int pass = 0; pass <= passes; ++pass) {
    const double cpu_start = CpuSeconds();
    const double seconds = Seconds(
        [&] { CHECK(MakeAllBatches(**plan, maker.get(), static_cast<uint32_t>(pass)) == rows); });
    const double cpu_seconds = CpuSeconds() - cpu_start;
    const double probe_seconds = Seconds([&] { CHECK(CountLines(path) == rows); });
    if (pass == 0) continue;  // warms caches up
    rates.push_back(megabytes / seconds);
    cpu_rates.push_back(megabytes / cpu_seconds);
    probe_rates.push_back(megabytes / probe_seconds);
  }
  CHECK(progress.quarantined() == 0);
  const double rate = Median(rates);
  const double probe = Median(probe_rates);
  std::printf(
      "{\"benchmark\":\"parse\",\"mb_per_s\":%.1f,\"mb_per_cpu_s\":%.1f,\"records_per_s\":%.0f,"
      "\"probe_mb_per_s\":%.1f,\"ratio\":%.4f,\"rows\":%d,\"bytes_per_row\":%.1f,\"passes\":%d,"
      "\"cpu\":\"%s\"}\n",
      rate, Median(cpu_rates), rate / megabytes * rows, probe, rate / probe, rows,
      megabytes * 1e6 / rows, passes, CpuName().c_str());
}

}  // namespace
}  // namespace satrap

int main(int argc, char** argv) {
  const int rows = argc > 1 ? std::atoi(argv[1]) : 200000;
  const int passes = argc > 2 ? std::atoi(argv[2]) : 7;
  CHECK(rows > 0 && passes > 0) << "usage: parse_benchmark [rows [passes]]";
  const std::string path =
      (std::filesystem::temp_directory_path() / absl::StrCat("satrap_parse_", getpid(), ".tsv"))
          .string();
  satrap::Run(rows, passes, path);
  std::filesystem::remove(path);
  return 0;
}

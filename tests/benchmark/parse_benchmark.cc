// How fast a loader turns text into batches on one core: reads it from the page cache, cuts it into
// lines, parses them, hashes ids, shuffles in blocks and encodes for the wire. Prints one JSON
// line:
//
//   mb_per_s        megabytes (10^6 bytes) of text per second, median over passes
//   mb_per_cpu_s    the same per second of processor time, which other processes do not lengthen
//   probe_mb_per_s  the same bytes read and scanned for line ends with memchr, and nothing else
//   ratio           mb_per_s / probe_mb_per_s
//
// It writes a file of its own with Criteo's 40 columns, a quarter of the numerics missing. The
// records are the same in every format:
//
//   criteo      Criteo TSV (the default)
//   csv         CSV by a declared schema, nothing quoted
//   quoted_csv  the same with every field in quotes
//
// usage: parse_benchmark [--format=FORMAT] [rows [passes]]

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

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/base/check.h"
#include "common/base/cpu_name.h"
#include "common/numeric/random.h"
#include "data_loader/batch/batch_maker.h"
#include "data_loader/source/byte_source.h"

namespace satrap {
namespace {

enum class Format { kCriteo, kCsv, kQuotedCsv };

// The fields of one record: label, 13 numerics, 26 ids.
std::vector<std::string> MakeFields(SplitMix64* random) {
  std::vector<std::string> fields = {random->Below(4) == 0 ? "1" : "0"};
  for (int i = 0; i < 13; ++i) {
    fields.emplace_back();
    if (random->Below(4) == 0) continue;
    // Most counts are small, some have several digits.
    fields.back() = absl::StrCat(random->Below(uint64_t{1} << (1 + random->Below(16))));
  }
  for (int i = 0; i < 26; ++i) {
    fields.emplace_back();
    if (random->Below(8) == 0) continue;
    fields.back() = absl::StrFormat("%08x", static_cast<uint32_t>(random->Next()));
  }
  return fields;
}

void WriteFile(const std::string& path, Format format, int rows) {
  SplitMix64 random(1);
  std::ofstream file(path, std::ios::binary);
  for (int i = 0; i < rows; ++i) {
    const std::vector<std::string> fields = MakeFields(&random);
    switch (format) {
      case Format::kCriteo:
        file << absl::StrJoin(fields, "\t") << '\n';
        break;
      case Format::kCsv:
        file << absl::StrJoin(fields, ",") << '\n';
        break;
      case Format::kQuotedCsv:
        file << '"' << absl::StrJoin(fields, "\",\"") << "\"\n";
        break;
    }
  }
  CHECK(file.good()) << path;
}

void AddColumn(const std::string& name, ColumnConfig::Kind kind, CsvFormat* csv) {
  ColumnConfig* column = csv->add_columns();
  column->set_name(name);
  column->set_kind(kind);
}

JobConfig MakeJob(const std::string& path, Format format) {
  JobConfig job;
  job.set_global_batch_size(4096);
  DataConfig* data = job.mutable_data();
  if (format == Format::kCriteo) {
    data->mutable_criteo_tsv();
  } else {
    AddColumn("label", ColumnConfig::LABEL, data->mutable_csv());
    for (int i = 1; i <= 13; ++i) {
      AddColumn(absl::StrCat("I", i), ColumnConfig::NUMERIC, data->mutable_csv());
    }
    for (int i = 1; i <= 26; ++i) {
      AddColumn(absl::StrCat("C", i), ColumnConfig::ID, data->mutable_csv());
    }
  }
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

int64_t MakeAllBatches(const StreamSpec& spec, BatchMaker* maker, uint32_t epoch) {
  int64_t samples = 0;
  maker->BeginEpoch(epoch);
  for (uint32_t split = 0; split < spec.splits.size(); ++split) maker->AddSplit(split);
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

void Run(Format format, const std::string& format_name, int rows, int passes,
         const std::string& path) {
  WriteFile(path, format, rows);
  const double megabytes = static_cast<double>(std::filesystem::file_size(path)) * 1e-6;
  const JobConfig job = MakeJob(path, format);
  ReadProgress progress{ReadProgress::Options()};
  const auto spec = StreamSpec::Make(job, TRAIN_STREAM, &progress);
  CHECK_OK(spec.status());
  const std::unique_ptr<BatchMaker> maker = NewBatchMaker(*spec);
  std::vector<double> rates, cpu_rates, probe_rates;
  for (int pass = 0; pass <= passes; ++pass) {
    const double cpu_start = CpuSeconds();
    const double seconds = Seconds(
        [&] { CHECK(MakeAllBatches(**spec, maker.get(), static_cast<uint32_t>(pass)) == rows); });
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
      "{\"benchmark\":\"parse\",\"format\":\"%s\",\"mb_per_s\":%.1f,\"mb_per_cpu_s\":%.1f,"
      "\"records_per_s\":%.0f,\"probe_mb_per_s\":%.1f,\"ratio\":%.4f,\"rows\":%d,"
      "\"bytes_per_row\":%.1f,\"passes\":%d,\"cpu\":\"%s\"}\n",
      format_name.c_str(), rate, Median(cpu_rates), rate / megabytes * rows, probe, rate / probe,
      rows, megabytes * 1e6 / rows, passes, CpuName().c_str());
}

}  // namespace
}  // namespace satrap

int main(int argc, char** argv) {
  const char* const usage =
      "usage: parse_benchmark [--format=criteo|csv|quoted_csv] [rows [passes]]";
  constexpr absl::string_view kFormatFlag = "--format=";
  std::string format_name = "criteo";
  std::vector<int> numbers;
  for (int i = 1; i < argc; ++i) {
    const absl::string_view argument = argv[i];
    if (absl::StartsWith(argument, kFormatFlag)) {
      format_name = std::string(argument.substr(kFormatFlag.size()));
    } else {
      numbers.push_back(std::atoi(argv[i]));
    }
  }
  const int rows = !numbers.empty() ? numbers[0] : 200000;
  const int passes = numbers.size() > 1 ? numbers[1] : 7;
  const bool known = format_name == "criteo" || format_name == "csv" || format_name == "quoted_csv";
  if (!known || rows <= 0 || passes <= 0 || numbers.size() > 2) {
    std::fprintf(stderr, "%s\n", usage);
    return 2;
  }
  const satrap::Format format = format_name == "criteo" ? satrap::Format::kCriteo
                                : format_name == "csv"  ? satrap::Format::kCsv
                                                        : satrap::Format::kQuotedCsv;
  const std::string path =
      (std::filesystem::temp_directory_path() / absl::StrCat("satrap_parse_", getpid(), ".txt"))
          .string();
  satrap::Run(format, format_name, rows, passes, path);
  std::filesystem::remove(path);
  return 0;
}

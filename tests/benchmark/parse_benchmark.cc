// Measures how fast a loader turns text into batches on one core: the loader reads the text from
// the page cache, splits it into lines, parses them, hashes ids, shuffles in blocks and encodes for
// the wire. Prints one JSON line:
//
//   mb_per_s        megabytes (10^6 bytes) of text per second, median over passes
//   mb_per_cpu_s    the same per second of processor time, which other processes do not lengthen
//   probe_mb_per_s  the same bytes read and scanned for line ends with memchr, and nothing else
//   ratio           mb_per_s / probe_mb_per_s
//
// The benchmark writes its own file (parse_work.h). The records are the same in every format:
//
//   criteo      Criteo TSV (the default)
//   csv         CSV by a declared schema, nothing quoted
//   quoted_csv  the same with every field in quotes
//
// usage: parse_benchmark [--format=FORMAT] [rows [passes]]

#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/cpu_name.h"
#include "common/flags/flags.h"
#include "common/json/json.h"
#include "common/testing/measure.h"
#include "data_loader/batch/batch_maker.h"
#include "data_loader/source/byte_source.h"
#include "proto/benchmark.pb.h"
#include "tests/benchmark/parse_work.h"

namespace satrap {
namespace {

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

void Run(ParseFormat format, const std::string& format_name, int rows, int passes,
         const std::string& path) {
  WriteClicks(path, format, rows);
  const double megabytes = static_cast<double>(std::filesystem::file_size(path)) * 1e-6;
  JobConfig job = ParseJob(format);
  job.mutable_data()->add_train_files(path);
  ReadProgress progress{ReadProgress::Options()};
  const auto spec = StreamSpec::Make(job, TRAIN_STREAM, &progress);
  CHECK_OK(spec.status());
  const std::unique_ptr<BatchMaker> maker = NewBatchMaker(*spec);
  const uint32_t splits = static_cast<uint32_t>((*spec)->splits.size());
  std::vector<double> rates, cpu_rates, probe_rates;
  for (int pass = 0; pass <= passes; ++pass) {
    const double cpu_start = ProcessCpuSeconds();
    const double seconds = WallSecondsOf(
        [&] { CHECK(MakeAllBatches(maker.get(), splits, static_cast<uint32_t>(pass)) == rows); });
    const double cpu_seconds = ProcessCpuSeconds() - cpu_start;
    const double probe_seconds = WallSecondsOf([&] { CHECK(CountLines(path) == rows); });
    if (pass == 0) continue;  // warms caches up
    rates.push_back(megabytes / seconds);
    cpu_rates.push_back(megabytes / cpu_seconds);
    probe_rates.push_back(megabytes / probe_seconds);
  }
  CHECK(progress.quarantined() == 0);
  const double rate = Median(rates);
  const double probe = Median(probe_rates);
  ParseLine line;
  line.set_benchmark("parse");
  line.set_format(format_name);
  line.set_mb_per_s(rate);
  line.set_mb_per_cpu_s(Median(cpu_rates));
  line.set_records_per_s(rate / megabytes * rows);
  line.set_probe_mb_per_s(probe);
  line.set_ratio(rate / probe);
  line.set_rows(rows);
  line.set_bytes_per_row(megabytes * 1e6 / rows);
  line.set_passes(passes);
  line.set_cpu(CpuName());
  PrintJson(line);
}

}  // namespace
}  // namespace satrap

int main(int argc, char** argv) {
  std::string format_name = "criteo";
  int rows = 200000, passes = 7;
  const auto code = satrap::TakeProgramFlags(
      argc, argv, "usage: parse_benchmark [--format F] [ROWS [PASSES]]",
      {satrap::NumberFlag("rows", "N", "of the file (default: 200000)", &rows, 1),
       satrap::NumberFlag("passes", "N", "over it (default: 7)", &passes, 1),
       satrap::ChoiceFlag("format", "criteo|csv|quoted_csv", "of the file", &format_name)},
      /*in_order=*/2);
  if (code.has_value()) return *code;
  const satrap::ParseFormat format = format_name == "criteo" ? satrap::ParseFormat::kCriteo
                                     : format_name == "csv"  ? satrap::ParseFormat::kCsv
                                                             : satrap::ParseFormat::kQuotedCsv;
  const std::string path =
      (std::filesystem::temp_directory_path() / absl::StrCat("satrap_parse_", getpid(), ".txt"))
          .string();
  satrap::Run(format, format_name, rows, passes, path);
  std::filesystem::remove(path);
  return 0;
}

// bench: the programs of tests/benchmark, and `deepfm`, a training run that is measured.

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/clock.h"
#include "common/file_error.h"
#include "common/near_match.h"
#include "common/status_macros.h"
#include "deploy/cli/commands.h"
#include "deploy/cli/job_preparation.h"
#include "deploy/cli/run_job.h"
#include "deploy/cli/throughput_meter.h"
#include "deploy/report/json.h"

namespace satrap {
namespace {

const char* const kPrograms[] = {"table", "rpc", "parse", "graph", "plan"};

struct DeepFmOptions {
  double seconds = 20;
  double warmup_seconds = 10;
  std::string wire = "F32";
  std::string mlp = "400,400,400";
  std::string from_file;
};

absl::StatusOr<DeepFmOptions> ParseDeepFmFlags(const std::vector<std::string>& flags) {
  DeepFmOptions options;
  for (const std::string& flag : flags) {
    const size_t equals = std::min(flag.find('='), flag.size());
    const std::string name = flag.substr(0, equals);
    const std::string value = equals < flag.size() ? flag.substr(equals + 1) : "";
    double* number = name == "--seconds"          ? &options.seconds
                     : name == "--warmup_seconds" ? &options.warmup_seconds
                                                  : nullptr;
    std::string* text = name == "--wire"        ? &options.wire
                        : name == "--mlp"       ? &options.mlp
                        : name == "--from_file" ? &options.from_file
                                                : nullptr;
    if (text != nullptr && !value.empty()) {
      *text = value;
    } else if (number == nullptr || !absl::SimpleAtod(value, number) || *number < 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          "bench deepfm does not take ", flag,
          "; it takes --seconds=N, --warmup_seconds=N, --wire=f32|f16|bf16, --mlp=400,400,400, "
          "--from_file=FILE"));
    }
  }
  for (char& c : options.wire) c = absl::ascii_toupper(c);
  return options;
}

std::vector<std::string> SetsOf(const DeepFmOptions& options, const CommandLine& line) {
  std::vector<std::string> sets = {
      absl::StrCat("embedding_worker.wire_dtype=", options.wire),
      absl::StrCat("embedding_ps.wire_dtype=", options.wire),
      absl::StrCat("model.layers[name=deep].mlp.units=", options.mlp),
  };
  if (!options.from_file.empty()) {
    std::error_code error;
    sets.push_back("data.criteo_tsv=");
    sets.push_back(absl::StrCat("data.train_files=",
                                std::filesystem::absolute(options.from_file, error).string()));
    sets.push_back("epochs=1000000");
  }
  sets.insert(sets.end(), line.sets.begin(), line.sets.end());
  return sets;
}

void PrintDeepFm(const DeepFmOptions& options, const ThroughputMeter& meter,
                 const std::string& run_dir) {
  JsonWriter json;
  json.BeginObject();
  json.StringField("bench", "deepfm");
  json.Field("samples_per_second", meter.MedianRate());
  json.Field("mean_samples_per_second", meter.MeanRate());
  json.Field("windows", static_cast<int64_t>(meter.num_windows()));
  json.Field("seconds", meter.seconds());
  json.Field("samples", meter.samples());
  json.Field("first_loss", meter.first_loss());
  json.Field("last_loss", meter.last_loss());
  json.StringField("wire", options.wire);
  json.StringField("mlp", options.mlp);
  json.StringField("from_file", options.from_file);
  json.Key("cpu_us_per_sample");
  json.BeginObject();
  for (const auto& [role, microseconds] : meter.CpuPerSampleUs()) json.Field(role, microseconds);
  json.EndObject();
  json.StringField("run_dir", run_dir);
  json.EndObject();
  printf("%s\n", json.text().c_str());
}

absl::StatusOr<int> BenchDeepFm(const CommandLine& line) {
  ASSIGN_OR_RETURN(const DeepFmOptions options, ParseDeepFmFlags(line.bench_flags));
  const std::string file = options.from_file.empty() ? "bench_deepfm" : "bench_criteo";
  ASSIGN_OR_RETURN(const std::string path, FindJobFile(file, line.install_dir));
  ASSIGN_OR_RETURN(const JobConfig job, PrepareJob(path, SetsOf(options, line), line.install_dir));
  ThroughputMeter meter(options.warmup_seconds, options.seconds);
  ASSIGN_OR_RETURN(const JobRun run, RunJob(job, line, [&meter](const StatusAnswer& status) {
                     return meter.Add(status, MonotonicSeconds());
                   }));
  const int code = PrintEnd(run.end);
  if (code != 0) return code;
  if (meter.num_windows() == 0) return absl::AbortedError("the run ended during the warm-up");
  PrintDeepFm(options, meter, run.run_dir);
  return 0;
}

// Replaces this process by the benchmark's program; returns only if that fails.
absl::Status ExecBenchmark(const std::string& name, const std::vector<std::string>& flags) {
  ASSIGN_OR_RETURN(const std::string dir, ProgramsDir());
  std::vector<std::string> args = {absl::StrCat(dir, "/tests/benchmark/", name, "_benchmark")};
  args.insert(args.end(), flags.begin(), flags.end());
  std::vector<char*> argv;
  for (std::string& arg : args) argv.push_back(arg.data());
  argv.push_back(nullptr);
  execv(argv[0], argv.data());
  return FileError("start", args[0]);
}

}  // namespace

int BenchCommand(const CommandLine& line) {
  const std::string& name = line.arguments[0];
  if (name == "deepfm") {
    const absl::StatusOr<int> code = BenchDeepFm(line);
    return code.ok() ? *code : PrintError(code.status());
  }
  if (std::find(std::begin(kPrograms), std::end(kPrograms), name) != std::end(kPrograms)) {
    return PrintError(ExecBenchmark(name, line.bench_flags));
  }
  std::vector<std::string> names(std::begin(kPrograms), std::end(kPrograms));
  names.push_back("deepfm");
  return PrintError(
      absl::NotFoundError(absl::StrCat("there is no benchmark '", name, "', but ",
                                       absl::StrJoin(names, ", "), DidYouMean(name, names))));
}

}  // namespace satrap

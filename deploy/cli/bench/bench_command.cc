// The command `bench`. It runs a program of tests/benchmark, or measures whole runs: `deepfm` is in
// this file, `recovery` and `cuts` are in files of their own.

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "common/base/cpu_name.h"
#include "common/base/near_match.h"
#include "common/base/status_macros.h"
#include "common/config/job_file.h"
#include "common/file/file_error.h"
#include "common/json/json.h"
#include "common/thread/clock.h"
#include "deploy/cli/bench/bench_job.h"
#include "deploy/cli/bench/bench_runs.h"
#include "deploy/cli/bench/throughput_meter.h"
#include "deploy/cli/command_flags.h"
#include "deploy/cli/commands.h"
#include "deploy/cli/job_preparation.h"
#include "deploy/cli/programs_dir.h"
#include "deploy/cli/run_job.h"
#include "proto/benchmark.pb.h"

namespace satrap {
namespace {

struct Program {
  const char* name;
  const char* path;  // relative to ProgramsDir()
};
constexpr Program kPrograms[] = {
    {"table", "tests/benchmark/table_benchmark"}, {"sweep", "tests/benchmark/sweep_benchmark"},
    {"rpc", "tests/benchmark/rpc_benchmark"},     {"parse", "tests/benchmark/parse_benchmark"},
    {"kafka", "tests/kafka/topic_benchmark"},     {"graph", "tests/benchmark/graph_benchmark"},
    {"plan", "tests/benchmark/plan_benchmark"},
};

std::vector<std::string> SetsOf(const DeepFmFlags& options) {
  std::vector<std::string> sets = {
      absl::StrCat("embedding_worker.wire_dtype=", options.wire),
      absl::StrCat("embedding_ps.wire_dtype=", options.wire),
      absl::StrCat("nn_worker.precision=", options.precision),
      absl::StrCat("model.layers[name=deep].mlp.units=", options.mlp),
  };
  if (!options.from_file.empty()) {
    std::error_code error;
    sets.push_back("data.criteo_tsv=");
    sets.push_back(absl::StrCat("data.train_files=",
                                std::filesystem::absolute(options.from_file, error).string()));
    sets.push_back("epochs=1000000");
  }
  if (!options.from_topic.empty()) {
    sets.push_back("data.criteo_tsv=");
    sets.push_back(absl::StrCat("data.kafka.brokers=", options.brokers));
    sets.push_back(absl::StrCat("data.kafka.topics=", options.from_topic));
    // An epoch consists of the messages that the topic holds when the run begins, so the next epoch
    // can read the same messages again, as from a file.
    sets.push_back("data.kafka.end.at=AT_START");
    sets.push_back("epochs=1000000");
  }
  sets.insert(sets.end(), options.sets.begin(), options.sets.end());
  return sets;
}

// Runs products_benchmark on the job of the run that has just ended, so that both are measured on
// the same machine within the same minute, and the cores are idle. It is a separate program because
// this program would start more slowly if it had to load oneDNN.
absl::StatusOr<std::vector<ProductsLine>> MeasureProducts(const std::string& run_dir) {
  ASSIGN_OR_RETURN(const std::string dir, ProgramsDir());
  const auto quoted = [](const std::string& path) {
    return absl::StrCat("'", absl::StrReplaceAll(path, {{"'", "'\\''"}}), "'");
  };
  const std::string command = absl::StrCat(quoted(dir + "/tests/benchmark/products_benchmark"),
                                           " --job=", quoted(run_dir + "/job.textproto"));
  FILE* output = popen(command.c_str(), "re");
  if (output == nullptr) return FileError("start", command);
  std::vector<ProductsLine> rates;
  absl::Status read;
  char line[1024];
  while (std::fgets(line, sizeof(line), output) != nullptr) {
    read.Update(ParseJson(line, &rates.emplace_back()));
  }
  if (pclose(output) != 0 || rates.empty()) {
    return absl::InternalError(absl::StrCat("the matrix products could not be measured: ", command,
                                            " failed; its messages are above"));
  }
  if (!read.ok()) return absl::InternalError(absl::StrCat(command, ": ", read.message()));
  return rates;
}

void PrintDeepFm(const DeepFmFlags& options, const ThroughputMeter& meter,
                 const std::vector<ProductsLine>& products, const std::string& run_dir) {
  DeepFmLine line;
  line.set_bench("deepfm");
  line.set_samples_per_second(meter.MedianRate());
  line.set_mean_samples_per_second(meter.MeanRate());
  line.set_windows(static_cast<int64_t>(meter.num_windows()));
  line.set_seconds(meter.seconds());
  line.set_samples(meter.samples());
  line.set_first_loss(meter.first_loss());
  line.set_last_loss(meter.last_loss());
  line.set_wire(options.wire);
  line.set_precision(options.precision);
  line.set_mlp(options.mlp);
  line.set_from_file(options.from_file);
  line.set_from_topic(options.from_topic);
  for (const auto& [role, microseconds] : meter.CpuPerSampleUs()) {
    NamedNumber* const of_role = line.add_cpu_us_per_sample();
    of_role->set_name(role);
    of_role->set_value(microseconds);
  }
  line.set_products_only_samples_per_second(
      products.empty() ? std::nan("") : products.back().samples_per_second());
  for (const ProductsLine& rate : products) {
    DeepFmLine::Products* const only = line.add_products_only();
    only->set_threads(rate.threads());
    only->set_samples_per_second(rate.samples_per_second());
    only->set_core_us_per_sample(rate.core_us_per_sample());
  }
  line.set_cpu(CpuName());
  line.set_run_dir(run_dir);
  PrintJson(line, kShortestNumbers);
}

absl::StatusOr<int> BenchDeepFm(const CommandCall& call) {
  DeepFmFlags options;
  RETURN_IF_ERROR(ParseOnlyFlags(call.args, options.Table()));
  RETURN_IF_ERROR(options.Check());
  // The value in upper case, as in the job's enums and in the printed line.
  for (std::string* dtype : {&options.wire, &options.precision}) absl::AsciiStrToUpper(dtype);
  const bool has_records = !options.from_file.empty() || !options.from_topic.empty();
  const std::string file = has_records ? "bench_criteo" : "bench_deepfm";
  ASSIGN_OR_RETURN(const std::string path, FindJobFile(file, call.install_dir));
  ASSIGN_OR_RETURN(const JobConfig job, PrepareJob(path, SetsOf(options), call.install_dir));
  ThroughputMeter meter(options.warmup_seconds, options.seconds);
  ASSIGN_OR_RETURN(const JobRun run,
                   RunJob(job, RunFlags(), [&meter](const StatusAnswer& status, Launcher*) {
                     return meter.Add(status, MonotonicSeconds());
                   }));
  const int code = PrintEnd(run.end);
  if (code != 0) return code;
  if (meter.num_windows() == 0) return absl::AbortedError("the run ended during the warm-up");
  absl::StatusOr<std::vector<ProductsLine>> products = std::vector<ProductsLine>();
  if (MeasuresProducts(job)) products = MeasureProducts(run.run_dir);
  // If the products cannot be measured, the training's figures are still worth printing.
  if (!products.ok()) PrintError(products.status());
  PrintDeepFm(options, meter, products.ok() ? *products : std::vector<ProductsLine>(), run.run_dir);
  return 0;
}

constexpr std::pair<const char*, absl::StatusOr<int> (*)(const CommandCall&)> kRuns[] = {
    {"deepfm", BenchDeepFm},
    {"recovery", BenchRecovery},
    {"cuts", BenchCuts},
};

// Writes `--name value` as `--name=value`, the only form that Google's benchmark library accepts.
std::vector<std::string> JoinedFlags(const std::vector<std::string>& args) {
  std::vector<std::string> joined;
  for (const std::string& arg : args) {
    const bool is_value = !joined.empty() && !absl::StartsWith(arg, "--") &&
                          absl::StartsWith(joined.back(), "--") &&
                          !absl::StrContains(joined.back(), "=");
    if (is_value) {
      absl::StrAppend(&joined.back(), "=", arg);
    } else {
      joined.push_back(arg);
    }
  }
  return joined;
}

// Replaces this process by the benchmark's program; returns only if that fails.
absl::Status ExecBenchmark(const std::string& path, const std::vector<std::string>& flags) {
  ASSIGN_OR_RETURN(const std::string dir, ProgramsDir());
  std::vector<std::string> args = {absl::StrCat(dir, "/", path)};
  args.insert(args.end(), flags.begin(), flags.end());
  std::vector<char*> argv;
  for (std::string& arg : args) argv.push_back(arg.data());
  argv.push_back(nullptr);
  execv(argv[0], argv.data());
  return FileError("start", args[0]);
}

}  // namespace

int BenchCommand(const CommandCall& call) {
  std::vector<std::string> names;
  for (const auto& [program, path] : kPrograms) names.push_back(program);
  for (const auto& [run_name, bench] : kRuns) names.push_back(run_name);
  // Search all arguments for the name, because flags may precede it. No flag has a value that
  // equals a name.
  const auto at =
      std::find_first_of(call.args.begin(), call.args.end(), names.begin(), names.end());
  if (at == call.args.end() && (call.args.empty() || absl::StartsWith(call.args[0], "--"))) {
    return PrintError(absl::InvalidArgumentError("usage: satrap bench NAME [FLAGS]; NAME is " +
                                                 absl::StrJoin(names, ", ")));
  }
  const std::string name = at == call.args.end() ? call.args[0] : *at;
  CommandCall rest = call;
  rest.name = name;
  if (at != call.args.end()) rest.args.erase(rest.args.begin() + (at - call.args.begin()));
  for (const auto& [run_name, bench] : kRuns) {
    if (name != run_name) continue;
    const absl::StatusOr<int> code = bench(rest);
    return code.ok() ? *code : PrintErrorOrStop(code.status());
  }
  if (name == "plan") rest.args = JoinedFlags(rest.args);
  for (const auto& [program, path] : kPrograms) {
    if (name == program) return PrintError(ExecBenchmark(path, rest.args));
  }
  return PrintError(
      absl::NotFoundError(absl::StrCat("there is no benchmark '", name, "'; there are ",
                                       absl::StrJoin(names, ", "), DidYouMean(name, names))));
}

}  // namespace satrap

#include "deploy/cli/bench/bench_job.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "common/config/job_file.h"
#include "deploy/cli/job_preparation.h"

namespace satrap {

absl::Status ParseNumberFlags(const std::string& bench, const std::vector<std::string>& flags,
                              const std::vector<std::pair<std::string, double*>>& numbers) {
  for (const std::string& flag : flags) {
    const size_t equals = std::min(flag.find('='), flag.size());
    const auto found = std::find_if(numbers.begin(), numbers.end(), [&](const auto& number) {
      return number.first == flag.substr(0, equals);
    });
    if (found != numbers.end() && equals < flag.size() &&
        absl::SimpleAtod(flag.substr(equals + 1), found->second) && *found->second >= 0) {
      continue;
    }
    std::string known;
    for (const auto& [name, value] : numbers) absl::StrAppend(&known, " ", name, "=N");
    return absl::InvalidArgumentError(
        absl::StrCat("bench ", bench, " does not take ", flag, "; it takes", known));
  }
  return absl::OkStatus();
}

absl::StatusOr<DeepFmOptions> ParseDeepFmFlags(const std::vector<std::string>& flags) {
  DeepFmOptions options;
  for (const std::string& flag : flags) {
    const size_t equals = std::min(flag.find('='), flag.size());
    const std::string name = flag.substr(0, equals);
    const std::string value = equals < flag.size() ? flag.substr(equals + 1) : "";
    double* number = name == "--seconds"          ? &options.seconds
                     : name == "--warmup_seconds" ? &options.warmup_seconds
                                                  : nullptr;
    std::string* text = name == "--wire"         ? &options.wire
                        : name == "--precision"  ? &options.precision
                        : name == "--mlp"        ? &options.mlp
                        : name == "--from_file"  ? &options.from_file
                        : name == "--from_topic" ? &options.from_topic
                        : name == "--brokers"    ? &options.brokers
                                                 : nullptr;
    if (text != nullptr && !value.empty()) {
      *text = value;
    } else if (number == nullptr || !absl::SimpleAtod(value, number) || *number < 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("bench deepfm does not take ", flag,
                       "; it takes --seconds=N, --warmup_seconds=N, --wire=f32|f16|bf16, "
                       "--precision=f32|f16|bf16, --mlp=400,400,400, --from_file=FILE, "
                       "--from_topic=TOPIC, --brokers=HOST:PORT"));
    }
  }
  if (options.from_topic.empty() != options.brokers.empty() ||
      (!options.from_topic.empty() && !options.from_file.empty())) {
    return absl::InvalidArgumentError(
        "bench deepfm takes --from_topic and --brokers together, and not with --from_file");
  }
  for (std::string* dtype : {&options.wire, &options.precision}) {
    for (char& c : *dtype) c = absl::ascii_toupper(c);
  }
  return options;
}

void SetRows(int64_t rows, JobConfig* job) {
  auto* const sizes = job->mutable_data()->mutable_synthetic()->mutable_vocabulary_sizes();
  const int n = sizes->size();
  CHECK(rows >= n && job->data().features_size() == n) << rows;
  double sum = 0;
  for (int i = 1; i <= n; ++i) sum += std::pow(i, -1.5);
  int64_t left = rows;
  for (int i = n; i > 1; --i) {
    // One id for each feature, and a share of the others.
    const double share = std::pow(i, -1.5) / sum * static_cast<double>(rows - n);
    const int64_t size = 1 + static_cast<int64_t>(share);
    sizes->Set(i - 1, size);
    left -= size;
  }
  sizes->Set(0, left);
  for (int i = 0; i < n; ++i) {
    job->mutable_data()->mutable_features(i)->set_preload_ids(sizes->Get(i));
  }
  job->mutable_tables(0)->set_reserve_rows(rows);
}

absl::StatusOr<JobConfig> JobOfTwos(const CommandLine& line, const std::vector<std::string>& sets,
                                    int64_t rows) {
  ASSIGN_OR_RETURN(const std::string path, FindJobFile("bench_deepfm", line.install_dir));
  std::vector<std::string> all = {
      "data_loader.replicas=2",
      "embedding_worker.replicas=2",
      "embedding_ps.replicas=2",
      "nn_worker.replicas=2",
      "nn_worker.compute_threads=1",
      "data.synthetic.cycle_batches=0",
      "data.synthetic.train_samples=1000000000",
  };
  all.insert(all.end(), sets.begin(), sets.end());
  all.insert(all.end(), line.sets.begin(), line.sets.end());
  ASSIGN_OR_RETURN(JobConfig job, PrepareJob(path, all, line.install_dir));
  if (rows < job.data().features_size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--rows must be at least ", job.data().features_size()));
  }
  SetRows(rows, &job);
  return job;
}

bool MeasuresProducts(const JobConfig& job) {
  return job.nn_worker().device() == NnWorkerConfig::CPU;
}

double MedianOf(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

}  // namespace satrap

#include "deploy/cli/bench/bench_job.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "common/config/job_file.h"
#include "deploy/cli/job_preparation.h"

namespace satrap {

void SetRows(int64_t rows, JobConfig* job) {
  auto* const sizes = job->mutable_data()->mutable_synthetic()->mutable_vocabulary_sizes();
  const int n = sizes->size();
  CHECK(rows >= n && job->data().features_size() == n) << rows;
  double sum = 0;
  for (int i = 1; i <= n; ++i) sum += std::pow(i, -1.5);
  int64_t left = rows;
  for (int i = n; i > 1; --i) {
    // Each feature gets one id and a share of the remaining ids.
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

absl::StatusOr<JobConfig> JobOfTwos(const std::string& install_dir,
                                    const std::vector<std::string>& sets, int64_t rows) {
  ASSIGN_OR_RETURN(const std::string path, FindJobFile("bench_deepfm", install_dir));
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
  ASSIGN_OR_RETURN(JobConfig job, PrepareJob(path, all, install_dir));
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

// Reports of rank 0 about the model that a run begins with or scores with.
//
// Thread-safe: the functions depend only on their arguments.

#ifndef SATRAP_NN_WORKER_REPORT_WARM_START_REPORT_H_
#define SATRAP_NN_WORKER_REPORT_WARM_START_REPORT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/log/log.h"
#include "proto/checkpoint.pb.h"

namespace satrap {

// The file of a WarmStartResult in the folder of a run: checked text
// (common/checkpoint/checked_text.h).
inline constexpr char kWarmStartFile[] = "/warm_start.textproto";

// Logs what was taken, by table and feature and by parameter, and warns of each difference from the
// model's job that gives the same ids different keys. Writes the result into the run's folder,
// where the report finds it. Errors are those of DurableFile.
absl::Status ReportWarmStart(const WarmStartResult& result, const std::string& run_dir,
                             const Logger& logger);

// Logs the model that a run scores with, and `warnings`.
void ReportScoring(const std::string& model, uint64_t step,
                   const std::vector<std::string>& warnings, const Logger& logger);

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_REPORT_WARM_START_REPORT_H_

// Makes the report of a run that has ended, and one list of its bad records.
//
// Thread-safe: the functions depend only on their arguments and on the run's folder.

#ifndef SATRAP_DEPLOY_STORY_RUN_RESULT_H_
#define SATRAP_DEPLOY_STORY_RUN_RESULT_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "deploy/report/run_report.h"
#include "proto/control.pb.h"
#include "proto/job.pb.h"

namespace satrap {

// The report of a run that has finished with `status`. `of_data` become its last warnings. Parts
// that cannot be read are left out; for each of them, `problems` gets one line.
RunReport ReportOf(const JobConfig& job, const StatusAnswer& status, double wall_seconds,
                   const std::vector<std::string>& of_data, std::vector<std::string>* problems);

// Writes the report into the run folder, as report.txt for people and report.json for programs.
// Then writes the JSON also to the file `copy`, unless that is empty. Errors are those of
// WriteFileAtomically.
absl::Status WriteReport(const RunReport& report, const std::string& copy);

// Merges the bad records that all generations and loaders reported into one list. If a generation
// was cut short, leaves out the lines that no cut shows as consumed.
absl::Status MergeBadRecords(const JobConfig& job, const std::string& run_dir);

}  // namespace satrap

#endif  // SATRAP_DEPLOY_STORY_RUN_RESULT_H_

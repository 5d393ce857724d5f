// The part of a run's report about the model that the run began with.
//
// Thread-safe: the functions depend only on their arguments.

#ifndef SATRAP_DEPLOY_REPORT_WARM_START_TEXT_H_
#define SATRAP_DEPLOY_REPORT_WARM_START_TEXT_H_

#include <string>

#include "proto/checkpoint.pb.h"
#include "proto/report.pb.h"

namespace satrap {

// Fills in the section of report.json about the model that the run began with.
void CopyWarmStart(const WarmStartResult& result, ReportFile::WarmStart* to);

// A line for the model, one for each table that was taken, one for the parameters, and one for each
// warning. Every line ends with a line feed.
std::string WarmStartText(const WarmStartResult& result);

}  // namespace satrap

#endif  // SATRAP_DEPLOY_REPORT_WARM_START_TEXT_H_

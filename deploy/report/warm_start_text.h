// What the report of a run says of the model that the run began with.
//
// Thread-safe: functions of their arguments.

#ifndef SATRAP_DEPLOY_REPORT_WARM_START_TEXT_H_
#define SATRAP_DEPLOY_REPORT_WARM_START_TEXT_H_

#include <string>

#include "deploy/report/json.h"
#include "proto/checkpoint.pb.h"

namespace satrap {

// Writes the key "warm_start" with an object: model, step, tables[]{name, rows, features[],
// features_without_rows[]}, parameters[], optimizer_state, fresh[], ignored[], warnings[].
void WriteWarmStart(const WarmStartResult& result, JsonWriter* json);

// A line for the model, one for each table that was taken, one for the parameters, and one for each
// warning. Every line ends with a line feed.
std::string WarmStartText(const WarmStartResult& result);

}  // namespace satrap

#endif  // SATRAP_DEPLOY_REPORT_WARM_START_TEXT_H_

// A number in a line of metrics.jsonl: `null` if it is not finite, because JSON has no NaN.

#ifndef SATRAP_NN_WORKER_REPORT_JSON_NUMBER_H_
#define SATRAP_NN_WORKER_REPORT_JSON_NUMBER_H_

#include <cmath>
#include <string>

#include "absl/strings/str_format.h"

namespace satrap {

inline std::string JsonNumber(double value) {
  return std::isfinite(value) ? absl::StrFormat("%.9g", value) : "null";
}

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_REPORT_JSON_NUMBER_H_

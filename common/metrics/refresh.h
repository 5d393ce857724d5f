// Metrics that are copies of counts kept elsewhere are brought up to date once a second: counting
// costs the engines nothing, and a scrape finds no figure older than that.

#ifndef SATRAP_COMMON_METRICS_REFRESH_H_
#define SATRAP_COMMON_METRICS_REFRESH_H_

#include <functional>

#include "common/executor.h"

namespace satrap {

// Calls `refresh` now, and each second from now on, on the executor, until that stops. What
// `refresh` uses must live until then.
void RefreshEachSecond(Executor* executor, std::function<void()> refresh);

}  // namespace satrap

#endif  // SATRAP_COMMON_METRICS_REFRESH_H_

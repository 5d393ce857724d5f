// Updates metrics that copy an engine's own counts, once a second. So the engine need not touch a
// metric when it counts, and a scrape sees figures that are at most a second old.

#ifndef SATRAP_COMMON_METRICS_REFRESH_H_
#define SATRAP_COMMON_METRICS_REFRESH_H_

#include <functional>

#include "common/thread/executor.h"

namespace satrap {

// Calls `refresh` now, on this thread, and then every second on the executor until the executor
// stops. Everything that `refresh` refers to must live until then.
void RefreshEachSecond(Executor* executor, std::function<void()> refresh);

}  // namespace satrap

#endif  // SATRAP_COMMON_METRICS_REFRESH_H_

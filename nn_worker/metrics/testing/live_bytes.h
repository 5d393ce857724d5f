// Measures how much memory the program has allocated by operator new, at present and at its peak,
// to see what an algorithm needs. A program that links this counts all such memory. Thread-safe.

#ifndef SATRAP_NN_WORKER_METRICS_TESTING_LIVE_BYTES_H_
#define SATRAP_NN_WORKER_METRICS_TESTING_LIVE_BYTES_H_

#include <cstdint>

namespace satrap {

// The bytes allocated now, over all threads, as the allocator rounds them.
int64_t LiveBytes();
// The largest number of bytes that were allocated at the same time since the last call of
// ResetMostLiveBytes.
int64_t MostLiveBytes();
void ResetMostLiveBytes();

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_METRICS_TESTING_LIVE_BYTES_H_

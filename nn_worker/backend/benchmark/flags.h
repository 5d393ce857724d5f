// The flags of kernel_benchmark:
//
//   --batch=N            samples; default: 65536 on a card, 32 on the host's device
//   --card=N             the card of this machine; default: 0
// --only=TEXT          measures only the rows whose operation and shape, as they are printed,
//                        contain TEXT
//   --precision=NAME     F32, TF32 (on a card), BF16 or F16 alone; default: all
//
// Thread-safe: a function of its arguments.

#ifndef SATRAP_NN_WORKER_BACKEND_BENCHMARK_FLAGS_H_
#define SATRAP_NN_WORKER_BACKEND_BENCHMARK_FLAGS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "proto/job.pb.h"

namespace satrap {

struct BenchmarkFlags {
  int64_t batch = 0;  // 0: the default
  int card = 0;
  std::string only;
  absl::optional<NnWorkerConfig::Precision> precision;
};

// INVALID_ARGUMENT, naming what is wrong and the flags that exist.
absl::StatusOr<BenchmarkFlags> ParseBenchmarkFlags(const std::vector<std::string>& args);

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_BACKEND_BENCHMARK_FLAGS_H_

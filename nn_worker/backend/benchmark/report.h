// Formats the output of kernel_benchmark: a JSON line for each measurement when it is made, and a
// table of all measurements at the end.
//
// Thread-safe: the functions depend only on their arguments.

#ifndef SATRAP_NN_WORKER_BACKEND_BENCHMARK_REPORT_H_
#define SATRAP_NN_WORKER_BACKEND_BENCHMARK_REPORT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "nn_worker/backend/benchmark/timing.h"
#include "proto/benchmark.pb.h"

namespace satrap {

// If the working set of an operation is at most this large, its repeated runs find it in a card's
// cache (the 50 MB of an H100). The rate can then exceed the copy ceiling, and says nothing about
// the memory.
inline constexpr int64_t kL2Bytes = int64_t{50} << 20;

struct BenchmarkRow {
  std::string operation, what, precision;
  Timing timing;
  // Either bytes or flops is set, and the other is 0.
  int64_t bytes = 0;
  double flops = 0;
  int64_t sector_bytes = 0;  // BenchmarkWork
  double ceiling = 0;        // in bytes, or operations, a second; 0: this row is a ceiling itself
  std::string made_by;       // of a product, "library" or "own kernel"; may be empty

  double rate() const { return (flops > 0 ? flops : static_cast<double>(bytes)) / timing.seconds; }
  double share() const { return ceiling > 0 ? rate() / ceiling : 1; }
  // The share of the ceiling if whole sectors are counted; 0 if they are not.
  double sector_share() const {
    return ceiling > 0 ? static_cast<double>(sector_bytes) / timing.seconds / ceiling : 0;
  }
  // "fits L2", "host-bound" (enqueueing took most of the time), both, or empty.
  std::string note() const;
};

// The machine and the batch with which the rows were measured.
struct BenchmarkPlace {
  std::string device;  // DeviceRoom.device
  std::string cpu;
  int64_t batch = 0;
};

// The row as the JSON line that the benchmark prints.
KernelLine LineOf(const BenchmarkPlace& place, const BenchmarkRow& row);
// A line for each row: first the ceilings, then the others with the lowest share first.
std::string TableOf(std::vector<BenchmarkRow> rows);

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_BACKEND_BENCHMARK_REPORT_H_

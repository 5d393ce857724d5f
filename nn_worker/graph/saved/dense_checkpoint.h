// The saved form of the dense network: named arrays of float32.
//
// All numbers are little-endian:
//   8 bytes   "SATDENSE"
//   u32       version, 1
//   u32       number of arrays
//   an array: u16 bytes of the name | name | u64 rows | u64 cols | rows * cols float32
//   u64       XXH64 (seed 0) of all bytes before
//
// Example, one array "b" of 1 x 2 with values 1 and -2 (51 bytes):
//   53 41 54 44 45 4e 53 45 | 01 00 00 00 | 01 00 00 00 | 01 00 62 |
//   01 00 00 00 00 00 00 00 | 02 00 00 00 00 00 00 00 | 00 00 80 3f | 00 00 00 c0 | XXH64
//
// Names: "LAYER.PARAMETER" (deep/linear_0.weight), "LAYER.PARAMETER#KIND.SLOT" for optimizer state
// (...weight#adam.m), "LAYER.PARAMETER#average" for averaged weights, "LAYER.STATE" for running
// statistics. The order of arrays has no meaning. The whole file has a few MB and is composed in
// memory.

#ifndef SATRAP_NN_WORKER_GRAPH_SAVED_DENSE_CHECKPOINT_H_
#define SATRAP_NN_WORKER_GRAPH_SAVED_DENSE_CHECKPOINT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace satrap {

struct NamedArray {
  std::string name;
  int64_t rows = 0;
  int64_t cols = 0;
  std::vector<float> values;
};

std::string EncodeArrays(const std::vector<NamedArray>& arrays);

// DATA_LOSS if `bytes` is cut short, too long or damaged; FAILED_PRECONDITION if it is of another
// version.
absl::StatusOr<std::vector<NamedArray>> DecodeArrays(absl::string_view bytes);

// The kind of the optimizer whose state is among the arrays, such as "adam". Empty if there is no
// state, as with SGD.
std::string OptimizerKindOf(const std::vector<NamedArray>& arrays);

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_GRAPH_SAVED_DENSE_CHECKPOINT_H_

// The hashes and orders of docs/formats.md, implemented a second time from that page for the
// oracle. This file does not call the engines' own functions (common/numeric/hash.h,
// common/numeric/random.h, data_loader/batch/block.h): otherwise an engine that consistently
// computes a wrong key or a wrong shuffle would agree with itself.
//
// Thread-safe: the functions depend only on their arguments.

#ifndef SATRAP_TESTS_SIMULATION_DATA_SIM_FORMATS_H_
#define SATRAP_TESTS_SIMULATION_DATA_SIM_FORMATS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/optional.h"

namespace satrap::simulation::formats {

// XXH64 with seed 0. REQUIRES: text.size() < 32, which holds for the ids and id spaces of a world
uint64_t XxHash64OfShortText(const std::string& text);

// The key of an id that is written as `text` in a file, in the id space `space`.
uint64_t KeyOfText(const std::string& text, const std::string& space);

// Which of the `num_ps` embedding PSs owns a key.
int OwnerOfKey(uint64_t key, int num_ps);

// The number of rows in a block if nothing is shuffled.
inline constexpr uint64_t kRowsOfUnshuffledBlock = 8192;

// The rows 0 .. rows - 1 of a block of the train stream in the order in which an epoch takes them.
std::vector<uint32_t> ShuffledRows(uint64_t seed, uint32_t epoch, uint32_t split, uint64_t block,
                                   uint32_t rows);

// The candidates of a part, drawn uniformly from classes 0 .. classes - 1, with repeats. `part` is
// absent if all parts of a batch have the same candidates.
struct DrawnPart {
  uint32_t epoch = 0, lane = 0;
  uint64_t seq = 0;
  absl::optional<uint32_t> part;
};
std::vector<uint64_t> UniformCandidates(uint64_t seed, const DrawnPart& of, int count,
                                        uint64_t classes);

}  // namespace satrap::simulation::formats

#endif  // SATRAP_TESTS_SIMULATION_DATA_SIM_FORMATS_H_

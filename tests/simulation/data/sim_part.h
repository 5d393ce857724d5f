// A part as a simulated rank sees it: its samples and the vectors that came with them. The samples
// are checked against the description in the answer (samples, provenance).
//
// Thread-safe: the functions depend only on their arguments.

#ifndef SATRAP_TESTS_SIMULATION_DATA_SIM_PART_H_
#define SATRAP_TESTS_SIMULATION_DATA_SIM_PART_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "nn_worker/rank/part_messages.h"
#include "tests/simulation/data/sim_data.h"
#include "tests/simulation/data/sim_row.h"

namespace satrap::simulation {

// In the order of the job's features.
enum SimFeature { kCounter = 0, kSingle = 1, kSeveral = 2, kNumFeatures = 3 };

struct SimPart {
  PartDescription description;
  std::vector<SimSample> samples;
  std::vector<std::vector<float>> rows_of_table;  // by TableRows
  std::vector<std::vector<uint32_t>> indices;     // by feature; empty if pooled
  std::vector<std::vector<uint32_t>> offsets;     // by feature
  std::vector<std::vector<float>> pooled;         // by feature [samples, values of a row]
  std::vector<uint64_t> candidate_keys;           // of a train part of a world with candidates
  std::vector<uint32_t> candidates;               // their rows in table "rows"

  float CandidateValue(size_t candidate, int d) const;
};

// The keys of a sample for feature kSingle or kSeveral.
std::vector<uint64_t> KeysOf(const SimSample& sample, int feature);

// Calls `violated` if the part does not match its description.
SimPart DecodePart(const WorldShape& shape, const PartInput& input,
                   const std::function<void(std::string)>& violated);

// The gradients of a part that is trained in `step`, summed over its samples. Pushes of a rank are
// numbered from 1. In the counter row, push `push` of `rank` adds 1 to value `rank` and `push` to
// value kMaxRanks + rank, so that every Lookup shows which pushes were applied before it.
PartGradients MakeGradients(const WorldShape& shape, int rank, uint64_t push,
                            const PartInput& input, const SimPart& part, const StepOfRows& step);

}  // namespace satrap::simulation

#endif  // SATRAP_TESTS_SIMULATION_DATA_SIM_PART_H_

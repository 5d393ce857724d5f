// The simulation's PartSource: batches of the world's samples in split order, from whatever splits
// its supply gives.
//
// Not thread-safe: it lives on the SimLoop's thread.

#ifndef SATRAP_TESTS_SIMULATION_SIM_PART_SOURCE_H_
#define SATRAP_TESTS_SIMULATION_SIM_PART_SOURCE_H_

#include <cstdint>
#include <deque>
#include <vector>

#include "data_loader/engine/part_source.h"
#include "data_loader/engine/split_supply.h"
#include "tests/simulation/sim_data.h"

namespace satrap::simulation {

// `lane` is the loader's index where the stream is unordered. `supply` is not owned and must
// outlive the source.
class SimPartSource final : public PartSource {
 public:
  SimPartSource(const WorldShape& shape, Stream stream, uint32_t lane, bool ordered,
                SplitSupply* supply)
      : shape_(shape), stream_(stream), lane_(lane), ordered_(ordered), supply_(supply) {}

  void Next(Callback done) override;

 private:
  void Pull(Callback done);
  void AddSplit(uint32_t split);
  void CutBatch(size_t size, bool last_of_lane);
  Part MakePart(const std::vector<SimSample>& samples, size_t from, size_t to, uint32_t part,
                bool last_of_lane) const;

  const WorldShape shape_;
  const Stream stream_;
  const uint32_t lane_;
  const bool ordered_;
  SplitSupply* const supply_;
  uint32_t epoch_ = 0;
  uint64_t seq_ = 0;
  bool supply_ended_ = false;
  std::vector<SimSample> waiting_;
  std::deque<Part> parts_;
};

}  // namespace satrap::simulation

#endif  // SATRAP_TESTS_SIMULATION_SIM_PART_SOURCE_H_

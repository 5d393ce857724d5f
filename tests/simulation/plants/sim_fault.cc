#include "tests/simulation/plants/sim_fault.h"

#include <algorithm>

#include "common/base/check.h"

namespace satrap::simulation {

absl::Span<const Fault> AllFaults() {
  static const auto* const kFaults = [] {
    auto* all = new std::vector<Fault>();
    for (auto* list : {RankFaults, MessageFaults, LoaderFaults, TableFaults, ChunkFaults,
                       LifeFaults, CutFaults, LogFaults, EndFaults, PlaceFaults}) {
      for (Fault& fault : list()) all->push_back(std::move(fault));
    }
    return all;
  }();
  return *kFaults;
}

const Fault& FaultThat(absl::string_view says) {
  const absl::Span<const Fault> all = AllFaults();
  const auto fault = std::find_if(all.begin(), all.end(),
                                  [says](const Fault& fault) { return fault.says == says; });
  CHECK(fault != all.end()) << says;
  return *fault;
}

}  // namespace satrap::simulation

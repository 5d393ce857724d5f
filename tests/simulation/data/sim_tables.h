// Computes row by row (sim_row.h) what the tables of a life must hold, and checks the answers of
// Lookups. Ordered worlds replay each step once, when its allreduce ends (AddGradients, StepRows).
// Unordered worlds replay each push (NotePush) in the order in which the embedding PSs applied it
// (OnUpdateApplied).
//
// Not thread-safe: it lives on the SimLoop's thread.

#ifndef SATRAP_TESTS_SIMULATION_DATA_SIM_TABLES_H_
#define SATRAP_TESTS_SIMULATION_DATA_SIM_TABLES_H_

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "tests/simulation/data/sim_data.h"
#include "tests/simulation/data/sim_part.h"
#include "tests/simulation/data/sim_row.h"

namespace satrap::simulation {

class SimTables {
 public:
  struct Content {
    std::map<uint64_t, SimRow> rows;              // unordered: by the Updates that were applied
    std::array<uint64_t, kMaxRanks> pushes = {};  // by rank: made, with gradients
  };

  // The tables begin as `content`. `violated` is called for each broken promise.
  SimTables(const WorldShape& shape, Content content, std::function<void(std::string)> violated);

  const Content& content() const { return content_; }
  // Call when another model was loaded.
  void SetRestored(const Content& content) { content_ = content; }
  // The number of Updates that embedding PSs must still apply.
  size_t updates_due() const { return updates_due_.size(); }

  // Counts a push of `rank` if it has gradients. Returns how many pushes the rank has made.
  uint64_t CountPush(int rank, const SimPart& part, bool finite);
  // Adds the gradients of a part to `sums`, by key.
  void AddGradients(const SimPart& part, std::map<uint64_t, RowGradient>* sums) const;
  // Ordered: makes one optimizer step per key, however many parts hold the key. Returns the result
  // of StepTable. REQUIRES: the step counts and is finite
  double StepRows(const std::map<uint64_t, RowGradient>& sums, const StepOfRows& step);
  // Unordered: records what the Updates of a push must change. The push is of a step that counts.
  void NotePush(int rank, const SimPart& part, bool finite, const StepOfRows& step);
  // Unordered: call when embedding PS `ps` has applied the Update of push `number` (CallId) of
  // `rank`. REQUIRES: called once for each of these Updates
  void OnUpdateApplied(int ps, uint32_t rank, uint64_t number);

  // Checks that the Lookup of a part of `rank` has missed at most the last `own_missing` pushes of
  // this rank, and no push of other ranks unless `others_missing`.
  void CheckCounters(int rank, const SimPart& part, int own_missing, bool others_missing) const;
  // Checks that the part has the values of the tables. Only for parts whose Lookup came when all
  // pushes were applied.
  void CheckValues(const SimPart& part, double absent) const;
  // Checks that rows that no push has touched have their initial values.
  void CheckUntouched(const SimPart& part) const;

 private:
  // What the Updates of a push must apply.
  struct Push {
    std::map<uint64_t, RowGradient> sums;
    StepOfRows step;
    double share;  // as SimRow::Pull
  };

  void CheckValue(const SimPart& part, size_t sample, int feature, double absent) const;

  const WorldShape shape_;
  const std::function<void(std::string)> violated_;
  Content content_;
  std::vector<std::vector<Push>> pushes_;                 // by rank; call number n at n - 1
  std::set<std::tuple<int, int, uint64_t>> updates_due_;  // embedding PS, rank, call number
  std::set<uint64_t> touched_;                            // keys of all pushes made
};

}  // namespace satrap::simulation

#endif  // SATRAP_TESTS_SIMULATION_DATA_SIM_TABLES_H_

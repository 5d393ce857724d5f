// The promises of a run over all its lives, and the check that its disk keeps them.
//
//   at the mark     Rank 0 begins a cut, every rank is idle and nothing is in flight. OnMark
//                   records what the tables, the ledger and the counts must be, as SimTraining
//                   knows them (State).
//   in the log      OnLog reads the entries that the disk holds: whenever the coordinator has
//                   acknowledged something, at the beginning of every life, and at the end. Then:
//                     - every acknowledged entry is still in its place, or a COMPACTED entry
//                       replaces it. A COMPACTED entry has all that is still needed: every
//                       generation, which generation was the last that ran, the newest cut, and
//                       every cut that still exists, with the job of the generation that made it;
//                     - generations ascend by one. Each begins from the newest cut since the
//                       previous generation began or, if there is none, where the previous one
//                       began; `resume` may go back to an older cut;
//                     - a generation has the job of the previous one, unless somebody changed it.
//                       After DROPPED, which only a failure that no restart cures may cause, it
//                       has the job of the last generation that ran;
//                     - once members were told that a generation runs, the log shows that this
//                       generation, a later one, or one with the same job has run;
//                     - a cut is of the newest generation, was marked, and is in the log once;
//                     - the log has no cut that the coordinator has called abandoned, or that was
//                       committed after the end of its generation was announced;
//                     - each new cut loads, and its rows, its ledger and its counts are those of
//                       its mark: rows = snapshot = ledger;
//                     - nothing follows the END of a run that has finished;
//                     - ends and submissions are as sim_ends.h says
//   the next life   It begins with StateOf(its cut). So the checks of a finished life
//                   (sim_checks.h) cover all lives before it: every sample's known gradient is in
//                   the tables exactly once, whatever was trained in between and lost. In hybrid
//                   mode the pushes since the cut are replayed; in sync mode the oracle computes
//                   the tables.
//
// A loss of power may remove entries that were not acknowledged; OnLog then accepts what is left.
//
// Not thread-safe: it lives on the SimLoop's thread.

#ifndef SATRAP_TESTS_SIMULATION_SIM_HISTORY_H_
#define SATRAP_TESTS_SIMULATION_SIM_HISTORY_H_

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/position.pb.h"
#include "proto/run_log.pb.h"
#include "tests/simulation/lives/sim_ends.h"
#include "tests/simulation/lives/sim_log.h"
#include "tests/simulation/sim_checks.h"
#include "tests/simulation/sim_trainer.h"

namespace satrap::simulation {

// What a generation that begins from a cut finds in it.
struct CutContent {
  RunPosition position;
  LedgerState ledger;
  TablesToCheck tables;
};

class History {
 public:
  // Reads a committed cut by the name of its folder. An error means that the cut does not load.
  using ReadCut = std::function<absl::StatusOr<CutContent>(const std::string& cut)>;

  // Whether the folder of a cut has a manifest.
  using IsThere = std::function<bool(const std::string& cut)>;

  // `violated` is called for each broken promise.
  History(const WorldShape& shape, ReadCut read_cut, IsThere is_there,
          std::function<void(std::string)> violated);

  // Call once for each cut that is begun, at its first BeginCut, whether or not it will be
  // committed.
  void OnMark(const std::string& cut, SimTraining::State state);
  // Call when the coordinator has told rank 0 that it could not commit the cut, or has told a
  // member that the generation is over. The cut, and later cuts of the generation, must never be in
  // the log.
  void OnAbandoned(const std::string& cut);
  void OnEnded(uint64_t generation) { ended_.insert(generation); }
  // Call after OnLog, when a member was told that the generation runs.
  void OnRuns(uint64_t generation);
  // Call when a member of the generation has failed before the generation ran, and would fail in
  // every generation of this job.
  void OnCannotBegin(uint64_t generation) { cannot_begin_.insert(generation); }
  // Call when the disk fails. From now on members may find damage, and no restart cures that.
  void OnDiskFailure() { disk_fails_ = true; }
  // Call after a loss of power. Folders that were removed may exist again.
  void OnPowerLoss() { power_was_lost_ = true; }
  // Reads the log. `acknowledged`: somebody was told what the last entry says, so all entries must
  // stay.
  void OnLog(const SimLog& log, bool acknowledged);

  SimEnds* ends() { return &ends_; }
  bool IsMarked(const std::string& cut) const { return marked_.count(cut) > 0; }
  // The state of a cut that was marked. "" stands for the beginning of the run.
  const SimTraining::State& StateOf(const std::string& cut) const;
  // Checks the newest cut again. Call before a generation begins from it.
  void CheckNewestAgain() {
    if (!newest_cut_.empty() && IsMarked(newest_cut_)) CheckCut(newest_cut_, StateOf(newest_cut_));
  }
  // Whether the cut is in the log.
  bool IsCommitted(const std::string& cut) const { return checked_.count(cut) > 0; }
  // The newest cut in the log; empty if there is none.
  const std::string& newest_cut() const { return newest_cut_; }
  uint64_t generation() const { return generation_; }          // the newest in the log
  bool finished() const { return finished_; }                  // END is in the log
  int cuts() const { return cuts_; }                           // committed
  size_t abandoned_cuts() const { return abandoned_.size(); }  // by the coordinator

 private:
  struct Known {
    size_t number;  // of its file, or of the COMPACTED entry that holds it
    std::shared_ptr<const SimLogEntry> entry;
  };

  // The first `count` entries of `log`.
  static std::vector<RunLogEntry> MessagesOf(const std::vector<Known>& log, size_t count);
  void CheckAcknowledged(const std::vector<Known>& log, size_t compacted);
  // Checks the acknowledged entries `before`, which a COMPACTED entry has replaced. The COMPACTED
  // entry holds `kept`.
  void CheckCompacted(const std::vector<RunLogEntry>& before, const std::vector<RunLogEntry>& kept);
  void CheckLeftOut(const CutEntry& cut, const std::vector<RunLogEntry>& before);
  void CheckRuns();
  void Read(const Known& known);
  void ReadGeneration(const Known& known);
  void CheckJob(const Known& known);
  void ReadCutEntry(const CutEntry& entry);
  void CheckCut(const std::string& cut, const SimTraining::State& marked);

  const WorldShape shape_;
  const ReadCut read_cut_;
  const IsThere is_there_;
  const std::function<void(std::string)> violated_;
  SimEnds ends_;
  std::map<std::string, SimTraining::State> marked_;  // by the name of the cut
  std::vector<Known> acknowledged_;
  size_t acknowledged_compacted_ = 0;  // the number of the COMPACTED entry
  std::set<std::string> left_out_;     // cuts that were rightly left out
  std::set<uint64_t> cannot_begin_;    // generations
  bool disk_fails_ = false;
  bool power_was_lost_ = false;
  std::map<std::string, bool> checked_;  // cuts
  std::set<std::string> abandoned_;      // cuts
  std::set<uint64_t> ended_;             // generations
  uint64_t runs_ = 0;                    // the last generation whose members were told so
  std::shared_ptr<const SimLogEntry> generation_that_runs_;  // null: none, or not in the log
  // The state after the last reading of the log.
  uint64_t generation_ = 0;
  bool is_kept_ = false;  // whether a COMPACTED entry holds the entry that is read
  bool dropped_ = false;  // whether the job of the newest generation was dropped
  // The generations whose jobs the log has.
  std::map<uint64_t, std::shared_ptr<const SimLogEntry>> with_job_;
  uint64_t ran_ = 0;  // the last generation that ran
  std::set<std::string> cuts_in_log_;
  std::string newest_cut_;
  bool finished_ = false;
  int cuts_ = 0;
};

}  // namespace satrap::simulation

#endif  // SATRAP_TESTS_SIMULATION_SIM_HISTORY_H_

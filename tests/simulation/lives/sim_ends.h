// What the log of a run must say about its submissions, its ends, and processes that leave their
// machines:
//
//   - an END names the submission that it ends, and no generation of that submission follows it;
//   - no generation of a submission follows the cut with which it stops, only its END;
//   - a later submission begins with a resume, has only one, and was made by somebody;
//   - the run is stopped only if somebody has asked for that;
//   - if somebody was told that the run has ended, the log says so;
//   - a generation that follows a move is not called a restart after a failure, and only such a
//     generation is called one that follows a move.
//
// Not thread-safe: it lives on the SimLoop's thread.

#ifndef SATRAP_TESTS_SIMULATION_LIVES_SIM_ENDS_H_
#define SATRAP_TESTS_SIMULATION_LIVES_SIM_ENDS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>

#include "absl/types/optional.h"
#include "proto/control.pb.h"
#include "proto/run_log.pb.h"

namespace satrap::simulation {

class SimEnds {
 public:
  // `violated` is called for each broken promise.
  explicit SimEnds(std::function<void(std::string)> violated) : violated_(std::move(violated)) {}

  // Call when somebody has made submission number `submission` of the run. Unless this is called,
  // those who make submissions count them, as launchers do.
  void OnSubmission(uint64_t submission) { made_ = submission; }
  void OnStopWish() { stop_wished_ = true; }
  // Call when a member was told that its generation is over because a process has moved.
  // `is_known`: whether the next coordinator learns of the move. The next coordinator may fail to
  // learn of it if the coordinator itself moves and cannot write that into the log.
  void OnMoved(uint64_t generation, bool is_known = true);
  // Call when a member of the generation was told that the run has ended in this state, but only
  // after the log was read.
  void OnEndTold(uint64_t generation, RunState state);

  bool left_for_stop() const { return left_for_stop_; }
  // Reads the log anew, entry by entry.
  void Begin();
  void Read(const RunLogEntry& entry);

 private:
  void ReadGeneration(const GenerationEntry& entry);

  const std::function<void(std::string)> violated_;
  uint64_t made_ = 0;  // 0: not known
  bool stop_wished_ = false;
  std::set<uint64_t> moved_;           // generations, if the next one must know of it
  std::set<uint64_t> may_have_moved_;  // generations, as members or the log said
  // State of the reading.
  uint64_t generation_ = 0;
  uint64_t submission_ = 0;
  absl::optional<RunState> end_;        // of the newest submission
  std::map<uint64_t, RunState> ended_;  // generations that were the last of a submission
  bool left_for_stop_ = false;          // the newest entry is such a cut
  bool left_for_move_ = false;          // the newest entry is such a cut, or LEFT
  bool just_began_ = false;             // the newest entry begins a generation
};

}  // namespace satrap::simulation

#endif  // SATRAP_TESTS_SIMULATION_LIVES_SIM_ENDS_H_

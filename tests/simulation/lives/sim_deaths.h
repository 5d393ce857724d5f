// The deaths in a world, drawn from its seed: when a life ends, how, and what comes after it. The
// draws use streams of their own, so that the world of a seed is the same with and without deaths.

#ifndef SATRAP_TESTS_SIMULATION_LIVES_SIM_DEATHS_H_
#define SATRAP_TESTS_SIMULATION_LIVES_SIM_DEATHS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/types/optional.h"
#include "proto/job.pb.h"
#include "tests/simulation/machine/sim_loop.h"
#include "tests/simulation/machine/sim_process.h"

namespace satrap::simulation {

// A value of `stop_seconds` that marks a job which no process can run, as if a device were missing.
inline constexpr double kCannotBegin = 1234;

// What happens to one process of a life. Times are in microseconds after the death that ends the
// life.
struct ProcessEnd {
  int64_t stands_still_us = 0;  // comes before the death
  int64_t dies_after_us = -1;   // -1: it lives to the end of the world, a zombie
};

// The end of one life, or an event that may lead to it.
struct LifeEnd {
  enum How {
    kDeath,          // of `victim`; the others follow
    kPower,          // everything dies and the disk loses what was not synced
    kOtherLauncher,  // the next life begins while this one lives on
    kFailedWrite,    // one operation on the disk fails
    kStopWish,       // the run is asked to stop, and resumed
    kScaleWish,      // the run is asked for other numbers of replicas
    kFailedRead,     // one operation that reads from the disk fails
    kFailure,        // a member reports an error that a restart may cure
  };
  How how = kDeath;
  int64_t after_events = 0;  // of the life; one that finishes before has no death
  // 0: the victim dies between two events. Otherwise it dies in the middle of its code: from that
  // time on its acts are counted, and it dies instead of doing act number at_act
  // (SimProcess::KillAtAct).
  int64_t at_act = 0;
  uint64_t victim = 0;          // of Life::processes, modulo their number
  int64_t nth_operation = 0;    // on the disk, from then on: the one that fails
  bool in_log = false;          // counts only writes in the log's folder
  bool disk_is_full = false;    // else it fails because the disk is broken
  int64_t next_after_us = 0;    // when the next life begins
  bool other_replicas = false;  // the next life has other numbers of replicas
  bool cannot_begin = false;    // the size that is wished for cannot run

  // Whether all processes get SIGKILL at once, as from a launcher that notices a death.
  bool all_at_once = false;
  bool nobody_dies = false;
  uint64_t seed = 0;

  // What happens to process number `index`, if not all die at once.
  ProcessEnd OfProcess(size_t index) const;
};

// Ends the processes of a life as `end` says. Neither they nor `loop` are owned.
void EndProcesses(const LifeEnd& end, const std::vector<std::unique_ptr<SimProcess>>& processes,
                  SimLoop* loop);

// In pods: a second process that asks for the place of a member.
struct TwinPlan {
  uint64_t member = 0;      // the member, modulo their number
  bool in_its_pod = false;  // as if the member had died; else it is a twin in another pod
  // Whether it reports a failure instead of its first heartbeat. If so, it starts only after the
  // coordinator has heard a heartbeat of the member.
  bool fails = false;
  int64_t starts_after_us = 0;
  int64_t dies_after_us = 0;  // after its start

  // Whether the life ends when the coordinator hears this process.
  bool EndsLife() const { return in_its_pod && !fails; }
};

struct DeathPlan {
  std::vector<LifeEnd> ends;           // in turn; the life after them may finish
  std::vector<int64_t> cut_wishes;     // after this many events of the world
  std::vector<KillPoint> kill_points;  // of the job
  // In every life a process dies after this many events, until the run has no restart left. Then
  // the run is resumed without these deaths. 0: no such deaths.
  int64_t poison_after_events = 0;
  int max_restarts = 100;
  uint64_t seed = 0;  // 0: no plan was drawn
  // Whether the run is in pods: coordinators belong to submissions, and nobody waits for the
  // processes. Otherwise a launcher starts them.
  bool in_pods = false;
  // In pods: the processes that have to leave their machines. Each pair has the number of events of
  // the world until then, and the process.
  std::vector<std::pair<int64_t, uint64_t>> moves;
  // Whether the coordinator dies as soon as the cut of a stop is committed.
  bool dies_after_stop_cut = false;
  // In pods: the first life in which nobody starts a certain member (0: there is none), and the
  // member, modulo the number of members. It stays missing until the run has failed because of it.
  int absent_from_life = 0;
  uint64_t absent_member = 0;

  static DeathPlan Draw(uint64_t seed);
  // If the plan has no end for a life, draws how that life ends.
  static LifeEnd DrawEnd(uint64_t seed, uint64_t life);
  // Another coordinator may claim the generation of life `life` in the middle of that life's own
  // claim. Returns the number, counted from 1, of the claim's disk operation before which that
  // happens; 0 if it does not happen.
  int64_t RivalAt(int life) const;
  // Whether the coordinator is started again, as life `life`, before somebody resumes the run.
  bool StartsAgainAfterEnd(int life) const;
  // Whether a coordinator of the previous submission wakes up during life `life`.
  bool HasStaleCoordinator(int life) const;
  // The second process that life `life` has, if any.
  absl::optional<TwinPlan> TwinOf(int life) const;
  // MovesCoordinator: whether the coordinator of life `life` is in another pod than that of the
  // life before. HasTwinCoordinator: whether, in addition, the coordinator in the earlier pod wakes
  // up.
  bool MovesCoordinator(int life) const;
  bool HasTwinCoordinator(int life) const;
  // Whether the run is resumed, as life `life`, with a job that cannot run.
  bool ResumesWithWrongJob(int life) const;
  std::string Describe() const;
};

}  // namespace satrap::simulation

#endif  // SATRAP_TESTS_SIMULATION_LIVES_SIM_DEATHS_H_

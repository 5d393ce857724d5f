// What `satrap chaos` does to a run: which process it kills or stops, and when, drawn from a seed.
// "When" is a point of the training's progress, or a moment in time.
//
// Thread-compatible.

#ifndef SATRAP_DEPLOY_CLI_CHAOS_CHAOS_PLAN_H_
#define SATRAP_DEPLOY_CLI_CHAOS_CHAOS_PLAN_H_

#include <cstdint>
#include <string>
#include <vector>

#include "proto/control.pb.h"
#include "proto/job.pb.h"

namespace satrap {

struct ChaosEvent {
  double fraction = 0;  // PlanChaos: the fraction of the training at which it is due
  // For PlanRandomKills: how long to wait once the launcher has started new processes after the
  // previous kill.
  double wait_seconds = 0;
  Role role = COORDINATOR;
  int index = 0;
  double stop_seconds = 0;  // SIGSTOP, and SIGCONT after this long; 0: SIGKILL
};

// The run waits for a process that is stopped for the short time. A process that is stopped for the
// long time counts as lost.
inline constexpr double kShortStopSeconds = 5;
inline constexpr double kLongStopSeconds = 20;

// Plans `kills` kills, one short stop and one long stop, at ascending fractions below 0.9. `seed`
// decides their order and their processes. A kill may hit any process of the job, and is as likely
// to hit the coordinator as any other role; a stop never hits the coordinator. Equal arguments give
// equal events.
std::vector<ChaosEvent> PlanChaos(const JobConfig& job, int kills, uint64_t seed);

// Plans `kills` kills. Their waits have an exponential distribution with mean `every_seconds`, so
// every moment after a start is equally likely, even the first ones. As in PlanChaos, `seed`
// decides the processes, and equal arguments give equal events.
std::vector<ChaosEvent> PlanRandomKills(const JobConfig& job, int kills, double every_seconds,
                                        uint64_t seed);

// "kills embedding_ps 1", "stops nn_worker 0 for 20 s".
std::string ChaosText(const ChaosEvent& event);

}  // namespace satrap

#endif  // SATRAP_DEPLOY_CLI_CHAOS_CHAOS_PLAN_H_

// What the command pod_chaos does to a run in pods: which disturbances, of which processes, and in
// which order, drawn from a seed.
//
// Thread-safe: functions of their arguments.

#ifndef SATRAP_TESTS_PODS_POD_CHAOS_PLAN_H_
#define SATRAP_TESTS_PODS_POD_CHAOS_PLAN_H_

#include <cstdint>
#include <string>
#include <vector>

#include "proto/control.pb.h"

namespace satrap {

enum class Disturbance : uint8_t {
  kKill,            // SIGKILL of a role's process
  kDelete,          // a pod is deleted, with its grace period
  kForceDelete,     // a pod is deleted without it
  kKillFirst,       // SIGKILL of process 1 of a container
  kPause,           // SIGSTOP of a role's process, and SIGCONT after 5 s
  kStandStill,      // SIGSTOP for good
  kDrain,           // the node is drained, and pods may come back
  kUseUpMemory,     // the kernel kills a role's process for lack of memory
  kRestartKubelet,  // the kubelet ends, and another one follows
};

struct PodChaosEvent {
  Disturbance disturbance = Disturbance::kKill;
  // The process that is disturbed, or whose pod is. Not used for a drain and a restart of the
  // kubelet.
  Role role = COORDINATOR;
  int index = 0;
};

// All disturbances, in the order in which a table lists them.
const std::vector<Disturbance>& AllDisturbances();
// "process killed"
std::string DisturbanceName(Disturbance disturbance);
// "process killed: embedding_ps 1"
std::string PodChaosText(const PodChaosEvent& event);
// How many generations the disturbance may cost. If this is not 0, it costs at least one.
int MostGenerations(Disturbance disturbance);

// Plans `kills` kills, and 25 other events: 12 pods are deleted and 3 by force, process 1 is killed
// in five different pods, and each other disturbance comes once. The run has two processes of each
// role. A kill or deletion is as likely to hit the coordinator as any other role; a process that is
// suspended is never the coordinator's, and the one that lacks memory is an embedding PS. Equal
// arguments give equal events.
std::vector<PodChaosEvent> PlanPodChaos(int kills, uint64_t seed);

}  // namespace satrap

#endif  // SATRAP_TESTS_PODS_POD_CHAOS_PLAN_H_

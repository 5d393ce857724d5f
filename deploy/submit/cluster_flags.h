// The flags of the commands for runs that are in a Kubernetes cluster, a struct for each.
//
// Thread-compatible.

#ifndef SATRAP_DEPLOY_SUBMIT_CLUSTER_FLAGS_H_
#define SATRAP_DEPLOY_SUBMIT_CLUSTER_FLAGS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "common/flags/flags.h"

namespace satrap {

// --namespace, into `to`: of a command for the whole namespace, and of one for a run.
Flag NamespaceFlag(std::string* to);
Flag NamespaceOfRunFlag(std::string* to);

struct NamespaceFlags {
  std::string space;  // the namespace; empty: that of the user's context
  std::vector<Flag> Table();
};

// The flags of commands that take a folder of a run, or a run in the cluster.
struct PlaceFlags {
  std::string space;  // empty: where `submit` has noted the run (command/run_place.h), or a folder
  // For a command in a pod of the run: where the coordinator serves, and its submission.
  std::string coordinator;
  uint64_t submission = 1;
  std::vector<Flag> Table();
};

struct ScaleFlags {
  PlaceFlags place;
  bool plan = false;  // in a pod: prints a ScalePlan, and changes nothing
  std::vector<Flag> Table();
};

struct ClusterLogFlags {
  NamespaceFlags cluster;
  bool follow = false;
  bool previous = false;
  // For a command in a pod of the run, as of PlaceFlags: RUN is the run's folder.
  std::string coordinator;
  uint64_t submission = 1;
  std::vector<Flag> Table();
};

struct DeleteFlags {
  NamespaceFlags cluster;
  bool now = false;
  std::vector<Flag> Table();
};

// The flags of `story`, which Kubernetes starts.
struct StoryFlags {
  std::string run_dir;
  std::string coordinator;
  uint64_t submission = 1;
  std::string termination_log;
  std::vector<Flag> Table();
};

// The flags of `members`, which Kubernetes starts.
struct MembersFlags {
  std::string config;  // the resolved job
  std::string coordinator;
  uint64_t submission = 1;
  std::vector<Flag> Table();
};

}  // namespace satrap

#endif  // SATRAP_DEPLOY_SUBMIT_CLUSTER_FLAGS_H_

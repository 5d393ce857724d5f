// The flags of the commands for runs that are in a Kubernetes cluster, one struct for each command.
//
// Thread-compatible.

#ifndef SATRAP_DEPLOY_SUBMIT_CLUSTER_FLAGS_H_
#define SATRAP_DEPLOY_SUBMIT_CLUSTER_FLAGS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "common/flags/flags.h"

namespace satrap {

// The flag --namespace, whose value goes to `*to`: for commands that concern the whole namespace,
// and for commands that concern one run.
Flag NamespaceFlag(std::string* to);
Flag NamespaceOfRunFlag(std::string* to);

struct NamespaceFlags {
  std::string space;  // the namespace; empty: that of the user's context
  std::vector<Flag> Table();
};

// The flags of commands that take either a run's folder or the name of a run in the cluster.
struct PlaceFlags {
  // The namespace. If it is empty, the namespace that `submit` has noted for the run is used
  // (command/run_place.h). If none is noted, RUN is a folder.
  std::string space;
  // Only for a command that runs in a pod of the run: the coordinator's address, and its
  // submission.
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
  // Only for a command that runs in a pod of the run, as in PlaceFlags. RUN is then the run's
  // folder.
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
  double start_seconds = 600;
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

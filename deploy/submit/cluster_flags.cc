#include "deploy/submit/cluster_flags.h"

#include <utility>

namespace satrap {
Flag NamespaceFlag(std::string* to) {
  return TextFlag("namespace", "N", "a namespace of the cluster (default: that of your context)",
                  to);
}

Flag NamespaceOfRunFlag(std::string* to) {
  return TextFlag("namespace", "N",
                  R"(RUN is a run in that namespace of the cluster (default: the namespace that
                     `submit` has noted for RUN))",
                  to);
}

std::vector<Flag> NamespaceFlags::Table() { return {NamespaceFlag(&space)}; }

std::vector<Flag> PlaceFlags::Table() {
  return {
      NamespaceOfRunFlag(&space),
      // Only Satrap itself sets these flags (ArgumentsInPod), so the help does not list them.
      TextFlag("coordinator", "HOST:PORT", "", &coordinator),
      NumberFlag("submission", "N", "", &submission, 1),
  };
}

std::vector<Flag> ScaleFlags::Table() {
  std::vector<Flag> flags = place.Table();
  flags.push_back(SwitchFlag("plan", "", &plan));
  return flags;
}

std::vector<Flag> ClusterLogFlags::Table() {
  std::vector<Flag> flags = {NamespaceOfRunFlag(&cluster.space)};
  flags.push_back(SwitchFlag("follow", "also show lines that are added later", &follow));
  flags.push_back(
      SwitchFlag("previous", "show the log of the container that ran before this one", &previous));
  flags.push_back(TextFlag("coordinator", "HOST:PORT", "", &coordinator));
  flags.push_back(NumberFlag("submission", "N", "", &submission, 1));
  return flags;
}

std::vector<Flag> DeleteFlags::Table() {
  std::vector<Flag> flags = {NamespaceOfRunFlag(&cluster.space)};
  flags.push_back(SwitchFlag("now", "if the run is in progress, do not wait for a last cut", &now));
  return flags;
}

std::vector<Flag> MembersFlags::Table() {
  return {
      Required(TextFlag("config", "FILE", "the job, from which only run_dir is read", &config)),
      Required(TextFlag("coordinator", "HOST:PORT", "where the coordinator serves", &coordinator)),
      NumberFlag("submission", "N", "which submission of the run to wait for (default: 1)",
                 &submission, 1),
  };
}

std::vector<Flag> StoryFlags::Table() {
  return {
      Required(TextFlag("run_dir", "DIR", "the run's folder", &run_dir)),
      Required(TextFlag("coordinator", "HOST:PORT", "where the coordinator serves", &coordinator)),
      NumberFlag("submission", "N", "the submission whose story is shown (default: 1)", &submission,
                 1),
      NumberFlag("start_seconds", "S",
                 "how long the coordinator may be silent before the submission has begun (default: "
                 "600)",
                 &start_seconds, 0),
      TextFlag("termination_log", "FILE", "receives how the run has ended, or why it has failed",
               &termination_log),
  };
}

}  // namespace satrap

// What the pods of a run ask for: processors, memory and cards.
//
// Thread-safe: functions of their arguments.

#ifndef SATRAP_DEPLOY_SUBMIT_POD_RESOURCES_H_
#define SATRAP_DEPLOY_SUBMIT_POD_RESOURCES_H_

#include <string>
#include <vector>

#include "deploy/submit/kubectl/yaml.h"
#include "proto/control.pb.h"
#include "proto/job.pb.h"

namespace satrap {

// The job's settings for the pods of a role.
const KubernetesPod& PodOf(Role role, const KubernetesConfig& config);

// Whether each process of the role has a card of its own.
bool HasCard(Role role, const JobConfig& job);

// The threads of a process of the role that compute or answer requests.
int BusyThreadsOf(Role role, const JobConfig& job);

// The field `resources` of a role's container. Processors and memory are always reserved, because a
// namespace with a quota refuses pods without them. If the job sets the memory, that is also the
// limit.
Yaml::Map ResourcesOf(Role role, const JobConfig& job);

// The field `resources` of the containers of the two Jobs, which only read files and print.
Yaml::Map ResourcesOfJobs();

// Warns of what the user may not expect, with one line for each: threads for which no processor is
// reserved, an embedding PS without a memory limit, and how much of such a limit cuts may need.
std::vector<std::string> PodWarnings(const JobConfig& job);

}  // namespace satrap

#endif  // SATRAP_DEPLOY_SUBMIT_POD_RESOURCES_H_

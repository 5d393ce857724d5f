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

// What the job says of the pods of a role.
const KubernetesPod& PodOf(Role role, const KubernetesConfig& config);

// Whether each process of the role has a card of its own.
bool HasCard(Role role, const JobConfig& job);

// The threads of a process of the role that compute or answer requests.
int BusyThreadsOf(Role role, const JobConfig& job);

// The field `resources` of a role's container. Processors and memory are always reserved, because a
// namespace with a quota takes no pod without; memory that the job gives is also the limit.
Yaml::Map ResourcesOf(Role role, const JobConfig& job);

// The same of the containers of the two Jobs, which only read files and print.
Yaml::Map ResourcesOfJobs();

// What may not go as the user expects: threads for which no processor is reserved, an embedding PS
// without a limit of its memory, and how much of such a limit cuts may need. A line each.
std::vector<std::string> PodWarnings(const JobConfig& job);

}  // namespace satrap

#endif  // SATRAP_DEPLOY_SUBMIT_POD_RESOURCES_H_

#include "deploy/submit/pod_resources.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/check.h"
#include "common/base/count_text.h"
#include "common/config/quantity.h"
#include "common/role/role_flags.h"

namespace satrap {
namespace {

using Map = Yaml::Map;

constexpr char kCoordinatorCpu[] = "250m";
constexpr char kMemory[] = "256Mi";

std::string CpuOf(Role role, const JobConfig& job) {
  const KubernetesPod& pod = PodOf(role, job.kubernetes());
  if (pod.has_cpu()) return pod.cpu();
  return role == COORDINATOR ? kCoordinatorCpu : absl::StrCat(BusyThreadsOf(role, job));
}

// "2.0 GiB"
std::string GibText(double bytes) { return absl::StrFormat("%.1f GiB", bytes / 0x1p30); }

void WarnOfThreads(Role role, const JobConfig& job, std::vector<std::string>* warnings) {
  const KubernetesPod& pod = PodOf(role, job.kubernetes());
  if (!pod.has_cpu()) return;
  const int threads = BusyThreadsOf(role, job);
  if (threads <= *ParseQuantity(pod.cpu())) return;
  warnings->push_back(absl::StrCat("each ", RoleName(role), " has ",
                                   Counted(static_cast<uint64_t>(threads), "busy thread"),
                                   ", but kubernetes.", RoleName(role), ".cpu reserves ", pod.cpu(),
                                   ": on a full node they share less than a processor each"));
}

void WarnOfMemory(const JobConfig& job, std::vector<std::string>* warnings) {
  const KubernetesPod& pod = job.kubernetes().embedding_ps();
  if (!pod.has_memory()) {
    warnings->emplace_back(
        "kubernetes.embedding_ps.memory is not given: an embedding PS may take all memory of its "
        "node, and Kubernetes may then kill any of the pods there");
    return;
  }
  const double limit = *ParseQuantity(pod.memory());
  const auto copy = static_cast<double>(job.checkpoint().copy_bytes());
  const std::string of_cuts =
      absl::StrCat("each embedding PS may use ", GibText(limit), ", of which a cut may need up to ",
                   GibText(copy), " (checkpoint.copy_bytes)");
  warnings->push_back(copy < limit ? absl::StrCat(of_cuts, ": that leaves ", GibText(limit - copy),
                                                  " for rows, their index and messages")
                                   : absl::StrCat(of_cuts, ": nothing is left for rows"));
}

}  // namespace

const KubernetesPod& PodOf(Role role, const KubernetesConfig& config) {
  switch (role) {
    case COORDINATOR:
      return config.coordinator();
    case DATA_LOADER:
      return config.data_loader();
    case EMBEDDING_WORKER:
      return config.embedding_worker();
    case EMBEDDING_PS:
      return config.embedding_ps();
    case NN_WORKER:
      return config.nn_worker();
  }
  CHECK(false) << "role " << static_cast<int>(role);
  return config.coordinator();
}

bool HasCard(Role role, const JobConfig& job) {
  return role == NN_WORKER && job.nn_worker().device() == NnWorkerConfig::CUDA;
}

int BusyThreadsOf(Role role, const JobConfig& job) {
  // Threads of a coordinator wait most of the time.
  if (role == COORDINATOR) return 0;
  return ThreadsOf(role, job) + (role == NN_WORKER ? job.nn_worker().compute_threads() : 0);
}

Map ResourcesOf(Role role, const JobConfig& job) {
  const KubernetesPod& pod = PodOf(role, job.kubernetes());
  Map requests = {{"cpu", CpuOf(role, job)}, {"memory", pod.has_memory() ? pod.memory() : kMemory}};
  Map limits;
  if (pod.has_memory()) limits.emplace_back("memory", pod.memory());
  if (HasCard(role, job)) {
    for (Map* map : {&requests, &limits}) map->emplace_back(pod.card(), 1);
  }
  Map resources = {{"requests", std::move(requests)}};
  if (!limits.empty()) resources.emplace_back("limits", std::move(limits));
  return resources;
}

Map ResourcesOfJobs() { return {{"requests", Map{{"cpu", "100m"}, {"memory", "128Mi"}}}}; }

std::vector<std::string> PodWarnings(const JobConfig& job) {
  std::vector<std::string> warnings;
  for (const Role role : {EMBEDDING_PS, EMBEDDING_WORKER, DATA_LOADER, NN_WORKER}) {
    WarnOfThreads(role, job, &warnings);
  }
  WarnOfMemory(job, &warnings);
  return warnings;
}

}  // namespace satrap

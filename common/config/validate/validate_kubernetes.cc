#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/config/kubernetes_names.h"
#include "common/config/quantity.h"
#include "common/config/validate/validate_job.h"

namespace satrap {
namespace {

// A mount would hide what the container itself has at one of these paths.
constexpr absl::string_view kReserved[] = {"/etc",  "/usr", "/lib", "/lib64", "/opt/satrap",
                                           "/proc", "/sys", "/dev", "/tmp"};

// An absolute path of a folder below the root, in its shortest form.
bool IsFolder(const std::string& path) {
  return path.size() > 1 && path[0] == '/' && path.back() != '/' &&
         // Compares as text: as paths, "/a//b" and "/a/b" are equal.
         std::filesystem::path(path).lexically_normal().string() == path;
}

bool IsIn(absl::string_view path, absl::string_view folder) {
  return path == folder || absl::StartsWith(path, absl::StrCat(folder, "/"));
}

// The mounts of a pod. None may lie in another one, because the order in which they are made would
// then decide which of the two is visible.
class Mounts {
 public:
  void Add(const std::string& field, const std::string& path, Problems* problems) {
    // A colon separates the parts of a mount in some container runtimes.
    if (!IsFolder(path) || absl::StrContains(path, ':')) {
      problems->Add(
          field, absl::StrCat("must be an absolute path in its shortest form, without ':', got '",
                              path, "'"));
      return;
    }
    for (const absl::string_view reserved : kReserved) {
      if (!IsIn(path, reserved) && !IsIn(reserved, path)) continue;
      problems->Add(
          field, absl::StrCat("must not lie in ", reserved,
                              " or contain it, because containers need that folder, got ", path));
      return;
    }
    for (const auto& [other, at] : mounts_) {
      if (!IsIn(path, at) && !IsIn(at, path)) continue;
      problems->Add(field, absl::StrCat("must not overlap ", other, " (", at, "), got ", path));
      return;
    }
    mounts_.emplace_back(field, path);
  }

 private:
  std::vector<std::pair<std::string, std::string>> mounts_;  // field and path
};

void CheckVolumes(const KubernetesConfig& config, Mounts* mounts, Problems* problems) {
  int writable = 0;
  for (int i = 0; i < config.volumes_size(); ++i) {
    const KubernetesVolume& volume = config.volumes(i);
    const std::string path = absl::StrCat("kubernetes.volumes[", i, "]");
    writable += volume.read_only() ? 0 : 1;
    switch (volume.source_case()) {
      case KubernetesVolume::kClaim:
        if (IsObjectName(volume.claim())) break;
        problems->Add(path + ".claim",
                      absl::StrCat(kObjectNameRule, ", got '", volume.claim(), "'"));
        break;
      case KubernetesVolume::kHostPath:
        if (IsFolder(volume.host_path())) break;
        problems->Add(path + ".host_path",
                      absl::StrCat("must be an absolute path in its shortest form, got '",
                                   volume.host_path(), "'"));
        break;
      case KubernetesVolume::SOURCE_NOT_SET:
        problems->Add(path, "must have a claim or a host_path");
        break;
    }
    mounts->Add(path + ".mount_path", volume.mount_path(), problems);
  }
  if (writable == 1) return;
  problems->Add("kubernetes.volumes",
                absl::StrCat("exactly one volume must be writable (not read_only), because the "
                             "run's folder is made in it, got ",
                             writable, " writable ones"));
}

void CheckSecrets(const KubernetesConfig& config, Mounts* mounts, Problems* problems) {
  for (int i = 0; i < config.secrets_size(); ++i) {
    const KubernetesSecret& secret = config.secrets(i);
    const std::string path = absl::StrCat("kubernetes.secrets[", i, "]");
    if (!IsObjectName(secret.name())) {
      problems->Add(path + ".name", absl::StrCat(kObjectNameRule, ", got '", secret.name(), "'"));
    }
    mounts->Add(path + ".mount_path", secret.mount_path(), problems);
  }
}

void CheckQuantity(const std::string& field, bool is_given, const std::string& text,
                   absl::string_view examples, Problems* problems) {
  if (!is_given || ParseQuantity(text).has_value()) return;
  problems->Add(field, absl::StrCat("must be a Kubernetes quantity above 0, such as ", examples,
                                    ", got '", text, "'"));
}

void CheckLabel(const std::string& field, const std::string& key, const std::string& value,
                absl::string_view name_of_key, Problems* problems) {
  if (!IsLabelKey(key)) {
    problems->Add(
        absl::StrCat(field, ".", name_of_key),
        absl::StrCat("must be a Kubernetes label key such as kubernetes.io/arch, got '", key, "'"));
  }
  if (!IsLabelValue(value)) {
    problems->Add(field + ".value",
                  absl::StrCat("must have at most 63 letters, digits, '-', '_' and '.', and begin "
                               "and end with a letter or digit, got '",
                               value, "'"));
  }
}

void CheckPod(const KubernetesPod& pod, const std::string& path, bool has_card,
              Problems* problems) {
  CheckQuantity(path + ".cpu", pod.has_cpu(), pod.cpu(), "2 or 500m", problems);
  CheckQuantity(path + ".memory", pod.has_memory(), pod.memory(), "4Gi or 512M", problems);
  const std::string& card = KubernetesPod::default_instance().card();
  if (!has_card && pod.card() != card) {
    problems->Add(path + ".card",
                  absl::StrCat("is for kubernetes.nn_worker with nn_worker.device CUDA only, got '",
                               pod.card(), "'"));
  } else if (!IsLabelKey(pod.card()) || !absl::StrContains(pod.card(), '/')) {
    problems->Add(path + ".card", absl::StrCat("must be a Kubernetes resource name such as ", card,
                                               ", got '", pod.card(), "'"));
  }
  for (int i = 0; i < pod.node_selector_size(); ++i) {
    const KubernetesNodeLabel& label = pod.node_selector(i);
    const std::string field = absl::StrCat(path, ".node_selector[", i, "]");
    CheckLabel(field, label.name(), label.value(), "name", problems);
    for (int other = 0; other < i; ++other) {
      if (pod.node_selector(other).name() != label.name()) continue;
      problems->Add(field + ".name", absl::StrCat("must be unique, but node_selector[", other,
                                                  "] has ", label.name(), ", too"));
      break;
    }
  }
  for (int i = 0; i < pod.tolerations_size(); ++i) {
    const KubernetesToleration& toleration = pod.tolerations(i);
    CheckLabel(absl::StrCat(path, ".tolerations[", i, "]"), toleration.key(), toleration.value(),
               "key", problems);
  }
}

}  // namespace

void ValidateKubernetes(const JobConfig& job, Problems* problems) {
  if (!job.has_kubernetes()) return;
  const KubernetesConfig& config = job.kubernetes();
  if (config.has_image() &&
      (config.image().empty() || config.image().find_first_of(" \t\n") != std::string::npos)) {
    problems->Add("kubernetes.image",
                  absl::StrCat("must be the name of an image such as REGISTRY/satrap:TAG, got '",
                               config.image(), "'"));
  }
  Mounts mounts;
  CheckVolumes(config, &mounts, problems);
  CheckSecrets(config, &mounts, problems);
  const bool has_card = job.nn_worker().device() == NnWorkerConfig::CUDA;
  CheckPod(config.coordinator(), "kubernetes.coordinator", /*has_card=*/false, problems);
  CheckPod(config.data_loader(), "kubernetes.data_loader", /*has_card=*/false, problems);
  CheckPod(config.embedding_worker(), "kubernetes.embedding_worker", /*has_card=*/false, problems);
  CheckPod(config.embedding_ps(), "kubernetes.embedding_ps", /*has_card=*/false, problems);
  CheckPod(config.nn_worker(), "kubernetes.nn_worker", has_card, problems);
}

}  // namespace satrap

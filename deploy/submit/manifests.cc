#include "deploy/submit/manifests.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/base/check.h"
#include "common/config/job_config.h"
#include "common/role/role_flags.h"
#include "deploy/submit/pod_resources.h"

namespace satrap {
namespace {

using List = Yaml::List;
using Map = Yaml::Map;

constexpr Role kRoles[] = {COORDINATOR, EMBEDDING_PS, EMBEDDING_WORKER, DATA_LOADER, NN_WORKER};
constexpr int kUser = 65532;  // of the image
constexpr char kPrograms[] = "/opt/satrap";
constexpr char kJobDir[] = "/etc/satrap";
constexpr char kJobFile[] = "/etc/satrap/job.textproto";
constexpr char kScratch[] = "/tmp";
// The grace of a pod beyond `stop_seconds`, in which a pod that leaves may wait for a last cut.
constexpr int kGraceSeconds = 15;
// A Job makes a new pod however often its pod is lost.
constexpr int64_t kNoLimit = 2147483647;

std::string Dashed(absl::string_view name) { return absl::StrReplaceAll(name, {{"_", "-"}}); }

const KubernetesVolume& RunVolume(const KubernetesConfig& config) {
  return *std::find_if(config.volumes().begin(), config.volumes().end(),
                       [](const KubernetesVolume& volume) { return !volume.read_only(); });
}

Map Labels(const RunInCluster& run, absl::string_view part) {
  return {{kAppLabel, "satrap"}, {kRunLabel, run.name}, {kPartLabel, part}};
}

Map Metadata(const RunInCluster& run, const std::string& name, absl::string_view part,
             bool is_owned) {
  Map metadata = {{"name", name}};
  if (!run.space.empty()) metadata.emplace_back("namespace", run.space);
  metadata.emplace_back("labels", Labels(run, part));
  Map annotations = {{kSubmissionAnnotation, absl::StrCat(run.submission)}};
  if (!run.identity.empty()) annotations.emplace_back(kIdentityAnnotation, run.identity);
  if (!run.command.empty()) annotations.emplace_back(kCommandAnnotation, run.command);
  if (part == "story" || part == "job" || part == Dashed(RoleName(COORDINATOR))) {
    annotations.emplace_back(kRunDirAnnotation, RunDirOf(run));
  }
  metadata.emplace_back("annotations", annotations);
  if (is_owned && !run.owner_uid.empty()) {
    metadata.emplace_back("ownerReferences", List{Map{{"apiVersion", "batch/v1"},
                                                      {"kind", "Job"},
                                                      {"name", NameOfMembersJob(run.name)},
                                                      {"uid", run.owner_uid}}});
  }
  return metadata;
}

Map FieldVariable(const std::string& name, const std::string& path) {
  return {{"name", name}, {"valueFrom", Map{{"fieldRef", Map{{"fieldPath", path}}}}}};
}

// The volumes of a pod, and where its container mounts them.
class Mounts {
 public:
  void Add(const std::string& name, std::pair<std::string, Yaml> source, const std::string& path,
           bool read_only) {
    volumes_.push_back(Map{{"name", name}, std::move(source)});
    Map mount = {{"name", name}, {"mountPath", path}};
    if (read_only) mount.emplace_back("readOnly", true);
    mounts_.push_back(std::move(mount));
  }
  void AddVolumesOf(const KubernetesConfig& config) {
    for (int i = 0; i < config.volumes_size(); ++i) {
      const KubernetesVolume& volume = config.volumes(i);
      Map source;
      if (volume.has_claim()) {
        source = {{"claimName", volume.claim()}};
        if (volume.read_only()) source.emplace_back("readOnly", true);
      } else {
        source = {{"path", volume.host_path()}, {"type", "Directory"}};
      }
      Add(volume.read_only() ? absl::StrCat("data-", i) : "run",
          {volume.has_claim() ? "persistentVolumeClaim" : "hostPath", source}, volume.mount_path(),
          volume.read_only());
    }
  }
  void AddSecretsOf(const KubernetesConfig& config) {
    for (int i = 0; i < config.secrets_size(); ++i) {
      const KubernetesSecret& secret = config.secrets(i);
      Add(absl::StrCat("secret-", i), {"secret", Map{{"secretName", secret.name()}}},
          secret.mount_path(), /*read_only=*/true);
    }
  }
  List TakeVolumes() { return std::move(volumes_); }
  List TakeMounts() { return std::move(mounts_); }

 private:
  List volumes_;
  List mounts_;
};

Mounts MountsOf(const RunInCluster& run, bool with_job) {
  Mounts mounts;
  if (with_job) {
    mounts.Add("job", {"configMap", Map{{"name", NameOfJobMap(run)}}}, kJobDir, /*read_only=*/true);
  }
  mounts.Add("scratch", {"emptyDir", Map{}}, kScratch, /*read_only=*/false);
  mounts.AddVolumesOf(run.job.kubernetes());
  return mounts;
}

Map NodeSelector(const KubernetesPod& pod) {
  constexpr char kArch[] = "kubernetes.io/arch";
  Map selector;
  bool has_arch = false;
  for (const KubernetesNodeLabel& label : pod.node_selector()) {
    has_arch = has_arch || label.name() == kArch;
    selector.emplace_back(label.name(), label.value());
  }
  // The image has no programs for other architectures.
  if (!has_arch) selector.emplace_back(kArch, "amd64");
  return selector;
}

List Tolerations(const KubernetesPod& pod) {
  List tolerations;
  for (const KubernetesToleration& toleration : pod.tolerations()) {
    Map map = {{"key", toleration.key()},
               {"operator", toleration.has_value() ? "Equal" : "Exists"}};
    if (toleration.has_value()) map.emplace_back("value", toleration.value());
    switch (toleration.effect()) {
      case KubernetesToleration::ANY:
        break;
      case KubernetesToleration::NO_SCHEDULE:
        map.emplace_back("effect", "NoSchedule");
        break;
      case KubernetesToleration::PREFER_NO_SCHEDULE:
        map.emplace_back("effect", "PreferNoSchedule");
        break;
      case KubernetesToleration::NO_EXECUTE:
        map.emplace_back("effect", "NoExecute");
        break;
    }
    tolerations.push_back(std::move(map));
  }
  return tolerations;
}

// A container with the fields that all containers have, followed by `more`.
Map Container(const RunInCluster& run, List command, List args, Map resources, Map more) {
  Map container = {{"name", "satrap"},
                   {"image", run.image},
                   {"imagePullPolicy", "IfNotPresent"},
                   // If the program ends before it has written a termination message, take the end
                   // of its log.
                   {"terminationMessagePolicy", "FallbackToLogsOnError"},
                   {"command", std::move(command)},
                   {"args", std::move(args)}};
  for (auto& field : more) container.push_back(std::move(field));
  container.emplace_back("resources", std::move(resources));
  container.emplace_back("securityContext", Map{{"allowPrivilegeEscalation", false},
                                                {"capabilities", Map{{"drop", List{"ALL"}}}},
                                                {"readOnlyRootFilesystem", true}});
  return container;
}

// The template of a pod with one container. `fields` are the first fields of the pod's spec.
Map PodTemplate(const RunInCluster& run, absl::string_view part, const KubernetesPod& pod,
                Map fields, Mounts mounts, Map container, Map annotations = {}) {
  Map metadata = {{"labels", Labels(run, part)}};
  if (!annotations.empty()) metadata.emplace_back("annotations", std::move(annotations));
  Map spec = std::move(fields);
  container.emplace_back("volumeMounts", mounts.TakeMounts());
  spec.emplace_back("automountServiceAccountToken", false);
  spec.emplace_back("enableServiceLinks", false);
  spec.emplace_back("nodeSelector", NodeSelector(pod));
  if (pod.tolerations_size() > 0) spec.emplace_back("tolerations", Tolerations(pod));
  spec.emplace_back("securityContext", Map{{"runAsNonRoot", true},
                                           {"runAsUser", kUser},
                                           {"runAsGroup", kUser},
                                           {"fsGroup", kUser},
                                           {"fsGroupChangePolicy", "OnRootMismatch"},
                                           {"seccompProfile", Map{{"type", "RuntimeDefault"}}}});
  spec.emplace_back("containers", List{std::move(container)});
  spec.emplace_back("volumes", mounts.TakeVolumes());
  return {{"metadata", std::move(metadata)}, {"spec", std::move(spec)}};
}

// Whether other processes of the run call the role.
bool Serves(Role role) { return role != DATA_LOADER && role != NN_WORKER; }

List RoleArgs(const RunInCluster& run, Role role) {
  List args = {absl::StrCat("--config=", kJobFile)};
  if (role == COORDINATOR) {
    args.emplace_back(absl::StrCat("--submission=", run.submission));
    if (!run.from.empty()) args.emplace_back(absl::StrCat("--from=", run.from));
  } else {
    args.emplace_back("--role_index=$(INDEX)");
    args.emplace_back(
        absl::StrCat("--coordinator=", NameOfRole(run.name, COORDINATOR), ":", kServePort));
  }
  args.emplace_back("--ip=$(IP)");
  args.emplace_back("--holder=$(HOLDER)");
  if (Serves(role)) args.emplace_back(absl::StrCat("--port=", kServePort));
  args.emplace_back(absl::StrCat("--metrics_port=", kMetricsPort));
  args.emplace_back(absl::StrCat("--scratch=", kScratch));
  args.emplace_back("--termination_log=/dev/termination-log");
  return args;
}

Manifest RoleSet(const RunInCluster& run, Role role) {
  const std::string part = Dashed(RoleName(role));
  const std::string name = NameOfRole(run.name, role);
  const KubernetesPod& pod = PodOf(role, run.job.kubernetes());
  Mounts mounts = MountsOf(run, /*with_job=*/true);
  mounts.AddSecretsOf(run.job.kubernetes());
  if (HasCard(role, run.job)) {
    // The cards of one machine exchange sums through shared memory, but containers have only 64 MB
    // of it by default.
    mounts.Add("shared-memory", {"emptyDir", Map{{"medium", "Memory"}}}, "/dev/shm",
               /*read_only=*/false);
  }
  List env;
  if (role != COORDINATOR) {
    env.push_back(FieldVariable("INDEX", "metadata.labels['apps.kubernetes.io/pod-index']"));
  }
  env.push_back(FieldVariable("IP", "status.podIP"));
  env.push_back(FieldVariable("HOLDER", "metadata.uid"));
  Map ready = {{"httpGet", Map{{"path", "/ready"}, {"port", "metrics"}}},
               {"periodSeconds", 2},
               {"timeoutSeconds", 2}};
  List ports;
  if (Serves(role)) {
    ports.push_back(Map{{"name", "serve"}, {"containerPort", kServePort}});
  }
  ports.push_back(Map{{"name", "metrics"}, {"containerPort", kMetricsPort}});
  Map container = Container(
      run, {absl::StrCat(kPrograms, "/deploy/satrap_pod"), RoleName(role)}, RoleArgs(run, role),
      ResourcesOf(role, run.job),
      {{"env", std::move(env)}, {"ports", std::move(ports)}, {"readinessProbe", std::move(ready)}});
  const auto grace = static_cast<int64_t>(std::ceil(run.job.stop_seconds())) + kGraceSeconds;
  Map annotations = {{"prometheus.io/scrape", "true"},
                     {"prometheus.io/port", absl::StrCat(kMetricsPort)},
                     {"prometheus.io/path", "/metrics"}};
  Map object = {{"apiVersion", "apps/v1"},
                {"kind", "StatefulSet"},
                {"metadata", Metadata(run, name, part, /*is_owned=*/true)},
                {"spec", Map{{"replicas", ReplicasOf(role, run.job)},
                             {"podManagementPolicy", "Parallel"},
                             {"serviceName", NameOfRole(run.name, COORDINATOR)},
                             {"selector", Map{{"matchLabels", Labels(run, part)}}},
                             {"template", PodTemplate(run, part, pod,
                                                      {{"terminationGracePeriodSeconds", grace}},
                                                      std::move(mounts), std::move(container),
                                                      std::move(annotations))}}}};
  return {"StatefulSet", name, /*has_pods=*/true, std::move(object)};
}

Manifest CoordinatorService(const RunInCluster& run) {
  const std::string part = Dashed(RoleName(COORDINATOR));
  const std::string name = NameOfRole(run.name, COORDINATOR);
  Map object = {
      {"apiVersion", "v1"},
      {"kind", "Service"},
      {"metadata", Metadata(run, name, part, /*is_owned=*/true)},
      {"spec", Map{{"selector", Labels(run, part)},
                   // Let pods reach a coordinator as soon as it serves, before the kubelet has seen
                   // that.
                   {"publishNotReadyAddresses", true},
                   {"ports",
                    List{Map{{"name", "serve"}, {"port", kServePort}, {"targetPort", "serve"}}}}}}};
  return {"Service", name, /*has_pods=*/false, std::move(object)};
}

Manifest JobMap(const RunInCluster& run) {
  JobConfig job = run.job;
  job.set_run_dir(RunDirOf(run));
  job.mutable_kubernetes()->set_image(run.image);
  Map data = {{kJobKey, ResolvedJobText(job)}};
  if (!run.template_patch.empty()) data.emplace_back(kPatchKey, run.template_patch);
  Map object = {{"apiVersion", "v1"},
                {"kind", "ConfigMap"},
                {"metadata", Metadata(run, NameOfJobMap(run), "job", /*is_owned=*/false)},
                {"immutable", true},
                {"data", std::move(data)}};
  return {"ConfigMap", NameOfJobMap(run), /*has_pods=*/false, std::move(object)};
}

Manifest StoryJob(const RunInCluster& run) {
  Mounts mounts = MountsOf(run, /*with_job=*/false);
  Map container = Container(
      run,
      {absl::StrCat(kPrograms, "/deploy/satrap_cli"), absl::StrCat("--install_dir=", kPrograms)},
      {"story", absl::StrCat("--run_dir=", RunDirOf(run)),
       absl::StrCat("--coordinator=", NameOfRole(run.name, COORDINATOR), ":", kServePort),
       absl::StrCat("--submission=", run.submission),
       absl::StrCat("--start_seconds=", run.job.kubernetes().start_seconds()),
       "--termination_log=/dev/termination-log"},
      ResourcesOfJobs(), {});
  Map policy = {
      {"rules",
       List{// The run has failed: another pod would only say so again.
            Map{{"action", "FailJob"},
                {"onExitCodes",
                 Map{{"containerName", "satrap"}, {"operator", "In"}, {"values", List{1}}}}},
            Map{{"action", "Ignore"},
                {"onPodConditions", List{Map{{"type", "DisruptionTarget"}}}}}}}};
  Map object = {
      {"apiVersion", "batch/v1"},
      {"kind", "Job"},
      {"metadata", Metadata(run, run.name, "story", /*is_owned=*/false)},
      {"spec", Map{{"backoffLimit", kNoLimit},
                   {"podFailurePolicy", std::move(policy)},
                   {"template", PodTemplate(run, "story", run.job.kubernetes().coordinator(),
                                            {{"restartPolicy", "Never"}}, std::move(mounts),
                                            std::move(container))}}}};
  return {"Job", run.name, /*has_pods=*/true, std::move(object)};
}

}  // namespace

std::string ResourceOf(const Manifest& manifest) {
  constexpr std::pair<absl::string_view, absl::string_view> kResources[] = {
      {"Job", "jobs.batch"},
      {"Service", "services"},
      {"ConfigMap", "configmaps"},
      {"StatefulSet", "statefulsets.apps"}};
  for (const auto& [kind, resource] : kResources) {
    if (manifest.kind == kind) return absl::StrCat(resource, "/", manifest.name);
  }
  CHECK(false) << manifest.kind;
  return "";
}

std::string NameOfRole(absl::string_view run, Role role) {
  return absl::StrCat(run, "-", Dashed(RoleName(role)));
}

std::string NameOfMembersJob(absl::string_view run) { return absl::StrCat(run, "-members"); }

std::string NameOfJobMap(const RunInCluster& run) {
  const std::string name = run.name + "-job";
  return run.submission == 1 ? name : absl::StrCat(name, "-", run.submission);
}

std::string RunDirOf(const RunInCluster& run) {
  if (!run.run_dir.empty()) return run.run_dir;
  constexpr size_t kUidLetters = 8;
  const std::string name = run.owner_uid.empty()
                               ? run.name
                               : absl::StrCat(run.name, "-", run.owner_uid.substr(0, kUidLetters));
  return absl::StrCat(RunVolume(run.job.kubernetes()).mount_path(), "/", name);
}

Manifest MembersJob(const RunInCluster& run) {
  const std::string name = NameOfMembersJob(run.name);
  // The pod reads the run's folder from the job's file, because the folder is not known yet when
  // this object is made.
  Mounts mounts = MountsOf(run, /*with_job=*/true);
  Map container = Container(
      run,
      {absl::StrCat(kPrograms, "/deploy/satrap_cli"), absl::StrCat("--install_dir=", kPrograms)},
      {"members", absl::StrCat("--config=", kJobFile),
       absl::StrCat("--coordinator=", NameOfRole(run.name, COORDINATOR), ":", kServePort),
       absl::StrCat("--submission=", run.submission)},
      ResourcesOfJobs(), {});
  Map object = {
      {"apiVersion", "batch/v1"},
      {"kind", "Job"},
      {"metadata", Metadata(run, name, "members", /*is_owned=*/false)},
      {"spec", Map{{"backoffLimit", kNoLimit},
                   // Kubernetes removes the Job, and all that it owns, as soon as it has ended.
                   {"ttlSecondsAfterFinished", 0},
                   {"template", PodTemplate(run, "members", run.job.kubernetes().coordinator(),
                                            {{"restartPolicy", "OnFailure"}}, std::move(mounts),
                                            std::move(container))}}}};
  return {"Job", name, /*has_pods=*/true, std::move(object)};
}

std::vector<Manifest> OwnedManifests(const RunInCluster& run) {
  std::vector<Manifest> manifests = {CoordinatorService(run), JobMap(run)};
  for (const Role role : kRoles) manifests.push_back(RoleSet(run, role));
  manifests.push_back(StoryJob(run));
  return manifests;
}

Manifest ReaderJob(const RunInCluster& run, const std::string& id,
                   const std::vector<std::string>& command, const std::vector<std::string>& more) {
  constexpr int kKeptSeconds = 60;
  const std::string name = absl::StrCat(run.name, "-reader-", id);
  List args;
  for (const std::string& word : command) args.emplace_back(word);
  args.emplace_back(RunDirOf(run));
  for (const std::string& word : more) args.emplace_back(word);
  // Nobody calls this address. The flag only says that the command runs in a pod.
  args.emplace_back(absl::StrCat("--coordinator=127.0.0.1:", kServePort));
  args.emplace_back(absl::StrCat("--submission=", run.submission));
  Map container = Container(
      run,
      {absl::StrCat(kPrograms, "/deploy/satrap_cli"), absl::StrCat("--install_dir=", kPrograms)},
      std::move(args), ResourcesOfJobs(), {});
  Map object = {
      {"apiVersion", "batch/v1"},
      {"kind", "Job"},
      {"metadata", Metadata(run, name, kReaderPart, /*is_owned=*/false)},
      {"spec",
       Map{{"backoffLimit", 0},
           {"activeDeadlineSeconds", kReaderSeconds},
           {"ttlSecondsAfterFinished", kKeptSeconds},
           {"template", PodTemplate(run, kReaderPart, run.job.kubernetes().coordinator(),
                                    {{"restartPolicy", "Never"}}, MountsOf(run, /*with_job=*/false),
                                    std::move(container))}}}};
  return {"Job", name, /*has_pods=*/true, std::move(object)};
}

std::string ManifestsText(RunInCluster run) {
  run.owner_uid.clear();
  std::string text = MembersJob(run).object.Text();
  for (const Manifest& manifest : OwnedManifests(run)) {
    absl::StrAppend(&text, "---\n", manifest.object.Text());
  }
  return text;
}

}  // namespace satrap

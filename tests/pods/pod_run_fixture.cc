#include "tests/pods/pod_run_fixture.h"

#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/substitute.h"
#include "common/config/job_config.h"
#include "common/role/role_flags.h"
#include "common/thread/clock.h"

namespace satrap {
namespace {

namespace fs = std::filesystem;

constexpr int kUser = 65532;  // the image's
constexpr double kSecondsToEnd = 180;
constexpr int64_t kPatienceMs = 60000;
constexpr Role kRoles[] = {COORDINATOR, EMBEDDING_PS, EMBEDDING_WORKER, DATA_LOADER, NN_WORKER};
constexpr char kRunInPod[] = "/var/lib/satrap/run";

// $0: namespace; $1: folder
constexpr char kNamespace[] = R"(apiVersion: v1
kind: Namespace
metadata: {name: $0, labels: {pod-security.kubernetes.io/enforce: restricted}}
---
apiVersion: v1
kind: ResourceQuota
metadata: {name: quota, namespace: $0}
spec: {hard: {pods: "10", requests.cpu: "2", requests.memory: 2Gi, persistentvolumeclaims: "1"}}
---
apiVersion: v1
kind: PersistentVolume
metadata: {name: $0}
spec:
  capacity: {storage: 1Gi}
  accessModes: [ReadWriteMany]
  storageClassName: ""
  hostPath: {path: $1, type: Directory}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: run, namespace: $0}
spec:
  accessModes: [ReadWriteMany]
  storageClassName: ""
  volumeName: $0
  resources: {requests: {storage: 1Gi}}
---
apiVersion: v1
kind: Service
metadata: {name: coordinator, namespace: $0}
spec: {selector: {role: coordinator}, ports: [{port: 7000}]}
)";

// $0: namespace; $1: name; $2: role; $3: replicas; $4: image; $5: the coordinator's address;
// $6: the run's folder
constexpr char kStatefulSet[] = R"(---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: $1, namespace: $0}
spec:
  serviceName: $1
  replicas: $3
  podManagementPolicy: Parallel
  selector: {matchLabels: {role: $1}}
  template:
    metadata: {labels: {role: $1}}
    spec:
      automountServiceAccountToken: false
      enableServiceLinks: false
      terminationGracePeriodSeconds: 10
      securityContext:
        runAsNonRoot: true
        runAsUser: 65532
        runAsGroup: 65532
        seccompProfile: {type: RuntimeDefault}
      containers:
      - name: role
        image: $4
        imagePullPolicy: Never
        command: [/opt/satrap/deploy/satrap_pod]
        args: [$2, --config=/etc/satrap/job.textproto, --scratch=/scratch, --role_index=$$(INDEX), --ip=$$(IP),
               --port=7000, "--coordinator=$5:7000", --termination_log=/dev/termination-log]
        env:
        - {name: INDEX, valueFrom: {fieldRef: {fieldPath: "metadata.labels['apps.kubernetes.io/pod-index']"}}}
        - {name: IP, valueFrom: {fieldRef: {fieldPath: status.podIP}}}
        securityContext:
          allowPrivilegeEscalation: false
          readOnlyRootFilesystem: true
          capabilities: {drop: [ALL]}
        resources: {requests: {cpu: 100m, memory: 64Mi}, limits: {memory: 1Gi}}
        volumeMounts:
        - {name: job, mountPath: /etc/satrap}
        - {name: scratch, mountPath: /scratch}
        - {name: run, mountPath: $6}
      volumes:
      - {name: job, configMap: {name: job}}
      - {name: scratch, emptyDir: {medium: Memory, sizeLimit: 1Mi}}
      - {name: run, persistentVolumeClaim: {claimName: run}}
)";

std::string NameOf(Role role) {
  return absl::StrReplaceAll(std::string(RoleName(role)), {{"_", "-"}});
}

int CountOf(const std::string& words, const std::string& text) {
  int count = 0;
  for (size_t at = text.find(words); at != std::string::npos; at = text.find(words, at + 1))
    ++count;
  return count;
}

// The first word of its command line.
std::string ProgramOf(pid_t pid) {
  const std::string line = ReadFile(absl::StrCat("/proc/", pid, "/cmdline"));
  return line.substr(0, line.find('\0'));
}

}  // namespace

std::unique_ptr<KubeCluster> PodRunFixture::cluster_;

void PodRunFixture::SetUp() {
  if (cluster_ == nullptr) GTEST_SKIP() << "there is no Kubernetes";
  FaultFixture::SetUp();
  // A name of Kubernetes, made of a folder's.
  run_ = absl::StrCat("run-", getpid(), "-",
                      ::testing::UnitTest::GetInstance()->current_test_info()->line());
}

void PodRunFixture::TearDown() {
  if (cluster_ != nullptr) {
    if (HasFailure()) {
      Kubectl({"get", "pods,events", "-o", "wide"});
      for (const auto& log : fs::directory_iterator(RunDir() + "/logs")) {
        const std::string text = ReadFile(log.path());
        std::fprintf(stderr, "==== %s\n%s\n", log.path().c_str(),
                     text.substr(text.size() - std::min<size_t>(text.size(), 4000)).c_str());
      }
    }
    Kubectl({"delete", "statefulset", "--all", "--cascade=foreground", "--timeout=60s"});
    cluster_->Kubectl({"delete", "namespace", run_, "--wait=false"});
    cluster_->Kubectl({"delete", "persistentvolume", run_, "--wait=false"});
  }
  FaultFixture::TearDown();
}

std::string PodRunFixture::Kubectl(const std::vector<std::string>& args) const {
  std::vector<std::string> all = {"--namespace", run_};
  all.insert(all.end(), args.begin(), args.end());
  return cluster_->Kubectl(all);
}

void PodRunFixture::StartPods(const std::string& job) {
  absl::StatusOr<JobConfig> config = LoadJob(job, {}, /*install_dir=*/".");
  ASSERT_TRUE(config.ok()) << config.status();
  config->set_run_dir(kRunInPod);
  fs::create_directory(RunDir());
  ASSERT_EQ(chown(RunDir().c_str(), kUser, kUser), 0);
  // The folder above is this test's alone, but the kubelet mounts what it finds in it.
  const std::string resolved = WriteFile("resolved.textproto", ResolvedJobText(*config));
  cluster_->Create("namespace", absl::Substitute(kNamespace, run_, RunDir()));
  Kubectl({"create", "configmap", "job", "--from-file=job.textproto=" + resolved});
  const std::string coordinator =
      Kubectl({"get", "service", "coordinator", "-o", "jsonpath={.spec.clusterIP}"});
  std::string sets;
  for (const Role role : kRoles) {
    absl::StrAppend(&sets, absl::Substitute(kStatefulSet, run_, NameOf(role),
                                            std::string(RoleName(role)), ReplicasOf(role, *config),
                                            cluster_->image(), coordinator, kRunInPod));
  }
  cluster_->Create("sets", sets);
}

bool PodRunFixture::WaitForTheEnd() {
  return WaitUntil(
      [this] {
        const std::vector<RunLogEntry> log = Log();
        return std::any_of(log.begin(), log.end(),
                           [](const RunLogEntry& entry) { return entry.has_end(); });
      },
      kSecondsToEnd);
}

int PodRunFixture::FirstSteps() const {
  const std::string words = "has made the first step";
  return std::min(CountOf(words, LogOf(NN_WORKER, 0)), CountOf(words, LogOf(NN_WORKER, 1)));
}

bool PodRunFixture::WaitForFirstSteps(int count) {
  return WaitUntil([&] { return FirstSteps() >= count; }, kSecondsToEnd);
}

std::string PodRunFixture::PodOf(Role role, int index) {
  return absl::StrCat(NameOf(role), "-", index);
}

std::vector<pid_t> PodRunFixture::ProcessesOf(Role role, int index) const {
  const std::string uid =
      Kubectl({"get", "pod", PodOf(role, index), "-o", "jsonpath={.metadata.uid}"});
  std::vector<pid_t> pids;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator("/proc", error)) {
    pid_t pid;
    if (!absl::SimpleAtoi(entry.path().filename().string(), &pid)) continue;
    if (absl::StrContains(ReadFile(entry.path() / "cgroup"), "pod" + uid)) pids.push_back(pid);
  }
  return pids;
}

void PodRunFixture::SignalRole(Role role, int index, int signal) {
  const std::string program = absl::StrCat("/", std::string(RoleName(role)));
  const int64_t deadline_ms = MonotonicMs() + kPatienceMs;
  while (true) {
    for (const pid_t pid : ProcessesOf(role, index)) {
      if (!absl::EndsWith(ProgramOf(pid), program)) continue;
      ASSERT_EQ(SendSignal(pid, signal), 0);
      return;
    }
    ASSERT_LT(MonotonicMs(), deadline_ms) << "no process of " << MemberName(role, index);
    poll(nullptr, 0, 10);
  }
}

void PodRunFixture::LosePod(Role role, int index) {
  for (const pid_t pid : ProcessesOf(role, index)) SendSignal(pid, SIGSTOP);
  Kubectl({"delete", "pod", PodOf(role, index), "--grace-period=1", "--wait=false"});
}

int PodRunFixture::ContainerRestarts() const {
  const std::string counts = Kubectl(
      {"get", "pods", "-o", "jsonpath={.items[*].status.containerStatuses[*].restartCount}"});
  int sum = 0;
  for (const absl::string_view text : absl::StrSplit(counts, ' ', absl::SkipEmpty())) {
    int count = 0;
    EXPECT_TRUE(absl::SimpleAtoi(text, &count)) << counts;
    sum += count;
  }
  return sum;
}

std::string PodRunFixture::LogOf(Role role, int index) const {
  return ReadFile(
      absl::StrCat(RunDir(), "/logs/", std::string(RoleName(role)), "_", index, ".log"));
}

}  // namespace satrap

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
#include "absl/strings/str_split.h"
#include "absl/strings/substitute.h"
#include "common/role/role_flags.h"
#include "common/thread/clock.h"
#include "deploy/submit/manifests.h"

namespace satrap {
namespace {

namespace fs = std::filesystem;

constexpr int kUser = 65532;  // the image's
constexpr double kSecondsToBegin = 60;
constexpr double kSecondsToEnd = 180;
constexpr int64_t kPatienceMs = 60000;
constexpr char kMemoryCgroups[] = "/sys/fs/cgroup/memory";  // of v1
constexpr char kRun[] = "counting";  // the name of the job, and so of the run

// $0: namespace; $1: folder
constexpr char kNamespace[] = R"(apiVersion: v1
kind: Namespace
metadata: {name: $0, labels: {pod-security.kubernetes.io/enforce: restricted}}
---
apiVersion: v1
kind: ResourceQuota
metadata: {name: quota, namespace: $0}
spec: {hard: {pods: "20", requests.cpu: "2", requests.memory: 12Gi, persistentvolumeclaims: "1"}}
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
metadata: {name: runs, namespace: $0}
spec:
  accessModes: [ReadWriteMany]
  storageClassName: ""
  volumeName: $0
  resources: {requests: {storage: 1Gi}}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: user, namespace: $0}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: user, namespace: $0}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: edit}
subjects: [{kind: ServiceAccount, name: user, namespace: $0}]
)";

// The pods ask for less than by default, because the node is a small machine. $0: memory
constexpr char kInPods[] = R"(
kubernetes {
  volumes { claim: "runs" mount_path: "/runs" }
  coordinator { cpu: "100m" memory: "$0" }
  data_loader { cpu: "100m" memory: "$0" }
  embedding_worker { cpu: "100m" memory: "$0" }
  embedding_ps { cpu: "100m" memory: "$0" }
  nn_worker { cpu: "100m" memory: "$0" }
}
)";

// The first word of the process's command line.
std::string ProgramOf(pid_t pid) {
  const std::string line = ReadFile(absl::StrCat("/proc/", pid, "/cmdline"));
  return line.substr(0, line.find('\0'));
}

// The folder of the cgroup (v1) that limits the memory of a process.
std::string MemoryCgroupOf(pid_t pid) {
  const std::string cgroups = ReadFile(absl::StrCat("/proc/", pid, "/cgroup"));
  for (const absl::string_view line : absl::StrSplit(cgroups, '\n')) {
    const std::vector<std::string> fields = absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (fields.size() == 3 && fields[1] == "memory") return kMemoryCgroups + fields[2];
  }
  return "";
}

// The name of the run's folder in the output of `submit`; empty if it is not there yet.
std::string FolderIn(const std::string& said) {
  const std::string words = "its folder is /runs/";
  const size_t at = said.find(words);
  const size_t end = said.find('\n', at);
  if (at == std::string::npos || end == std::string::npos) return "";
  return said.substr(at + words.size(), end - at - words.size());
}

}  // namespace

std::unique_ptr<KubeCluster> PodRunFixture::cluster_;

void PodRunFixture::SetUp() {
  if (cluster_ == nullptr) GTEST_SKIP() << "there is no Kubernetes";
  FaultFixture::SetUp();
  space_ = absl::StrCat("run-", getpid(), "-",
                        ::testing::UnitTest::GetInstance()->current_test_info()->line());
  const std::string volume = Path("volume");
  fs::create_directory(volume);
  ASSERT_EQ(chown(volume.c_str(), kUser, kUser), 0);
  cluster_->Create("namespace", absl::Substitute(kNamespace, space_, volume));
  // Wait until the role `edit` has rules: a controller collects them when the cluster starts.
  cluster_->Kubectl(
      {"wait", "clusterrole/edit", "--for=jsonpath={.rules[0].verbs[0]}", "--timeout=60s"});
  cluster_->BecomeUser("user", space_, Path("kubeconfig"));
}

void PodRunFixture::TearDown() {
  if (cluster_ == nullptr) return;
  if (HasFailure()) {
    Kubectl({"get", "all,events", "-o", "wide"});
    std::error_code error;
    for (const auto& log : fs::directory_iterator(RunDir() + "/logs", error)) {
      const std::string text = ReadFile(log.path());
      std::fprintf(stderr, "==== %s\n%s\n", log.path().c_str(),
                   text.substr(text.size() - std::min<size_t>(text.size(), 4000)).c_str());
    }
  }
  Kubectl({"delete", "jobs,statefulsets", "--all", "--wait=false"});
  Kubectl({"delete", "pods", "--all", "--grace-period=1", "--timeout=60s"});
  cluster_->Kubectl({"delete", "namespace", space_, "--wait=false"});
  cluster_->Kubectl({"delete", "persistentvolume", space_, "--wait=false"});
  FaultFixture::TearDown();
}

std::string PodRunFixture::Kubectl(const std::vector<std::string>& args) const {
  std::vector<std::string> all = {"--namespace", space_};
  all.insert(all.end(), args.begin(), args.end());
  return cluster_->Kubectl(all);
}

std::string PodRunFixture::SectionOfPods(const std::string& memory) {
  return absl::Substitute(kInPods, memory);
}

std::string PodRunFixture::WriteJobInPods(int64_t records) {
  return WriteCountingJob(records, SectionOfPods());
}

void PodRunFixture::Submit(int64_t records, const std::vector<std::string>& args) {
  SubmitJob(WriteJobInPods(records), args);
}

void PodRunFixture::SubmitJob(const std::string& path, const std::vector<std::string>& args) {
  std::vector<std::string> all = {"submit", path, "--name", kRun, "--image", cluster_->image()};
  all.insert(all.end(), args.begin(), args.end());
  submit_ = StartSatrap(all);
  const std::string folder = AwaitFolder();
  ASSERT_NE(folder, "") << ReadFile(submit_.err_path);
  LookInto(folder);
}

void PodRunFixture::LookInto(const std::string& folder) {
  fs::remove(RunDir());
  fs::create_directory_symlink("volume/" + folder, RunDir());
}

std::string PodRunFixture::AwaitFolder() const {
  std::string folder;
  WaitUntil(
      [&] {
        folder = FolderIn(ReadFile(submit_.err_path));
        return !folder.empty();
      },
      kSecondsToBegin);
  return folder;
}

void PodRunFixture::StopRun() {
  const CommandEnd stop = Satrap({"stop", kRun, "--namespace", space_});
  EXPECT_EQ(stop.exit_code, 0) << stop.err;
}

void PodRunFixture::ResumeInPods(const std::vector<std::string>& args) {
  std::vector<std::string> all = {"resume", kRun, "--namespace", space_};
  all.insert(all.end(), args.begin(), args.end());
  submit_ = StartSatrap(all);
  EXPECT_EQ(fs::path(AwaitFolder()).filename(), fs::read_symlink(RunDir()).filename())
      << ReadFile(submit_.err_path);
}

CommandEnd PodRunFixture::AwaitSubmit() { return WaitFor(submit_, kSecondsToEnd); }

std::string PodRunFixture::EndOfJob() const {
  // While a Job ends it has other conditions, too.
  const auto shown = [](const std::string& type) {
    return absl::StrCat("{.status.conditions[?(@.type==\"", type, "\")].type}");
  };
  return Kubectl(
      {"get", "job", kRun, "-o", absl::StrCat("jsonpath=", shown("Complete"), shown("Failed"))});
}

void PodRunFixture::AwaitPodsGone() const {
  const std::string run = absl::StrCat(kRunLabel, "=", kRun);
  for (const char* const kind : {"statefulsets", "services"}) {
    Kubectl({"wait", "--for=delete", kind, "--selector", run, "--timeout=60s"});
  }
  const std::string pods = absl::StrCat(run, ",", kPartLabel, "!=story");
  Kubectl({"wait", "--for=delete", "pods", "--selector", pods, "--timeout=60s"});
  EXPECT_EQ(Kubectl({"get", "jobs", "--selector", run, "-o", "name"}),
            absl::StrCat("job.batch/", kRun));
}

void PodRunFixture::ExpectFinishedInPods(int64_t records) {
  const CommandEnd end = AwaitSubmit();
  EXPECT_EQ(end.exit_code, 0) << end.err << end.out;
  ExpectEachRecordTrained(records);
  EXPECT_EQ(EndOfJob(), "Complete");
  AwaitPodsGone();
}

int PodRunFixture::FirstSteps() const {
  const std::string words = "has made the first step";
  return static_cast<int>(
      std::min(CountOf(LogOf(NN_WORKER, 0), words), CountOf(LogOf(NN_WORKER, 1), words)));
}

bool PodRunFixture::WaitForFirstSteps(int count) {
  return WaitUntil([&] { return FirstSteps() >= count; }, kSecondsToEnd);
}

std::string PodRunFixture::PodOf(Role role, int index) {
  return absl::StrCat(NameOfRole(kRun, role), "-", index);
}

std::string PodRunFixture::UidOf(Role role, int index) const {
  return Kubectl({"get", "pod", PodOf(role, index), "-o", "jsonpath={.metadata.uid}"});
}

std::vector<pid_t> PodRunFixture::ProcessesOf(const std::string& uid) {
  const std::string folder = "pod" + uid;
  std::vector<pid_t> pids;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator("/proc", error)) {
    pid_t pid;
    if (!absl::SimpleAtoi(entry.path().filename().string(), &pid)) continue;
    if (absl::StrContains(ReadFile(entry.path() / "cgroup"), folder)) pids.push_back(pid);
  }
  return pids;
}

pid_t PodRunFixture::ProcessOf(Role role, int index, const std::string& program) const {
  const int64_t deadline_ms = MonotonicMs() + kPatienceMs;
  while (MonotonicMs() < deadline_ms) {
    for (const pid_t pid : ProcessesOf(UidOf(role, index))) {
      if (absl::EndsWith(ProgramOf(pid), "/" + program)) return pid;
    }
    poll(nullptr, 0, 10);
  }
  return 0;
}

void PodRunFixture::SignalRole(Role role, int index, int signal) {
  const pid_t pid = ProcessOf(role, index, std::string(RoleName(role)));
  ASSERT_GT(pid, 0) << "no process of " << MemberName(role, index);
  ASSERT_EQ(SendSignal(pid, signal), 0);
}

void PodRunFixture::KillFirstProcess(Role role, int index) {
  const pid_t pid = ProcessOf(role, index, "satrap_pod");
  ASSERT_GT(pid, 0) << "no container of " << MemberName(role, index);
  ASSERT_EQ(SendSignal(pid, SIGKILL), 0);
}

void PodRunFixture::UseUpMemory(Role role, int index) {
  const pid_t pid = ProcessOf(role, index, std::string(RoleName(role)));
  ASSERT_GT(pid, 0) << "no process of " << MemberName(role, index);
  const std::string folder = MemoryCgroupOf(pid);
  const std::string limit_path = folder + "/memory.limit_in_bytes";
  const std::string limit = ReadFile(limit_path);
  ASSERT_NE(limit, "") << limit_path;
  const int64_t deadline_ms = MonotonicMs() + kPatienceMs;
  while (!absl::StrContains(LogOf(role, index), "memory was used up")) {
    ASSERT_LT(MonotonicMs(), deadline_ms) << "nothing was killed";
    // Each time that a limit is written, the kernel reclaims the memory that it can. It refuses a
    // limit that it cannot reach.
    std::ofstream(limit_path) << ReadFile(folder + "/memory.usage_in_bytes");
    poll(nullptr, 0, 10);
  }
  std::ofstream(limit_path) << limit;
  EXPECT_EQ(ReadFile(limit_path), limit);
}

void PodRunFixture::DeletePod(Role role, int index) {
  Kubectl({"delete", "pod", PodOf(role, index), "--wait=false"});
}

void PodRunFixture::ForceDeletePod(Role role, int index) {
  const std::string uid = UidOf(role, index);
  Kubectl({"delete", "pod", PodOf(role, index), "--force", "--grace-period=0", "--wait=false"});
  const int64_t deadline_ms = MonotonicMs() + kPatienceMs;
  while (!ProcessesOf(uid).empty()) {
    ASSERT_LT(MonotonicMs(), deadline_ms) << "the pod is deleted, but its processes run on";
    poll(nullptr, 0, 50);
  }
}

void PodRunFixture::EvictPod(Role role, int index) {
  const std::string pod = PodOf(role, index);
  const std::string eviction = absl::StrCat(
      R"({"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":")", pod, R"("}})");
  Kubectl({"create", "--raw",
           absl::StrCat("/api/v1/namespaces/", space_, "/pods/", pod, "/eviction"), "--filename",
           WriteFile("eviction.json", eviction)});
}

std::string PodRunFixture::TwinOf(Role role, int index) {
  return absl::StrCat("twin-of-", PodOf(role, index));
}

void PodRunFixture::MakeTwin(Role role, int index) {
  const std::string original =
      WriteFile("twin.json", Kubectl({"get", "pod", PodOf(role, index), "--output=json"}));
  const std::string patch = absl::StrCat(
      R"([{"op":"replace","path":"/metadata/name","value":")", TwinOf(role, index), "\"},",
      R"({"op":"remove","path":"/metadata/ownerReferences"},)",
      R"({"op":"remove","path":"/metadata/resourceVersion"},)",
      R"({"op":"remove","path":"/metadata/uid"},{"op":"remove","path":"/spec/nodeName"},)",
      R"({"op":"remove","path":"/spec/hostname"},{"op":"remove","path":"/status"}])");
  const std::string twin = Kubectl({"patch", "--local", "--filename", original, "--type=json",
                                    absl::StrCat("--patch=", patch), "--output=json"});
  Kubectl({"create", "--filename", WriteFile("twin.json", twin)});
}

std::string PodRunFixture::ReplicasOfSet(Role role) const {
  return Kubectl({"get", "statefulset", NameOfRole(kRun, role), "-o", "jsonpath={.spec.replicas}"});
}

void PodRunFixture::LosePod(Role role, int index) {
  for (const pid_t pid : ProcessesOf(UidOf(role, index))) SendSignal(pid, SIGSTOP);
  Kubectl({"delete", "pod", PodOf(role, index), "--grace-period=1", "--wait=false"});
}

int PodRunFixture::ContainerRestarts() const {
  const std::string counts = Kubectl(
      {"get", "pods", "-o", "jsonpath={.items[*].status.containerStatuses[*].restartCount}"});
  EXPECT_NE(counts, "") << "there are no pods";
  int sum = 0;
  for (const absl::string_view text : absl::StrSplit(counts, ' ', absl::SkipEmpty())) {
    int count = 0;
    EXPECT_TRUE(absl::SimpleAtoi(text, &count)) << counts;
    sum += count;
  }
  return sum;
}

std::string PodRunFixture::LogOf(Role role, int index) const {
  return ReadFile(absl::StrCat(RunDir(), "/logs/", RoleName(role), "_", index, ".log"));
}

}  // namespace satrap

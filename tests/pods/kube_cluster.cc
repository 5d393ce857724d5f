#include "tests/pods/kube_cluster.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/substitute.h"
#include "common/base/check.h"
#include "common/thread/clock.h"
#include "tests/integration/run_fixture.h"

namespace satrap {
namespace {

constexpr char kNode[] = "localhost";  // NODE in tests/pods/cluster/settings
constexpr char kScripts[] = "tests/pods/cluster/";
constexpr int kSeconds = 120;  // that a command may take
// The programs in the image that `./satrap image` makes.
const std::vector<std::string> kPrograms = {
    "deploy/satrap_cli",         "deploy/coordinator/coordinator",
    "data_loader/data_loader",   "embedding_worker/embedding_worker",
    "embedding_ps/embedding_ps", "nn_worker/nn_worker",
    "deploy/satrap_pod"};

// $0: the server; $1: its certificate; $2: namespace; $3: token
constexpr char kUserConfig[] = R"(apiVersion: v1
kind: Config
current-context: user
contexts: [{name: user, context: {cluster: tests, user: user, namespace: $2}}]
clusters: [{name: tests, cluster: {server: "$0", certificate-authority: "$1"}}]
users: [{name: user, user: {token: "$3"}}]
)";

struct Output {
  int exit_code = -1;
  std::string text;  // stdout; stderr is the test's own
};

Output RunCommand(std::vector<std::string> args) {
  args.insert(args.begin(), {"timeout", absl::StrCat(kSeconds)});
  for (std::string& arg : args) {
    CHECK(arg.find('\'') == std::string::npos) << arg;
    arg = absl::StrCat("'", arg, "'");
  }
  Output output;
  FILE* const pipe = popen(absl::StrJoin(args, " ").c_str(), "re");
  CHECK(pipe != nullptr) << args[2];
  char buffer[4096];
  for (size_t n; (n = fread(buffer, 1, sizeof(buffer), pipe)) > 0;) output.text.append(buffer, n);
  const int status = pclose(pipe);
  if (WIFEXITED(status)) output.exit_code = WEXITSTATUS(status);
  while (!output.text.empty() && output.text.back() == '\n') output.text.pop_back();
  return output;
}

std::string MustRun(const std::vector<std::string>& args) {
  const Output output = RunCommand(args);
  CHECK(output.exit_code == 0) << absl::StrJoin(args, " ") << "\n" << output.text;
  return output.text;
}

}  // namespace

std::unique_ptr<KubeCluster> KubeCluster::Start() {
  const char* const programs = std::getenv("SATRAP_KUBERNETES");
  if (std::getenv("SATRAP_REQUIRE_KUBERNETES") == nullptr) {
    std::fprintf(stderr, "skipped: SATRAP_REQUIRE_KUBERNETES is not set\n");
    return nullptr;
  }
  CHECK(programs != nullptr) << "no Kubernetes: ./setup kubernetes was not run";
  CHECK(geteuid() == 0) << "no Kubernetes: it needs root";
  std::unique_ptr<KubeCluster> self(new KubeCluster());
  self->programs_ = programs;
  // The path is short, because the folder holds sockets.
  self->state_ = (std::filesystem::temp_directory_path() / "satrap_pods.XXXXXX").string();
  CHECK(mkdtemp(self->state_.data()) != nullptr) << self->state_;
  self->kubeconfig_ = MustRun(
      {absl::StrCat(kScripts, "up"), self->state_, self->programs_, absl::StrCat(getpid())});
  CHECK(setenv("PATH", absl::StrCat(programs, ":", std::getenv("PATH")).c_str(), 1) == 0);
  // The folder of kubectl's cache, which would otherwise be in the user's home.
  CHECK(setenv("KUBECACHEDIR", (self->state_ + "/kubectl").c_str(), 1) == 0);
  self->image_ = self->LoadImage(/*change=*/"");
  return self;
}

KubeCluster::~KubeCluster() {
  RunCommand({absl::StrCat(kScripts, "down"), state_});
  std::error_code ignored;
  std::filesystem::remove_all(state_, ignored);
}

std::string KubeCluster::LoadImage(const std::string& change) const {
  const std::string bundle = state_ + "/bundle.tar";
  const std::string archive = state_ + "/satrap.tar";
  std::vector<std::string> pack = {"deploy/bundle/pack.sh", bundle, ".", "."};
  pack.insert(pack.end(), kPrograms.begin(), kPrograms.end());
  MustRun(pack);
  if (!change.empty()) {
    const std::string folder = state_ + "/satrap-bundle";
    MustRun({"tar", "-C", state_, "-xf", bundle});
    MustRun({"sh", "-c", absl::StrCat("cd ", folder, " && ", change)});
    MustRun({"tar", "-C", state_, "-cf", bundle, "satrap-bundle"});
    std::filesystem::remove_all(folder);
  }
  MustRun({"python3", "-B", "deploy/bundle/image.py", archive, bundle});
  const std::string image = MustRun({absl::StrCat(kScripts, "load"), state_, archive});
  CHECK(!image.empty());
  std::filesystem::remove(bundle);
  std::filesystem::remove(archive);
  return image;
}

std::string KubeCluster::LoadOtherImage() const {
  return LoadImage("echo >>embedding_ps/embedding_ps");
}

std::string KubeCluster::Kubectl(const std::vector<std::string>& args) const {
  std::vector<std::string> all = {programs_ + "/kubectl", "--kubeconfig", kubeconfig_};
  all.insert(all.end(), args.begin(), args.end());
  const Output output = RunCommand(all);
  EXPECT_EQ(output.exit_code, 0) << "kubectl " << absl::StrJoin(args, " ");
  return output.text;
}

void KubeCluster::Create(const std::string& name, const std::string& yaml) const {
  const std::string path = absl::StrCat(state_, "/", name, ".yaml");
  std::ofstream(path) << yaml;
  Kubectl({"create", "-f", path});
}

void KubeCluster::BecomeUser(const std::string& user, const std::string& space,
                             const std::string& path) const {
  const std::string cluster = "jsonpath={.clusters[0].cluster.";
  std::ofstream(path) << absl::Substitute(
      kUserConfig, Kubectl({"config", "view", "-o", cluster + "server}"}),
      Kubectl({"config", "view", "-o", cluster + "certificate-authority}"}), space,
      Kubectl({"create", "token", user, "--namespace", space}));
  CHECK(setenv("KUBECONFIG", path.c_str(), 1) == 0);
}

void KubeCluster::AddSeccompProfile(const std::string& name, const std::string& json) const {
  // The kubelet sees this folder as /var/lib/kubelet.
  const std::string folder = state_ + "/var/lib/kubelet/seccomp";
  std::filesystem::create_directories(folder);
  std::ofstream(absl::StrCat(folder, "/", name)) << json;
}

void KubeCluster::DrainNode() const {
  Kubectl({"drain", kNode, "--ignore-daemonsets", "--delete-emptydir-data", "--timeout=100s"});
  Kubectl({"uncordon", kNode});
}

pid_t KubeCluster::DaemonOf(const std::string& program) const {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", error)) {
    pid_t pid;
    if (!absl::SimpleAtoi(entry.path().filename().string(), &pid)) continue;
    const std::string line = ReadFile(entry.path() / "cmdline");
    // The words of a command line end with zeros.
    if (absl::StartsWith(line, program + '\0') && absl::StrContains(line, state_ + "/")) return pid;
  }
  return 0;
}

void KubeCluster::RestartKubelet() const {
  const pid_t before = DaemonOf("kubelet");
  CHECK(before > 0) << "no kubelet runs";
  SendSignal(before, SIGTERM);
  // The API server refuses to pass requests on to a node at an address of loopback.
  const std::string keys = state_ + "/pki/";
  const std::string port = Kubectl(
      {"get", "node", kNode, "-o", "jsonpath={.status.daemonEndpoints.kubeletEndpoint.Port}"});
  const std::vector<std::string> ask = {"curl",
                                        "--silent",
                                        "--max-time",
                                        "2",
                                        "--cacert",
                                        keys + "ca.crt",
                                        "--cert",
                                        keys + "admin.crt",
                                        "--key",
                                        keys + "admin.key",
                                        absl::StrCat("https://", kNode, ":", port, "/healthz")};
  const int64_t deadline_ms = MonotonicMs() + kSeconds * 1000;
  while (true) {
    const pid_t now = DaemonOf("kubelet");
    if (now != 0 && now != before && RunCommand(ask).text == "ok") return;
    CHECK(MonotonicMs() < deadline_ms) << "the kubelet does not answer";
    poll(nullptr, 0, 100);
  }
}

void KubeCluster::SignalControllers(int signal) const {
  const pid_t controllers = DaemonOf("kube-controller-manager");
  CHECK(controllers > 0) << "no controllers run";
  CHECK(SendSignal(controllers, signal) == 0);
}

}  // namespace satrap

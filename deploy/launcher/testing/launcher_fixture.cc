#include "deploy/launcher/testing/launcher_fixture.h"

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "common/checkpoint/run_log.h"
#include "deploy/launcher/testing/logged_run.h"

namespace satrap {
namespace {

namespace fs = std::filesystem;

constexpr char kSleep[] = "exec sleep 60";

// The beginning of each script.
constexpr char kPrologue[] = R"(index=0
for arg; do
  case $arg in --role_index=*) index=${arg#*=};; --ending=*) ending=${arg#*=};; esac
done
)";

}  // namespace

void LauncherTest::SetUp() {
  dir_ = ::testing::TempDir() + "launcher_test.XXXXXX";
  ASSERT_NE(mkdtemp(dir_.data()), nullptr);
  for (const char* role :
       {"deploy/coordinator", "embedding_ps", "embedding_worker", "data_loader", "nn_worker"}) {
    SetProgram(role, kSleep);
  }
  auto folder = RunFolder::CreateAt(dir_ + "/run");
  ASSERT_TRUE(folder.ok()) << folder.status();
  folder_ = *std::move(folder);
  job_.set_name("scripts");
  job_.mutable_nn_worker()->set_replicas(2);
  job_.set_max_restarts(0);
}

void LauncherTest::TearDown() {
  folder_.reset();
  fs::remove_all(dir_);
}

void LauncherTest::SetProgram(const std::string& role, const std::string& script) {
  const std::string name = fs::path(role).filename();
  fs::create_directories(dir_ + "/bin/" + role);
  const std::string path = dir_ + "/bin/" + role + "/" + name;
  const std::string own = dir_ + "/" + name + "$index";
  std::ofstream(path + ".new") << "#!/bin/sh\n"
                               << kPrologue << "echo \"$@\" >> " << own << ".args\nlife=$(cat "
                               << own << ".args | wc -l)\necho $$ > " << own << ".pid\n"
                               << script << "\n";
  fs::permissions(path + ".new", fs::perms::owner_all);
  fs::rename(path + ".new", path);
}

void LauncherTest::ScriptCoordinator(const std::string& status) {
  SetStatus(status);
  SetProgram("deploy/coordinator", "exec " + fs::current_path().string() +
                                       "/deploy/launcher/testing/scripted_coordinator \"$@\"");
}

void LauncherTest::SetStatus(const std::string& status, const std::string& name) {
  std::ofstream(dir_ + "/status.new") << status;
  fs::rename(dir_ + "/status.new", dir_ + "/run/" + name + ".textproto");
}

void LauncherTest::AppendToLog(const std::string& entry_text) {
  satrap::AppendToLog(dir_ + "/run", entry_text);
}

void LauncherTest::CommitCut(uint64_t generation, uint64_t number, uint64_t step) {
  WriteCut(dir_ + "/run", generation, number, step);
  AppendToLog("cut { generation: " + std::to_string(generation) + " cut: '" +
              CutName(generation, number) + "' step: " + std::to_string(step) + " }");
}

void LauncherTest::AppendGeneration(uint64_t number) {
  AppendToLog("generation { generation: " + std::to_string(number) + " job { " +
              job_.ShortDebugString() + " } }");
}

std::string LauncherTest::ContentOf(const std::string& path) {
  std::ifstream file(path);
  return std::string((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
}

pid_t LauncherTest::PidOf(const std::string& process) const {
  pid_t pid = 0;
  while (pid == 0) std::ifstream(dir_ + "/" + process + ".pid") >> pid;
  return pid;
}

RunEnd LauncherTest::Run(const std::function<void()>& then, const LaunchOptions& options,
                         const std::function<bool(const StatusAnswer&)>& on_status) {
  auto launcher = Launcher::Start(job_, *folder_, dir_ + "/bin", options);
  EXPECT_TRUE(launcher.ok()) << launcher.status();
  if (!launcher.ok()) return RunEnd();
  launcher_ = launcher->get();
  for (const char* process : {"coordinator0", "embedding_ps0", "embedding_worker0", "data_loader0",
                              "nn_worker0", "nn_worker1"}) {
    pids_[process] = PidOf(process);
  }
  then();
  const RunEnd end = (*launcher)->Wait(on_status, [this](const std::string& message) {
    messages_.push_back(message);
    if (on_message_ != nullptr) on_message_();
  });
  if (on_end_ != nullptr) on_end_();
  return end;
}

void LauncherTest::EndRoles(int signal) {
  for (const Role role : {EMBEDDING_PS, EMBEDDING_WORKER, DATA_LOADER, NN_WORKER}) {
    launcher_->Signal(role, 0, signal).IgnoreError();
  }
  launcher_->Signal(NN_WORKER, 1, signal).IgnoreError();
}

void LauncherTest::ExpectNobodyIsLeft() const {
  for (const auto& [name, pid] : pids_) {
    EXPECT_NE(kill(pid, 0), 0) << name << " still runs";
    EXPECT_NE(kill(PidOf(name), 0), 0) << name << " still runs";
  }
}

}  // namespace satrap

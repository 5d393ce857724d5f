// Tests the addresses that roles are given: IPv6 addresses, and hosts of NN workers that do not
// exist. The test starts the roles itself, as on several machines.

#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "tests/integration/run_fixture.h"

namespace satrap {
namespace {

namespace fs = std::filesystem;
using ::testing::ContainsRegex;

// "[::1]:PORT" for each of `count` ports that are free; empty on a machine without IPv6.
std::vector<std::string> FreeAddresses(int count) {
  std::vector<int> sockets;
  std::vector<std::string> addresses;
  for (int i = 0; i < count; ++i) {
    sockaddr_in6 address = {};
    address.sin6_family = AF_INET6;
    address.sin6_addr = in6addr_loopback;
    socklen_t size = sizeof(address);
    sockets.push_back(socket(AF_INET6, SOCK_STREAM, 0));
    auto* const any = reinterpret_cast<sockaddr*>(&address);
    if (bind(sockets.back(), any, size) != 0 || getsockname(sockets.back(), any, &size) != 0) break;
    addresses.push_back(absl::StrCat("[::1]:", ntohs(address.sin6_port)));
  }
  // The sockets are closed only at the end, so that no port is returned twice.
  for (const int fd : sockets) close(fd);
  if (addresses.size() < static_cast<size_t>(count)) addresses.clear();
  return addresses;
}

class AdvertiseTest : public RunFixture {
 protected:
  // Starts a run with two NN workers at `hosts`, and the other roles at `addresses`, in this order:
  // coordinator, two embedding PSs, embedding worker.
  void StartRun(const std::vector<std::string>& addresses, const std::vector<std::string>& hosts) {
    const std::string job = WriteJob(20000, absl::StrCat("run_dir: \"", Path("run"), "\""));
    fs::create_directories(Path("run"));
    const CommandEnd end = Satrap({"validate", job, "--set", "embedding_worker.replicas=1"});
    ASSERT_EQ(end.exit_code, 0) << end.err;
    run_["coordinator"] =
        Start("deploy/coordinator/coordinator",
              {"--config=" + WriteFile("resolved.textproto", end.out), "--listen=" + addresses[0],
               "--ending=" + Path("coordinator.ending")});
    const auto start = [&](const std::string& role, int index, const std::string& address) {
      std::vector<std::string> args = {absl::StrCat("--role_index=", index),
                                       "--coordinator=" + addresses[0],
                                       absl::StrCat("--ending=", Path(role), index)};
      if (!address.empty()) args.push_back(address);
      run_[absl::StrCat(role, "_", index)] = Start(absl::StrCat(role, "/", role), args);
    };
    for (int i = 0; i < 2; ++i) start("embedding_ps", i, "--listen=" + addresses[1 + i]);
    start("embedding_worker", 0, "--listen=" + addresses[3]);
    start("data_loader", 0, "");
    for (int i = 0; i < 2; ++i) start("nn_worker", i, "--advertise=" + hosts[i]);
  }

  CommandEnd EndOf(const std::string& name) {
    const CommandEnd end = WaitFor(run_.at(name), 60);
    run_.erase(name);
    return end;
  }
  void KillTheRest() {
    for (const auto& [name, command] : run_) {
      SendSignal(command.pid, SIGKILL);
      WaitFor(command, 30);
    }
  }

  std::map<std::string, Command> run_;
};

TEST_F(AdvertiseTest, ARunMayUseIpv6Alone) {
  const std::vector<std::string> addresses = FreeAddresses(4);
  if (addresses.empty()) GTEST_SKIP() << "this machine has no IPv6";
  StartRun(addresses, {"[::1]", "::1"});
  for (const char* name : {"nn_worker_0", "nn_worker_1", "embedding_ps_0", "embedding_ps_1",
                           "embedding_worker_0", "data_loader_0"}) {
    const CommandEnd end = EndOf(name);
    EXPECT_EQ(end.exit_code, 0) << name << ": " << end.err;
  }
  KillTheRest();  // the coordinator, which stays for its launcher
}

TEST_F(AdvertiseTest, AHostThatDoesNotResolveEndsItsRankWithALineThatNamesIt) {
  StartRun({"unix:" + Path("c"), "unix:" + Path("p0"), "unix:" + Path("p1"), "unix:" + Path("w")},
           {"no-such-host.invalid", "127.0.0.1"});
  const CommandEnd end = EndOf("nn_worker_0");
  EXPECT_GT(end.exit_code, 0) << "no signal ended it: " << end.err;
  EXPECT_THAT(end.err, ContainsRegex("error +nn_worker/0 the host 'no-such-host.invalid' does not "
                                     "resolve: "));
  KillTheRest();
}

}  // namespace
}  // namespace satrap

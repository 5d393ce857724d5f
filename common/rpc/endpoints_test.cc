#include "common/rpc/endpoints.h"

#include <sys/stat.h>
#include <sys/un.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/rpc/testing/grpc_testing.h"
#include "common/rpc/testing/stale_socket.h"
#include "gtest/gtest.h"

namespace satrap::rpc {
namespace {

TEST(CheckAddress, TakesWhatGrpcTakes) {
  for (const char* address :
       {"127.0.0.1:0", "localhost:80", "[::]:1", "dns:///name:1", "unix:/s", "unix:s"}) {
    EXPECT_TRUE(CheckAddress(address).ok()) << address;
  }
}

TEST(CheckAddress, RefusesAnAddressOfNothing) {
  EXPECT_EQ(CheckAddress(""), absl::InvalidArgumentError("address is empty"));
  for (const char* address : {"unix:", "unix://"}) {
    EXPECT_EQ(CheckAddress(address), absl::InvalidArgumentError("address \"unix:\" has no path"));
  }
}

TEST(CheckAddress, BoundsASocketsPathByWhatTheKernelTakes) {
  EXPECT_EQ(kMaxSocketPathBytes, sizeof(sockaddr_un{}.sun_path) - 1);
  const std::string fits = "/" + std::string(kMaxSocketPathBytes - 1, 's');
  for (const char* scheme : {"unix:", "unix://"}) {
    EXPECT_TRUE(CheckAddress(scheme + fits).ok());
    EXPECT_EQ(
        CheckAddress(scheme + fits + "s"),
        absl::InvalidArgumentError(absl::StrCat(
            "socket path of 108 bytes is longer than the kernel's limit of 107: ", fits, "s")));
  }
}

TEST(NewChannel, RefusesABadAddress) {
  EXPECT_EQ(NewChannel("", {}).status(), absl::InvalidArgumentError("address is empty"));
  EXPECT_TRUE(NewChannel("unix:/s", {}).ok());
}

TEST(NewChannel, ReachesASocketWhoseNameIsAsLongAsItMayBe) {
  TempFolder folder;
  TestHandler handler;
  const std::string start = folder.path() + "/";
  const std::string fits = start + std::string(kMaxSocketPathBytes - start.size(), 's');
  const auto server = StartOrDie("unix:" + fits, &handler);
  EXPECT_TRUE(CallAndWait(ChannelTo(server->address()).get(), kEcho, {"x", {}}).ok());
}

TEST(SocketLock, OneServerListensAtATime) {
  TempFolder folder;
  const std::string address = folder.SocketAddress("server");
  auto first = SocketLock::Acquire(address);
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(
      SocketLock::Acquire(address).status(),
      absl::FailedPreconditionError(absl::StrCat("another server listens on ", address,
                                                 " (it holds ", folder.path(), "/server.lock)")));
  EXPECT_TRUE(SocketLock::Acquire(folder.SocketAddress("other")).ok());
  first->reset();
  EXPECT_TRUE(SocketLock::Acquire(address).ok());
}

TEST(SocketLock, BothSpellingsOfAnAddressAreOneSocket) {
  TempFolder folder;
  const auto lock = SocketLock::Acquire("unix:" + folder.path() + "/server");
  ASSERT_TRUE(lock.ok()) << lock.status();
  EXPECT_EQ(SocketLock::Acquire("unix://" + folder.path() + "/server").status().code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST(SocketLock, RemovesWhatADeadServerHasLeft) {
  TempFolder folder;
  const std::string path = folder.path() + "/server";
  LeaveSocket(path);
  ASSERT_TRUE(std::filesystem::exists(path));
  EXPECT_TRUE(SocketLock::Acquire("unix:" + path).ok());
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(SocketLock, LeavesTheSocketOfALivingServerAlone) {
  TempFolder folder;
  const std::string path = folder.path() + "/server";
  const auto lock = SocketLock::Acquire("unix:" + path);
  LeaveSocket(path);
  EXPECT_FALSE(SocketLock::Acquire("unix:" + path).ok());
  EXPECT_TRUE(std::filesystem::exists(path));
}

TEST(SocketLock, LeavesWhatIsNoSocketAlone) {
  TempFolder folder;
  const std::string path = folder.path() + "/notes.txt";
  std::ofstream(path) << "precious";
  EXPECT_EQ(SocketLock::Acquire("unix:" + path).status(),
            absl::FailedPreconditionError(path + " exists and is not a socket"));
  EXPECT_EQ(std::filesystem::file_size(path), 8u);
}

TEST(SocketLock, NeedsAFolderThatIsThere) {
  EXPECT_EQ(SocketLock::Acquire("unix:/no/such/folder/server").status().code(),
            absl::StatusCode::kNotFound);
}

TEST(SocketLock, IsAlwaysFreeForTcp) {
  const auto first = SocketLock::Acquire("127.0.0.1:1");
  EXPECT_TRUE(first.ok());
  EXPECT_TRUE(SocketLock::Acquire("127.0.0.1:1").ok());
  EXPECT_EQ(SocketLock::Acquire("").status(), absl::InvalidArgumentError("address is empty"));
}

}  // namespace
}  // namespace satrap::rpc

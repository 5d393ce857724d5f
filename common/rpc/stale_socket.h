// Test support: the file of a Unix socket on which no process listens any more.

#ifndef SATRAP_COMMON_RPC_STALE_SOCKET_H_
#define SATRAP_COMMON_RPC_STALE_SOCKET_H_

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <string>

#include "gtest/gtest.h"

namespace satrap::rpc {

// Leaves a socket file behind, as a killed process does. REQUIRES: `path` has at most 107 bytes
inline void LeaveSocket(const std::string& path) {
  const int fd = ::socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  std::strcpy(name.sun_path, path.c_str());
  ASSERT_EQ(::bind(fd, reinterpret_cast<sockaddr*>(&name), sizeof(name)), 0);
  ::close(fd);
}

}  // namespace satrap::rpc

#endif  // SATRAP_COMMON_RPC_STALE_SOCKET_H_

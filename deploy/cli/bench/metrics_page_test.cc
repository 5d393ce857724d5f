#include "deploy/cli/bench/metrics_page.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "common/metrics/metrics.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

using ::testing::HasSubstr;

TEST(MetricsPage, IsReadFromTheServerOfARole) {
  MetricsRegistry registry("embedding_ps", 0);
  registry.AddGauge("satrap_table_bytes", "Bytes", {{"table", "a"}})->Set(1e9);
  registry.AddGauge("satrap_table_bytes", "Bytes", {{"table", "b"}})->Set(5);
  registry.AddGauge("satrap_table_bytes_free", "Another metric")->Set(7);
  const auto server = MetricsServer::Start(&registry);
  ASSERT_TRUE(server.ok()) << server.status();
  const auto page = ReadMetricsPage((*server)->address(), 10000);
  ASSERT_TRUE(page.ok()) << page.status();
  EXPECT_EQ(SumOfMetric(*page, "satrap_table_bytes"), 1000000005);
  EXPECT_EQ(SumOfMetric(*page, "satrap_table_bytes_free"), 7);
  EXPECT_EQ(SumOfMetric(*page, "satrap_table"), absl::nullopt);
}

TEST(MetricsPage, ASilentServerIsNotWaitedForLongerThanAsked) {
  // The kernel accepts the connection, but nobody answers.
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in name{};
  name.sin_family = AF_INET;
  name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(name);
  ASSERT_EQ(bind(fd, reinterpret_cast<sockaddr*>(&name), size), 0);
  ASSERT_EQ(listen(fd, 1), 0);
  ASSERT_EQ(getsockname(fd, reinterpret_cast<sockaddr*>(&name), &size), 0);
  const std::string address = absl::StrCat("127.0.0.1:", ntohs(name.sin_port));
  const auto page = ReadMetricsPage(address, 50);
  EXPECT_TRUE(absl::IsUnavailable(page.status())) << page.status();
  EXPECT_THAT(std::string(page.status().message()), HasSubstr(address));
  close(fd);
}

TEST(MetricsPage, AnAddressThatIsNoneIsAnError) {
  for (const char* const address : {"", "unix:metrics", "127.0.0.1", "127.0.0.1:99999"}) {
    EXPECT_TRUE(absl::IsUnavailable(ReadMetricsPage(address, 50).status())) << address;
  }
}

}  // namespace
}  // namespace satrap

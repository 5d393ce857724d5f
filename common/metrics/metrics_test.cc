#include "common/metrics/metrics.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

using testing::HasSubstr;

int Connect(const std::string& address) {
  const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in name{};
  name.sin_family = AF_INET;
  name.sin_port = htons(std::atoi(address.substr(address.find(':') + 1).c_str()));
  EXPECT_EQ(inet_pton(AF_INET, address.substr(0, address.find(':')).c_str(), &name.sin_addr), 1);
  EXPECT_EQ(::connect(fd, reinterpret_cast<sockaddr*>(&name), sizeof(name)), 0);
  return fd;
}

// The whole answer to a GET of `path`.
std::string Get(const std::string& address, const std::string& path) {
  const int fd = Connect(address);
  const std::string request =
      "GET " + path + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
  EXPECT_EQ(::write(fd, request.data(), request.size()), static_cast<ssize_t>(request.size()));
  std::string answer;
  char bytes[4096];
  for (ssize_t n; (n = ::read(fd, bytes, sizeof(bytes))) > 0;) answer.append(bytes, n);
  ::close(fd);
  return answer;
}

TEST(MetricsTest, ShowsCountersAndGaugesWithRoleAndIndex) {
  MetricsRegistry registry("embedding_ps", 3);
  registry.AddCounter("satrap_rows_total", "Rows")->Increment(26);
  registry.AddGauge("satrap_queue_parts", "Parts", {{"stream", "train"}})->Set(4);
  EXPECT_THAT(registry.Text(), HasSubstr("# HELP satrap_rows_total Rows"));
  EXPECT_THAT(registry.Text(),
              HasSubstr("satrap_rows_total{index=\"3\",role=\"embedding_ps\"} 26"));
  EXPECT_THAT(
      registry.Text(),
      HasSubstr("satrap_queue_parts{index=\"3\",role=\"embedding_ps\",stream=\"train\"} 4"));
}

TEST(MetricsTest, TheSameNameAndLabelsAreTheSameMetric) {
  MetricsRegistry registry("nn_worker", 0);
  EXPECT_EQ(registry.AddCounter("satrap_x_total", "X"), registry.AddCounter("satrap_x_total", "X"));
  EXPECT_NE(registry.AddCounter("satrap_y_total", "Y", {{"method", "a"}}),
            registry.AddCounter("satrap_y_total", "Y", {{"method", "b"}}));
}

TEST(MetricsTest, ACounterIsRaisedToACountThatIsKeptElsewhere) {
  MetricsRegistry registry("data_loader", 0);
  prometheus::Counter* const counter = registry.AddCounter("satrap_records_total", "Records");
  for (const uint64_t value : {7, 7, 12}) {
    RaiseTo(counter, value);
    EXPECT_EQ(counter->Value(), static_cast<double>(value));
  }
  RaiseTo(counter, 3);
  EXPECT_EQ(counter->Value(), 12) << "it never falls";
}

TEST(MetricsTest, HistogramsCountByBucket) {
  MetricsRegistry registry("nn_worker", 0);
  auto* seconds = registry.AddHistogram("satrap_step_seconds", "Step", {.1, 1});
  for (const double value : {.05, .5, .6, 5.}) seconds->Observe(value);
  EXPECT_THAT(registry.Text(),
              HasSubstr("satrap_step_seconds_bucket{index=\"0\",role=\"nn_worker\",le=\"0.1\"} 1"));
  EXPECT_THAT(registry.Text(),
              HasSubstr("satrap_step_seconds_bucket{index=\"0\",role=\"nn_worker\",le=\"1\"} 3"));
  EXPECT_THAT(registry.Text(),
              HasSubstr("satrap_step_seconds_count{index=\"0\",role=\"nn_worker\"} 4"));
}

TEST(MetricsTest, LatencyBoundsIncrease) {
  const std::vector<double> bounds = LatencyBounds();
  for (size_t i = 1; i < bounds.size(); ++i) EXPECT_GT(bounds[i], bounds[i - 1]);
  EXPECT_GT(bounds.back(), 10);
}

TEST(MetricsServerTest, ServesTheRegistryOnAPortOfItsOwn) {
  MetricsRegistry registry("data_loader", 1);
  registry.AddCounter("satrap_records_total", "Records")->Increment(7);
  const auto server = MetricsServer::Start(&registry);
  const auto other = MetricsServer::Start(&registry);
  ASSERT_TRUE(server.ok()) << server.status();
  ASSERT_TRUE(other.ok()) << other.status();
  EXPECT_NE((*server)->address(), (*other)->address());
  EXPECT_THAT(Get((*server)->address(), "/metrics"),
              HasSubstr("satrap_records_total{index=\"1\",role=\"data_loader\"} 7"));
}

TEST(MetricsServerTest, ServesAtTheAddressThatItIsGiven) {
  const MetricsRegistry registry("data_loader", 1);
  const auto server = MetricsServer::Start(&registry, "127.0.0.2:0");
  ASSERT_TRUE(server.ok()) << server.status();
  const std::string address = (*server)->address();
  EXPECT_THAT(address, testing::StartsWith("127.0.0.2:"));
  EXPECT_THAT(Get(address, "/metrics"), HasSubstr("200 OK"));
  const auto second = MetricsServer::Start(&registry, address);
  EXPECT_EQ(second.status().code(), absl::StatusCode::kUnavailable) << "the port is taken";
  EXPECT_THAT(second.status().message(), HasSubstr("cannot serve metrics at " + address));
}

TEST(MetricsServerTest, IsReadyOnceThatWasSaid) {
  const MetricsRegistry registry("data_loader", 1);
  const auto server = MetricsServer::Start(&registry);
  ASSERT_TRUE(server.ok()) << server.status();
  EXPECT_THAT(Get((*server)->address(), "/ready"), HasSubstr("404 Not Found"));
  (*server)->ShowReady();
  (*server)->ShowReady();
  EXPECT_THAT(Get((*server)->address(), "/ready"), HasSubstr("200 OK"));
}

// The idle connection imitates the probe of a load balancer, which connects but sends nothing.
TEST(MetricsServerTest, APageIsServedWhileAnotherConnectionIsIdle) {
  const MetricsRegistry registry("data_loader", 1);
  const auto server = MetricsServer::Start(&registry);
  ASSERT_TRUE(server.ok()) << server.status();
  const int idle = Connect((*server)->address());
  EXPECT_THAT(Get((*server)->address(), "/metrics"), HasSubstr("200 OK"));
  pollfd left = {idle, POLLIN, 0};
  EXPECT_EQ(poll(&left, 1, 0), 0) << "the page came only when the server had given the other up";
  // Waits until the server closes the idle connection.
  EXPECT_EQ(poll(&left, 1, -1), 1);
  ::close(idle);
}

}  // namespace
}  // namespace satrap

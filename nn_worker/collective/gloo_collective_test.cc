#include "nn_worker/collective/gloo_collective.h"

#include <csignal>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "common/base/check.h"
#include "gtest/gtest.h"
#include "nn_worker/collective/collective_conformance.h"
#include "nn_worker/collective/in_memory_rendezvous_store.h"
#include "nn_worker/collective/own_address.h"

namespace satrap {
namespace {

std::vector<std::unique_ptr<Collective>> ConnectAt(const std::string& host, int size) {
  std::signal(SIGPIPE, SIG_IGN);
  const std::unique_ptr<RendezvousStore> store = NewInMemoryRendezvousStore();
  std::vector<std::unique_ptr<Collective>> ranks(size);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      GlooOptions options;
      options.rank = rank;
      options.size = size;
      options.host = host;
      options.prefix = "generation 1";
      auto collective = NewGlooCollective(options, store.get());
      CHECK_OK(collective.status());
      ranks[rank] = std::move(*collective);
    });
  }
  for (std::thread& thread : threads) thread.join();
  return ranks;
}

std::vector<std::unique_ptr<Collective>> Connect(int size) { return ConnectAt("127.0.0.1", size); }

INSTANTIATE_TEST_SUITE_P(Gloo, CollectiveConformance, testing::Values<CollectiveFactory>(&Connect));

TEST(GlooCollectiveTest, ARankThatGoesAwayEndsTheOthersCalls) {
  auto ranks = Connect(2);
  std::thread left([&] {
    std::vector<float> values(100, 1);
    EXPECT_EQ(ranks[0]->AllReduceSum(absl::MakeSpan(values)).code(),
              absl::StatusCode::kUnavailable);
  });
  ranks[1].reset();
  left.join();
}

TEST(GlooCollectiveTest, ConnectsByIpv6) {
  if (!OwnAddressOf("::1").ok()) GTEST_SKIP() << "this machine has no IPv6";
  for (const char* host : {"::1", "[::1]"}) {
    auto ranks = ConnectAt(host, 2);
    std::thread left([&] { EXPECT_TRUE(ranks[0]->Barrier().ok()); });
    EXPECT_TRUE(ranks[1]->Barrier().ok());
    left.join();
  }
}

// If Gloo itself is given such a host, it may crash the process.
TEST(GlooCollectiveTest, AHostThatDoesNotResolveIsAnErrorThatNamesIt) {
  const std::unique_ptr<RendezvousStore> store = NewInMemoryRendezvousStore();
  GlooOptions options;
  options.size = 2;
  options.host = "no-such-host.invalid";
  const auto collective = NewGlooCollective(options, store.get());
  EXPECT_EQ(collective.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_TRUE(absl::StrContains(collective.status().message(), "'no-such-host.invalid'"))
      << collective.status();
}

TEST(GlooCollectiveTest, APeerThatNeverComesIsAnError) {
  const std::unique_ptr<RendezvousStore> store = NewInMemoryRendezvousStore();
  GlooOptions options;
  options.size = 2;
  options.connect_timeout_ms = 100;
  const auto collective = NewGlooCollective(options, store.get());
  EXPECT_EQ(collective.status().code(), absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace satrap

#include "nn_worker/collective/gloo_collective.h"

#include <csignal>
#include <thread>
#include <vector>

#include "common/base/check.h"
#include "gtest/gtest.h"
#include "nn_worker/collective/collective_conformance.h"
#include "nn_worker/collective/in_memory_rendezvous_store.h"

namespace satrap {
namespace {

std::vector<std::unique_ptr<Collective>> Connect(int size) {
  std::signal(SIGPIPE, SIG_IGN);
  const std::unique_ptr<RendezvousStore> store = NewInMemoryRendezvousStore();
  std::vector<std::unique_ptr<Collective>> ranks(size);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      GlooOptions options;
      options.rank = rank;
      options.size = size;
      options.prefix = "generation 1";
      auto collective = NewGlooCollective(options, store.get());
      CHECK_OK(collective.status());
      ranks[rank] = std::move(*collective);
    });
  }
  for (std::thread& thread : threads) thread.join();
  return ranks;
}

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

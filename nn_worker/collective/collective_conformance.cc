#include "nn_worker/collective/collective_conformance.h"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <limits>
#include <string>
#include <thread>

#include "common/numeric/random.h"

namespace satrap {

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(CollectiveConformance);

void CollectiveConformance::Spawn(int size, const std::function<void(Collective*)>& body) {
  const std::vector<std::unique_ptr<Collective>> ranks = GetParam()(size);
  ASSERT_EQ(static_cast<int>(ranks.size()), size);
  std::vector<std::thread> threads;
  for (const std::unique_ptr<Collective>& rank : ranks) threads.emplace_back(body, rank.get());
  for (std::thread& thread : threads) thread.join();
}

namespace {

// Values whose sum has different last bits if they are added in another order.
float ValueOf(int rank, size_t i) {
  return static_cast<float>(UniformDouble(RandomBits(3, rank, i)) - 0.5) *
         static_cast<float>(1 << (i % 20));
}

TEST_P(CollectiveConformance, SumsInRankOrder) {
  for (const int size : {1, 2, 3, 4}) {
    // An implementation may give each rank a piece of the values to add up: with 0, 1 and 3 values
    // some pieces are empty, and a prime number has no equal ones.
    for (const size_t count : {0u, 1u, 3u, 1000u, 100003u}) {
      Spawn(size, [&](Collective* collective) {
        std::vector<float> values(count);
        std::vector<double> doubles(count);
        for (size_t i = 0; i < count; ++i) {
          values[i] = ValueOf(collective->rank(), i);
          doubles[i] = values[i] / 3.0;  // which no float holds: a sum of floats would show
        }
        ASSERT_TRUE(collective->AllReduceSum(absl::MakeSpan(values)).ok());
        ASSERT_TRUE(collective->AllReduceSum(absl::MakeSpan(doubles)).ok());
        for (size_t i = 0; i < count; ++i) {
          float sum = 0;
          double double_sum = 0;
          for (int r = 0; r < size; ++r) {
            sum += ValueOf(r, i);
            double_sum += ValueOf(r, i) / 3.0;
          }
          ASSERT_EQ(values[i], sum) << size << " ranks, value " << i;
          ASSERT_EQ(doubles[i], double_sum);
        }
      });
    }
  }
}

constexpr int64_t kNoTimeout = std::numeric_limits<int64_t>::max();

TEST_P(CollectiveConformance, AStartedSumHasTheBitsOfOneThatIsWaitedFor) {
  for (const int size : {1, 2, 3}) {
    for (const size_t count : {0u, 1u, 1000u, 100003u}) {
      Spawn(size, [&](Collective* collective) {
        for (int round = 0; round < 3; ++round) {
          std::vector<float> started(count), waited(count);
          // Other values in each round, so that a sum left from the round before would show.
          for (size_t i = 0; i < count; ++i) {
            started[i] = waited[i] = ValueOf(collective->rank(), i + round);
          }
          const auto sum = collective->StartAllReduceSum(absl::MakeSpan(started));
          ASSERT_TRUE(sum->Wait(kNoTimeout).ok());
          EXPECT_TRUE(sum->Ended());
          ASSERT_TRUE(collective->AllReduceSum(absl::MakeSpan(waited)).ok());
          ASSERT_EQ(started, waited) << size << " ranks";
          EXPECT_TRUE(sum->Wait(0).ok()) << "at once from then on, whatever came after it";
        }
      });
    }
  }
}

TEST_P(CollectiveConformance, AStartedSumGoesOnAfterADeadline) {
  std::atomic<bool> begin{false};
  Spawn(2, [&](Collective* collective) {
    std::vector<float> values(1000, 1);
    if (collective->rank() == 1) {
      while (!begin) std::this_thread::yield();
      ASSERT_TRUE(collective->AllReduceSum(absl::MakeSpan(values)).ok());
      return;
    }
    const auto sum = collective->StartAllReduceSum(absl::MakeSpan(values));
    EXPECT_FALSE(sum->Ended());
    EXPECT_EQ(sum->Wait(5).code(), absl::StatusCode::kDeadlineExceeded);
    EXPECT_EQ(sum->Wait(0).code(), absl::StatusCode::kDeadlineExceeded);
    begin = true;
    ASSERT_TRUE(sum->Wait(kNoTimeout).ok());
    EXPECT_EQ(values, std::vector<float>(1000, 2));
  });
}

TEST_P(CollectiveConformance, AbortEndsAStartedSum) {
  const std::vector<std::unique_ptr<Collective>> ranks = GetParam()(2);
  std::vector<float> values(1000, 1);
  const auto sum = ranks[0]->StartAllReduceSum(absl::MakeSpan(values));
  EXPECT_TRUE(ranks[0]->status().ok());
  ranks[0]->Abort(absl::UnavailableError("rank 1 is lost"));
  EXPECT_EQ(sum->Wait(kNoTimeout).message(), "rank 1 is lost");
  EXPECT_EQ(ranks[0]->status().message(), "rank 1 is lost");
  EXPECT_EQ(ranks[0]->StartAllReduceSum(absl::MakeSpan(values))->Wait(kNoTimeout).message(),
            "rank 1 is lost");
}

TEST_P(CollectiveConformance, BroadcastsFromAnyRoot) {
  Spawn(3, [](Collective* collective) {
    for (const int root : {0, 2}) {
      std::string bytes = collective->rank() == root ? "from the root" : "             ";
      ASSERT_TRUE(collective->Broadcast(root, absl::MakeSpan(bytes)).ok());
      EXPECT_EQ(bytes, "from the root");
    }
    ASSERT_TRUE(collective->Broadcast(1, {}).ok());
  });
}

TEST_P(CollectiveConformance, GathersBytesOfAnySize) {
  Spawn(4, [](Collective* collective) {
    for (int round = 0; round < 3; ++round) {
      const std::string own(collective->rank() * 1000 * round, 'a' + collective->rank());
      const auto gathered = collective->AllGatherBytes(own);
      ASSERT_TRUE(gathered.ok()) << gathered.status();
      ASSERT_EQ(gathered->size(), 4u);
      for (int r = 0; r < 4; ++r) EXPECT_EQ((*gathered)[r], std::string(r * 1000 * round, 'a' + r));
    }
  });
}

// The bytes that rank `from` gives rank `to`. Sizes differ, and some are 0.
std::string Given(int from, int to, int round) {
  return std::string(static_cast<size_t>((from * 3 + to) % 5) * 1000 * round,
                     static_cast<char>('a' + 5 * from + to));
}

TEST_P(CollectiveConformance, EachRankGetsFromEachWhatItWasGiven) {
  for (const int size : {1, 2, 4}) {
    Spawn(size, [size](Collective* collective) {
      const int own = collective->rank();
      for (int round = 0; round < 4; ++round) {
        std::vector<std::string> given;
        for (int to = 0; to < size; ++to) given.push_back(Given(own, to, round));
        const auto received = collective->AllToAllBytes(given);
        ASSERT_TRUE(received.ok()) << received.status();
        ASSERT_EQ(received->size(), static_cast<size_t>(size));
        for (int from = 0; from < size; ++from) {
          EXPECT_EQ((*received)[from], Given(from, own, round)) << "from " << from << " to " << own;
        }
      }
    });
  }
}

TEST_P(CollectiveConformance, OneRankMayGiveAllTheOthersNothing) {
  Spawn(3, [](Collective* collective) {
    std::vector<std::string> given(3);
    if (collective->rank() == 1) given[2] = std::string(3000000, 'x');
    const auto received = collective->AllToAllBytes(given);
    ASSERT_TRUE(received.ok()) << received.status();
    for (int from = 0; from < 3; ++from) {
      EXPECT_EQ((*received)[from].size(), from == 1 && collective->rank() == 2 ? 3000000u : 0u);
    }
  });
}

TEST_P(CollectiveConformance, ABarrierLetsNobodyPastBeforeAllAreThere) {
  std::atomic<int> arrived{0};
  Spawn(4, [&](Collective* collective) {
    for (int round = 1; round <= 20; ++round) {
      ++arrived;
      ASSERT_TRUE(collective->Barrier().ok());
      EXPECT_GE(arrived, 4 * round);
      // Otherwise a rank that is a round ahead would be counted for one that the first barrier did
      // not wait for.
      ASSERT_TRUE(collective->Barrier().ok());
    }
  });
}

TEST_P(CollectiveConformance, OneRankNeedsNobody) {
  Spawn(1, [](Collective* collective) {
    EXPECT_TRUE(collective->Barrier().ok());
    std::string bytes = "x";
    EXPECT_TRUE(collective->Broadcast(0, absl::MakeSpan(bytes)).ok());
    EXPECT_EQ(*collective->AllGatherBytes("y"), (std::vector<std::string>{"y"}));
  });
}

TEST_P(CollectiveConformance, AbortEndsAWaitingCallAndTheObject) {
  const std::vector<std::unique_ptr<Collective>> ranks = GetParam()(3);
  std::vector<std::thread> threads;
  std::atomic<int> waiting{0};
  // Rank 2 never joins the sum.
  for (int rank = 0; rank < 2; ++rank) {
    threads.emplace_back([&, rank] {
      std::vector<float> values(5000, 1);
      ++waiting;
      EXPECT_EQ(ranks[rank]->AllReduceSum(absl::MakeSpan(values)).message(), "rank 2 is lost");
      EXPECT_EQ(ranks[rank]->Barrier().message(), "rank 2 is lost");
      EXPECT_EQ(ranks[rank]->AllGatherBytes("x").status().message(), "rank 2 is lost");
      EXPECT_EQ(ranks[rank]->AllToAllBytes({"x", "y", "z"}).status().message(), "rank 2 is lost");
    });
  }
  while (waiting < 2) std::this_thread::yield();
  const auto begin = std::chrono::steady_clock::now();
  for (const auto& rank : ranks) rank->Abort(absl::UnavailableError("rank 2 is lost"));
  ranks[0]->Abort(absl::InternalError("a later one"));
  for (std::thread& thread : threads) thread.join();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(2));
  EXPECT_EQ(ranks[2]->Barrier().message(), "rank 2 is lost");
}

TEST_P(CollectiveConformance, AnAbortedRankDoesNotLeaveTheOthersWaiting) {
  std::atomic<int> waiting{0};
  Spawn(3, [&](Collective* collective) {
    std::vector<double> values(10, 1);
    if (collective->rank() == 1) {
      while (waiting < 2) std::this_thread::yield();
      collective->Abort(absl::CancelledError("enough"));
      EXPECT_EQ(collective->Barrier().code(), absl::StatusCode::kCancelled);
      return;
    }
    ++waiting;
    EXPECT_FALSE(collective->AllReduceSum(absl::MakeSpan(values)).ok());
    EXPECT_FALSE(collective->Barrier().ok());
  });
}

}  // namespace
}  // namespace satrap

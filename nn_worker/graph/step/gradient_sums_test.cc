#include "nn_worker/graph/step/gradient_sums.h"

#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/base/check.h"
#include "gtest/gtest.h"
#include "nn_worker/backend/tensor_copy.h"
#include "nn_worker/backend/testing/fake_device_memory.h"
#include "nn_worker/backend/testing/host_device_backend.h"
#include "nn_worker/collective/local_collective.h"
#include "nn_worker/collective/testing/local_reduction.h"
#include "nn_worker/device/testing/device_testing.h"

namespace satrap {
namespace {

constexpr int64_t kValues = 1000;

enum class By { kHost, kDevice };

// A rank with its own device.
struct Rank {
  Rank(int number, Collective* collective, DeviceReduction* reduction,
       const HostDeviceOptions& options = {})
      : number(number), backend(NewHostDeviceBackend(options)) {
    gradients = AllocateTensor(backend.get(), DType::kF32, 1, kValues).value();
    auto made = NewGradientSums(backend.get(), collective, reduction, gradients);
    CHECK_OK(made.status());
    sums = *std::move(made);
  }
  std::vector<float> Values() const {
    std::vector<float> values(kValues);
    for (int64_t i = 0; i < kValues; ++i) {
      values[i] = 1.0f / static_cast<float>(1 + i + 7 * number);
    }
    return values;
  }
  // Gradients that operations make just before the sum.
  void MakeGradients() {
    backend->Fill(gradients, 5);
    const Tensor made = AllocateTensor(backend.get(), DType::kF32, 1, kValues).value();
    CopyIn(backend.get(), Values(), made);
    backend->Copy(made, gradients, /*add=*/true);
  }

  const int number;
  const std::unique_ptr<Backend> backend;
  Tensor gradients;
  std::unique_ptr<GradientSums> sums;
};

// Runs body(rank) for each of `size` ranks, each in its own thread.
void Spawn(int size, By by, const HostDeviceOptions& options,
           const std::function<void(Rank*)>& body) {
  const auto collectives = NewLocalCollectives(size);
  const auto reductions = NewLocalReductions(size);
  std::vector<std::thread> threads;
  for (int r = 0; r < size; ++r) {
    threads.emplace_back([&, r] {
      Rank rank(r, collectives[r].get(), by == By::kDevice ? reductions[r].get() : nullptr,
                options);
      body(&rank);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// The values that the operations after Finish see, by rank.
std::vector<std::vector<float>> SumsOf(int size, By by, const HostDeviceOptions& options) {
  std::vector<std::vector<float>> seen(size);
  Spawn(size, by, options, [&](Rank* rank) {
    for (int round = 0; round < 2; ++round) {
      rank->MakeGradients();
      CHECK_OK(rank->sums->Start());
      CHECK_OK(rank->sums->Finish());
      rank->backend->Copy(rank->gradients, rank->gradients, /*add=*/true);
    }
    seen[rank->number] = ReadFloats(rank->backend.get(), rank->gradients);
  });
  return seen;
}

TEST(GradientSumsTest, ADeviceAndACollectiveGiveTheSameBitsInEveryOrderOfStreams) {
  for (int size = 1; size <= 3; ++size) {
    const auto expected = SumsOf(size, By::kHost, {});
    double second = 0;
    for (int r = 0; r < size; ++r) second += 5 + 1.0 / (2 + 7 * r);
    EXPECT_NEAR(expected[0][1], 2 * second, 1e-5);
    for (const HostDeviceOptions& options : EveryOrder()) {
      const auto got = SumsOf(size, By::kDevice, options);
      for (int r = 0; r < size; ++r) EXPECT_EQ(got[r], expected[0]) << size << " ranks, rank " << r;
    }
  }
}

TEST(GradientSumsTest, TheHostHasACopyOfSumsThatWentThroughIt) {
  Spawn(2, By::kHost, {}, [](Rank* rank) {
    rank->MakeGradients();
    ASSERT_TRUE(rank->sums->Start().ok());
    ASSERT_TRUE(rank->sums->Finish().ok());
    const absl::Span<const float> copy = rank->sums->HostCopy();
    EXPECT_EQ(std::vector<float>(copy.begin(), copy.end()),
              ReadFloats(rank->backend.get(), rank->gradients));
  });
  Spawn(2, By::kDevice, {}, [](Rank* rank) { EXPECT_TRUE(rank->sums->HostCopy().empty()); });
}

TEST(GradientSumsTest, ALostPeerIsAnErrorOfTheSum) {
  const auto collectives = NewLocalCollectives(2);
  auto reductions = NewLocalReductions(2);
  Rank rank(0, collectives[0].get(), reductions[0].get());
  rank.MakeGradients();
  ASSERT_TRUE(rank.sums->Start().ok());
  reductions[1].reset();
  EXPECT_EQ(rank.sums->Finish().message(), "rank 1 is lost");
  EXPECT_EQ(rank.sums->Start().message(), "rank 1 is lost");
}

TEST(GradientSumsTest, TheSumOfOneRankFailsWithItsCollective) {
  const auto collectives = NewLocalCollectives(1);
  Rank rank(0, collectives[0].get(), nullptr);
  EXPECT_TRUE(rank.sums->Start().ok());
  EXPECT_TRUE(rank.sums->Finish().ok());
  collectives[0]->Abort(absl::UnavailableError("the coordinator is gone"));
  EXPECT_EQ(rank.sums->Start().message(), "the coordinator is gone");
}

// A device whose events never happen.
class StuckMemory final : public FakeDeviceMemory {
 public:
  absl::StatusOr<bool> Poll(BackendEvent*) override { return false; }
  absl::Status EnqueueBeside(absl::FunctionRef<absl::Status(DeviceStream*)> enqueue,
                             BackendEvent*) override {
    return enqueue(nullptr);
  }
};

// A sum that never ends. Call number `polls_until_error` of Poll and all later calls return
// `error`.
class StuckReduction final : public DeviceReduction {
 public:
  absl::Status AllReduceSum(DeviceStream*, float*, int64_t) override { return absl::OkStatus(); }
  absl::Status Poll() override { return ++polls_ < polls_until_error ? absl::OkStatus() : error; }
  void Abort(absl::Status status) override { aborted = std::move(status); }

  int polls_until_error = 1000;
  absl::Status error;
  absl::Status aborted;

 private:
  int polls_ = 0;
};

class StuckSumTest : public testing::Test {
 protected:
  void Start() {
    Tensor gradients;
    gradients.rows = 1;
    gradients.cols = gradients.stride = 4;
    sums_ = NewGradientSums(&memory_, collectives_[0].get(), &reduction_, gradients).value();
    ASSERT_TRUE(sums_->Start().ok());
  }

  const std::vector<std::unique_ptr<Collective>> collectives_ = NewLocalCollectives(2);
  StuckMemory memory_;
  StuckReduction reduction_;
  std::unique_ptr<GradientSums> sums_;
};

TEST_F(StuckSumTest, EndsWithTheReductionsErrorWhichIsAskedForMeanwhile) {
  reduction_.error = absl::UnavailableError("NCCL: a peer has closed its connection");
  Start();
  EXPECT_EQ(sums_->Finish(), reduction_.error);
  EXPECT_EQ(reduction_.aborted, reduction_.error);
}

TEST_F(StuckSumTest, EndsWhenTheCollectiveIsAborted) {
  Start();
  std::thread aborter(
      [this] { collectives_[0]->Abort(absl::UnavailableError("rank 1 has left the job")); });
  EXPECT_EQ(sums_->Finish().message(), "rank 1 has left the job");
  aborter.join();
  EXPECT_EQ(reduction_.aborted.message(), "rank 1 has left the job");
}

TEST_F(StuckSumTest, IsAbortedWithTheNetwork) {
  Start();
  EXPECT_TRUE(reduction_.aborted.ok());
  sums_.reset();
  EXPECT_EQ(reduction_.aborted.message(), "the network was destroyed");
}

}  // namespace
}  // namespace satrap

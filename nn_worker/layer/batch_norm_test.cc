#include "nn_worker/layer/layers.h"

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "nn_worker/backend/tensor_copy.h"
#include "nn_worker/collective/local_collective.h"
#include "nn_worker/layer/testing/layer_testing.h"

namespace satrap {
namespace {

class BatchNormLayerTest : public LayerTest {};
INSTANTIATE_TEST_SUITE_P(EveryBackend, BatchNormLayerTest, testing::ValuesIn(LayerBackends()),
                         LayerBackendName);

TEST_P(BatchNormLayerTest, GradientsAreThoseOfItsForward) {
  for (const char* scope : {"LOCAL", "GLOBAL"}) {
    LayerTester tester = Tester(std::string("batch_norm { scope: ") + scope + " }", {{3}}, 9);
    EXPECT_LT(tester.LargestGradientError(), 3e-3) << scope;
  }
}

// The tester of each rank holds the rows [begin, end) of one batch.
struct Ranks {
  std::vector<std::unique_ptr<Collective>> collectives;
  std::vector<std::unique_ptr<LayerTester>> testers;
};

constexpr int64_t kDim = 4;

void CopyRows(Backend* backend, const Tensor& from, int64_t begin, Backend* to_backend,
              const Tensor& to) {
  CopyIn(to_backend, ReadFloats(backend, from.Rows(begin, to.rows)), to);
}

TEST_P(BatchNormLayerTest, GlobalOnUnequalAndEmptyPartsIsOneMachine) {
  const std::vector<int64_t> parts = {5, 0, 11, 1};
  LayerTester whole = Tester("batch_norm {}", {{kDim}}, 17);
  ASSERT_TRUE(whole.Forward().ok());
  ASSERT_TRUE(whole.Backward().ok());
  ASSERT_TRUE(whole.layer()->EndStep().ok());

  Ranks ranks;
  ranks.collectives = NewLocalCollectives(4);
  std::vector<std::unique_ptr<Backend>> backends;
  std::vector<std::thread> threads;
  std::vector<int64_t> begins;
  int64_t begin = 0;
  for (int rank = 0; rank < 4; ++rank) {
    backends.push_back(NewBackend());
    Backend* const of_rank = backends[rank].get();
    ranks.testers.push_back(
        std::make_unique<LayerTester>(of_rank, ranks.collectives[rank].get(), "batch_norm {}",
                                      std::vector<SampleShape>{{kDim}}, parts[rank]));
    LayerTester& tester = *ranks.testers[rank];
    CopyRows(backend_.get(), whole.inputs()[0], begin, of_rank, tester.inputs()[0]);
    CopyRows(backend_.get(), whole.output_weights()[0], begin, of_rank, tester.output_weights()[0]);
    begins.push_back(begin);
    begin += parts[rank];
  }
  for (int rank = 0; rank < 4; ++rank) {
    threads.emplace_back([&, rank] {
      EXPECT_TRUE(ranks.testers[rank]->Forward().ok());
      EXPECT_TRUE(ranks.testers[rank]->Backward().ok());
      EXPECT_TRUE(ranks.testers[rank]->layer()->EndStep().ok());
    });
  }
  for (std::thread& thread : threads) thread.join();

  std::vector<float> gamma_gradient(kDim, 0);
  for (int rank = 0; rank < 4; ++rank) {
    LayerTester& tester = *ranks.testers[rank];
    for (int64_t i = 0; i < parts[rank]; ++i) {
      for (int64_t c = 0; c < kDim; ++c) {
        EXPECT_NEAR(tester.Get(tester.outputs()[0], i, c),
                    whole.Get(whole.outputs()[0], begins[rank] + i, c), 1e-6);
        EXPECT_NEAR(tester.Get(tester.input_gradients()[0], i, c),
                    whole.Get(whole.input_gradients()[0], begins[rank] + i, c), 1e-6);
      }
    }
    for (int64_t c = 0; c < kDim; ++c) {
      gamma_gradient[c] += tester.Get(tester.parameter_gradients()[0], 0, c);
      EXPECT_NEAR(tester.Get(tester.states()[0], 0, c), whole.Get(whole.states()[0], 0, c), 1e-7);
      EXPECT_NEAR(tester.Get(tester.states()[1], 0, c), whole.Get(whole.states()[1], 0, c), 1e-7);
    }
  }
  for (int64_t c = 0; c < kDim; ++c) {
    EXPECT_NEAR(gamma_gradient[c], whole.Get(whole.parameter_gradients()[0], 0, c), 1e-5);
  }
}

TEST_P(BatchNormLayerTest, RunningStatisticsMoveOnlyWhenTheStepCounts) {
  LayerTester tester = Tester("batch_norm { momentum: 0.5 }", {{1}}, 2);
  tester.Set(tester.inputs()[0], 0, 0, 1);
  tester.Set(tester.inputs()[0], 1, 0, 3);
  ASSERT_TRUE(tester.Forward().ok());
  tester.DecideStep(false);
  ASSERT_TRUE(tester.layer()->EndStep().ok());
  EXPECT_EQ(tester.Get(tester.states()[0]), 0);
  tester.DecideStep(true);
  ASSERT_TRUE(tester.layer()->EndStep().ok());
  EXPECT_FLOAT_EQ(tester.Get(tester.states()[0]), 1);    // 0.5 * 0 + 0.5 * 2
  EXPECT_FLOAT_EQ(tester.Get(tester.states()[1]), 1.5);  // 0.5 * 1 + 0.5 * 2, unbiased
}

TEST_P(BatchNormLayerTest, EvaluationUsesTheRunningStatistics) {
  LayerTester tester = Tester("batch_norm { epsilon: 1 }", {{1}}, 1);
  tester.Set(tester.states()[0], 0, 0, 2);
  tester.Set(tester.states()[1], 0, 0, 3);
  tester.Set(tester.parameters()[0], 0, 0, 4);
  tester.Set(tester.parameters()[1], 0, 0, 5);
  tester.Set(tester.inputs()[0], 0, 0, 6);
  tester.pass.training = false;
  ASSERT_TRUE(tester.Forward().ok());
  EXPECT_FLOAT_EQ(tester.Get(tester.outputs()[0]), (6 - 2) / 2.0f * 4 + 5);
}

TEST_P(BatchNormLayerTest, LocalRanksKeepTheSameRunningStatistics) {
  const auto collectives = NewLocalCollectives(2);
  std::vector<std::unique_ptr<Backend>> backends;
  std::vector<std::unique_ptr<LayerTester>> testers;
  for (int rank = 0; rank < 2; ++rank) {
    backends.push_back(NewBackend());
    testers.push_back(std::make_unique<LayerTester>(
        backends[rank].get(), collectives[rank].get(), "batch_norm { scope: LOCAL momentum: 0 }",
        std::vector<SampleShape>{{1}}, rank == 0 ? 1 : 3));
    backends[rank]->Fill(testers[rank]->inputs()[0], rank == 0 ? 5.0f : 1.0f);
  }
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 2; ++rank) {
    threads.emplace_back([&, rank] {
      EXPECT_TRUE(testers[rank]->Forward().ok());
      EXPECT_TRUE(testers[rank]->layer()->EndStep().ok());
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& tester : testers) {
    EXPECT_FLOAT_EQ(tester->Get(tester->states()[0]),
                    2);  // (5 + 3 * 1) / 4: samples weigh, not ranks
    EXPECT_FLOAT_EQ(tester->Get(tester->states()[1]), 4);
  }
}

TEST_P(BatchNormLayerTest, OnlySumsOverSeveralRanksPreventACapture) {
  const auto two = NewLocalCollectives(2);
  for (const bool global : {true, false}) {
    const std::string config =
        global ? "batch_norm { scope: GLOBAL }" : "batch_norm { scope: LOCAL }";
    EXPECT_FALSE(Tester(config, {{3}}, 4).layer()->prevents_capture());
    LayerTester of_two(backend_.get(), two[0].get(), config, {{3}}, 4);
    EXPECT_EQ(of_two.layer()->prevents_capture(), global);
  }
}

}  // namespace
}  // namespace satrap

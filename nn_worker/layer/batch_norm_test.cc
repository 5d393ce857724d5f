#include "nn_worker/layer/batch_norm.h"

#include <algorithm>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "nn_worker/backend/cpu_backend.h"
#include "nn_worker/collective/local_collective.h"
#include "nn_worker/layer/layer_testing.h"

namespace satrap {
namespace {

class BatchNormLayerTest : public testing::Test {
 protected:
  LayerTester Tester(const std::string& config, const std::vector<SampleShape>& inputs,
                     int64_t samples) {
    return LayerTester(backend_.get(), collectives_[0].get(), config, inputs, samples);
  }

  const std::unique_ptr<Backend> backend_ = NewCpuBackend(1);
  const std::vector<std::unique_ptr<Collective>> collectives_ = NewLocalCollectives(1);
};

TEST_F(BatchNormLayerTest, GradientsAreThoseOfItsForward) {
  for (const char* scope : {"LOCAL", "GLOBAL"}) {
    LayerTester tester = Tester(std::string("batch_norm { scope: ") + scope + " }", {{3}}, 9);
    EXPECT_LT(tester.LargestGradientError(), 3e-3) << scope;
  }
}

// The ranks' testers hold the rows [begin, end) of one batch each.
struct Ranks {
  std::vector<std::unique_ptr<Collective>> collectives;
  std::vector<std::unique_ptr<LayerTester>> testers;
};

constexpr int64_t kDim = 4;

void CopyRows(const Tensor& from, int64_t begin, const Tensor& to) {
  for (int64_t i = 0; i < to.rows; ++i) std::copy_n(from.f32(begin + i), to.cols, to.f32(i));
}

TEST_F(BatchNormLayerTest, GlobalOnUnequalAndEmptyPartsIsOneMachine) {
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
    backends.push_back(NewCpuBackend(1));
    ranks.testers.push_back(std::make_unique<LayerTester>(
        backends[rank].get(), ranks.collectives[rank].get(), "batch_norm {}",
        std::vector<SampleShape>{{kDim}}, parts[rank]));
    CopyRows(whole.inputs()[0], begin, ranks.testers[rank]->inputs()[0]);
    CopyRows(whole.output_weights()[0], begin, ranks.testers[rank]->output_weights()[0]);
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
        EXPECT_NEAR(tester.outputs()[0].f32(i)[c], whole.outputs()[0].f32(begins[rank] + i)[c],
                    1e-6);
        EXPECT_NEAR(tester.input_gradients()[0].f32(i)[c],
                    whole.input_gradients()[0].f32(begins[rank] + i)[c], 1e-6);
      }
    }
    for (int64_t c = 0; c < kDim; ++c) {
      gamma_gradient[c] += tester.parameter_gradients()[0].f32()[c];
      EXPECT_NEAR(tester.states()[0].f32()[c], whole.states()[0].f32()[c], 1e-7);
      EXPECT_NEAR(tester.states()[1].f32()[c], whole.states()[1].f32()[c], 1e-7);
    }
  }
  for (int64_t c = 0; c < kDim; ++c) {
    EXPECT_NEAR(gamma_gradient[c], whole.parameter_gradients()[0].f32()[c], 1e-5);
  }
}

TEST_F(BatchNormLayerTest, RunningStatisticsMoveOnlyWhenTheStepCounts) {
  LayerTester tester = Tester("batch_norm { momentum: 0.5 }", {{1}}, 2);
  tester.inputs()[0].f32(0)[0] = 1;
  tester.inputs()[0].f32(1)[0] = 3;
  ASSERT_TRUE(tester.Forward().ok());
  EXPECT_EQ(*tester.states()[0].f32(), 0);
  ASSERT_TRUE(tester.layer()->EndStep().ok());
  EXPECT_FLOAT_EQ(*tester.states()[0].f32(), 1);    // 0.5 * 0 + 0.5 * 2
  EXPECT_FLOAT_EQ(*tester.states()[1].f32(), 1.5);  // 0.5 * 1 + 0.5 * 2, unbiased
}

TEST_F(BatchNormLayerTest, EvaluationUsesTheRunningStatistics) {
  LayerTester tester = Tester("batch_norm { epsilon: 1 }", {{1}}, 1);
  *tester.states()[0].f32() = 2;
  *tester.states()[1].f32() = 3;
  *tester.parameters()[0].f32() = 4;
  *tester.parameters()[1].f32() = 5;
  *tester.inputs()[0].f32() = 6;
  tester.pass.training = false;
  ASSERT_TRUE(tester.Forward().ok());
  EXPECT_FLOAT_EQ(*tester.outputs()[0].f32(), (6 - 2) / 2.0f * 4 + 5);
}

TEST_F(BatchNormLayerTest, LocalRanksKeepTheSameRunningStatistics) {
  const auto collectives = NewLocalCollectives(2);
  std::vector<std::unique_ptr<Backend>> backends;
  std::vector<std::unique_ptr<LayerTester>> testers;
  for (int rank = 0; rank < 2; ++rank) {
    backends.push_back(NewCpuBackend(1));
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
    EXPECT_FLOAT_EQ(*tester->states()[0].f32(), 2);  // (5 + 3 * 1) / 4: samples weigh, not ranks
    EXPECT_FLOAT_EQ(*tester->states()[1].f32(), 4);
  }
}

}  // namespace
}  // namespace satrap

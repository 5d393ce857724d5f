// Networks whose passes run from graphs: the same bits as without.

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "common/numeric/random.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "nn_worker/backend/host_device_backend.h"
#include "nn_worker/backend/planned_host_backend.h"
#include "nn_worker/backend/tensor_copy.h"
#include "nn_worker/collective/local_collective.h"
#include "nn_worker/graph/network.h"

namespace satrap {
namespace {

constexpr int64_t kSamples = 24;

constexpr char kModel[] = R"(
  layers { name: "deep" inputs: "*.embedding" inputs: "numeric"
           mlp { units: 9 batch_norm {} dropout: 0.3 output_units: 1 } }
  layers { name: "fm" inputs: "*.embedding" fm {} }
  layers { name: "linear" inputs: "*.linear" sum {} }
  layers { name: "logit" inputs: "deep" inputs: "fm" inputs: "linear" add {} })";

constexpr char kPairs[] = R"(
  layers { name: "logit" inputs: "*.embedding" inputs: "numeric" mlp { units: 4 output_units: 1 } }
  tasks { name: "rank" output: "logit" loss: BPR })";

struct Job {
  std::string model = kModel;
  DType dtype = DType::kF32;
  bool moving_scale = false;
};

class TestNetwork {
 public:
  TestNetwork(const Job& job, bool captures, std::unique_ptr<Backend> backend,
              std::unique_ptr<Collective> collective = std::move(NewLocalCollectives(1)[0]))
      : backend_(std::move(backend)), collective_(std::move(collective)) {
    NetworkOptions options;
    CHECK(google::protobuf::TextFormat::ParseFromString(job.model, &options.model));
    options.inputs.numeric_width = 3;
    for (const char* feature : {"user", "item"}) {
      options.inputs.segments.push_back({feature, "embedding", 4, 0});
      options.inputs.segments.push_back({feature, "linear", 1, 0});
    }
    options.optimizer.set_learning_rate(0.1f);
    options.optimizer.mutable_adam();
    options.max_samples = kSamples;
    options.dtype = job.dtype;
    if (job.moving_scale) {
      options.gradient_scale.scale = 8;
      options.gradient_scale.rule.growth_steps = 2;
      options.gradient_scale.rule.most = 64;
    }
    options.graph_capture = captures;
    options.backend = backend_.get();
    options.collective = collective_.get();
    network_ = Network::Create(options).value();
  }
  Network* operator->() { return network_.get(); }

  void Fill(int64_t step) {
    for (int input = 0; input < network_->num_inputs(); ++input) {
      const Tensor view = network_->input_view(input);
      if (view.empty()) continue;
      std::vector<float> values;
      for (int64_t i = 0; i < view.rows * view.cols; ++i) {
        values.push_back(static_cast<float>(2 * UniformDouble(RandomBits(input, step, i)) - 1));
      }
      const Tensor wide = AllocateTensor(backend_.get(), DType::kF32, view.rows, view.cols).value();
      CopyIn(backend_.get(), values, wide);
      backend_->Copy(wide, view, /*add=*/false);
    }
  }
  void Train(int64_t step, int64_t samples = kSamples, bool weighted = false) {
    Fill(step);
    std::vector<float> labels, weights;
    std::vector<uint64_t> groups;
    for (int64_t i = 0; i < samples; ++i) {
      labels.push_back(static_cast<float>(RandomBits(77, step, i) % 2));
      weights.push_back(static_cast<float>(1 + RandomBits(78, step, i) % 3));
      groups.push_back(static_cast<uint64_t>(i % 3));
    }
    LossTargets targets = {labels, {}, {}, groups};
    if (weighted) targets.weights = weights;
    CHECK_OK(network_->Train(samples, PassContext::Training(step, 100 * step),
                             absl::MakeConstSpan(&targets, 1)));
    losses_.push_back(network_->ReadLoss().loss);
    DenseStep dense = {step};
    dense.learning_rate_factor = 1.0f / static_cast<float>(1 + step);
    CHECK_OK(network_->Step(dense, {static_cast<float>(samples), static_cast<float>(samples), 0}));
  }
  std::vector<float> Weights() { return ReadFloats(backend_.get(), network_->parameters()); }
  const std::vector<double>& losses() const { return losses_; }

 private:
  const std::unique_ptr<Backend> backend_;
  const std::unique_ptr<Collective> collective_;
  std::unique_ptr<Network> network_;
  std::vector<double> losses_;
};

using Story = std::function<void(TestNetwork*)>;

// Expects the bits of `story` to be the same with graphs; returns how many were launched.
int64_t ExpectTheSameBits(const Job& job, const Story& story) {
  int64_t launches = 0;
  for (const bool with_plans : {false, true}) {
    const auto backend = [&] {
      return with_plans ? NewPlannedHostBackend({}) : NewHostDeviceBackend({});
    };
    TestNetwork expected(job, /*captures=*/false, backend());
    story(&expected);
    EXPECT_EQ(expected->graph_launches(), 0);
    TestNetwork got(job, /*captures=*/true, backend());
    story(&got);
    EXPECT_EQ(got.losses(), expected.losses());
    EXPECT_EQ(got.Weights(), expected.Weights());
    EXPECT_EQ(got->Save(), expected->Save());
    launches = got->graph_launches();
  }
  return launches;
}

void TrainSixSteps(TestNetwork* network) {
  for (int64_t step = 0; step < 6; ++step) network->Train(step);
}

TEST(NetworkCaptureTest, GraphsTrainWithTheSameBitsWhateverTheStepDropsAndTheRateIs) {
  EXPECT_EQ(ExpectTheSameBits({}, TrainSixSteps), 5);
}

TEST(NetworkCaptureTest, GraphsOfSixteenBitsDoSoWhileTheLossScaleMoves) {
  for (const DType dtype : {DType::kBF16, DType::kF16}) {
    Job job;
    job.dtype = dtype;
    job.moving_scale = true;
    EXPECT_EQ(ExpectTheSameBits(job, TrainSixSteps), 5);
  }
}

TEST(NetworkCaptureTest, PartsOfOtherSizesRunWithoutAGraphInBetween) {
  const int64_t launches = ExpectTheSameBits({}, [](TestNetwork* network) {
    const int64_t sizes[] = {kSamples, kSamples, 7, kSamples, 0, 7, kSamples};
    for (int64_t step = 0; step < 7; ++step) network->Train(step, sizes[step]);
  });
  EXPECT_EQ(launches, 3);
}

TEST(NetworkCaptureTest, ScoresAndLoadedWeightsInBetweenAreSeen) {
  ExpectTheSameBits({}, [](TestNetwork* network) {
    network->Train(0);
    const std::string model = (*network)->Save();
    for (int64_t step = 1; step < 4; ++step) network->Train(step);
    network->Fill(99);
    CHECK_OK((*network)->Forward(kSamples, PassContext::Evaluation()));
    (*network)->ReadLogits();
    network->Train(4);
    CHECK_OK((*network)->Load(model, LoadScope::kAll));
    network->Train(5);
  });
}

TEST(NetworkCaptureTest, SamplesWithWeightsHaveAGraphOfTheirOwn) {
  const int64_t launches = ExpectTheSameBits({}, [](TestNetwork* network) {
    for (int64_t step = 0; step < 8; ++step) network->Train(step, kSamples, step % 2 == 1);
  });
  EXPECT_EQ(launches, 6);
}

// A part may have more pairs than another.
TEST(NetworkCaptureTest, PairsAreNotCaptured) {
  Job job;
  job.model = kPairs;
  EXPECT_EQ(ExpectTheSameBits(job, TrainSixSteps), 0);
}

// With several ranks the statistics of GLOBAL, which is batch norm's default, are added up by the collective
// in the middle of the pass.
TEST(NetworkCaptureTest, StatisticsOfAllRanksAreNotCaptured) {
  auto collectives = NewLocalCollectives(2);
  std::vector<std::thread> threads;
  for (int r = 0; r < 2; ++r) {
    threads.emplace_back([collective = std::move(collectives[r])]() mutable {
      TestNetwork network({}, /*captures=*/true, NewHostDeviceBackend({}), std::move(collective));
      TrainSixSteps(&network);
      EXPECT_EQ(network->graph_launches(), 0);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace satrap

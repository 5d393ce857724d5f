// Tests that networks whose passes run from graphs have the same bits as without graphs.

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "common/numeric/random.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "nn_worker/backend/cpu/cpu_backend.h"
#include "nn_worker/backend/device/device_backend.h"
#include "nn_worker/backend/tensor_copy.h"
#include "nn_worker/backend/testing/host_device_backend.h"
#include "nn_worker/backend/testing/planned_host_backend.h"
#include "nn_worker/collective/local_collective.h"
#include "nn_worker/collective/testing/local_reduction.h"
#include "nn_worker/device/host/host_device.h"
#include "nn_worker/device/metered_device.h"
#include "nn_worker/graph/network.h"
#include "nn_worker/products/kernel_products.h"

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

// Two tasks, one of which counts only some of the samples.
constexpr char kTasks[] = R"(
  layers { name: "deep" inputs: "*.embedding" inputs: "numeric" mlp { units: 6 } }
  layers { name: "click" inputs: "deep" linear { units: 1 } }
  layers { name: "amount" inputs: "deep" linear { units: 1 } }
  tasks { name: "click" output: "click" }
  tasks { name: "amount" output: "amount" loss: MSE weight: 0.5 })";

// A model with a term for each pair of features, so that its lists are long.
constexpr char kDots[] = R"(
  layers { name: "dots" inputs: "*.embedding" dot_interaction {} }
  layers { name: "logit" inputs: "dots" inputs: "numeric" mlp { units: 4 output_units: 1 } })";

constexpr char kFm[] = R"(
  layers { name: "fm" inputs: "*.embedding" fm {} }
  layers { name: "deep" inputs: "numeric" mlp { units: 4 output_units: 1 } }
  layers { name: "logit" inputs: "fm" inputs: "deep" add {} })";

constexpr char kLocal[] = R"(
  layers { name: "logit" inputs: "*.embedding" inputs: "numeric"
           mlp { units: 9 batch_norm { scope: LOCAL } output_units: 1 } })";

constexpr char kNormsAtBothEnds[] = R"(
  layers { name: "norm" inputs: "numeric" batch_norm {} }
  layers { name: "deep" inputs: "norm" inputs: "*.embedding" mlp { output_units: 1 } }
  layers { name: "logit" inputs: "deep" batch_norm {} })";

struct Job {
  std::string model = kModel;
  DType dtype = DType::kF32;
  bool moving_scale = false;
  bool averages = false;
  int64_t min_full_samples = 0;
  int features = 2;
};

// The objects with which ranks add up their gradients. The defaults are for a single rank, which
// needs none.
struct RankSums {
  std::unique_ptr<Collective> collective = std::move(NewLocalCollectives(1)[0]);
  std::unique_ptr<DeviceReduction> reduction;
};

class TestNetwork {
 public:
  TestNetwork(const Job& job, bool captures, std::unique_ptr<Backend> backend, RankSums sums = {})
      : backend_(std::move(backend)), sums_(std::move(sums)) {
    NetworkOptions options;
    CHECK(google::protobuf::TextFormat::ParseFromString(job.model, &options.model));
    options.inputs.numeric_width = 3;
    for (int f = 0; f < job.features; ++f) {
      options.inputs.segments.push_back({absl::StrCat("f", f), "embedding", 4, 0});
      options.inputs.segments.push_back({absl::StrCat("f", f), "linear", 1, 0});
    }
    options.optimizer.set_learning_rate(0.1f);
    options.optimizer.mutable_adam();
    if (job.averages) options.optimizer.mutable_averaged_weights()->set_decay(0.5);
    options.max_samples = kSamples;
    options.min_full_samples = job.min_full_samples;
    options.dtype = job.dtype;
    if (job.moving_scale) {
      options.gradient_scale.scale = 8;
      options.gradient_scale.rule.growth_steps = 2;
      options.gradient_scale.rule.most = 64;
    }
    options.graph_capture = captures;
    options.backend = backend_.get();
    options.collective = sums_.collective.get();
    options.reduction = sums_.reduction.get();
    network_ = Network::Create(options).value();
    for (int input = 0; input < network_->num_inputs(); ++input) {
      const Tensor view = network_->input_view(input);
      wide_.push_back(
          view.empty() ? Tensor()
                       : AllocateTensor(backend_.get(), DType::kF32, view.rows, view.cols).value());
    }
  }
  Network* operator->() { return network_.get(); }
  Backend* backend() { return backend_.get(); }

  void Fill(int64_t step) {
    for (int input = 0; input < network_->num_inputs(); ++input) {
      const Tensor view = network_->input_view(input);
      if (view.empty()) continue;
      std::vector<float> values;
      for (int64_t i = 0; i < view.rows * view.cols; ++i) {
        const uint64_t bits = RandomBits(input + 1000 * sums_.collective->rank(), step, i);
        values.push_back(static_cast<float>(2 * UniformDouble(bits) - 1));
      }
      CopyIn(backend_.get(), values, wide_[input]);
      backend_->Copy(wide_[input], view, /*add=*/false);
    }
  }
  void Train(int64_t step, int64_t samples = kSamples, bool weighted = false, bool masked = false) {
    Fill(step);
    std::vector<float> labels, weights, mask;
    std::vector<uint64_t> groups;
    for (int64_t i = 0; i < samples; ++i) {
      labels.push_back(static_cast<float>(RandomBits(77, step, i) % 2));
      weights.push_back(static_cast<float>(1 + RandomBits(78, step, i) % 3));
      groups.push_back(static_cast<uint64_t>(i % 3));
      mask.push_back(static_cast<float>(RandomBits(79, step, i) % 2));
    }
    std::vector<LossTargets> targets(network_->num_tasks(), {labels, {}, {}, groups});
    if (masked) targets.back().mask = mask;
    for (LossTargets& of_task : targets) {
      if (weighted) of_task.weights = weights;
    }
    CHECK_OK(network_->Train(samples, PassContext::Training(step, 100 * step), targets));
    losses_.push_back(network_->ReadLoss().loss);
    CHECK_OK(network_->StartReduce());
    CHECK_OK(network_->FinishReduce());
    DenseStep dense = {step};
    dense.learning_rate_factor = 1.0f / static_cast<float>(1 + step);
    const auto total = static_cast<float>(samples * sums_.collective->size());
    CHECK_OK(network_->Step(dense, {total, total, 0}));
  }
  std::vector<float> Score(int64_t samples) {
    CHECK_OK(network_->Forward(samples, PassContext::Evaluation()));
    return network_->ReadLogits();
  }
  std::vector<float> Weights() { return network_->ParameterValues(); }
  absl::Status Meet() { return sums_.collective->Barrier(); }
  const std::vector<double>& losses() const { return losses_; }

 private:
  const std::unique_ptr<Backend> backend_;
  const RankSums sums_;
  std::unique_ptr<Network> network_;
  std::vector<Tensor> wide_;  // by input, in f32
  std::vector<double> losses_;
};

using Story = std::function<void(TestNetwork*)>;

// Runs `story` with and without graphs and expects the same bits. Returns the number of graph
// launches.
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

// The masks of dropout and the learning rate differ from step to step.
TEST(NetworkCaptureTest, GraphsTrainWithTheSameBitsWhileMasksAndRatesChange) {
  EXPECT_EQ(ExpectTheSameBits({}, TrainSixSteps), 5);
}

// Inputs and targets are equal and no step moves the weights, so steps differ only by dropout.
TEST(NetworkCaptureTest, AGraphDropsOtherUnitsInEachStep) {
  TestNetwork network({}, /*captures=*/true, NewHostDeviceBackend({}));
  std::vector<double> losses;
  const std::vector<float> labels(kSamples, 1);
  const LossTargets targets = {labels, {}, {}, {}};
  network.Fill(0);
  for (const int64_t step : {0, 1, 2, 1, 2}) {
    CHECK_OK(network->Train(kSamples, PassContext::Training(step, 100 * step),
                            absl::MakeConstSpan(&targets, 1)));
    losses.push_back(network->ReadLoss().loss);
  }
  EXPECT_EQ(network->graph_launches(), 4);
  EXPECT_NE(losses[1], losses[2]);
  EXPECT_EQ(losses[1], losses[3]);
  EXPECT_EQ(losses[2], losses[4]);
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

// Parts have two sizes if the number of ranks does not divide a global batch.
TEST(NetworkCaptureTest, FullPartsOfTwoSizesHaveAGraphEach) {
  Job job;
  job.min_full_samples = kSamples - 1;
  const int64_t launches = ExpectTheSameBits(job, [](TestNetwork* network) {
    for (int64_t step = 0; step < 8; ++step) network->Train(step, kSamples - step % 2);
    network->Train(8, kSamples - 2);
  });
  EXPECT_EQ(launches, 6);
}

TEST(NetworkCaptureTest, EmptyPartsAreNotFull) {
  EXPECT_EQ(ExpectTheSameBits({},
                              [](TestNetwork* network) {
                                for (int64_t step = 0; step < 4; ++step) network->Train(step, 0);
                              }),
            0);
}

TEST(NetworkCaptureTest, ScoresAndLoadedWeightsInBetweenAreSeen) {
  for (const bool averages : {false, true}) {
    Job job;
    job.averages = averages;
    std::vector<std::vector<float>> scores;
    const int64_t launches = ExpectTheSameBits(job, [&scores](TestNetwork* network) {
      network->Train(0);
      const std::string model = (*network)->Save();
      for (int64_t step = 1; step < 4; ++step) network->Train(step);
      network->Fill(99);
      scores.push_back(network->Score(kSamples));
      network->Train(4);
      CHECK_OK((*network)->Load(model, LoadScope::kAll));
      network->Train(5);
      scores.push_back(network->Score(kSamples));
    });
    EXPECT_EQ(launches, 5);
    // There are four runs with two scores each: own kernels without graphs and with graphs, then
    // plans without graphs and with graphs.
    ASSERT_EQ(scores.size(), 8u);
    for (const size_t i : {0, 1, 4, 5}) EXPECT_EQ(scores[i], scores[i + 2]);
  }
}

TEST(NetworkCaptureTest, TasksAndMasksAreSeen) {
  Job job;
  job.model = kTasks;
  const int64_t launches = ExpectTheSameBits(job, [](TestNetwork* network) {
    for (int64_t step = 0; step < 8; ++step) {
      network->Train(step, kSamples, /*weighted=*/true, /*masked=*/step % 2 == 1);
    }
  });
  EXPECT_EQ(launches, 6) << "parts with a mask and without have a graph each";
}

TEST(NetworkCaptureTest, SamplesWithWeightsHaveAGraphOfTheirOwn) {
  const int64_t launches = ExpectTheSameBits({}, [](TestNetwork* network) {
    for (int64_t step = 0; step < 8; ++step) network->Train(step, kSamples, step % 2 == 1);
  });
  EXPECT_EQ(launches, 6);
}

// One part may have more pairs than another, so a graph would not fit all parts.
TEST(NetworkCaptureTest, PairsAreNotCaptured) {
  Job job;
  job.model = kPairs;
  EXPECT_EQ(ExpectTheSameBits(job, TrainSixSteps), 0);
}

// A backend whose memory limit is one byte above what a network uses in two steps.
std::unique_ptr<Backend> TightBackend(const Job& job) {
  const auto backend = [](const std::shared_ptr<DeviceMeter>& meter) {
    DeviceBackendOptions options;
    options.meter = meter;
    return NewDeviceBackend(NewHostDevice({}), NewKernelProducts(), options).value();
  };
  const auto meter = std::make_shared<DeviceMeter>();
  TestNetwork network(job, /*captures=*/true, backend(meter));
  for (int64_t step = 0; step < 2; ++step) network.Train(step);
  network.Score(kSamples);
  return backend(std::make_shared<DeviceMeter>(meter->Read().peak_bytes + 1));
}

// Evaluations of many sizes, each with its own lists of tensors, overwrite the lists of the
// captured pass.
TEST(NetworkCaptureTest, ListsThatAreWrittenOverAreSeen) {
  Job job;
  job.model = kFm;  // each number of samples has a list of all inputs
  job.features = 500;
  const auto story = [](TestNetwork* network) {
    for (int64_t step = 0; step < 9; ++step) {
      network->Train(step);
      for (int64_t samples = 1; step % 3 == 2 && samples <= kSamples; ++samples) {
        network->Score(samples);
      }
    }
  };
  TestNetwork expected(job, /*captures=*/false, TightBackend(job));
  story(&expected);
  TestNetwork got(job, /*captures=*/true, TightBackend(job));
  story(&got);
  EXPECT_GT(got.backend()->GraphEpoch(), 0) << "nothing was written over";
  EXPECT_GE(got->graph_launches(), 2);
  EXPECT_EQ(got.losses(), expected.losses());
  EXPECT_EQ(got->Save(), expected->Save());
}

// Trains two ranks. Returns what each of them saves, by rank.
std::vector<std::string> TrainTwoRanks(const Job& job, bool captures, int64_t launches) {
  auto collectives = NewLocalCollectives(2);
  auto reductions = NewLocalReductions(2);
  std::vector<std::string> saved(2);
  std::vector<std::thread> threads;
  for (int r = 0; r < 2; ++r) {
    threads.emplace_back([&, r] {
      RankSums sums = {std::move(collectives[r]), std::move(reductions[r])};
      TestNetwork network(job, captures, NewHostDeviceBackend({}), std::move(sums));
      TrainSixSteps(&network);
      EXPECT_EQ(network->graph_launches(), launches);
      saved[r] = network->Save();
      // The other rank may still be waiting for this rank's last sum.
      CHECK_OK(network.Meet());
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(saved[0], saved[1]);
  return saved;
}

TEST(NetworkCaptureTest, RanksThatAddUpOnTheirDevicesGetTheSameBitsByGraphs) {
  Job job;
  job.model = kLocal;
  EXPECT_EQ(TrainTwoRanks(job, /*captures=*/true, 5), TrainTwoRanks(job, /*captures=*/false, 0));
}

// By default (GLOBAL), batch norm adds up its statistics over all ranks, by the collective, in the
// middle of the pass. So each of the five passes has three graphs.
TEST(NetworkCaptureTest, BatchNormOfAllRanksStaysOutsideOfTheGraphs) {
  EXPECT_EQ(TrainTwoRanks({}, /*captures=*/true, 15), TrainTwoRanks({}, /*captures=*/false, 0));
}

// With batch norm first and last, the pass begins and ends outside of a graph. There are three
// graphs: of the products forward, of the loss, and of the products backward.
TEST(NetworkCaptureTest, BatchNormMayBeTheFirstLayerAndTheLast) {
  Job job;
  job.model = kNormsAtBothEnds;
  EXPECT_EQ(TrainTwoRanks(job, /*captures=*/true, 15), TrainTwoRanks(job, /*captures=*/false, 0));
}

TEST(NetworkCaptureTest, ItSaysWhyThereAreNoGraphs) {
  const auto why = [](const Job& job, bool captures, std::unique_ptr<Backend> backend) {
    return TestNetwork(job, captures, std::move(backend))->WhyNoGraphs();
  };
  EXPECT_EQ(why({}, true, NewHostDeviceBackend({})), "");
  EXPECT_EQ(why({}, false, NewHostDeviceBackend({})), "nn_worker.graph_capture is false");
  EXPECT_EQ(why({}, true, NewCpuBackend(1)), "the device does not support graphs");
  RankSums sums = {std::move(NewLocalCollectives(2)[0]), nullptr};
  EXPECT_EQ(TestNetwork({}, true, NewHostDeviceBackend({}), std::move(sums))->WhyNoGraphs(), "")
      << "batch norm of all ranks alone stays outside";
  Job pairs;
  pairs.model = kPairs;
  EXPECT_EQ(why(pairs, true, NewHostDeviceBackend({})),
            "the number of pairs of the loss BPR differs from part to part");
}

}  // namespace
}  // namespace satrap

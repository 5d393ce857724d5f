// Tests networks whose ranks add up their gradients from device to device.

#include <string>
#include <thread>
#include <vector>

#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "nn_worker/backend/tensor_copy.h"
#include "nn_worker/backend/testing/host_device_backend.h"
#include "nn_worker/collective/local_collective.h"
#include "nn_worker/collective/testing/local_reduction.h"
#include "nn_worker/device/testing/device_testing.h"
#include "nn_worker/graph/network.h"

namespace satrap {
namespace {

constexpr int64_t kSamples = 40;

constexpr char kModel[] = R"(
  layers { name: "logit" inputs: "*.embedding" inputs: "numeric"
           mlp { units: 9 output_units: 1 } })";

NetworkOptions Options() {
  NetworkOptions options;
  CHECK(google::protobuf::TextFormat::ParseFromString(kModel, &options.model));
  options.inputs.numeric_width = 3;
  options.inputs.segments = {{"user", "embedding", 4, 0}};
  options.optimizer.set_learning_rate(0.1f);
  options.optimizer.mutable_adagrad();
  options.max_samples = kSamples;
  return options;
}

// Writes a rank's samples of a step to the network's inputs.
void Fill(int rank, int64_t step, Network* network) {
  for (int input = 0; input < network->num_inputs(); ++input) {
    const Tensor view = network->input_view(input);
    std::vector<float> values(view.rows * view.cols);
    for (size_t i = 0; i < values.size(); ++i) {
      values[i] = static_cast<float>((i * 7 + step * 5 + rank * 3 + input) % 11) / 11 - .4f;
    }
    CopyIn(network->backend(), values, view);
  }
}

absl::Status TrainStep(int rank, int ranks, int64_t step, Network* network) {
  Fill(rank, step, network);
  RETURN_IF_ERROR(network->Forward(kSamples, PassContext::Training(step, rank * kSamples)));
  std::vector<float> labels(kSamples);
  for (int64_t i = 0; i < kSamples; ++i) labels[i] = (i + rank) % 3 == 0 ? 1.0f : 0.0f;
  network->Loss(labels, {}, {});
  RETURN_IF_ERROR(network->Backward());
  RETURN_IF_ERROR(network->StartReduce());
  RETURN_IF_ERROR(network->FinishReduce());
  const auto samples = static_cast<float>(ranks * kSamples);
  const StepTotals totals = {samples, samples, 0};
  const double squares = network->GradientSquares({step}, totals);
  return network->Step({step}, totals, static_cast<float>(1 / (1 + squares)));
}

// The weights of each rank after three clipped steps.
std::vector<std::vector<float>> Train(int ranks, bool on_devices, const HostDeviceOptions& device) {
  const auto collectives = NewLocalCollectives(ranks);
  const auto reductions = NewLocalReductions(ranks);
  std::vector<std::vector<float>> weights(ranks);
  std::vector<std::thread> threads;
  for (int r = 0; r < ranks; ++r) {
    threads.emplace_back([&, r] {
      const auto backend = NewHostDeviceBackend(device);
      NetworkOptions options = Options();
      options.backend = backend.get();
      options.collective = collectives[r].get();
      if (on_devices) options.reduction = reductions[r].get();
      const auto network = Network::Create(options).value();
      for (int64_t step = 0; step < 3; ++step) {
        CHECK_OK(TrainStep(r, ranks, step, network.get()));
      }
      weights[r] = ReadFloats(backend.get(), network->parameters());
    });
  }
  for (std::thread& thread : threads) thread.join();
  return weights;
}

TEST(NetworkReductionTest, RanksThatAddUpOnTheirDevicesGetTheWeightsOfThoseThatDoNot) {
  for (const int ranks : {1, 2, 3}) {
    const auto expected = Train(ranks, /*on_devices=*/false, {});
    for (const HostDeviceOptions& order : EveryOrder()) {
      const auto got = Train(ranks, /*on_devices=*/true, order);
      for (int r = 0; r < ranks; ++r) EXPECT_EQ(got[r], expected[0]) << ranks << " ranks";
    }
  }
}

TEST(NetworkReductionTest, ALostPeerEndsTheStep) {
  const auto collectives = NewLocalCollectives(2);
  auto reductions = NewLocalReductions(2);
  const auto backend = NewHostDeviceBackend({});
  NetworkOptions options = Options();
  options.backend = backend.get();
  options.collective = collectives[0].get();
  options.reduction = reductions[0].get();
  const auto network = Network::Create(options).value();
  std::thread leaver([&] { reductions[1].reset(); });
  const absl::Status status = TrainStep(0, 2, 0, network.get());
  leaver.join();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
}

// A caller that continues after an error gets the same error again.
TEST(NetworkReductionTest, WhatIsDeadReturnsItsErrorFromEveryCall) {
  for (const bool on_devices : {true, false}) {
    const auto collectives = NewLocalCollectives(on_devices ? 2 : 1);
    const auto reductions = NewLocalReductions(2);
    const auto backend = NewHostDeviceBackend({});
    NetworkOptions options = Options();
    options.backend = backend.get();
    options.collective = collectives[0].get();
    if (on_devices) options.reduction = reductions[0].get();
    const auto network = Network::Create(options).value();
    const absl::Status lost = absl::UnavailableError("rank 1 has left the job");
    if (on_devices) {
      ASSERT_TRUE(network->StartReduce().ok());
      reductions[0]->Abort(lost);
      EXPECT_EQ(network->FinishReduce(), lost);
    } else {
      collectives[0]->Abort(lost);
    }
    EXPECT_EQ(network->StartReduce(), lost);
    EXPECT_EQ(network->StartReduce(), lost);
  }
}

}  // namespace
}  // namespace satrap

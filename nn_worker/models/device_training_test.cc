// The training of device_training.h on a device's kernels, which the host runs, with a library's
// plans and without.

#include "nn_worker/models/device_training.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "nn_worker/backend/cpu/cpu_backend.h"
#include "nn_worker/backend/device/device_backend.h"
#include "nn_worker/backend/device/host_device_backend.h"
#include "nn_worker/backend/testing/planned_host_backend.h"
#include "nn_worker/device/delegating_device.h"
#include "nn_worker/device/host/host_device.h"
#include "nn_worker/device/metered_device.h"
#include "nn_worker/models/zoo.h"
#include "nn_worker/products/kernel_products.h"

namespace satrap {
namespace {

INSTANTIATE_TEST_SUITE_P(HostDevice, DeviceTraining,
                         testing::Values<DeviceFactory>([] { return NewHostDeviceBackend({}); }));
INSTANTIATE_TEST_SUITE_P(HostDeviceWithPlans, DeviceTraining,
                         testing::Values<DeviceFactory>([] { return NewPlannedHostBackend({}); }));

// Linear layers with ReLU, one after another. "total" also reads the output of a ReLU, either after
// "side" does or before.
ModelConfig Towers(bool total_last) {
  const std::string total = R"(layers { name: "total" inputs: "deep" sum {} })";
  const std::string side =
      R"(layers { name: "side" inputs: "deep" linear { units: 10 activation: RELU } })";
  return ModelOf(R"(
    layers { name: "all" inputs: "*.embedding" inputs: "numeric" concat {} }
    layers { name: "deep" inputs: "all" mlp { units: 16 units: 12 } })" +
                 (total_last ? side + total : total + side) + R"(
    layers { name: "top" inputs: "side" mlp { units: 8 output_units: 1 } }
    layers { name: "linear" inputs: "*.linear" sum {} }
    layers { name: "logit" inputs: "top" inputs: "total" inputs: "linear" add {} })");
}

std::vector<float> WeightsOf(const TrainingJob& job, unsigned pattern) {
  return Train(job, NewPlannedHostBackend({}, RefusesPattern(pattern)).get()).weights;
}

TEST(DeviceTrainingTest, WhateverTheLibraryRefusesTheWeightsAreThoseOfOwnKernels) {
  const TrainingJob job = {Towers(true), 3};
  const auto kernels = Train(job, NewHostDeviceBackend({}).get()).weights;
  for (unsigned pattern = 0; pattern < kEpiloguePatterns; ++pattern) {
    ASSERT_EQ(WeightsOf(job, pattern), kernels) << pattern;
  }
}

TEST(DeviceTrainingTest, InSixteenBitsTheWeightsAreThoseOfOwnKernelsToo) {
  const TrainingJob job = {Towers(true), 2, DType::kBF16};
  const auto kernels = Train(job, NewHostDeviceBackend({}).get()).weights;
  for (unsigned pattern = 0; pattern < kRefusalPatterns; ++pattern) {
    ASSERT_EQ(WeightsOf(job, pattern), kernels) << pattern;
  }
}

TEST(DeviceTrainingTest, ThreadsThatRunBlocksAtOnceChangeNoBits) {
  const TrainingJob job = {ZooModel("adult_persia").value(), 20};
  const auto one = Train(job, NewHostDeviceBackend({}).get()).weights;
  HostDeviceOptions options;
  options.threads = 3;
  for (int run = 0; run < 2; ++run) {
    ASSERT_EQ(Train(job, NewHostDeviceBackend(options).get()).weights, one) << run;
  }
}

// A HostDevice that records what a profiler would see.
class ProfiledDevice final : public DelegatingDevice {
 public:
  explicit ProfiledDevice(std::vector<std::string>* seen)
      : DelegatingDevice(NewHostDevice({})), seen_(seen) {}
  void BeginRange(const char* name) override { seen_->push_back(name); }
  void EndRange() override { seen_->push_back("end"); }

 private:
  std::vector<std::string>* const seen_;
};

TEST(DeviceTrainingTest, AProfilerSeesWhatAStepDoes) {
  std::vector<std::string> seen;
  auto device =
      NewMeteredDevice(std::make_unique<ProfiledDevice>(&seen), std::make_shared<DeviceMeter>());
  const auto backend = NewDeviceBackend(std::move(device), NewKernelProducts());
  ASSERT_TRUE(backend.ok()) << backend.status();
  Train({ZooModel("adult_persia").value(), 1}, backend->get());
  EXPECT_THAT(seen, testing::ElementsAre("forward", "end", "loss", "end", "backward", "end",
                                         "optimizer", "end"));
}

// If the last reader that adds to a gradient is a product, it also applies the gradient of the ReLU
// that made the values. No earlier reader does so.
TEST(DeviceTrainingTest, OnlyTheLastReaderTakesAGradientThroughItsRelu) {
  for (const bool total_last : {true, false}) {
    const TrainingJob job = {Towers(total_last), 40};
    PlannerLog log;
    const Trained trained = Train(job, NewPlannedHostBackend({}, {}, &log).get());
    ExpectTheCpusWeights(trained, Train(job, NewCpuBackend(1).get()), 1e-3);
    // In the backward pass the first layer of "deep" runs last.
    EXPECT_EQ(std::count_if(log.prepared.begin(), log.prepared.end(),
                            [](const ProductSpec& spec) {
                              return spec.epilogue == ProductEpilogue::kReluGrad;
                            }),
              total_last ? 3 : 2);
  }
}

}  // namespace
}  // namespace satrap

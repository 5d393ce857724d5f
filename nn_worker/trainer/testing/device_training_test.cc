// Runs the training of device_training.h on the host's device, with and without a library's plans.

#include "nn_worker/trainer/testing/device_training.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "nn_worker/backend/cpu/cpu_backend.h"
#include "nn_worker/backend/device/device_backend.h"
#include "nn_worker/backend/testing/host_device_backend.h"
#include "nn_worker/backend/testing/planned_host_backend.h"
#include "nn_worker/device/delegating_device.h"
#include "nn_worker/device/host/host_device.h"
#include "nn_worker/device/metered_device.h"
#include "nn_worker/products/kernel_products.h"
#include "nn_worker/zoo/zoo.h"

namespace satrap {
namespace {

INSTANTIATE_TEST_SUITE_P(HostDevice, DeviceTraining,
                         testing::Values<DeviceFactory>([] { return NewHostDeviceBackend({}); }));
INSTANTIATE_TEST_SUITE_P(HostDeviceWithPlans, DeviceTraining,
                         testing::Values<DeviceFactory>([] { return NewPlannedHostBackend({}); }));

// Linear layers with ReLU, one after another. "total" also reads the output of a ReLU.
ModelConfig Towers() {
  return ModelOf(R"(
    layers { name: "all" inputs: "*.embedding" inputs: "numeric" concat {} }
    layers { name: "deep" inputs: "all" mlp { units: 16 units: 12 } }
    layers { name: "side" inputs: "deep" linear { units: 10 activation: RELU } }
    layers { name: "total" inputs: "deep" sum {} }
    layers { name: "top" inputs: "side" mlp { units: 8 output_units: 1 } }
    layers { name: "linear" inputs: "*.linear" sum {} }
    layers { name: "logit" inputs: "top" inputs: "total" inputs: "linear" add {} })");
}

std::vector<float> WeightsOf(const TrainingJob& job, unsigned pattern) {
  return Train(job, NewPlannedHostBackend({}, RefusesPattern(pattern)).get()).weights;
}

TEST(DeviceTrainingTest, WhateverTheLibraryRefusesTheWeightsAreThoseOfOwnKernels) {
  const TrainingJob job = {Towers(), 3};
  const auto kernels = Train(job, NewHostDeviceBackend({}).get()).weights;
  for (unsigned pattern = 0; pattern < kEpiloguePatterns; ++pattern) {
    ASSERT_EQ(WeightsOf(job, pattern), kernels) << pattern;
  }
}

TEST(DeviceTrainingTest, InSixteenBitsTheWeightsAreThoseOfOwnKernelsToo) {
  const TrainingJob job = {Towers(), 2, DType::kBF16};
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

TEST(DeviceTrainingTest, PlannedTowersHaveTheCpusWeights) {
  const TrainingJob job = {Towers(), 40};
  const Trained trained = Train(job, NewPlannedHostBackend({}).get());
  ExpectTheCpusWeights(trained, Train(job, NewCpuBackend(1).get()), 1e-3);
}

}  // namespace
}  // namespace satrap

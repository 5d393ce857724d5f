// Trains models on a device and on the CPU, on the same synthetic samples, and compares the
// weights: a suite of tests over a factory of backends, which the tests of the devices instantiate.
//
//   INSTANTIATE_TEST_SUITE_P(HostDevice, DeviceTraining,
//                            testing::Values<DeviceFactory>([] { return NewHostDeviceBackend({});
//                            }));
//
// If a factory makes no backend, for example without a card, the tests are skipped with its
// message.

#ifndef SATRAP_NN_WORKER_TRAINER_TESTING_DEVICE_TRAINING_H_
#define SATRAP_NN_WORKER_TRAINER_TESTING_DEVICE_TRAINING_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "gtest/gtest.h"
#include "nn_worker/backend/backend.h"
#include "proto/model.pb.h"

namespace satrap {

struct TrainingJob {
  ModelConfig model;
  int64_t steps;
  DType dtype = DType::kF32;
  bool graph_capture = true;
};

struct Trained {
  std::vector<float> weights;
  double first_loss = 0, last_loss = 0;
  int64_t graph_launches = 0;
};

// CHECK-fails if the text is not a model.
ModelConfig ModelOf(const std::string& text);
// Inputs: "numeric" and 8 features, each with an "embedding" of 8 values and a "linear" weight.
Trained Train(const TrainingJob& job, Backend* backend);
void ExpectTheCpusWeights(const Trained& device, const Trained& cpu, double tolerance);

using DeviceFactory = std::function<absl::StatusOr<std::unique_ptr<Backend>>()>;

class DeviceTraining : public testing::TestWithParam<DeviceFactory> {
 protected:
  DeviceTraining() : made_(GetParam()()) {}
  void SetUp() override {
    if (!made_.ok()) GTEST_SKIP() << made_.status().message();
  }
  Backend* backend() { return made_->get(); }

 private:
  const absl::StatusOr<std::unique_ptr<Backend>> made_;
};

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_TRAINER_TESTING_DEVICE_TRAINING_H_

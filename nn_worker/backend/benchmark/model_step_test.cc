// Tests that the step learns, that the host's device and the CPU compute the same gradients of the
// rows, and that the step runs as a graph.

#include "nn_worker/backend/benchmark/model_step.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "common/base/check.h"
#include "gtest/gtest.h"
#include "nn_worker/backend/cpu/cpu_backend.h"
#include "nn_worker/backend/tensor_copy.h"
#include "nn_worker/backend/testing/host_device_backend.h"

namespace satrap {
namespace {

constexpr int64_t kSamples = 32;
constexpr int kSteps = 6;

struct Result {
  double first_loss = 0, last_loss = 0;
  std::vector<float> first_gradients;
  int64_t rows = 0, row_values = 0, graph_launches = 0;
};

Result TrainModel(const std::string& model, Backend* backend,
                  NnWorkerConfig::Precision precision = NnWorkerConfig::F32,
                  bool graph_capture = true) {
  ModelStepOptions options;
  options.model = ZooModel(model).value();
  options.data = {4, 5, 16};
  options.samples = kSamples;
  options.precision = precision;
  options.graph_capture = graph_capture;
  options.backend = backend;
  const auto step = ModelStep::Create(options);
  CHECK_OK(step.status());
  Result result;
  for (int i = 0; i < kSteps; ++i) {
    CHECK_OK((*step)->Run());
    if (i > 0) continue;
    result.first_loss = (*step)->ReadLoss();
    result.first_gradients = ReadFloats(backend, (*step)->row_gradients());
  }
  result.last_loss = (*step)->ReadLoss();
  result.rows = (*step)->num_rows();
  result.row_values = (*step)->row_gradients().cols;
  result.graph_launches = (*step)->graph_launches();
  return result;
}

std::unique_ptr<Backend> HostDevice() { return NewHostDeviceBackend({}); }

TEST(ModelStepTest, LearnsAndHasTheCpusGradients) {
  for (const char* model : {"deepfm", "dlrm"}) {
    const Result cpu = TrainModel(model, NewCpuBackend(1).get());
    const Result device = TrainModel(model, HostDevice().get());
    EXPECT_LT(cpu.last_loss, cpu.first_loss) << model;
    EXPECT_NEAR(device.first_loss, cpu.first_loss, 1e-5) << model;
    EXPECT_NEAR(device.last_loss, cpu.last_loss, 1e-3) << model;
    ASSERT_EQ(device.first_gradients.size(), cpu.first_gradients.size()) << model;
    double largest = 0;
    for (size_t i = 0; i < cpu.first_gradients.size(); ++i) {
      EXPECT_NEAR(device.first_gradients[i], cpu.first_gradients[i], 1e-4) << model << " " << i;
      largest = std::max<double>(largest, std::abs(cpu.first_gradients[i]));
    }
    EXPECT_GT(largest, 0.01) << model;
  }
}

TEST(ModelStepTest, HalfOfTheIdsAreDistinct) {
  const Result deepfm = TrainModel("deepfm", NewCpuBackend(1).get());
  EXPECT_NEAR(static_cast<double>(deepfm.rows) / (4 * kSamples), 0.5, 0.1);
  EXPECT_EQ(deepfm.row_values, 16 + 1);
  EXPECT_EQ(TrainModel("dlrm", NewCpuBackend(1).get()).row_values, 16);
}

TEST(ModelStepTest, RunsAsAGraphIfThatIsAskedFor) {
  const Result captured = TrainModel("deepfm", HostDevice().get());
  const Result enqueued =
      TrainModel("deepfm", HostDevice().get(), NnWorkerConfig::F32, /*graph_capture=*/false);
  EXPECT_EQ(captured.graph_launches, kSteps - 1);
  EXPECT_EQ(enqueued.graph_launches, 0);
  EXPECT_EQ(captured.last_loss, enqueued.last_loss);
}

TEST(ModelStepTest, LearnsInSixteenBits) {
  for (const auto precision : {NnWorkerConfig::BF16, NnWorkerConfig::F16}) {
    const Result result = TrainModel("deepfm", HostDevice().get(), precision);
    EXPECT_LT(result.last_loss, result.first_loss) << precision;
  }
}

}  // namespace
}  // namespace satrap

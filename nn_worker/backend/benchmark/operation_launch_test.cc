// Counts the kernels that the operations of DeviceBackend launch, and their copies. A launch costs
// a card some microseconds, so an operation must not launch a kernel for each of many features. The
// operations are those of the benchmark's tables, where each row states its number of launches.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "gtest/gtest.h"
#include "nn_worker/backend/benchmark/operation.h"
#include "nn_worker/backend/device/device_backend.h"
#include "nn_worker/backend/tensor_copy.h"
#include "nn_worker/device/testing/counting_device.h"
#include "nn_worker/products/kernel_products.h"

namespace satrap {
namespace {

class OperationLaunchTest : public testing::Test {
 protected:
  OperationLaunchTest()
      : backend_(NewDeviceBackend(std::make_unique<CountingDevice>(&counts_), NewKernelProducts())
                     .value()) {}

  Tensor New(int64_t rows, int64_t cols, DType dtype = DType::kF32) {
    return AllocateTensor(backend_.get(), dtype, rows, cols).value();
  }
  // Runs an operation twice, but counts only the launches of the second run, because by then the
  // device has the operation's lists.
  void ExpectLaunches(const std::string& name, int launches, absl::FunctionRef<void()> operation) {
    operation();
    backend_->Sync();
    counts_ = {};
    operation();
    EXPECT_EQ(counts_.launches + counts_.graphs, launches) << name;
    EXPECT_EQ(counts_.copies_in, 0) << name;
    backend_->Sync();
  }

  DeviceCounts counts_;
  const std::unique_ptr<Backend> backend_;
};

constexpr int64_t kRows = 40;

TEST_F(OperationLaunchTest, TheFewBytesOfAStepAreCopiedInByOneKernel) {
  const std::vector<float> values(32, 7);
  const Tensor x = New(1, 32);
  ExpectLaunches("128 bytes", 1, [&] { CopyIn(backend_.get(), values, x); });
  EXPECT_EQ(ReadFloats(backend_.get(), x), values);
}

// Kernels read and write 16-bit tensors directly, so there are no additional kernels for
// conversions.
TEST_F(OperationLaunchTest, AnOperationStartsAsManyKernelsAsItsRowSaysInEitherPrecision) {
  for (const BenchmarkOperation& operation : BenchmarkOperations()) {
    if (operation.types == OperationTypes::kProducts) continue;
    for (const DType dtype : {DType::kF32, DType::kBF16}) {
      if (operation.types ==
          (dtype == DType::kF32 ? OperationTypes::kBf16 : OperationTypes::kF32)) {
        continue;
      }
      Workbench workbench(backend_.get(), kRows, dtype);
      const BenchmarkWork work = operation.prepare(&workbench);
      ExpectLaunches(std::string(operation.name) + " " + operation.what, operation.launches,
                     work.enqueue);
    }
  }
}

TEST_F(OperationLaunchTest, ALinearLayerIsOneLaunchAndItsGradientFour) {
  for (const DType dtype : {DType::kF32, DType::kF16}) {
    const Tensor x = New(kRows, 24, dtype), y = New(kRows, 24, dtype), dy = New(kRows, 24, dtype);
    const Tensor w = New(24, 24, dtype), dw = New(24, 24), db = New(1, 24);
    ExpectLaunches("Linear", 1, [&] { backend_->Linear(x, w, db, Activation::kRelu, y); });
    // Two launches compute the gradient before the activation and the bias gradient. Each of the
    // two products is one more launch.
    ExpectLaunches("LinearGrad", 4, [&] {
      backend_->LinearGrad({x, w, Activation::kRelu, y, dy, {x, false}, dw, db});
    });
  }
}

TEST_F(OperationLaunchTest, AGraphIsOneLaunch) {
  const Tensor x = New(kRows, 24), y = New(kRows, 24);
  const auto operations = [&] {
    backend_->Copy(x, y, true);
    backend_->Scale(2, x, y, true);
  };
  ExpectLaunches("operations", 2, operations);
  const auto graph = backend_->Capture([&] {
    operations();
    return absl::OkStatus();
  });
  ASSERT_TRUE(graph.ok()) << graph.status();
  ExpectLaunches("graph", 1, [&] { backend_->Enqueue(graph->get()); });
}

}  // namespace
}  // namespace satrap

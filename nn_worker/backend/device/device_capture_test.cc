// Tests what a backend refuses while operations are captured. Graphs themselves are tested where
// they are used: nn_worker/graph/network_capture_test.cc.

#include <functional>
#include <memory>
#include <vector>

#include "gtest/gtest.h"
#include "nn_worker/backend/device/device_backend.h"
#include "nn_worker/backend/tensor_copy.h"
#include "nn_worker/backend/testing/host_device_backend.h"
#include "nn_worker/device/host/host_device.h"
#include "nn_worker/device/metered_device.h"
#include "nn_worker/products/kernel_products.h"

namespace satrap {
namespace {

class DeviceCaptureDeathTest : public testing::Test {
 protected:
  Tensor New(int64_t rows, int64_t cols) {
    return AllocateTensor(backend_.get(), DType::kF32, rows, cols).value();
  }
  void Capture(const std::function<void()>& enqueue) {
    (void)backend_
        ->Capture([&] {
          enqueue();
          return absl::OkStatus();
        })
        .ok();
  }

  const std::unique_ptr<Backend> backend_ = NewHostDeviceBackend({});
};

TEST_F(DeviceCaptureDeathTest, ScratchMemoryDoesNotGrow) {
  const Tensor small = New(2000, 4), large = New(2000, 400), sums = New(1, 400);
  backend_->ColumnSum(small, sums.Columns(0, 4));
  backend_->Sync();
  Capture([&] { backend_->ColumnSum(small, sums.Columns(0, 4)); });
  EXPECT_DEATH(Capture([&] { backend_->ColumnSum(large, sums); }),
               "cannot allocate [0-9]+ bytes of scratch memory during a capture");
}

TEST_F(DeviceCaptureDeathTest, ListsAreThereAlready) {
  const std::vector<Tensor> xs = {New(8, 1), New(8, 1)};
  const Tensor y = New(8, 1);
  EXPECT_DEATH(Capture([&] { backend_->RowSum(xs, y); }),
               "bytes from the host cannot be captured|while the same thread captures");
}

TEST_F(DeviceCaptureDeathTest, NothingIsCopiedInOrOut) {
  const Tensor x = New(1, 3);
  std::vector<float> values(3);
  EXPECT_DEATH(Capture([&] { CopyIn(backend_.get(), values, x); }),
               "12 bytes from the host cannot be captured");
  EXPECT_DEATH(Capture([&] { CopyOut(backend_.get(), x, absl::MakeSpan(values)); }),
               "12 bytes to the host cannot be captured");
}

TEST(DeviceCaptureTest, LaunchesOfGraphsAreCounted) {
  DeviceBackendOptions options;
  options.meter = std::make_shared<DeviceMeter>();
  const auto backend = NewDeviceBackend(NewHostDevice({}), NewKernelProducts(), options).value();
  const Tensor x = AllocateTensor(backend.get(), DType::kF32, 1, 3).value();
  backend->Fill(x, 1);
  const auto graph = backend->Capture([&] {
    backend->Copy(x, x, /*add=*/true);
    return absl::OkStatus();
  });
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ(options.meter->Read().graph_launches, 0);
  for (int i = 0; i < 2; ++i) backend->Enqueue(graph->get());
  EXPECT_EQ(options.meter->Read().graph_launches, 2);
  EXPECT_EQ(ReadFloats(backend.get(), x), std::vector<float>(3, 4));
}

}  // namespace
}  // namespace satrap

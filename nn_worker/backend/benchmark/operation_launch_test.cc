// Counts the kernels that the operations of DeviceBackend launch, and their copies. A launch costs
// a card some microseconds, so an operation must not launch a kernel for each of many features. The
// operations are those of the benchmark's tables, where each row states its number of launches.

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "gtest/gtest.h"
#include "nn_worker/backend/benchmark/operation.h"
#include "nn_worker/backend/device/device_backend.h"
#include "nn_worker/backend/tensor_copy.h"
#include "nn_worker/device/delegating_device.h"
#include "nn_worker/device/host/host_device.h"
#include "nn_worker/products/kernel_products.h"

namespace satrap {
namespace {

struct Counts {
  int launches = 0, copies_in = 0;
};

class CountingStream final : public DeviceStream {
 public:
  CountingStream(std::unique_ptr<DeviceStream> stream, Counts* counts)
      : stream_(std::move(stream)), counts_(*counts) {}
  void CopyIn(const void* pinned, void* device, int64_t bytes) override {
    ++counts_.copies_in;
    stream_->CopyIn(pinned, device, bytes);
  }
  void CopyOut(const void* device, void* pinned, int64_t bytes) override {
    stream_->CopyOut(device, pinned, bytes);
  }
  void CopyWithin(const void* from, void* to, int64_t bytes) override {
    stream_->CopyWithin(from, to, bytes);
  }
  void Launch(const KernelLaunch& launch) override {
    ++counts_.launches;
    stream_->Launch(launch);
  }
  void Record(Event* event) override { stream_->Record(event); }
  void WaitFor(Event* event) override { stream_->WaitFor(event); }

  DeviceStream* stream() const { return stream_.get(); }

 private:
  const std::unique_ptr<DeviceStream> stream_;
  Counts& counts_;
};

// A graph counts as one launch, whatever it holds.
class CountingGraph final : public StreamGraph {
 public:
  CountingGraph(std::unique_ptr<StreamGraph> graph, Counts* counts)
      : graph_(std::move(graph)), counts_(*counts) {}
  void Launch(DeviceStream* stream) override {
    ++counts_.launches;
    graph_->Launch(static_cast<CountingStream*>(stream)->stream());
  }

 private:
  const std::unique_ptr<StreamGraph> graph_;
  Counts& counts_;
};

class CountingDevice final : public DelegatingDevice {
 public:
  explicit CountingDevice(Counts* counts) : DelegatingDevice(NewHostDevice({})), counts_(*counts) {}
  absl::StatusOr<std::unique_ptr<DeviceStream>> NewStream() override {
    auto stream = DelegatingDevice::NewStream();
    if (!stream.ok()) return stream.status();
    return std::make_unique<CountingStream>(*std::move(stream), &counts_);
  }
  absl::StatusOr<std::unique_ptr<StreamGraph>> Capture(DeviceStream* stream,
                                                       absl::FunctionRef<void()> enqueue) override {
    auto graph = DelegatingDevice::Capture(static_cast<CountingStream*>(stream)->stream(), enqueue);
    if (!graph.ok()) return graph.status();
    return std::make_unique<CountingGraph>(*std::move(graph), &counts_);
  }

 private:
  Counts& counts_;
};

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
    EXPECT_EQ(counts_.launches, launches) << name;
    EXPECT_EQ(counts_.copies_in, 0) << name;
    backend_->Sync();
  }

  Counts counts_;
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

TEST_F(OperationLaunchTest, ALinearLayerIsOneLaunchAndItsGradientFive) {
  for (const DType dtype : {DType::kF32, DType::kF16}) {
    const Tensor x = New(kRows, 24, dtype), y = New(kRows, 24, dtype), dy = New(kRows, 24, dtype);
    const Tensor w = New(24, 24, dtype), dw = New(24, 24), db = New(1, 24);
    ExpectLaunches("Linear", 1, [&] { backend_->Linear(x, w, db, Activation::kRelu, y); });
    // One launch for the gradient before the activation, two for the bias, and one for each
    // product.
    ExpectLaunches("LinearGrad", 5, [&] {
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

// How many kernels the operations of DeviceBackend launch, and what they copy: a launch costs a
// card some microseconds, so an operation over many features is a single launch, too.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "gtest/gtest.h"
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

class DeviceLaunchTest : public testing::Test {
 protected:
  DeviceLaunchTest()
      : backend_(NewDeviceBackend(std::make_unique<CountingDevice>(&counts_), NewKernelProducts())
                     .value()) {}

  Tensor New(int64_t rows, int64_t cols, DType dtype = DType::kF32) {
    return AllocateTensor(backend_.get(), dtype, rows, cols).value();
  }
  // Runs an operation twice and counts the launches of the second run, whose lists are there
  // already.
  void ExpectLaunches(const std::string& name, int launches,
                      const std::function<void()>& operation) {
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

constexpr int64_t kRows = 40, kDim = 8;
constexpr int kInputs = 26;

TEST_F(DeviceLaunchTest, AnOperationOverManyInputsIsOneLaunch) {
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    std::vector<Tensor> xs;
    std::vector<GradientTarget> dxs;
    std::vector<PairTerm> terms;
    for (int f = 0; f < kInputs; ++f) {
      xs.push_back(New(kRows, kDim, dtype));
      dxs.push_back({New(kRows, kDim, dtype), f % 2 == 0});
      for (int g = 0; g < f; ++g) terms.push_back({f, 0, g, 0});
    }
    const Tensor s = New(kRows, kDim), wide = New(kRows, kDim, dtype), y = New(kRows, 1);
    const Tensor dots = New(kRows, static_cast<int64_t>(terms.size()), dtype);
    ExpectLaunches("RowSum", 1, [&] { backend_->RowSum(xs, y); });
    ExpectLaunches("RowSumGrad", 1, [&] { backend_->RowSumGrad(y, dxs); });
    ExpectLaunches("Fm", 1, [&] { backend_->Fm(xs, s, y); });
    ExpectLaunches("FmGrad", 1, [&] { backend_->FmGrad(xs, s, y, dxs); });
    ExpectLaunches("BiInteraction", 1, [&] { backend_->BiInteraction(xs, s, wide); });
    ExpectLaunches("BiInteractionGrad", 1, [&] { backend_->BiInteractionGrad(xs, s, wide, dxs); });
    ExpectLaunches("PairDots", 1, [&] { backend_->PairDots(xs, terms, kDim, dots); });
    ExpectLaunches("PairDotsGrad", 1, [&] { backend_->PairDotsGrad(xs, terms, kDim, dots, dxs); });
  }
}

// Kernels read and write 16-bit tensors as they are: there are no conversions besides.
TEST_F(DeviceLaunchTest, SixteenBitsCostNoLaunches) {
  for (const DType dtype : {DType::kF32, DType::kF16}) {
    const Tensor x = New(kRows, 24, dtype), y = New(kRows, 24, dtype), dy = New(kRows, 24, dtype);
    const Tensor w = New(24, 24, dtype), dw = New(24, 24), db = New(1, 24), inverse = New(kRows, 3);
    ExpectLaunches("Copy", 1, [&] { backend_->Copy(x, y, true); });
    ExpectLaunches("Linear", 1, [&] { backend_->Linear(x, w, db, Activation::kRelu, y); });
    // One launch for the gradient before the activation, two for the bias, and one for each
    // product.
    ExpectLaunches("LinearGrad", 5, [&] {
      backend_->LinearGrad({x, w, Activation::kRelu, y, dy, {x, false}, dw, db});
    });
    ExpectLaunches("Multiply", 1, [&] { backend_->Multiply(x, dy, y, false); });
    ExpectLaunches("Transpose", 1, [&] { backend_->Transpose(x, 8, y, false); });
    ExpectLaunches("BatchedProduct", 1, [&] {
      backend_->BatchedProduct({x, 3, 4, 4, 12, false}, {dy, 4, 3, 3, 12, false}, 2, 1,
                               {y, 3, 3, 3, 9, false}, false);
    });
    ExpectLaunches("Softmax", 1, [&] { backend_->Softmax(x, 8, y); });
    ExpectLaunches("SoftmaxGrad", 1, [&] { backend_->SoftmaxGrad(y, dy, 8, {x, true}); });
    ExpectLaunches("Normalize", 1,
                   [&] { backend_->Normalize(Normalization::kLayer, x, 8, 1e-5f, y, inverse); });
    ExpectLaunches("NormalizeGrad", 1, [&] {
      backend_->NormalizeGrad(Normalization::kLayer, y, inverse, dy, 8, {x, false});
    });
  }
}

TEST_F(DeviceLaunchTest, AGraphIsOneLaunch) {
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

// One launch for the samples, and one for the sums of their pieces; a pairwise loss also gathers
// the gradients of samples.
TEST_F(DeviceLaunchTest, ALossIsTwoOrThreeLaunches) {
  const Tensor z = New(kRows, 1), y = New(kRows, 1), dz = New(kRows, 1);
  const Tensor logits = New(kRows, 5), dlogits = New(kRows, 5);
  const Tensor pairs = New(kRows, 2, DType::kU32), sums = New(1, 2, DType::kF64);
  const Tensor control = New(1, sizeof(StepControl), DType::kU8);
  ExpectLaunches("BceWithLogits", 2,
                 [&] { backend_->BceWithLogits(control, z, y, {}, {}, dz, sums); });
  ExpectLaunches("SquaredError", 2,
                 [&] { backend_->SquaredError(control, z, y, {}, {}, dz, sums); });
  ExpectLaunches("SoftmaxCrossEntropy", 2,
                 [&] { backend_->SoftmaxCrossEntropy(control, logits, y, {}, {}, dlogits, sums); });
  ExpectLaunches("PairwiseLogistic", 3,
                 [&] { backend_->PairwiseLogistic(control, z, pairs, y, dz, sums); });
}

}  // namespace
}  // namespace satrap

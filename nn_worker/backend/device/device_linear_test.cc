// Tests what DeviceBackend asks a library for when linear layers are prepared, and that the results
// equal those of our own kernels, whatever the library refuses.

#include "nn_worker/backend/device/device_linear.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/base/check.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nn_worker/backend/device/device_backend.h"
#include "nn_worker/backend/tensor_copy.h"
#include "nn_worker/backend/testing/backend_conformance.h"
#include "nn_worker/backend/testing/half_conformance.h"
#include "nn_worker/backend/testing/host_device_backend.h"
#include "nn_worker/backend/testing/planned_host_backend.h"
#include "nn_worker/device/delegating_device.h"
#include "nn_worker/device/testing/device_testing.h"
#include "nn_worker/products/library_products.h"

namespace satrap {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

unsigned BitOf(ProductEpilogue epilogue) { return 1u << static_cast<unsigned>(epilogue); }

struct NamedFactory {
  std::string name;
  BackendFactory make;
};

// Backends with only our own kernels, with plans in every order, and with a library that refuses
// one epilogue (kNone, too), every epilogue except kNone, or results of 16 bits.
std::vector<NamedFactory> Libraries() {
  std::vector<NamedFactory> factories = {{"Kernels", [] { return NewHostDeviceBackend({}); }}};
  for (const HostDeviceOptions& options : EveryOrder()) {
    factories.push_back(
        {"Plans" + NameOf(options), [options] { return NewPlannedHostBackend(options); }});
  }
  std::vector<unsigned> patterns = {kEpiloguePatterns - 1 - BitOf(ProductEpilogue::kNone)};
  for (unsigned bit = 1; bit < kRefusalPatterns; bit *= 2) patterns.push_back(bit);
  for (const unsigned pattern : patterns) {
    factories.push_back({"Refuses" + std::to_string(pattern),
                         [pattern] { return NewPlannedHostBackend({}, RefusesPattern(pattern)); }});
  }
  return factories;
}

std::vector<BackendFactory> FactoriesOf(const std::vector<NamedFactory>& named) {
  std::vector<BackendFactory> factories;
  for (const NamedFactory& factory : named) factories.push_back(factory.make);
  return factories;
}

INSTANTIATE_TEST_SUITE_P(HostDevice, LinearConformance, testing::ValuesIn(FactoriesOf(Libraries())),
                         [](const auto& info) { return Libraries()[info.index].name; });
INSTANTIATE_TEST_SUITE_P(HostDevice, HalfLinearConformance,
                         testing::ValuesIn(FactoriesOf(Libraries())),
                         [](const auto& info) { return Libraries()[info.index].name; });

Tensor New(Backend* backend, DType dtype, int64_t rows, int64_t cols) {
  return AllocateTensor(backend, dtype, rows, cols, PaddedStride(dtype, cols)).value();
}

// Fills a tensor of any dtype with values that depend only on `salt`.
void Randomise(Backend* backend, const Tensor& tensor, uint64_t salt) {
  const Tensor wide = AllocateTensor(backend, DType::kF32, tensor.rows, tensor.cols).value();
  CopyIn(backend, RandomValues(tensor.size(), salt), wide);
  backend->Copy(wide, tensor, /*add=*/false);
}

std::vector<float> ValuesOf(Backend* backend, const Tensor& tensor) {
  const Tensor wide = AllocateTensor(backend, DType::kF32, tensor.rows, tensor.cols).value();
  backend->Copy(tensor, wide, /*add=*/false);
  return ReadFloats(backend, wide);
}

constexpr int64_t kMost = 20, kIn = 16, kHidden = 24, kOut = 9;

// Two layers: the first has a ReLU, and the second is the last to read its output.
struct Tower {
  Tower(Backend* backend, DType dtype) : backend(backend) {
    first.bias = New(backend, dtype, 1, kHidden);
    first.args = {New(backend, dtype, kMost, kIn),
                  New(backend, dtype, kIn, kHidden),
                  Activation::kRelu,
                  New(backend, dtype, kMost, kHidden),
                  New(backend, dtype, kMost, kHidden),
                  {New(backend, dtype, kMost, kIn), false},
                  AllocateTensor(backend, DType::kF32, kIn, kHidden).value(),
                  New(backend, DType::kF32, 1, kHidden)};
    second.bias = New(backend, dtype, 1, kOut);
    second.args = {first.args.y,
                   New(backend, dtype, kHidden, kOut),
                   Activation::kLinear,
                   New(backend, dtype, kMost, kOut),
                   New(backend, dtype, kMost, kOut),
                   {first.args.dy, true},
                   AllocateTensor(backend, DType::kF32, kHidden, kOut).value(),
                   New(backend, DType::kF32, 1, kOut)};
    uint64_t salt = 0;
    for (const Tensor& tensor : {first.bias, second.bias, first.args.x, first.args.w, second.args.w,
                                 second.args.dy, first.args.dy}) {
      Randomise(backend, tensor, ++salt);
    }
  }
  void Prepare() {
    auto made = backend->PrepareLinear(first);
    CHECK_OK(made.status());
    before = *std::move(made);
    made = backend->PrepareLinear(second);
    CHECK_OK(made.status());
    after = *std::move(made);
  }
  void Step(int64_t samples) const {
    LinearGradArgs a = first.args, b = second.args;
    for (LinearGradArgs* args : {&a, &b}) {
      for (Tensor* tensor : {&args->x, &args->y, &args->dy, &args->dx.tensor}) {
        tensor->rows = samples;  // as in the network, also for gradients that are not wanted
      }
    }
    backend->LinearForward(before.get(), a.x, a.w, first.bias, a.y);
    backend->LinearForward(after.get(), b.x, b.w, second.bias, b.y);
    backend->LinearBackward(after.get(), b);
    backend->LinearBackward(before.get(), a);
  }
  // All values that two steps compute, in one list. The second step has fewer samples.
  std::vector<float> TwoSteps() const {
    std::vector<float> values;
    for (const int64_t samples : {kMost, int64_t{7}}) {
      Step(samples);
      for (const LinearSpec* spec : {&first, &second}) {
        const LinearGradArgs& args = spec->args;
        for (const Tensor& tensor : {args.y, args.dy, args.dx.tensor, args.dw, args.db}) {
          const std::vector<float> got = ValuesOf(backend, tensor);
          values.insert(values.end(), got.begin(), got.end());
        }
      }
    }
    return values;
  }

  Backend* const backend;
  LinearSpec first, second;
  std::unique_ptr<PreparedLinear> before, after;
};

TEST(DeviceLinearTest, EveryPatternOfRefusalsGivesTheBitsOfOwnKernels) {
  for (const DType dtype : {DType::kF32, DType::kBF16, DType::kF16}) {
    const auto kernels = NewHostDeviceBackend({});
    Tower expected(kernels.get(), dtype);
    expected.Prepare();
    const std::vector<float> want = expected.TwoSteps();
    for (unsigned pattern = 0; pattern < kRefusalPatterns; ++pattern) {
      const auto backend = NewPlannedHostBackend({}, RefusesPattern(pattern));
      Tower tower(backend.get(), dtype);
      tower.Prepare();
      EXPECT_EQ(tower.TwoSteps(), want) << pattern << ", dtype " << static_cast<int>(dtype);
    }
  }
}

std::vector<ProductEpilogue> EpiloguesOf(const std::vector<ProductSpec>& specs) {
  std::vector<ProductEpilogue> epilogues;
  for (const ProductSpec& spec : specs) epilogues.push_back(spec.epilogue);
  return epilogues;
}

std::vector<ProductEpilogue> RunBy(unsigned pattern, DType dtype) {
  PlannerLog log;
  const auto backend = NewPlannedHostBackend({}, RefusesPattern(pattern), &log);
  Tower tower(backend.get(), dtype);
  tower.Prepare();
  tower.Step(kMost);
  backend->Sync();
  return EpiloguesOf(log.run);
}

// The epilogues are listed for the forward products of both layers, then for the input and weight
// gradients of the second layer, and then of the first.
TEST(DeviceLinearTest, FusesWhatTheLibraryTakes) {
  using E = ProductEpilogue;
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    EXPECT_THAT(RunBy(0, dtype),
                ElementsAre(E::kBiasRelu, E::kBias, E::kNone, E::kNone, E::kNone, E::kNone));
    EXPECT_THAT(RunBy(BitOf(E::kBiasRelu), dtype),
                ElementsAre(E::kNone, E::kBias, E::kNone, E::kNone, E::kNone, E::kNone));
    EXPECT_THAT(RunBy(kEpiloguePatterns - 1 - BitOf(E::kNone), dtype),
                ElementsAre(E::kNone, E::kNone, E::kNone, E::kNone, E::kNone, E::kNone));
    EXPECT_THAT(RunBy(kEpiloguePatterns - 1, dtype), IsEmpty());
  }
}

// One layer whose weight gradient is summed in four pieces of 256 samples.
constexpr int64_t kPieces = 4, kManySamples = kPieces * kLeastPiece;

LinearSpec LayerOfPieces(Backend* backend, DType dtype) {
  LinearSpec spec;
  spec.args = {New(backend, dtype, kManySamples, 24),
               New(backend, dtype, 24, 16),
               Activation::kLinear,
               New(backend, dtype, kManySamples, 16),
               New(backend, dtype, kManySamples, 16),
               {},
               AllocateTensor(backend, DType::kF32, 24, 16).value(),
               New(backend, DType::kF32, 1, 16)};
  Randomise(backend, spec.args.x, 1);
  Randomise(backend, spec.args.dy, 2);
  return spec;
}

std::vector<float> WeightGradientOf(Backend* backend, PreparedLinear* layer, LinearGradArgs args,
                                    int64_t begin, int64_t samples) {
  args.x = args.x.Rows(begin, samples);
  args.y = args.y.Rows(begin, samples);
  args.dy = args.dy.Rows(begin, samples);
  if (layer == nullptr) {
    backend->LinearGrad(args);
  } else {
    backend->LinearBackward(layer, args);
  }
  return ValuesOf(backend, args.dw);
}

// Tests full parts, and smaller parts that end within a piece, after one sample of a piece, and at
// the end of a piece.
TEST(DeviceLinearTest, AWeightGradientIsTheSumOfItsPiecesInOrder) {
  for (const DType dtype : {DType::kF32, DType::kBF16, DType::kF16}) {
    PlannerLog log;
    const auto backend = NewPlannedHostBackend({}, {}, &log);
    const LinearSpec spec = LayerOfPieces(backend.get(), dtype);
    auto layer = backend->PrepareLinear(spec);
    CHECK_OK(layer.status());
    EXPECT_EQ(log.prepared.back().piece, kLeastPiece);
    for (const int64_t samples :
         {kManySamples, int64_t{700}, kLeastPiece + 1, kLeastPiece, int64_t{40}, int64_t{1}}) {
      std::vector<float> want(24 * 16, 0);
      for (int64_t begin = 0; begin < samples; begin += kLeastPiece) {
        const std::vector<float> piece = WeightGradientOf(backend.get(), nullptr, spec.args, begin,
                                                          std::min(kLeastPiece, samples - begin));
        for (size_t i = 0; i < want.size(); ++i) want[i] += piece[i];
      }
      EXPECT_EQ(WeightGradientOf(backend.get(), layer->get(), spec.args, 0, samples), want)
          << samples;
    }
  }
}

// Without a library the pieces have kProductPiece samples, which is all of them here.
TEST(DeviceLinearTest, OwnKernelsSumThePiecesThatALibraryRefuses) {
  const auto refuses = NewPlannedHostBackend({}, RefusesPattern(kEpiloguePatterns - 1));
  const auto takes = NewPlannedHostBackend({});
  const auto kernels = NewHostDeviceBackend({});
  std::vector<std::vector<float>> got;
  for (Backend* const backend : {refuses.get(), takes.get(), kernels.get()}) {
    const LinearSpec spec = LayerOfPieces(backend, DType::kF32);
    auto layer = backend->PrepareLinear(spec);
    CHECK_OK(layer.status());
    got.push_back(WeightGradientOf(backend, layer->get(), spec.args, 0, 700));
  }
  EXPECT_EQ(got[0], got[1]);
  EXPECT_NE(got[0], got[2]);
}

TEST(DeviceLinearTest, OwnKernelsMakeWhatIsNotForALibrary) {
  PlannerLog log;
  const auto backend = NewPlannedHostBackend({}, {}, &log);
  const auto prepare = [&](int64_t n, int64_t in, int64_t out, DType x, DType w, DType y) {
    LinearSpec spec;
    spec.args = {New(backend.get(), x, n, in),
                 New(backend.get(), w, in, out),
                 Activation::kLinear,
                 New(backend.get(), y, n, out),
                 New(backend.get(), y, n, out),
                 {New(backend.get(), x, n, in), false},
                 AllocateTensor(backend.get(), DType::kF32, in, out).value(),
                 Tensor()};
    CHECK_OK(backend->PrepareLinear(spec).status());
  };
  prepare(kMost, 400, 7, DType::kF32, DType::kF32, DType::kF32);
  prepare(kMost, 7, 400, DType::kF32, DType::kF32, DType::kF32);
  prepare(0, 16, 16, DType::kF32, DType::kF32, DType::kF32);
  EXPECT_THAT(log.prepared, IsEmpty());
  // If the weights have another type, the library is used only for the weight gradient. If the
  // outputs are scores of classes, which are F32, it is used only for the forward product.
  prepare(kMost, 16, 16, DType::kF16, DType::kBF16, DType::kF16);
  prepare(kMost, 16, 16, DType::kBF16, DType::kBF16, DType::kF32);
  ASSERT_EQ(log.prepared.size(), 2u);
  EXPECT_TRUE(log.prepared[0].transpose_a);
  EXPECT_FALSE(log.prepared[1].transpose_a || log.prepared[1].transpose_b);
}

TEST(DeviceLinearTest, AProductSaysHowItsMatricesLie) {
  PlannerLog log;
  const auto backend = NewPlannedHostBackend({}, {}, &log);
  const Tensor wide = New(backend.get(), DType::kF32, kMost, 64);
  LinearSpec spec;
  spec.args.x = wide.Columns(1, 10);
  spec.args.w = New(backend.get(), DType::kF32, 10, 12);
  spec.args.y = wide.Columns(22, 12);
  CHECK_OK(backend->PrepareLinear(spec).status());
  ASSERT_EQ(log.prepared.size(), 1u);
  const ProductSpec& forward = log.prepared[0];
  EXPECT_THAT((std::vector<int64_t>{forward.rows, forward.cols, forward.terms}),
              ElementsAre(kMost, 12, 10));
  EXPECT_THAT((std::vector<int64_t>{forward.a_stride, forward.b_stride, forward.c_stride}),
              ElementsAre(64, 16, 64));
  EXPECT_THAT((std::vector<int64_t>{forward.a_alignment, forward.b_alignment, forward.c_alignment}),
              ElementsAre(4, 16, 8));
}

TEST(DeviceLinearTest, OnlyF32FactorsAreRoundedToTf32) {
  PlannerLog log;
  auto backend = NewDeviceBackend(
      NewHostDevice({}), NewLibraryProducts(NewKernelPlanner({}, &log), F32Factors::kTf32));
  CHECK_OK(backend.status());
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    log.prepared.clear();
    Tower tower(backend->get(), dtype);
    tower.Prepare();
    ASSERT_FALSE(log.prepared.empty());
    for (const ProductSpec& spec : log.prepared) {
      EXPECT_EQ(spec.precision,
                dtype == DType::kF32 ? ProductPrecision::kTf32 : ProductPrecision::kBf16);
    }
  }
}

TEST(DeviceLinearTest, AFailureOfTheLibraryIsReturned) {
  for (const bool transposed : {false, true}) {
    const auto backend = NewPlannedHostBackend({}, [transposed](const ProductSpec& spec) {
      return spec.transpose_a == transposed ? absl::InternalError("the library broke")
                                            : absl::OkStatus();
    });
    const Tower tower(backend.get(), DType::kF32);
    const absl::Status status = backend->PrepareLinear(tower.first).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
    EXPECT_EQ(status.message(), "the library broke");
  }
}

TEST(DeviceLinearTest, MemoryOfPlansIsAllocatedWhenALayerIsPrepared) {
  HostDeviceOptions options;
  options.memory_bytes = 1 << 20;
  const auto backend = NewPlannedHostBackend(options);
  LinearSpec spec;
  spec.args.x = New(backend.get(), DType::kF32, kMost, kIn);
  spec.args.w = New(backend.get(), DType::kF32, kIn, kHidden);
  spec.args.y = New(backend.get(), DType::kF32, kMost, kHidden);
  CHECK_OK(backend->Allocate(900000).status());
  EXPECT_EQ(backend->PrepareLinear(spec).status().code(), absl::StatusCode::kResourceExhausted);
}

// Counts the allocations on the device.
class CountingDevice final : public DelegatingDevice {
 public:
  explicit CountingDevice(int* allocations)
      : DelegatingDevice(NewHostDevice({})), allocations_(*allocations) {}
  absl::StatusOr<std::unique_ptr<Memory>> Allocate(int64_t bytes) override {
    ++allocations_;
    return DelegatingDevice::Allocate(bytes);
  }

 private:
  int& allocations_;
};

TEST(DeviceLinearTest, StepsAllocateNothing) {
  for (const unsigned pattern :
       {0u, kEpiloguePatterns - 1 - BitOf(ProductEpilogue::kNone), kEpiloguePatterns - 1}) {
    int allocations = 0;
    auto backend = NewDeviceBackend(std::make_unique<CountingDevice>(&allocations),
                                    NewLibraryProducts(NewKernelPlanner(RefusesPattern(pattern))));
    CHECK_OK(backend.status());
    Tower tower(backend->get(), DType::kBF16);
    tower.Prepare();
    const int prepared = allocations;
    tower.Step(kMost);
    tower.Step(3);
    EXPECT_EQ(allocations, prepared) << pattern;
    (*backend)->Sync();
  }
}

TEST(DeviceLinearTest, PiecesAllocateNothingInAStep) {
  for (const unsigned pattern : {0u, kEpiloguePatterns - 1}) {
    int allocations = 0;
    auto backend = NewDeviceBackend(std::make_unique<CountingDevice>(&allocations),
                                    NewLibraryProducts(NewKernelPlanner(RefusesPattern(pattern))));
    CHECK_OK(backend.status());
    const LinearSpec spec = LayerOfPieces(backend->get(), DType::kBF16);
    auto layer = (*backend)->PrepareLinear(spec);
    CHECK_OK(layer.status());
    const int prepared = allocations;
    (*backend)->LinearBackward(layer->get(), spec.args);
    EXPECT_EQ(allocations, prepared) << pattern;
    (*backend)->Sync();
  }
}

TEST(DeviceLinearTest, ALayerWhoseInputNeedsNoGradientTakesAnyNumberOfSamples) {
  for (const bool planned : {false, true}) {
    const auto backend = planned ? NewPlannedHostBackend({}) : NewHostDeviceBackend({});
    Tower all(backend.get(), DType::kF32), none(backend.get(), DType::kF32);
    none.first.args.dx = {};
    for (Tower* tower : {&all, &none}) {
      tower->Prepare();
      tower->Step(7);
    }
    EXPECT_EQ(ValuesOf(backend.get(), none.first.args.dw),
              ValuesOf(backend.get(), all.first.args.dw));
  }
}

// If a layer's input needs no gradient, the graph passes an empty target, whose `add` may still be
// set.
TEST(DeviceLinearTest, ALayerOfOneOutputAddsToNoGradientThatIsNotWanted) {
  const auto backend = NewHostDeviceBackend({});
  std::vector<std::vector<float>> gradients;
  for (const bool add : {false, true}) {
    LinearSpec spec;
    spec.args = {New(backend.get(), DType::kF32, kMost, kIn),
                 New(backend.get(), DType::kF32, kIn, 1),
                 Activation::kLinear,
                 New(backend.get(), DType::kF32, kMost, 1),
                 New(backend.get(), DType::kF32, kMost, 1),
                 {{}, add},
                 AllocateTensor(backend.get(), DType::kF32, kIn, 1).value(),
                 Tensor()};
    Randomise(backend.get(), spec.args.x, 1);
    Randomise(backend.get(), spec.args.w, 2);
    Randomise(backend.get(), spec.args.dy, 3);
    auto layer = backend->PrepareLinear(spec);
    CHECK_OK(layer.status());
    backend->LinearBackward(layer->get(), spec.args);
    gradients.push_back(ValuesOf(backend.get(), spec.args.dw));
    backend->Sync();
  }
  EXPECT_EQ(gradients[1], gradients[0]);
}

TEST(DeviceLinearDeathTest, APlanIsForTheTensorsItWasPreparedWith) {
  const auto backend = NewPlannedHostBackend({});
  Tower tower(backend.get(), DType::kF32);
  tower.Prepare();
  const LinearGradArgs& args = tower.first.args;
  const Tensor other = New(backend.get(), DType::kF32, kMost, kIn);
  EXPECT_DEATH(backend->LinearForward(tower.before.get(), other, args.w, tower.first.bias, args.y),
               "a linear layer was called with a different x from the one it was prepared for");
}

}  // namespace
}  // namespace satrap

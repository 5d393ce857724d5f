// Times the algorithms that cuBLASLt offers for the products of DeepFM's and DLRM's layers, and
// prints the fastest ones as the source of nn_worker/device/cuda/measured_algorithms.cc
// (algorithm_table.h). The times of each product's first and fastest algorithm go to stderr.
//
// Products are timed as plans run them: a forward product with its bias and ReLU, a weight gradient
// in its pieces, without the kernel that adds the pieces. Layers have the widths that networks give
// them, multiples of 8.

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/status_macros.h"
#include "common/flags/flags.h"
#include "common/numeric/half.h"
#include "common/numeric/random.h"
#include "nn_worker/backend/benchmark/timing.h"
#include "nn_worker/backend/tensor.h"
#include "nn_worker/device/cuda/cublaslt_plan.h"
#include "nn_worker/device/cuda/cuda_device.h"

namespace satrap {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int64_t kTimeoutMs = 60000;
constexpr int64_t kAlignment = 256;

struct LayerShape {
  int64_t in, out;
};
// DeepFM with 429 inputs, then the layers of DLRM's bottom and top MLP.
constexpr LayerShape kLayers[] = {{432, 400}, {400, 400}, {1024, 1024}, {368, 1024}, {1024, 512},
                                  {512, 256}, {256, 64},  {64, 16},     {16, 512}};
constexpr int64_t kSamples[] = {131072, 65536, 8192};
constexpr ProductPrecision kPrecisions[] = {ProductPrecision::kBf16, ProductPrecision::kTf32,
                                            ProductPrecision::kF32, ProductPrecision::kF16};
constexpr LayerProduct kProducts[] = {LayerProduct::kForward, LayerProduct::kInputGradient,
                                      LayerProduct::kWeightGradient};

// An algorithm whose first run takes this many times as long as the fastest algorithm is not run
// again.
constexpr double kHopeless = 1.5;
constexpr TimingOptions kOneRun = {0, 1, 0};
constexpr TimingOptions kSeveralRuns = {0.001, 256, 2};

struct TableFlags {
  int card = 0;
  int64_t seconds = 40;
  std::vector<Flag> Table() {
    return {NumberFlag("card", "N", "the card of this machine (default: 0)", &card, 0, 1023),
            NumberFlag("seconds", "N", "how long products are measured (default: 40)", &seconds, 1,
                       3600)};
  }
};

bool Is16Bit(ProductPrecision precision) {
  return precision == ProductPrecision::kBf16 || precision == ProductPrecision::kF16;
}

ProductSpec SpecOf(LayerProduct product, ProductPrecision precision, int64_t samples,
                   const LayerShape& layer) {
  const DType dtype = Is16Bit(precision) ? DType::kBF16 : DType::kF32;
  const int64_t x_stride = PaddedStride(dtype, layer.in);
  const int64_t y_stride = PaddedStride(dtype, layer.out);
  // Parameters have no gaps; their copies in 16 bits have padded rows.
  const int64_t w_stride = Is16Bit(precision) ? y_stride : layer.out;
  ProductSpec spec;
  spec.precision = precision;
  spec.f32_output = !Is16Bit(precision);
  spec.rows = samples;
  switch (product) {
    case LayerProduct::kForward:
      spec.cols = layer.out;
      spec.terms = layer.in;
      spec.a_stride = x_stride;
      spec.b_stride = w_stride;
      spec.c_stride = y_stride;
      spec.epilogue = ProductEpilogue::kBiasRelu;
      break;
    case LayerProduct::kInputGradient:
      spec.cols = layer.in;
      spec.terms = layer.out;
      spec.transpose_b = true;
      spec.a_stride = y_stride;
      spec.b_stride = w_stride;
      spec.c_stride = x_stride;
      break;
    case LayerProduct::kWeightGradient:
      spec.rows = layer.in;
      spec.cols = layer.out;
      spec.terms = samples;
      spec.transpose_a = true;
      spec.a_stride = x_stride;
      spec.b_stride = y_stride;
      spec.c_stride = layer.out;
      spec.f32_output = true;
      const int64_t piece = WeightGradientPiece(spec);
      if (piece < samples) spec.piece = piece;
      break;
  }
  return spec;
}

class AlgorithmTimer {
 public:
  static absl::StatusOr<std::unique_ptr<AlgorithmTimer>> Create(int card) {
    auto made = std::make_unique<AlgorithmTimer>();
    ASSIGN_OR_RETURN(made->device_, NewCudaDevice(card));
    ASSIGN_OR_RETURN(made->planner_, NewCublasLtPlanner(card, kCublasLtLibrary, {}));
    ASSIGN_OR_RETURN(made->stream_, made->device_->NewStream());
    ASSIGN_OR_RETURN(made->event_, made->device_->NewEvent());
    ASSIGN_OR_RETURN(const DeviceRoom room, made->device_->Room());
    made->card_ = room.device;
    int64_t widest = 0;
    for (const LayerShape& layer : kLayers) widest = std::max({widest, layer.in, layer.out});
    // The largest buffer holds a matrix of samples, or the products of the pieces of a weight
    // gradient.
    const int64_t values = kSamples[0] * widest;
    for (Buffer* buffer : {&made->a_, &made->b_, &made->c_}) {
      ASSIGN_OR_RETURN(buffer->memory, made->device_->Allocate(values * 4 + kAlignment));
    }
    ASSIGN_OR_RETURN(made->workspace_.memory,
                     made->device_->Allocate(made->planner_->workspace_bytes() + kAlignment));
    RETURN_IF_ERROR(made->FillFactors());
    return made;
  }
  // Enqueued operations may still use the memory.
  ~AlgorithmTimer() {
    if (event_ != nullptr) Await().IgnoreError();
  }

  AlgorithmPlace place() const { return planner_->place(); }
  const std::string& card() const { return card_; }

  // The fastest algorithm. NOT_FOUND if there is none.
  absl::StatusOr<MeasuredAlgorithm> Measure(LayerProduct product, ProductPrecision precision,
                                            int64_t samples, const LayerShape& layer) {
    const ProductSpec spec = SpecOf(product, precision, samples, layer);
    ASSIGN_OR_RETURN(const std::vector<PlannedAlgorithm> all, planner_->PrepareAll(spec));
    MeasuredAlgorithm fastest = {place(), precision, product, samples, layer.in, layer.out, {}};
    double first = 0, best = std::numeric_limits<double>::infinity();
    for (const PlannedAlgorithm& planned : all) {
      ASSIGN_OR_RETURN(const double seconds, Time(planned.plan.get(), samples, best));
      if (&planned == &all.front()) first = seconds;
      if (seconds >= best) continue;
      best = seconds;
      fastest.algorithm = planned.algorithm;
    }
    std::fprintf(stderr, "%s  %d pieces, first of %d %.1f us, fastest %.1f us, %.0f TFLOP/s\n",
                 SourceOf(fastest).substr(0, 60).c_str(), static_cast<int>(spec.pieces(samples)),
                 static_cast<int>(all.size()), first * 1e6, best * 1e6,
                 2e-12 * static_cast<double>(samples * layer.in * layer.out) / best);
    return fastest;
  }

 private:
  struct Buffer {
    std::unique_ptr<Memory> memory;
    char* data() const {
      auto* const begin = static_cast<char*>(memory->data());
      const auto misaligned = static_cast<int64_t>(reinterpret_cast<uintptr_t>(begin) % kAlignment);
      return begin + (misaligned == 0 ? 0 : kAlignment - misaligned);
    }
  };

  absl::Status Await() {
    stream_->Record(event_.get());
    return WaitForEvent(event_.get(), kTimeoutMs, [] { return false; });
  }

  // BF16 values, whose pairs are also ordinary F32 values. A card takes less power, and so runs
  // faster, if factors are all alike.
  absl::Status FillFactors() {
    constexpr int64_t kPattern = int64_t{1} << 20;
    ASSIGN_OR_RETURN(const std::unique_ptr<Memory> pattern, device_->AllocatePinned(kPattern * 2));
    auto* const values = static_cast<uint16_t*>(pattern->data());
    for (int64_t i = 0; i < kPattern; ++i) {
      values[i] = Bf16FromF32(UniformFloat(RandomBits(3, static_cast<uint64_t>(i))) - 0.5f);
    }
    for (const Buffer* buffer : {&a_, &b_}) {
      for (int64_t done = 0; done < buffer->memory->bytes(); done += pattern->bytes()) {
        stream_->CopyIn(pattern->data(), static_cast<char*>(buffer->memory->data()) + done,
                        std::min(pattern->bytes(), buffer->memory->bytes() - done));
      }
    }
    return Await();
  }

  absl::StatusOr<double> Time(ProductPlan* plan, int64_t samples, double best) {
    ProductBuffers buffers;
    buffers.a = a_.data();
    buffers.b = b_.data();
    buffers.c = c_.data();
    buffers.bias = b_.data();
    const auto run = [&](const TimingOptions& options) {
      return TimeOperation(
          options, [&] { plan->Run(stream_.get(), samples, buffers, workspace_.data()); },
          [&] { return Await(); });
    };
    ASSIGN_OR_RETURN(const Timing once, run(kOneRun));
    if (once.seconds > kHopeless * best) return once.seconds;
    ASSIGN_OR_RETURN(const Timing timing, run(kSeveralRuns));
    return timing.seconds;
  }

  std::unique_ptr<Device> device_;
  std::unique_ptr<CublasLtPlanner> planner_;
  std::string card_;
  Buffer a_, b_, c_, workspace_;
  std::unique_ptr<DeviceStream> stream_;
  std::unique_ptr<Event> event_;
};

absl::Status PrintTable(const TableFlags& flags) {
  const auto end = Clock::now() + std::chrono::seconds(flags.seconds);
  ASSIGN_OR_RETURN(const std::unique_ptr<AlgorithmTimer> timer, AlgorithmTimer::Create(flags.card));
  std::fputs(SourceBegin(timer->place(), timer->card()).c_str(), stdout);
  int left_out = 0;
  for (const ProductPrecision precision : kPrecisions) {
    for (const int64_t samples : kSamples) {
      for (const LayerShape& layer : kLayers) {
        for (const LayerProduct product : kProducts) {
          if (Clock::now() > end) {
            ++left_out;
            continue;
          }
          const auto fastest = timer->Measure(product, precision, samples, layer);
          if (absl::IsNotFound(fastest.status())) continue;
          if (!fastest.ok()) {
            std::fprintf(stderr, "algorithm_table: left out: %s\n",
                         std::string(fastest.status().message()).c_str());
            continue;
          }
          std::fputs(SourceOf(*fastest).c_str(), stdout);
        }
      }
    }
  }
  std::fputs(SourceEnd().c_str(), stdout);
  if (left_out > 0) {
    std::fprintf(stderr, "algorithm_table: no time for %d products\n", left_out);
  }
  return absl::OkStatus();
}

int Main(const TableFlags& flags) {
  // Lines are written at once, so that they are kept if this program is killed at a time limit.
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  const absl::Status status = PrintTable(flags);
  if (status.ok()) return 0;
  std::fprintf(stderr, "algorithm_table: %s\n", std::string(status.message()).c_str());
  return 1;
}

}  // namespace
}  // namespace satrap

int main(int argc, char** argv) {
  satrap::TableFlags flags;
  const auto code =
      satrap::TakeProgramFlags(argc, argv, "usage: algorithm_table [FLAGS]", flags.Table());
  return code.has_value() ? *code : satrap::Main(flags);
}

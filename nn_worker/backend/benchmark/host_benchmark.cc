// Measures how fast the host's device runs kernels, compared with a plain loop over the same
// memory: a fill, which waits for nothing; a column sum, whose threads meet at barriers; and an
// Adam step, which computes. The time of a conformance test on this device is about the number of
// its elements, divided by these rates.
//
// Prints one JSON line for each kernel on 1 and on 2 threads: the best of 25 runs, in millions of
// elements a second, and the share of the plain loop's rate.

#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "common/base/check.h"
#include "common/json/json.h"
#include "common/testing/measure.h"
#include "nn_worker/device/host/host_device.h"
#include "nn_worker/device/kernels/column_sum.h"
#include "nn_worker/device/kernels/fill.h"
#include "nn_worker/device/kernels/optimizer_step.h"
#include "proto/benchmark.pb.h"

namespace satrap {
namespace {

constexpr int64_t kRows = 8192, kCols = 400, kCount = kRows * kCols;
constexpr int64_t kTimeoutMs = 60000;

// Makes the compiler keep a loop whose result nobody reads.
void Keep(const void* p) { asm volatile("" : : "g"(p) : "memory"); }

class Benchmark {
 public:
  explicit Benchmark(int threads) : threads_(threads) {
    HostDeviceOptions options;
    options.threads = threads;
    device_ = NewHostDevice(options);
    for (std::unique_ptr<Memory>& memory : memory_) {
      auto allocated = device_->Allocate(kCount * sizeof(float));
      CHECK_OK(allocated.status());
      memory = std::move(allocated).value();
    }
    stream_ = device_->NewStream().value();
    event_ = device_->NewEvent().value();
  }

  float* Array(int i) const { return static_cast<float*>(memory_[i]->data()); }
  DeviceStream* stream() { return stream_.get(); }
  void Wait() {
    stream_->Record(event_.get());
    CHECK_OK(WaitForEvent(event_.get(), kTimeoutMs, [] { return false; }));
  }

  void Report(const char* kernel, const std::function<void()>& launch,
              const std::function<void()>& loop) {
    const double device = BestSeconds(25, [&] {
      launch();
      Wait();
    });
    const double plain = BestSeconds(25, loop);
    HostDeviceLine line;
    line.set_benchmark("host_device");
    line.set_kernel(kernel);
    line.set_threads(threads_);
    line.set_device_million_per_s(1e-6 * kCount / device);
    line.set_loop_million_per_s(1e-6 * kCount / plain);
    line.set_ratio(plain / device);
    PrintJson(line);
  }

 private:
  const int threads_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<Memory> memory_[4];
  std::unique_ptr<DeviceStream> stream_;
  std::unique_ptr<Event> event_;
};

void Run(int threads) {
  Benchmark benchmark(threads);
  DeviceStream* const stream = benchmark.stream();
  float* const w = benchmark.Array(0);
  float* const m = benchmark.Array(1);
  float* const v = benchmark.Array(2);
  float* const gradient = benchmark.Array(3);
  std::vector<float> x(kCount, 1), y(kCount, 1), z(kCount, 1), sums(kCols);

  benchmark.Report(
      "fill", [&] { Fill(stream, MatrixOf(w, kRows, kCols), 1); },
      [&] {
        std::fill(x.begin(), x.end(), 1.0f);
        Keep(x.data());
      });
  benchmark.Report(
      "column_sum", [&] { ColumnSum(stream, MatrixOf<const float>(w, kRows, kCols), v, gradient); },
      [&] {
        std::fill(sums.begin(), sums.end(), 0.0f);
        for (int64_t r = 0; r < kRows; ++r) {
          for (int64_t c = 0; c < kCols; ++c) sums[c] += x[r * kCols + c];
        }
        Keep(sums.data());
      });
  for (const int i : {0, 1, 2, 3}) Fill(stream, MatrixOf(benchmark.Array(i), 1, kCount), 0.5f);
  // The gradient, 0.5 everywhere, also serves as the step's control, so that the control's flag is
  // not 0.
  OptimizerRule adam;
  adam.kind = OptimizerKind::kAdam;
  adam.beta1 = 0.9f;
  adam.beta2 = 0.999f;
  adam.epsilon = 1e-8f;
  const OptimizerArrays arrays = {gradient, w, {m, v}, kCount};
  const auto* const control = reinterpret_cast<const StepControl*>(gradient);
  benchmark.Report(
      "adam", [&] { OptimizerStep(stream, control, adam, arrays); },
      [&] {
        for (int64_t i = 0; i < kCount; ++i) {
          const float g = x[i] * 0.5f;
          y[i] = 0.9f * y[i] + 0.1f * g;
          z[i] = 0.999f * z[i] + 0.001f * g * g;
          x[i] -= 0.5f * (y[i] / 0.5f) / (std::sqrt(z[i] / 0.5f) + 1e-8f);
        }
        Keep(x.data());
      });
}

}  // namespace
}  // namespace satrap

int main() {
  satrap::Run(1);
  satrap::Run(2);
  return 0;
}

// Runs kernels in tests: a HostDevice with one stream, and arrays on it.
//
//   TestDevice device(options);
//   float* const y = device.Room<float>(3);
//   Launch<FillKernel>(device.stream(), {1}, {32}, 0, y, 5.0f, 3);
//   EXPECT_EQ(device.Get(y, 3), std::vector<float>(3, 5));
//
// Tests written as TEST_P(KernelTest, ...) run in every execution order. Each program must contain
// IN_EVERY_ORDER(KernelTest) once.

#ifndef SATRAP_NN_WORKER_DEVICE_TESTING_DEVICE_TESTING_H_
#define SATRAP_NN_WORKER_DEVICE_TESTING_DEVICE_TESTING_H_

#include <algorithm>
#include <cstring>
#include <memory>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "common/numeric/random.h"
#include "gtest/gtest.h"
#include "nn_worker/device/host/host_device.h"

namespace satrap {

inline constexpr int64_t kTestTimeoutMs = 60000;

class TestDevice {
 public:
  explicit TestDevice(const HostDeviceOptions& options = {})
      : device_(NewHostDevice(options)),
        stream_(device_->NewStream().value()),
        event_(device_->NewEvent().value()) {}
  ~TestDevice() { Finish(); }

  Device* device() { return device_.get(); }
  DeviceStream* stream() { return stream_.get(); }

  // An array on the device, filled with NaN.
  template <typename T>
  T* Room(int64_t count) {
    memory_.push_back(device_->Allocate(count * static_cast<int64_t>(sizeof(T))).value());
    return static_cast<T*>(memory_.back()->data());
  }
  template <typename T>
  T* Put(const std::vector<T>& values) {
    const auto count = static_cast<int64_t>(values.size());
    T* const array = Room<T>(count);
    if (count == 0) return array;
    T* const pinned = Pinned<T>(count);
    std::memcpy(pinned, values.data(), count * sizeof(T));
    stream()->CopyIn(pinned, array, count * static_cast<int64_t>(sizeof(T)));
    return array;
  }
  // Waits for all operations enqueued so far, and returns the values.
  template <typename T>
  std::vector<T> Get(const T* array, int64_t count) {
    std::vector<T> values(count);
    if (count > 0) {
      T* const pinned = Pinned<T>(count);
      stream()->CopyOut(array, pinned, count * static_cast<int64_t>(sizeof(T)));
      Finish();
      std::memcpy(values.data(), pinned, count * sizeof(T));
    }
    return values;
  }
  template <typename T>
  T* Pinned(int64_t count) {
    memory_.push_back(device_->AllocatePinned(count * static_cast<int64_t>(sizeof(T))).value());
    return static_cast<T*>(memory_.back()->data());
  }
  void Finish() {
    stream_->Record(event_.get());
    EXPECT_TRUE(WaitForEvent(event_.get(), kTestTimeoutMs, [] { return false; }).ok());
  }

 private:
  const std::unique_ptr<Device> device_;
  // Freed in the destructor, when all operations have run.
  std::vector<std::unique_ptr<Memory>> memory_;
  const std::unique_ptr<DeviceStream> stream_;
  const std::unique_ptr<Event> event_;
};

inline HostDeviceOptions InOrder(host::ExecutionOrder::Kind kind, uint64_t seed = 0,
                                 int threads = 1) {
  HostDeviceOptions options;
  options.order = {kind, seed};
  options.threads = threads;
  return options;
}

inline std::vector<HostDeviceOptions> EveryOrder() {
  using host::ExecutionOrder;
  return {InOrder(ExecutionOrder::kForward), InOrder(ExecutionOrder::kReverse),
          InOrder(ExecutionOrder::kSeeded, 1), InOrder(ExecutionOrder::kSeeded, 2),
          InOrder(ExecutionOrder::kForward, 0, /*threads=*/2)};
}

inline std::string NameOf(const HostDeviceOptions& options) {
  const host::ExecutionOrder& order = options.order;
  if (options.threads > 1) return "Threads" + std::to_string(options.threads);
  if (order.kind == host::ExecutionOrder::kForward) return "Forward";
  if (order.kind == host::ExecutionOrder::kReverse) return "Reverse";
  return "Seed" + std::to_string(order.seed);
}

// Lets GoogleTest print the options in messages.
inline void PrintTo(const HostDeviceOptions& options, std::ostream* out) {
  *out << NameOf(options);
}

inline std::string NameOfOrder(const testing::TestParamInfo<HostDeviceOptions>& info) {
  return NameOf(info.param);
}

// Uniform values in [-1, 1).
inline std::vector<float> RandomValues(int64_t count, uint64_t seed) {
  std::vector<float> values(count);
  for (int64_t i = 0; i < count; ++i) {
    values[i] = 2 * UniformFloat(RandomBits(seed, static_cast<uint64_t>(i))) - 1;
  }
  return values;
}

class KernelTest : public testing::TestWithParam<HostDeviceOptions> {
 protected:
  TestDevice device_{GetParam()};
};

#define IN_EVERY_ORDER(suite) \
  INSTANTIATE_TEST_SUITE_P(, suite, testing::ValuesIn(EveryOrder()), NameOfOrder)

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_DEVICE_TESTING_DEVICE_TESTING_H_

#include "nn_worker/backend/device/device_backend.h"

#include <set>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "nn_worker/backend/tensor_copy.h"
#include "nn_worker/backend/testing/backend_conformance.h"
#include "nn_worker/backend/testing/host_device_backend.h"
#include "nn_worker/device/testing/device_testing.h"

namespace satrap {
namespace {

std::vector<BackendFactory> InEveryOrder() {
  std::vector<BackendFactory> factories;
  for (const HostDeviceOptions& options : EveryOrder()) {
    factories.emplace_back([options] { return NewHostDeviceBackend(options); });
  }
  return factories;
}

// Runs the suite once for every order in which blocks, warps and lanes of kernels, and the
// backend's queues, may run.
INSTANTIATE_TEST_SUITE_P(HostDevice, BackendConformance, testing::ValuesIn(InEveryOrder()),
                         [](const auto& info) { return NameOf(EveryOrder()[info.index]); });

Tensor Row(Backend* backend, int64_t cols) {
  return AllocateTensor(backend, DType::kF32, 1, cols).value();
}

TEST(DeviceBackendTest, OperationsRunLater) {
  const auto backend = NewHostDeviceBackend({});
  const Tensor x = Row(backend.get(), 3);
  std::vector<float> out(3, 7);
  backend->Fill(x, 2);
  CopyOut(backend.get(), x, absl::MakeSpan(out));
  EXPECT_EQ(out, std::vector<float>(3, 7));
  backend->Sync();
  EXPECT_EQ(out, std::vector<float>(3, 2));
  EXPECT_EQ(backend->HostView(x.data), nullptr);
  EXPECT_EQ(backend->DeviceView(out.data()), nullptr);
}

// If a WaitFor is missing, the result may be wrong on a card. On the host's device the result must
// then differ between the orders, so that tests notice.
TEST(DeviceBackendTest, QueuesThatDoNotWaitForOneAnotherDifferBetweenTheOrders) {
  std::set<std::vector<float>> results;
  for (const HostDeviceOptions& options : EveryOrder()) {
    const auto backend = NewHostDeviceBackend(options);
    const Tensor x = Row(backend.get(), 1), y = Row(backend.get(), 1);
    auto* const in = static_cast<float*>(backend->AllocatePinned(4).value());
    *in = 2;
    backend->StartCopyIn({reinterpret_cast<uint8_t*>(in), 4}, x);
    backend->Copy(x, y, /*add=*/false);
    backend->Sync();
    results.insert(ReadFloats(backend.get(), y));
  }
  EXPECT_EQ(results, (std::set<std::vector<float>>{{0}, {2}}));
}

TEST(DeviceBackendTest, ACopyOfItsOwnQueueReadsTheHostsMemoryWhenItRuns) {
  const auto backend = NewHostDeviceBackend({});
  const Tensor x = Row(backend.get(), 1);
  auto* const in = static_cast<float*>(backend->AllocatePinned(4).value());
  backend->StartCopyIn({reinterpret_cast<uint8_t*>(in), 4}, x);
  *in = 2;  // too early
  backend->Sync();
  EXPECT_EQ(ReadFloats(backend.get(), x)[0], 2);
}

TEST(DeviceBackendTest, AWaitEndsAtItsDeadlineOrWhenItIsAborted) {
  const auto backend = NewHostDeviceBackend({});
  const Tensor x = Row(backend.get(), 1);
  const auto event = backend->NewEvent().value();
  const auto record = [&] {
    for (int i = 0; i < 100; ++i) backend->Fill(x, 1);  // more than run during a poll
    backend->Record(DeviceQueue::kOperations, event.get());
  };
  const auto not_aborted = [] { return false; };
  record();
  EXPECT_TRUE(absl::IsDeadlineExceeded(AwaitEvent(backend.get(), event.get(), 0, not_aborted)));
  EXPECT_TRUE(AwaitEvent(backend.get(), event.get(), 60000, not_aborted).ok())
      << "may be waited for again";
  record();
  EXPECT_TRUE(
      absl::IsCancelled(AwaitEvent(backend.get(), event.get(), 60000, [] { return true; })));
}

// The test waits for no copy. Together the copies do not fit into the first ring of pinned memory,
// and some alone are larger than the ring. If the ring were overwritten too early, values would
// differ.
TEST(DeviceBackendTest, CopiesOfAnySizeKeepTheirValues) {
  const auto backend = NewHostDeviceBackend({});
  constexpr int64_t kSizes[] = {1, 100000, 17, 700000, 3, 250000, 250000, 60000};
  std::vector<Tensor> tensors;
  std::vector<std::vector<float>> outs;
  float salt = 0;
  for (const int64_t size : kSizes) {
    tensors.push_back(Row(backend.get(), size));
    CopyIn(backend.get(), std::vector<float>(size, ++salt), tensors.back());
  }
  for (const Tensor& tensor : tensors) outs.emplace_back(tensor.cols);
  for (int round = 0; round < 3; ++round) {
    for (size_t i = 0; i < tensors.size(); ++i) {
      CopyOut(backend.get(), tensors[i], absl::MakeSpan(outs[i]));
      backend->Copy(tensors[i], tensors[i], /*add=*/true);
    }
  }
  backend->Sync();
  for (size_t i = 0; i < tensors.size(); ++i) {
    // The last of the three copies out runs after the value was doubled twice.
    EXPECT_EQ(outs[i], std::vector<float>(kSizes[i], 4 * static_cast<float>(i + 1))) << i;
  }
}

// The operations use more lists of tensors than fit into the memory for lists; each operation must
// still read its own list.
TEST(DeviceBackendTest, ListsOfTensorsMayBeManyAndLong) {
  const auto backend = NewHostDeviceBackend({});
  constexpr int64_t kCols = 3000;
  const Tensor x = Row(backend.get(), 2 * kCols), y = Row(backend.get(), 1);
  std::vector<float> values;
  for (int64_t i = 0; i < 2 * kCols; ++i) values.push_back(static_cast<float>(i % 7));
  CopyIn(backend.get(), values, x);
  for (int64_t count = 1; count < kCols; count = 3 * count + 1) {
    // Every second column, so that neighbours are not joined into one tensor.
    std::vector<Tensor> xs;
    float sum = 0;
    for (int64_t i = 0; i < count; ++i) {
      xs.push_back(x.Columns(2 * i, 1));
      sum += values[2 * i];
    }
    for (int repeat = 0; repeat < 2; ++repeat) {
      backend->RowSum(xs, y);
      EXPECT_EQ(ReadFloats(backend.get(), y)[0], sum) << count;
    }
  }
}

TEST(DeviceBackendTest, BuffersInPinnedMemoryMayOutliveTheBackend) {
  auto backend = NewHostDeviceBackend({});
  Buffer first(5000, backend->PinnedBuffers());
  const uint8_t* const place = first.data();
  first = Buffer();
  Buffer again(4500, backend->PinnedBuffers());
  EXPECT_EQ(again.data(), place) << "what was given back is used again";
  EXPECT_FALSE(backend->IsPinned(&backend, 1));
  EXPECT_FALSE(backend->IsPinned(place, 1 << 20));
  backend.reset();
  again.mutable_data()[4499] = 1;
}

// One thread allocates and polls, as it does to copy the next part in, while another thread trains.
TEST(DeviceBackendTest, AnotherThreadAllocatesAndPolls) {
  const auto backend = NewHostDeviceBackend({});
  const Tensor x = Row(backend.get(), 1000);
  std::thread other([&backend] {
    for (int i = 0; i < 40; ++i) {
      const Tensor mine = Row(backend.get(), 10);
      const auto pinned = backend->AllocatePinned(40);
      const auto event = backend->NewEvent();
      backend->StartCopyIn({static_cast<uint8_t*>(*pinned), 40}, mine);
      backend->Record(DeviceQueue::kCopiesIn, event->get());
      EXPECT_TRUE(AwaitEvent(backend.get(), event->get(), 60000, [] { return false; }).ok());
    }
  });
  std::vector<float> out(1000);
  for (int i = 0; i < 40; ++i) {
    CopyIn(backend.get(), std::vector<float>(1000, static_cast<float>(i)), x);
    backend->Copy(x, x, /*add=*/true);
    CopyOut(backend.get(), x, absl::MakeSpan(out));
    if (i % 10 == 0) backend->Sync();
  }
  other.join();
  backend->Sync();
  EXPECT_EQ(out, std::vector<float>(1000, 78));
}

TEST(DeviceBackendTest, TooMuchMemoryIsAStatus) {
  HostDeviceOptions options;
  options.memory_bytes = 1 << 20;
  const auto backend = NewHostDeviceBackend(options);
  EXPECT_EQ(backend->Allocate(1 << 21).status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(backend->AllocatePinned(1 << 21).status().code(), absl::StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace satrap

#include "nn_worker/backend/device/backend_factory.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nn_worker/backend/cpu/cpu_backend.h"
#include "nn_worker/backend/cpu/cpu_job_backend.h"
#include "nn_worker/backend/device/device_factory.h"
#include "nn_worker/backend/tensor_copy.h"
#include "nn_worker/device/metered_device.h"

namespace satrap {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kScratchBytes = 128;

DeviceNeed Scratch() {
  DeviceNeed need;
  need.scratch_bytes = kScratchBytes;
  return need;
}

NnWorkerConfig OnDevice(NnWorkerConfig::Device device, int64_t limit_bytes = 0) {
  NnWorkerConfig config;
  config.set_device(device);
  config.set_device_memory_bytes(limit_bytes);
  return config;
}

absl::StatusOr<JobBackend> Make(const NnWorkerConfig& config, const DeviceNeed& need,
                                ForkJoinPool* pool) {
  if (config.device() != NnWorkerConfig::CPU) return NewDeviceJobBackend(config, /*card=*/0, need);
  JobBackend made;
  made.backend = NewCpuJobBackend(config, pool);
  return made;
}

// Computes the product x w of two small matrices.
std::vector<float> Product(Backend* backend) {
  const Tensor x = AllocateTensor(backend, DType::kF32, 3, 5).value();
  const Tensor w = AllocateTensor(backend, DType::kF32, 5, 9).value();
  const Tensor y = AllocateTensor(backend, DType::kF32, 3, 9).value();
  std::vector<float> values;
  for (int i = 0; i < 45; ++i) values.push_back(1.0f / static_cast<float>(1 + i));
  CopyIn(backend, absl::MakeConstSpan(values).first(15), x);
  CopyIn(backend, values, w);
  backend->Linear(x, w, Tensor(), Activation::kLinear, y);
  return ReadFloats(backend, y);
}

TEST(BackendFactoryTest, OnTheCpuItIsTheCpusBackendBitForBit) {
  ForkJoinPool pool(1);
  const auto made = Make(OnDevice(NnWorkerConfig::CPU), Scratch(), &pool);
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ(made->meter, nullptr);
  const std::unique_ptr<Backend> cpu = NewCpuBackend(&pool);
  EXPECT_EQ(Product(made->backend.get()), Product(cpu.get()));
}

TEST(BackendFactoryTest, TheHostsDeviceComputesTheSameAndIsMetered) {
  ForkJoinPool pool(1);
  const auto made = Make(OnDevice(NnWorkerConfig::HOST), Scratch(), &pool);
  ASSERT_TRUE(made.ok()) << made.status();
  const std::unique_ptr<Backend> cpu = NewCpuBackend(&pool);
  const std::vector<float> expected = Product(cpu.get());
  const std::vector<float> product = Product(made->backend.get());
  ASSERT_EQ(product.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(product[i], expected[i], 1e-6) << i;
  const DeviceMeter::Reading reading = made->meter->Read();
  EXPECT_EQ(reading.bytes, (15 + 45 + 27) * 4 + kScratchBytes);
  EXPECT_EQ(reading.peak_bytes, reading.bytes);
  EXPECT_EQ(reading.copied_in_bytes, (15 + 45) * 4);
  EXPECT_EQ(reading.copied_out_bytes, 27 * 4);
  EXPECT_GT(reading.pinned_bytes, 0);
}

TEST(BackendFactoryTest, CopiesInLanesOfTheirOwnAreCountedToo) {
  ForkJoinPool pool(1);
  const auto made = Make(OnDevice(NnWorkerConfig::HOST), Scratch(), &pool);
  ASSERT_TRUE(made.ok()) << made.status();
  Backend* const backend = made->backend.get();
  const Tensor x = AllocateTensor(backend, DType::kF32, 1, 100).value();
  auto* const pinned = static_cast<uint8_t*>(backend->AllocatePinned(400).value());
  backend->StartCopyIn({pinned, 400}, x);
  backend->StartCopyOut(x.FirstRows(1).Columns(0, 50), {pinned, 200});
  backend->Sync();
  EXPECT_EQ(made->meter->Read().copied_in_bytes, 400);
  EXPECT_EQ(made->meter->Read().copied_out_bytes, 200);
}

TEST(BackendFactoryTest, TheJobsLimitIsKept) {
  ForkJoinPool pool(1);
  const auto made = Make(OnDevice(NnWorkerConfig::HOST, 4096), Scratch(), &pool);
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_TRUE(made->backend->Allocate(4096 - kScratchBytes).ok());
  EXPECT_EQ(made->backend->Allocate(1).status().code(), absl::StatusCode::kResourceExhausted);
  // If there is too little memory for the scratch memory, this must be reported here, because an
  // operation cannot report an error.
  const auto none = Make(OnDevice(NnWorkerConfig::HOST, 64), Scratch(), &pool);
  EXPECT_EQ(none.status().code(), absl::StatusCode::kResourceExhausted);
}

TEST(BackendFactoryTest, ScratchMemoryGrowsAsFarAsTheLimitHasRoom) {
  ForkJoinPool pool(1);
  DeviceNeed need;
  need.scratch_bytes = 4096;
  const auto made = Make(OnDevice(NnWorkerConfig::HOST, 10000), need, &pool);
  ASSERT_TRUE(made.ok()) << made.status();
  // Each of 300 ids needs 16 bytes. For rows with more than 256 ids, the sums of pieces need 4 rows
  // of 8 values, and the 4 numbers of these rows take 64 bytes. There is room for all this, but not
  // for doubling the scratch memory.
  const absl::Status reserved = made->backend->ReserveScatter(300, 8);
  EXPECT_TRUE(reserved.ok()) << reserved;
  EXPECT_EQ(made->meter->Read().bytes, 4096 + 4800 + 128 + 64);
  const absl::Status refused = made->backend->ReserveScatter(400, 8);
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(refused.message(), HasSubstr("and 6592 more are needed"));
  EXPECT_TRUE(made->backend->ReserveScatter(300, 8).ok()) << "what was there stays";
}

TEST(BackendFactoryTest, ANeedThatTheDeviceCannotHoldIsToldBeforeAnyIsTaken) {
  ForkJoinPool pool(1);
  DeviceNeed need = Scratch();
  need.bytes = int64_t{1} << 40;
  need.text = "1099511627776 bytes of device memory";
  const auto made = Make(OnDevice(NnWorkerConfig::HOST), need, &pool);
  EXPECT_EQ(made.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(made.status().message(),
              HasSubstr("the host's device has 68719476736 bytes of memory in all, but each NN "
                        "worker needs 1099511627776 bytes of device memory: "));
  EXPECT_TRUE(Make(OnDevice(NnWorkerConfig::CPU), need, &pool).ok());
}

// Lists, too, are allocated at the start, because an operation could not report that there is no
// room for them.
TEST(BackendFactoryTest, TheListsOfOperationsAreTakenAtTheStart) {
  ForkJoinPool pool(1);
  DeviceNeed need = Scratch();
  need.list_bytes = 1 << 18;
  need.part_list_bytes = 1 << 19;
  const int64_t all = kScratchBytes + need.list_bytes + need.part_list_bytes;
  const auto made = Make(OnDevice(NnWorkerConfig::HOST, all), need, &pool);
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ(made->meter->Read().bytes, all);
  EXPECT_EQ(Make(OnDevice(NnWorkerConfig::HOST, all - 1), need, &pool).status().code(),
            absl::StatusCode::kResourceExhausted);
}

TEST(BackendFactoryTest, AProgramWithoutCudaNamesTheOneWithIt) {
  ForkJoinPool pool(1);
  const auto made = Make(OnDevice(NnWorkerConfig::CUDA), Scratch(), &pool);
  EXPECT_EQ(made.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(made.status().message(),
            "nn_worker.device is CUDA, but this program is for CPU and HOST: run nn_worker_cuda in "
            "place of nn_worker_host; ./satrap builds it after ./setup cuda");
}

TEST(BackendFactoryTest, AProgramWithoutCudaHasNoNccl) {
  const absl::Status status = NewDeviceReduction({}, nullptr, [] { return false; }).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(status.message(),
            "NCCL works on GPUs only, but this program is for CPU and HOST: run nn_worker_cuda");
  EXPECT_EQ(CheckDeviceReduction(), status);
}

TEST(BackendFactoryTest, SixteenBitsRunOnEveryDevice) {
  ForkJoinPool pool(1);
  for (const auto device : {NnWorkerConfig::CPU, NnWorkerConfig::HOST}) {
    NnWorkerConfig config = OnDevice(device);
    config.set_precision(NnWorkerConfig::BF16);
    const auto made = Make(config, Scratch(), &pool);
    ASSERT_TRUE(made.ok()) << made.status();
    Backend* const backend = made->backend.get();
    const Tensor x = AllocateTensor(backend, DType::kF32, 1, 1).value();
    const Tensor half = AllocateTensor(backend, DType::kBF16, 1, 1).value();
    backend->Fill(x, 1.0f + 1.0f / 1024);
    backend->Copy(x, half, /*add=*/false);
    backend->Copy(half, x, /*add=*/false);
    EXPECT_EQ(ReadFloats(backend, x)[0], 1) << NnWorkerConfig::Device_Name(device);
  }
}

}  // namespace
}  // namespace satrap

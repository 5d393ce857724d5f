// Tests kernels with one fault each. On a card these faults would go unnoticed, or would only give
// wrong numbers. Here most end in a message that names the kernel, block, thread and line. Faults
// that depend on the order of warps give a wrong result in at least one of the orders.

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "nn_worker/device/kernel.h"
#include "nn_worker/device/testing/device_testing.h"

namespace satrap {
namespace {

// If the program uses AddressSanitizer, that is the first to report an access to a guard.
constexpr char kGuardWrite[] = "wrote past the end|AddressSanitizer";

// The forked process of a death test has only one thread. So the device uses only one thread, and
// it is created after the fork.
template <auto kKernel, typename... Args>
void RunKernel(Dim3 grid, Dim3 block, int64_t elements, Args... args) {
  TestDevice device;
  float* const y = device.Room<float>(elements);
  Launch<kKernel>(device.stream(), grid, block, 0, y, args...);
  device.Finish();
}

SATRAP_KERNEL void OverrunKernel(float* y, int64_t count) { y[ThreadInGrid() % count] = 1; }
SATRAP_KERNEL void UnderrunKernel(float* y) { y[-static_cast<int64_t>(ThreadIndex().x)] = 1; }
SATRAP_KERNEL void ReadKernel(float* y, int64_t at) { y[0] = y[at]; }

TEST(PlantedFaultDeathTest, OverrunOfDeviceMemory) {
  // This writes into the page after the allocation. That page is closed to all accesses. The
  // message names the thread.
  EXPECT_DEATH(RunKernel<OverrunKernel>({2}, {16}, 16, 17),
               "kernels_stay_within_device_memory .*kernel OverrunKernel, block \\(1, 0, 0\\), "
               "thread \\(0, 0, 0\\) wrote 0 bytes past the end of an allocation of 64 bytes");
  // This writes into the bytes by which the allocation's size is rounded up.
  EXPECT_DEATH(RunKernel<OverrunKernel>({1}, {16}, 15, 16), kGuardWrite);
  EXPECT_DEATH(RunKernel<UnderrunKernel>({1}, {16}, 16),
               "wrote before the beginning|AddressSanitizer");
  EXPECT_DEATH(RunKernel<ReadKernel>({1}, {1}, 16, 16),
               "thread \\(0, 0, 0\\) read 0 bytes past the end");
}

SATRAP_KERNEL void PointerKernel(float* y, const float* x) { y[0] = x[0]; }

TEST(PlantedFaultDeathTest, UseOfFreedDeviceMemory) {
  EXPECT_DEATH(
      {
        TestDevice device;
        auto memory = device.device()->Allocate(64).value();
        const float* const x = static_cast<const float*>(memory->data());
        memory.reset();
        float* const y = device.Room<float>(16);
        Launch<PointerKernel>(device.stream(), {1}, {1}, 0, y, x);
        device.Finish();
      },
      "PointerKernel.* read byte 0 of a freed allocation of 64 bytes");
}

TEST(PlantedFaultDeathTest, DeviceMemoryOnTheHost) {
  TestDevice device;
  float* const x = device.Put(std::vector<float>(100, 1));
  device.Finish();
  EXPECT_DEATH(x[7] += 1, "the host read byte 28 of an allocation of 400 bytes of the device");
  EXPECT_DEATH(x[7] = 1, "the host wrote byte 28");
}

SATRAP_KERNEL void TouchKernel(float* y) { y[0] += 1; }

// An allocation that a kernel has accessed must be closed again after the kernel, and one that it
// has not accessed must stay closed.
TEST(PlantedFaultDeathTest, DeviceMemoryOnTheHostAfterAKernel) {
  TestDevice device;
  float* const touched = device.Put(std::vector<float>(100, 1));
  float* const other = device.Put(std::vector<float>(50, 1));
  device.Finish();
  Launch<TouchKernel>(device.stream(), {1}, {1}, 0, touched);
  device.Finish();
  EXPECT_DEATH(touched[0] += 1, "the host read byte 0 of an allocation of 400 bytes");
  EXPECT_DEATH(other[0] += 1, "the host read byte 0 of an allocation of 200 bytes");
}

TEST(PlantedFaultDeathTest, MemoryOfAnotherDevice) {
  EXPECT_DEATH(
      {
        TestDevice mine;
        TestDevice others;
        float* const x = others.Put(std::vector<float>(16, 1));
        float* const y = mine.Room<float>(16);
        others.Finish();
        Launch<PointerKernel>(mine.stream(), {1}, {1}, 0, y, x);
        mine.Finish();
      },
      "PointerKernel.* read byte 0 of an allocation of 64 bytes");
}

// errno is set, as after a failed system call. The next access to memory faults, but the fault
// handler must not change errno.
SATRAP_KERNEL void ErrnoKernel(float* y) {
  errno = ENOENT;
  y[0] = 1;
  y[1] = static_cast<float>(errno);
}

TEST(PlantedFaultTest, AFirstAccessLeavesErrnoAsItWas) {
  TestDevice device;
  float* const y = device.Room<float>(2);
  Launch<ErrnoKernel>(device.stream(), {1}, {1}, 0, y);
  EXPECT_EQ(device.Get(y, 2)[1], ENOENT);
}

// The fault handler must pass on a signal that was sent by a process.
TEST(PlantedFaultDeathTest, ASignalThatIsSentEndsTheProcess) {
  const auto ended = [](int status) {
    if (WIFSIGNALED(status)) return WTERMSIG(status) == SIGSEGV;
    // The handlers of AddressSanitizer and of ThreadSanitizer call exit with these codes.
    return WIFEXITED(status) && (WEXITSTATUS(status) == 1 || WEXITSTATUS(status) == 66);
  };
  EXPECT_EXIT(
      {
        TestDevice device;
        kill(getpid(), SIGSEGV);
        std::_Exit(0);
      },
      ended, "");
}

TEST(PlantedFaultDeathTest, CopiesOutsideOfAnAllocation) {
  EXPECT_DEATH(
      {
        TestDevice device;
        device.stream()->CopyIn(device.Pinned<float>(17), device.Room<float>(16), 68);
      },
      "a copy of 68 bytes uses byte 0 of an allocation of 64 bytes as its device address");
  EXPECT_DEATH(
      {
        TestDevice device;
        const float value = 1;
        device.stream()->CopyIn(&value, device.Room<float>(16), 4);
      },
      "uses host memory that is not pinned");
}

TEST(PlantedFaultDeathTest, MemoryFreedWhileOperationsAreEnqueued) {
  EXPECT_DEATH(
      {
        TestDevice device;
        const auto memory = device.device()->Allocate(4).value();
        Launch<ReadKernel>(device.stream(), {1}, {1}, 0, static_cast<float*>(memory->data()), 0);
      },
      "freed while 1 operations are enqueued");
}

SATRAP_KERNEL void MisalignedKernel(float* y) {
  const uint32_t i = ThreadIndex().x;
  if (i == 3) StoreVec(y + 2, LoadVec<4>(y));
}

TEST(PlantedFaultDeathTest, MisalignedVectorAccess) {
  EXPECT_DEATH(
      RunKernel<MisalignedKernel>({1}, {8}, 16),
      "an access of a Vec is aligned to its size at .*planted_faults_test.cc:[0-9]+ kernel "
      "MisalignedKernel, block \\(0, 0, 0\\), thread \\(3, 0, 0\\): 16 bytes at");
}

SATRAP_KERNEL void TooManySharedKernel(float* y) {
  SHARED_ARRAY(float, first, [8192]);
  SHARED_ARRAY(float, second, [8192]);
  first[0] = second[0] = y[0];
}
SATRAP_KERNEL void SharedOverrunKernel(float* y) {
  SHARED_ARRAY(float, sums, [32]);
  SHARED_ARRAY(float, others, [32]);
  others[0] = 0;
  float* const p = sums;
  p[ThreadIndex().x] = 1;
  y[0] = others[0];
}

TEST(PlantedFaultDeathTest, OverrunOfSharedMemory) {
  EXPECT_DEATH(RunKernel<SharedOverrunKernel>({1}, {33}, 16),
               "wrote past the end of the shared array sums|AddressSanitizer");
  EXPECT_DEATH(RunKernel<TooManySharedKernel>({1}, {1}, 16),
               "shared array second of 32768 bytes does not fit into the 49152 bytes of a block");
  RunKernel<SharedOverrunKernel>({1}, {32}, 16);
}

// y[b] = the sum of the block's values in shared memory, computed by a tree. A false argument
// plants a fault: no barrier between the levels of the tree (kBetween), no barrier before it
// (kBefore), or values of absent threads that are never written (kAll).
template <bool kBetween, bool kBefore, bool kAll>
SATRAP_KERNEL void TreeKernel(const float* x, float* y) {
  SHARED_ARRAY(float, sums, [128]);
  const uint32_t i = ThreadIndex().x;
  if (kAll || i < 100) sums[i] = i < 100 ? x[BlockIndex().x * 100 + i] : 0;
  if constexpr (kBefore) SyncThreads();
  for (uint32_t width = 64; width > 0; width /= 2) {
    if (i < width) sums[i] += sums[i + width];
    if constexpr (kBetween) SyncThreads();
  }
  if (i == 0) y[BlockIndex().x] = sums[0];
}

// The number of orders in which the sums of three blocks are right.
template <auto kKernel>
int RightOrders() {
  int right = 0;
  for (const HostDeviceOptions& options : EveryOrder()) {
    TestDevice device(options);
    std::vector<float> x(300);
    for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i);
    float* const y = device.Room<float>(3);
    Launch<kKernel>(device.stream(), {3}, {128}, 0, device.Put(x), y);
    right += device.Get(y, 3) == std::vector<float>{4950, 14950, 24950} ? 1 : 0;
  }
  return right;
}

TEST(PlantedFaultTest, ADeletedBarrierIsFoundByOneOfTheOrders) {
  const int orders = static_cast<int>(EveryOrder().size());
  EXPECT_EQ((RightOrders<TreeKernel<true, true, true>>()), orders);
  EXPECT_LT((RightOrders<TreeKernel<false, true, true>>()), orders);
  EXPECT_LT((RightOrders<TreeKernel<true, false, true>>()), orders);
}

TEST(PlantedFaultTest, UninitialisedSharedMemoryGivesNan) {
  EXPECT_EQ((RightOrders<TreeKernel<true, true, false>>()), 0);
}

SATRAP_KERNEL void LeftoverKernel(float* y) {
  SHARED_ARRAY(float, value, [1]);
  y[BlockIndex().x] = value[0];
  value[0] = 1;
}

TEST(PlantedFaultTest, ABlockDoesNotSeeTheSharedMemoryOfTheBlockBefore) {
  for (const HostDeviceOptions& options : EveryOrder()) {
    TestDevice device(options);
    float* const y = device.Room<float>(20);
    Launch<LeftoverKernel>(device.stream(), {20}, {1}, 0, y);
    for (const float value : device.Get(y, 20)) EXPECT_TRUE(std::isnan(value));
  }
}

// One warp passes a value to the other without a barrier. The result is right only in orders that
// run the writing warp first. So results differ between orders, which shows the fault.
template <int kWriter>
SATRAP_KERNEL void HandOverKernel(float* y) {
  SHARED_ARRAY(float, value, [1]);
  if (ThreadIndex().x == 32 * kWriter) value[0] = 5;
  if (ThreadIndex().x == 32 * (1 - kWriter)) y[0] = value[0];
}

template <auto kKernel>
std::vector<bool> Finds() {
  std::vector<bool> finds;
  for (const HostDeviceOptions& options : EveryOrder()) {
    TestDevice device(options);
    float* const y = device.Room<float>(1);
    Launch<kKernel>(device.stream(), {1}, {64}, 0, y);
    finds.push_back(std::isnan(device.Get(y, 1)[0]));
  }
  return finds;
}

TEST(PlantedFaultTest, OneOrderAloneMissesADeletedBarrier) {
  const auto later = Finds<HandOverKernel<1>>(), earlier = Finds<HandOverKernel<0>>();
  // EveryOrder() lists the forward order first, then the reverse order.
  EXPECT_TRUE(later[0]);
  EXPECT_FALSE(later[1]);
  EXPECT_FALSE(earlier[0]);
  EXPECT_TRUE(earlier[1]);
}

SATRAP_KERNEL void LeavesKernel(float* y) {
  if (ThreadIndex().x >= 40) return;
  SyncThreads();
  y[0] = 1;
}
SATRAP_KERNEL void DivergentBarrierKernel(float* y) {
  if (ThreadIndex().x % 2 == 0) {
    SyncThreads();
  } else {
    y[0] = 1;
    SyncThreads();
  }
}

TEST(PlantedFaultDeathTest, AThreadLeavesBeforeABarrierThatOthersWaitAt) {
  EXPECT_DEATH(RunKernel<LeavesKernel>({1}, {64}, 16),
               "all threads of a block reach a barrier at .*planted_faults_test.cc:[0-9]+ kernel "
               "LeavesKernel, block \\(0, 0, 0\\), thread \\(0, 0, 0\\): waits here, but thread "
               "\\(63, 0, 0\\) has left the kernel");
}

TEST(PlantedFaultDeathTest, ABarrierInsideDivergentCode) {
  EXPECT_DEATH(RunKernel<DivergentBarrierKernel>({1}, {64}, 16),
               "all threads of a block reach the same barrier at .*planted_faults_test.cc:[0-9]+ "
               "kernel DivergentBarrierKernel, block \\(0, 0, 0\\), thread \\(1, 0, 0\\): waits "
               "here, while thread \\(0, 0, 0\\) waits at .*planted_faults_test.cc:[0-9]+");
}

// Lanes below 20 shuffle with the full mask. The other lanes of the warp do something else.
enum class Absent { kLeft, kAtBarrier, kOtherMask };
template <Absent kAbsent>
SATRAP_KERNEL void AbsentLaneKernel(float* y) {
  const uint32_t lane = ThreadIndex().x % 32;
  if (lane >= 20) {
    if (kAbsent == Absent::kLeft) return;
    if (kAbsent == Absent::kAtBarrier) SyncThreads();
    if (kAbsent == Absent::kOtherMask) SyncWarp(0xfff00001);
    return;
  }
  y[lane] = ShuffleDown(kFullMask, 1.0f, 1);
}
SATRAP_KERNEL void SplitShuffleKernel(float* y) {
  const uint32_t lane = ThreadIndex().x;
  if (lane % 2 == 0) {
    y[lane] = ShuffleXor(kFullMask, 1.0f, 1);
  } else {
    y[lane] = ShuffleXor(kFullMask, 2.0f, 1);
  }
}
SATRAP_KERNEL void NegativeDeltaKernel(float* y) { y[0] = ShuffleDown(kFullMask, 1.0f, -1); }
SATRAP_KERNEL void NotNamedKernel(float* y) { y[0] = ShuffleXor(0xfffffffe, 1.0f, 1); }
SATRAP_KERNEL void FullMaskKernel(float* y) { y[0] = ShuffleXor(kFullMask, 1.0f, 1); }

TEST(PlantedFaultDeathTest, AMaskNamesALaneThatIsNotThere) {
  EXPECT_DEATH(RunKernel<AbsentLaneKernel<Absent::kLeft>>({1}, {32}, 32),
               "every lane that a mask names takes part at .*planted_faults_test.cc:[0-9]+ kernel "
               "AbsentLaneKernel<Absent::kLeft>, block \\(0, 0, 0\\), thread \\(0, 0, 0\\): "
               "ShuffleDown with "
               "mask 0xffffffff waits for lane 20 of its warp, which has left the kernel");
  EXPECT_DEATH(RunKernel<AbsentLaneKernel<Absent::kAtBarrier>>({1}, {32}, 32),
               "waits for lane 20 of its warp, which waits at the barrier at .*_test.cc");
  EXPECT_DEATH(RunKernel<AbsentLaneKernel<Absent::kOtherMask>>({1}, {32}, 32),
               "waits for lane 20 of its warp, which waits in SyncWarp with mask 0xfff00001 at");
  EXPECT_DEATH(
      RunKernel<SplitShuffleKernel>({1}, {32}, 32),
      "waits for lane [01] of its warp, which waits in ShuffleXor with mask 0xffffffff at");
  EXPECT_DEATH(RunKernel<FullMaskKernel>({1}, {48}, 32),
               "waits for lane 16 of its warp, which does not exist: the block has 48 threads");
  EXPECT_DEATH(RunKernel<NegativeDeltaKernel>({1}, {32}, 32),
               "the delta of ShuffleDown is from 0 to 31 at .*_test.cc.*NegativeDeltaKernel.*got "
               "-1");
  EXPECT_DEATH(RunKernel<NotNamedKernel>({1}, {32}, 32),
               "a mask names the lane that passes it at .*mask 0xfffffffe in lane 0");
}

TEST(PlantedFaultDeathTest, ALaunchThatNoCardWouldRun) {
  EXPECT_DEATH(RunKernel<FullMaskKernel>({0}, {32}, 16),
               "no card launches 0 blocks \\(0, 1, 1\\) of 32 threads");
  EXPECT_DEATH(RunKernel<FullMaskKernel>({1}, {1025}, 16), "of 1025 threads \\(1025, 1, 1\\)");
  EXPECT_DEATH(RunKernel<FullMaskKernel>({1, 65536}, {32}, 16), "no card launches 65536 blocks");
  EXPECT_DEATH(
      {
        TestDevice device;
        Launch<FullMaskKernel>(device.stream(), {1}, {32}, (48 << 10) + 16, device.Room<float>(16));
      },
      "with 49168 bytes of shared memory");
}

}  // namespace
}  // namespace satrap

#include "nn_worker/device/kernel.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "gtest/gtest.h"
#include "nn_worker/device/testing/device_testing.h"

namespace satrap {
namespace {

SATRAP_KERNEL void IndexKernel(uint32_t* y) {
  const Dim3 b = BlockIndex(), t = ThreadIndex(), size = BlockSize(), grid = GridSize();
  const uint32_t block = (b.z * grid.y + b.y) * grid.x + b.x;
  const uint32_t thread = (t.z * size.y + t.y) * size.x + t.x;
  y[block * size.volume() + thread] =
      b.z * 100000 + b.y * 10000 + b.x * 1000 + t.z * 100 + t.y * 10 + t.x;
}

TEST_P(KernelTest, EveryThreadOfEveryBlockRunsOnce) {
  const Dim3 grid{2, 3, 2}, block{3, 2, 4};
  uint32_t* const y = device_.Room<uint32_t>(12 * 24);
  Launch<IndexKernel>(device_.stream(), grid, block, 0, y);
  std::vector<uint32_t> expected;
  for (uint32_t bz = 0; bz < 2; ++bz)
    for (uint32_t by = 0; by < 3; ++by)
      for (uint32_t bx = 0; bx < 2; ++bx)
        for (uint32_t tz = 0; tz < 4; ++tz)
          for (uint32_t ty = 0; ty < 2; ++ty)
            for (uint32_t tx = 0; tx < 3; ++tx)
              expected.push_back(bz * 100000 + by * 10000 + bx * 1000 + tz * 100 + ty * 10 + tx);
  EXPECT_EQ(device_.Get(y, 12 * 24), expected);
}

// Twice, each thread passes its value to the next thread through shared memory.
SATRAP_KERNEL void RotateKernel(const uint32_t* x, uint32_t* y) {
  SHARED_ARRAY(uint32_t, values, [100]);
  uint32_t* const dynamic = DynamicShared<uint32_t>();
  const uint32_t i = ThreadIndex().x, next = (i + 1) % BlockSize().x;
  values[i] = x[i];
  SyncThreads();
  dynamic[i] = values[next];
  SyncThreads();
  y[i] = dynamic[next];
}

TEST_P(KernelTest, ABarrierMakesSharedMemoryVisible) {
  std::vector<uint32_t> x, expected;
  for (uint32_t i = 0; i < 100; ++i) {
    x.push_back(7 * i);
    expected.push_back(7 * ((i + 2) % 100));
  }
  uint32_t* const y = device_.Room<uint32_t>(100);
  Launch<RotateKernel>(device_.stream(), {1}, {100}, 400, device_.Put(x), y);
  EXPECT_EQ(device_.Get(y, 100), expected);
}

SATRAP_KERNEL void ShuffleKernel(double* down, int32_t* exchanged, uint64_t* from) {
  const int lane = static_cast<int>(ThreadIndex().x);
  down[lane] = ShuffleDown(kFullMask, 0.5 * lane, 3);
  exchanged[lane] = ShuffleXor(kFullMask, 10 * lane, 5);
  from[lane] = Shuffle(kFullMask, (uint64_t{1} << 40) + lane, 3 * lane);
}

TEST_P(KernelTest, ShufflesTakeTheValueOfAnotherLane) {
  double* const down = device_.Room<double>(32);
  int32_t* const exchanged = device_.Room<int32_t>(32);
  uint64_t* const from = device_.Room<uint64_t>(32);
  Launch<ShuffleKernel>(device_.stream(), {1}, {32}, 0, down, exchanged, from);
  const auto d = device_.Get(down, 32);
  const auto x = device_.Get(exchanged, 32);
  const auto f = device_.Get(from, 32);
  for (int lane = 0; lane < 32; ++lane) {
    EXPECT_EQ(d[lane], 0.5 * (lane < 29 ? lane + 3 : lane)) << "beyond the warp: its own";
    EXPECT_EQ(x[lane], 10 * (lane ^ 5));
    EXPECT_EQ(f[lane], (uint64_t{1} << 40) + 3 * lane % 32);
  }
}

// The halves of a warp take different branches, each with its own mask.
SATRAP_KERNEL void HalvesKernel(uint32_t* votes, float* beyond) {
  const uint32_t lane = ThreadIndex().x;
  const bool odd = lane % 2 == 1;
  if (lane < 16) {
    votes[lane] = Ballot(0x0000ffff, odd) | (Any(0x0000ffff, lane == 3) ? 1u << 30 : 0u);
    beyond[lane] = ShuffleDown(0x0000ffff, 1.0f, 8);
  } else {
    votes[lane] = All(0xffff0000, lane >= 16) ? 1 : 0;
    SyncWarp(0xffff0000);
    beyond[lane] = All(0xffff0000, odd) ? 1 : 0;
  }
}

TEST_P(KernelTest, AMaskNamesThePartOfTheWarpThatTakesPart) {
  uint32_t* const votes = device_.Room<uint32_t>(32);
  float* const beyond = device_.Room<float>(32);
  Launch<HalvesKernel>(device_.stream(), {1}, {32}, 0, votes, beyond);
  const auto v = device_.Get(votes, 32);
  const auto b = device_.Get(beyond, 32);
  for (int lane = 0; lane < 16; ++lane) {
    EXPECT_EQ(v[lane], 0x4000aaaau);
    EXPECT_EQ(std::isnan(b[lane]), lane >= 8) << "a lane that the mask does not name gives NaN";
    EXPECT_EQ(v[16 + lane], 1u);
    EXPECT_EQ(b[16 + lane], 0);
  }
}

struct Counts {
  int32_t sum;
  uint32_t sum_u32;
  uint64_t sum_u64;
  float sum_f32;
  int32_t max;
  uint32_t max_u32;
  uint32_t first;
  uint64_t first_u64;
};

SATRAP_KERNEL void AtomicKernel(Counts* counts) {
  const auto i = static_cast<int32_t>(ThreadInGrid());
  AtomicAdd(&counts->sum, -i);
  AtomicAdd(&counts->sum_u32, 1u);
  AtomicAdd(&counts->sum_u64, uint64_t{1} << 32);
  AtomicAdd(&counts->sum_f32, 0.25f);
  AtomicMax(&counts->max, i - 2000);
  AtomicMax(&counts->max_u32, static_cast<uint32_t>(i));
  AtomicCas(&counts->first, 0u, 5u);
  AtomicCas(&counts->first_u64, uint64_t{0}, uint64_t{6});
}

TEST_P(KernelTest, AtomicsOfAllBlocksAddUp) {
  Counts* const counts = device_.Put(std::vector<Counts>{{0, 0, 0, 0, -5000, 0, 0, 0}});
  Launch<AtomicKernel>(device_.stream(), {10}, {100}, 0, counts);
  const Counts sums = device_.Get(counts, 1)[0];
  EXPECT_EQ(sums.sum, -999 * 500);
  EXPECT_EQ(sums.sum_u32, 1000u);
  EXPECT_EQ(sums.sum_u64, uint64_t{1000} << 32);
  EXPECT_EQ(sums.sum_f32, 250);
  EXPECT_EQ(sums.max, -1001);
  EXPECT_EQ(sums.max_u32, 999u);
  EXPECT_EQ(sums.first, 5u);
  EXPECT_EQ(sums.first_u64, 6u);
}

SATRAP_KERNEL void RoundKernel(const float* x, Half* half, Bf16* bf16, float* back) {
  const uint32_t i = ThreadIndex().x;
  half[i] = FromFloat<Half>(x[i]);
  bf16[i] = FromFloat<Bf16>(x[i]);
  back[2 * i] = ToFloat(half[i]);
  back[2 * i + 1] = ToFloat(bf16[i]);
}

TEST_P(KernelTest, SixteenBitValuesAreRoundedToNearestEven) {
  const float tiny = std::ldexp(1.0f, -24);
  const std::vector<float> x = {
      1 + 0x1p-11f, 1 + 3 * 0x1p-11f, 1 + 0x1p-8f, 1 + 3 * 0x1p-8f, 70000, tiny, -0.0f, HUGE_VALF};
  const std::vector<float> expected = {
      1,         1,     1 + 0x1p-9f, 1,    1 + 0x1p-8f, 1,     1 + 3 * 0x1p-8f, 1 + 0x1p-6f,
      HUGE_VALF, 70144, tiny,        tiny, -0.0f,       -0.0f, HUGE_VALF,       HUGE_VALF};
  Half* const half = device_.Room<Half>(8);
  Bf16* const bf16 = device_.Room<Bf16>(8);
  float* const back = device_.Room<float>(16);
  Launch<RoundKernel>(device_.stream(), {1}, {8}, 0, device_.Put(x), half, bf16, back);
  EXPECT_EQ(device_.Get(back, 16), expected);
}

SATRAP_KERNEL void MathKernel(float* y) {
  y[0] = Exp(1.0f);
  y[1] = Log1p(1e-8f);
  y[2] = Sqrt(2.0f);
  y[3] = Tanh(0.5f);
  y[4] = Abs(-3.0f);
  y[5] = Min(1.0f, 2.0f);
  y[6] = Max(1.0f, 2.0f);
  y[7] = Fma(1 + 0x1p-12f, 1 - 0x1p-12f, -1.0f);
}

TEST_P(KernelTest, MathFunctionsAreTheExactOnes) {
  float* const y = device_.Room<float>(8);
  Launch<MathKernel>(device_.stream(), {1}, {1}, 0, y);
  const auto got = device_.Get(y, 8);
  const std::vector<float> expected = {2.7182817f, 1e-8f, 1.4142135f, 0.4621172f,
                                       3,          1,     2,          -0x1p-24f};
  for (int i = 0; i < 8; ++i) EXPECT_FLOAT_EQ(got[i], expected[i]) << i;
}

SATRAP_KERNEL void SubnormalKernel(const float* x, float* y) {
  y[0] = x[0] * x[1];  // a subnormal result
  y[1] = x[2] * x[3];  // a subnormal operand
}

// Subnormal values also count as zero on the CPU's backend, and on a card with -ftz=true.
TEST_P(KernelTest, SubnormalValuesCountAsZero) {
  float* const y = device_.Room<float>(2);
  Launch<SubnormalKernel>(device_.stream(), {1}, {1}, 0,
                          device_.Put(std::vector<float>{1e-25f, 1e-15f, 1e-40f, 1e20f}), y);
  EXPECT_EQ(device_.Get(y, 2), (std::vector<float>{0, 0}));
}

template <typename T>
SATRAP_KERNEL void VecKernel(const T* x, T* y, int64_t count) {
  constexpr int kN = kVecLanes<T>;
  for (int64_t i = ThreadInGrid() * kN; i < count; i += ThreadsInGrid() * kN) {
    StoreVec(y + i, LoadVec<kN>(x + i));
  }
}

TEST_P(KernelTest, VectorAccessesMoveSixteenBytes) {
  std::vector<float> x(256);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i);
  float* const y = device_.Room<float>(256);
  Launch<VecKernel<float>>(device_.stream(), {2}, {16}, 0, device_.Put(x), y, 256);
  EXPECT_EQ(device_.Get(y, 256), x);
}

IN_EVERY_ORDER(KernelTest);

}  // namespace
}  // namespace satrap

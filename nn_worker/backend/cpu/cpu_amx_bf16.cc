#include "nn_worker/backend/cpu/cpu_amx_bf16.h"

#include <cpuid.h>
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <limits>
#include <vector>

#include "common/base/check.h"
#include "nn_worker/backend/cpu/cpu_amx_pack.h"
#include "nn_worker/backend/cpu/cpu_avx512_bf16.h"
#include "nn_worker/backend/cpu/cpu_matrix.h"
#include "nn_worker/backend/cpu/host_tensor.h"

// g++ 12 warns about values that its own intrinsics leave undefined on purpose.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"

namespace satrap {
namespace {

using amx::Ceil;
using amx::FirstLanes;
using amx::HalvesOf;
using amx::kBlock;
using amx::kTileBytes;
using amx::kTileRowBytes;
using amx::kTileRows;
using amx::Left;
using amx::LeftOf;
using amx::PackLeft;
using amx::PackRows;
using amx::PackTransposed;
using amx::Right;

// The number of rows in a slice of y or dx: small enough that threads share a part of some thousand
// samples evenly.
constexpr int64_t kSliceRows = 8 * kBlock;
constexpr int64_t kLineBytes = 64;

// Tells the CPU that all tiles have their full size. This is done for each slice, because the
// setting belongs to a thread. It is undone after the slice, so that a switch of threads need not
// save the tiles.
class TileSetting {
 public:
  SATRAP_AMX TileSetting() {
    struct {
      uint8_t palette = 1, start_row = 0, reserved[14] = {};
      uint16_t row_bytes[16] = {};
      uint8_t rows[16] = {};
    } setting;
    static_assert(sizeof(setting) == 64);
    for (int tile = 0; tile < 8; ++tile) {
      setting.row_bytes[tile] = kTileRowBytes;
      setting.rows[tile] = kTileRows;
    }
    std::atomic_signal_fence(std::memory_order_seq_cst);
    _tile_loadconfig(&setting);
  }
  SATRAP_AMX ~TileSetting() { _tile_release(); }
  TileSetting(const TileSetting&) = delete;
  TileSetting& operator=(const TileSetting&) = delete;
};

// Where sums go.
struct Target {
  char* data;
  int64_t row_bytes;
  int64_t cols;
  bool is_bf16, add, relu;
  const float* bias;  // or null
};

Target TargetOf(const Tensor& tensor, bool add) {
  CHECK(tensor.dtype == DType::kBF16 || tensor.dtype == DType::kF32);
  return {static_cast<char*>(tensor.data),
          tensor.stride * DTypeBytes(tensor.dtype),
          tensor.cols,
          tensor.dtype == DType::kBF16,
          add,
          /*relu=*/false,
          /*bias=*/nullptr};
}

// sums[32][32] = `left` times 32 columns of the right factor, whose tiles begin at `right`. If
// `two` is false, only 16 columns are computed.
SATRAP_AMX void MultiplyBlock(const Left& left, const char* right, int64_t column_bytes, bool two,
                              float* sums) {
  // The intrinsics that load tiles do not tell the compiler which memory they read.
  std::atomic_signal_fence(std::memory_order_seq_cst);
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  const char* a = left.data;
  const char* b = right;
  const auto step = [&](int64_t row_bytes, int64_t second_bytes) SATRAP_AMX {
    _tile_loadd(6, b, kTileRowBytes);
    _tile_loadd(4, a, row_bytes);
    _tile_loadd(5, a + second_bytes, row_bytes);
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(2, 5, 6);
    if (two) {
      _tile_loadd(7, b + column_bytes, kTileRowBytes);
      _tile_dpbf16ps(1, 4, 7);
      _tile_dpbf16ps(3, 5, 7);
    }
    b += kTileBytes;
  };
  for (int64_t k = 0; k < left.steps; ++k) {
    step(left.row_bytes, left.second_bytes);
    a += left.step_bytes;
  }
  if (left.tail != nullptr) {
    a = left.tail;
    step(kTileRowBytes, kTileBytes);
  }
  constexpr int64_t kRowBytes = kBlock * sizeof(float);
  _tile_stored(0, sums, kRowBytes);
  _tile_stored(1, sums + kTileRows, kRowBytes);
  _tile_stored(2, sums + kTileRows * kBlock, kRowBytes);
  _tile_stored(3, sums + kTileRows * kBlock + kTileRows, kRowBytes);
}

// Finishes and stores `rows` rows of sums[32][32], for columns [at, at + 32) of the target.
template <bool kIsBf16, bool kAdd>
SATRAP_AMX void StoreBlock(const float* sums, const Target& target, int64_t at, int64_t rows) {
  const int64_t cols = std::min(kBlock, target.cols - at);
  const __mmask16 masks[2] = {FirstLanes(cols), FirstLanes(cols - kTileRows)};
  __m512 bias[2] = {_mm512_setzero_ps(), _mm512_setzero_ps()};
  if (target.bias != nullptr) {
    bias[0] = _mm512_maskz_loadu_ps(masks[0], target.bias + at);
    bias[1] = _mm512_maskz_loadu_ps(masks[1], target.bias + at + kTileRows);
  }
  const __m512 least = _mm512_set1_ps(target.relu ? 0.0f : -std::numeric_limits<float>::infinity());
  const int64_t row_bytes = target.row_bytes;
  char* row = target.data + at * (kIsBf16 ? 2 : 4);
  for (int64_t r = 0; r < rows; ++r, row += row_bytes, sums += kBlock) {
#pragma GCC unroll 2
    for (int v = 0; v < 2; ++v) {
      char* const to = row + v * kTileRows * (kIsBf16 ? 2 : 4);
      __m512 sum = _mm512_add_ps(_mm512_loadu_ps(sums + v * kTileRows), bias[v]);
      if constexpr (kAdd && kIsBf16) {
        const __m256i before = _mm256_maskz_loadu_epi16(masks[v], to);
        sum = _mm512_add_ps(
            _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(before), 16)), sum);
      } else if constexpr (kAdd) {
        sum = _mm512_add_ps(_mm512_maskz_loadu_ps(masks[v], to), sum);
      }
      // With the operands in this order, a NaN stays a NaN.
      sum = _mm512_max_ps(least, sum);
      if constexpr (kIsBf16) {
        _mm256_mask_storeu_epi16(to, masks[v], reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(sum)));
      } else {
        _mm512_mask_storeu_ps(to, masks[v], sum);
      }
    }
  }
}

void Store(const float* sums, const Target& target, int64_t at, int64_t rows) {
  if (target.is_bf16) {
    if (target.add) return StoreBlock<true, true>(sums, target, at, rows);
    return StoreBlock<true, false>(sums, target, at, rows);
  }
  if (target.add) return StoreBlock<false, true>(sums, target, at, rows);
  StoreBlock<false, false>(sums, target, at, rows);
}

// The scratch memory of one thread. Only its capacity is kept from call to call, not its contents.
struct Scratch {
  AlignedScratch sums, rows, left, right, column_sums;
};

// Fetches `count` rows of `bytes` bytes into the L2 cache, to be read or, with `kWrite`, written.
template <int kWrite>
inline void Prefetch(const char* row, int64_t row_bytes, int64_t count, int64_t bytes) {
  for (int64_t r = 0; r < count; ++r, row += row_bytes) {
    for (int64_t at = 0; at < bytes; at += kLineBytes) __builtin_prefetch(row + at, kWrite, 2);
  }
}

// Multiplies rows [begin, end) of `a`. Meanwhile it prefetches the next rows, because it reads
// tiles and writes results line by line in an order that the CPU's own prefetcher does not predict.
void MultiplySlice(const Tensor& a, int64_t begin, int64_t end, const Right& right, Target target,
                   Scratch* scratch) {
  const TileSetting setting;
  float* const sums = scratch->sums.Get<float>(kBlock * kBlock);
  const int64_t blocks = Ceil(right.cols, kBlock);
  const int64_t value_bytes = target.is_bf16 ? 2 : 4;
  target.data += begin * target.row_bytes;
  for (int64_t row = begin; row < end; row += kBlock, target.data += kBlock * target.row_bytes) {
    const int64_t rows = std::min(kBlock, end - row);
    const Left left = LeftOf(a, row, rows, &scratch->rows);
    for (int64_t block = 0; block < blocks; ++block) {
      const int64_t next = std::min(row + kBlock + kBlock * block / blocks, a.rows);
      const int64_t later = std::min(row + kBlock + kBlock * (block + 1) / blocks, a.rows);
      Prefetch<0>(reinterpret_cast<const char*>(HalvesOf(a, next)), a.stride * 2, later - next,
                  a.cols * 2);
      Prefetch<1>(target.data + (next - row) * target.row_bytes, target.row_bytes, later - next,
                  target.cols * value_bytes);
      const int64_t at = block * kBlock;
      MultiplyBlock(left, right.data + at / kTileRows * right.column_bytes, right.column_bytes,
                    right.cols - at > kTileRows, sums);
      Store(sums, target, at, rows);
    }
  }
}

// A part of a weight gradient: rows [begin, begin + dw.rows) of x^T times dz, for some samples.
struct WeightPart {
  Tensor x, dz;  // the part's samples
  int64_t begin;
  Tensor dw;
  float* db;  // a multiple of 16 values, or null
};

void MultiplySamples(const WeightPart& part, int64_t first, int64_t count, Scratch* scratch) {
  Right right(count, part.dz.cols);
  right.data = scratch->right.Get<char>(std::max<int64_t>(1, right.num_bytes()));
  const int64_t steps = right.steps;
  const int64_t blocks = Ceil(part.dw.rows, kBlock);
  char* const left = scratch->left.Get<char>(std::max<int64_t>(1, 2 * blocks * steps * kTileBytes));
  float* sample_sums = nullptr;
  if (part.db != nullptr) {
    sample_sums = scratch->column_sums.Get<float>(Ceil(right.cols, kTileRows) * kTileRows);
    std::fill_n(sample_sums, Ceil(right.cols, kTileRows) * kTileRows, 0.0f);
  }
  for (int64_t step = 0; step < steps; ++step) {
    PackRows(part.dz, first, right, step, sample_sums);
    PackLeft(part.x, first, count, part.begin, part.dw.rows, step, steps, left);
  }
  if (part.db != nullptr) {
    for (int64_t c = 0; c < right.cols; ++c) {
      part.db[c] = first == 0 ? sample_sums[c] : part.db[c] + sample_sums[c];
    }
  }
  if (Ceil(part.dw.rows, kTileRows) % 2 != 0) {
    std::memset(left + (2 * blocks - 1) * steps * kTileBytes, 0, steps * kTileBytes);
  }
  float* const sums = scratch->sums.Get<float>(kBlock * kBlock);
  const Target whole = TargetOf(part.dw, /*add=*/first > 0);
  for (int64_t c = 0; c < right.cols; c += kBlock) {
    const char* const columns = right.data + c / kTileRows * right.column_bytes;
    for (int64_t block = 0; block < blocks; ++block) {
      const Left rows = {left + 2 * block * steps * kTileBytes,
                         kTileRowBytes,
                         kTileBytes,
                         steps * kTileBytes,
                         steps,
                         nullptr};
      MultiplyBlock(rows, columns, right.column_bytes, right.cols - c > kTileRows, sums);
      Target target = whole;
      target.data += block * kBlock * target.row_bytes;
      Store(sums, target, c, std::min(kBlock, part.dw.rows - block * kBlock));
    }
  }
}

void MultiplyPart(const WeightPart& part, Scratch* scratch) {
  const TileSetting setting;
  for (int64_t first = 0; first < part.x.rows; first += CpuAmxBf16::kSumSamples) {
    MultiplySamples(part, first, std::min(CpuAmxBf16::kSumSamples, part.x.rows - first), scratch);
  }
}

// Adds the values at [i] of `parts` arrays to to[i], in order. The arrays are `stride` values
// apart.
SATRAP_AMX void AddParts(const float* arrays, int64_t parts, int64_t stride, int64_t count,
                         float* to) {
  for (int64_t i = 0; i < count; i += kTileRows) {
    const __mmask16 mask = FirstLanes(count - i);
    __m512 sum = _mm512_maskz_loadu_ps(mask, to + i);
    for (int64_t p = 0; p < parts; ++p) {
      sum = _mm512_add_ps(sum, _mm512_maskz_loadu_ps(mask, arrays + p * stride + i));
    }
    _mm512_mask_storeu_ps(to + i, mask, sum);
  }
}

bool KernelAllowsTiles() {
  constexpr int kRequestPermission = 0x1023;  // ARCH_REQ_XCOMP_PERM
  constexpr int kTileData = 18;               // XFEATURE_XTILEDATA
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

}  // namespace

struct CpuAmxBf16::Rep {
  explicit Rep(ForkJoinPool* pool) : pool(pool), scratch(pool->num_threads()) {}

  char* Packed(const Right& right) {
    return packed.Get<char>(std::max<int64_t>(1, right.num_bytes()));
  }

  ForkJoinPool* const pool;
  AlignedScratch packed, parts;
  std::vector<Scratch> scratch;  // by thread
};

bool CpuAmxBf16::CpuHasIt() {
  unsigned int eax, ebx, ecx, edx;
  constexpr unsigned int kAmxBf16 = 1u << 22, kAmxTile = 1u << 24;
  return __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) != 0 && (edx & kAmxBf16) != 0 &&
         (edx & kAmxTile) != 0 && CpuAvx512Bf16::IsSupported();
}

bool CpuAmxBf16::IsSupported() {
  static const bool is_supported = CpuHasIt() && KernelAllowsTiles();
  return is_supported;
}

CpuAmxBf16::CpuAmxBf16(ForkJoinPool* pool) : rep_(std::make_unique<Rep>(pool)) {
  CHECK(IsSupported());
}
CpuAmxBf16::~CpuAmxBf16() = default;

void CpuAmxBf16::Product(const Tensor& x, const Tensor& w, const Tensor& bias, bool relu,
                         const Tensor& y) {
  CHECK(x.rows == y.rows && x.cols == w.rows && w.cols == y.cols);
  CHECK(bias.empty() || bias.cols == y.cols);
  Right right(x.cols, y.cols);
  right.data = rep_->Packed(right);
  rep_->pool->Run(right.steps,
                  [&](int64_t step, int) { PackRows(w, 0, right, step, /*sums=*/nullptr); });
  Target target = TargetOf(y, /*add=*/false);
  target.relu = relu;
  target.bias = bias.empty() ? nullptr : FloatsOf(bias);
  rep_->pool->Run(Ceil(x.rows, kSliceRows), [&](int64_t slice, int thread) {
    MultiplySlice(x, slice * kSliceRows, std::min(x.rows, (slice + 1) * kSliceRows), right, target,
                  &rep_->scratch[thread]);
  });
}

void CpuAmxBf16::InputGradient(const Tensor& dz, const Tensor& w, const GradientTarget& dx,
                               absl::FunctionRef<void(int64_t, int64_t)> before) {
  Right right(dz.cols, w.rows);
  if (dx.wanted()) {
    CHECK(dz.rows == dx.tensor.rows && dx.tensor.cols == w.rows && dz.cols == w.cols);
    right.data = rep_->Packed(right);
    rep_->pool->Run(Ceil(right.cols, kTileRows),
                    [&](int64_t group, int) { PackTransposed(w, right, group * kTileRows); });
  }
  rep_->pool->Run(Ceil(dz.rows, kSliceRows), [&](int64_t slice, int thread) {
    const int64_t begin = slice * kSliceRows;
    const int64_t end = std::min(dz.rows, begin + kSliceRows);
    before(begin, end);
    if (!dx.wanted()) return;
    MultiplySlice(dz, begin, end, right, TargetOf(dx.tensor, dx.add), &rep_->scratch[thread]);
  });
}

void CpuAmxBf16::WeightGradient(const Tensor& x, const Tensor& dz, const Tensor& dw,
                                const Tensor& db) {
  CHECK(x.rows == dz.rows && dw.rows == x.cols && dw.cols == dz.cols && !dw.has_gaps());
  const int64_t n = x.rows;
  if (n == 0) {
    std::fill_n(FloatsOf(dw), dw.size(), 0.0f);
    if (!db.empty()) std::fill_n(FloatsOf(db), db.cols, 0.0f);
    return;
  }
  const int64_t parts = std::clamp<int64_t>(n / kPartSamples, 1, kMostParts);
  const int64_t samples = Ceil(Ceil(n, parts), kSumSamples) * kSumSamples;
  const int64_t used = Ceil(n, samples);
  // The first part is summed in dw and db themselves. Each of the others has an array, with dw
  // first and db after it.
  const int64_t stride = Ceil(dw.size() + dw.cols, kTileRows) * kTileRows;
  float* const others = rep_->parts.Get<float>(std::max<int64_t>(1, (used - 1) * stride));
  // Each slice packs dz again, so there are no more slices than are needed to keep all threads
  // busy.
  const int64_t threads = rep_->pool->num_threads();
  const int64_t wanted = Ceil(dw.rows, Ceil(threads, used));
  const int64_t slice_rows = std::max(kBlock, Ceil(wanted, kBlock) * kBlock);
  const int64_t slices = std::max<int64_t>(1, Ceil(dw.rows, slice_rows));
  rep_->pool->Run(used * slices, [&](int64_t item, int thread) {
    const int64_t part = item / slices, begin = item % slices * slice_rows;
    const int64_t first = part * samples, count = std::min(samples, n - first);
    float* const other = others + (part - 1) * stride;
    const Tensor sums = part == 0 ? dw : TensorF32(other, dw.rows, dw.cols);
    float* const column_sums = part == 0 ? FloatsOf(db) : other + dw.size();
    MultiplyPart({x.Rows(first, count), dz.Rows(first, count), begin,
                  sums.Rows(begin, std::min(slice_rows, dw.rows - begin)),
                  db.empty() || begin > 0 ? nullptr : column_sums},
                 &rep_->scratch[thread]);
  });
  if (used == 1) return;
  constexpr int64_t kAdded = 16384;
  rep_->pool->Run(Ceil(dw.size(), kAdded), [&](int64_t piece, int) {
    const int64_t at = piece * kAdded;
    AddParts(others + at, used - 1, stride, std::min(kAdded, dw.size() - at), FloatsOf(dw) + at);
  });
  if (!db.empty()) AddParts(others + dw.size(), used - 1, stride, db.cols, FloatsOf(db));
}

}  // namespace satrap

#include "nn_worker/backend/cpu/cpu_amx_pack.h"

#include <immintrin.h>

#include <algorithm>

#include "nn_worker/backend/cpu/host_tensor.h"

// g++ 12 warns about values that its own intrinsics leave undefined on purpose.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"

namespace satrap::amx {
namespace {

SATRAP_AMX inline __mmask32 FirstHalves(int64_t count) {
  return static_cast<__mmask32>((uint64_t{1} << std::clamp<int64_t>(count, 0, 32)) - 1);
}

// words[r] = the values at [2 r] and [2 r + 1] of 16 columns. The first of `count` rows begins at
// `rows`; missing rows count as 0.
SATRAP_AMX inline void PairRows(const uint16_t* rows, int64_t stride, int64_t count, __mmask16 mask,
                                __m512i words[kTileRows]) {
#pragma GCC unroll 16
  for (int r = 0; r < kTileRows; ++r) {
    words[r] = _mm512_setzero_si512();
    if (2 * r < count) {
      words[r] = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(mask, rows + 2 * r * stride));
    }
    if (2 * r + 1 < count) {
      const __m256i upper = _mm256_maskz_loadu_epi16(mask, rows + (2 * r + 1) * stride);
      words[r] = _mm512_or_si512(words[r], _mm512_slli_epi32(_mm512_cvtepu16_epi32(upper), 16));
    }
  }
}

// Transposes 16 x 16 words.
SATRAP_AMX inline void Transpose(__m512i words[kTileRows]) {
  __m512i other[kTileRows];
#pragma GCC unroll 8
  for (int r = 0; r < kTileRows; r += 2) {
    other[r] = _mm512_unpacklo_epi32(words[r], words[r + 1]);
    other[r + 1] = _mm512_unpackhi_epi32(words[r], words[r + 1]);
  }
#pragma GCC unroll 4
  for (int r = 0; r < kTileRows; r += 4) {
    words[r] = _mm512_unpacklo_epi64(other[r], other[r + 2]);
    words[r + 1] = _mm512_unpackhi_epi64(other[r], other[r + 2]);
    words[r + 2] = _mm512_unpacklo_epi64(other[r + 1], other[r + 3]);
    words[r + 3] = _mm512_unpackhi_epi64(other[r + 1], other[r + 3]);
  }
  // Now word 4 l + w of words[4 g + c] belongs to row 4 l + c and column 4 g + w.
#pragma GCC unroll 4
  for (int c = 0; c < 4; ++c) {
    other[c] = _mm512_shuffle_i32x4(words[c], words[4 + c], 0x88);
    other[4 + c] = _mm512_shuffle_i32x4(words[c], words[4 + c], 0xdd);
    other[8 + c] = _mm512_shuffle_i32x4(words[8 + c], words[12 + c], 0x88);
    other[12 + c] = _mm512_shuffle_i32x4(words[8 + c], words[12 + c], 0xdd);
  }
#pragma GCC unroll 4
  for (int c = 0; c < 4; ++c) {
    words[c] = _mm512_shuffle_i32x4(other[c], other[8 + c], 0x88);
    words[8 + c] = _mm512_shuffle_i32x4(other[c], other[8 + c], 0xdd);
    words[4 + c] = _mm512_shuffle_i32x4(other[4 + c], other[12 + c], 0x88);
    words[12 + c] = _mm512_shuffle_i32x4(other[4 + c], other[12 + c], 0xdd);
  }
}

SATRAP_AMX inline void StoreTile(const __m512i words[kTileRows], char* tile) {
#pragma GCC unroll 16
  for (int r = 0; r < kTileRows; ++r) _mm512_store_si512(tile + r * kTileRowBytes, words[r]);
}

// Fetches the kStep rows that follow the kStep rows at `rows`: 16 columns, beginning with column
// `at`.
inline void PrefetchRows(const uint16_t* rows, int64_t stride, int64_t at) {
  for (int64_t r = kStep; r < 2 * kStep; ++r) __builtin_prefetch(rows + r * stride + at);
}

// Copies `rows` rows of up to 32 values each to 32 rows of 64 bytes that are 0 otherwise.
SATRAP_AMX void CopyTail(const uint16_t* from, int64_t stride, int64_t rows, int64_t cols,
                         int64_t row_bytes, char* to) {
  const __mmask32 mask = FirstHalves(cols);
  for (int64_t r = 0; r < kBlock; ++r, to += row_bytes) {
    const __m512i values =
        r < rows ? _mm512_maskz_loadu_epi16(mask, from + r * stride) : _mm512_setzero_si512();
    _mm512_storeu_si512(to, values);
  }
}

}  // namespace

const uint16_t* HalvesOf(const Tensor& tensor, int64_t row) {
  return reinterpret_cast<const uint16_t*>(BytesOf(tensor, row));
}

SATRAP_AMX void PackRows(const Tensor& matrix, int64_t first_row, const Right& right, int64_t step,
                         float* sums) {
  const uint16_t* const rows = HalvesOf(matrix, first_row + step * kStep);
  const int64_t count = std::min(kStep, right.depth - step * kStep);
  const __m512i ones = _mm512_set1_epi32(0x3f803f80);
  char* tile = right.data + step * kTileBytes;
  for (int64_t c = 0; c < right.cols; c += kTileRows, tile += right.column_bytes) {
    PrefetchRows(rows, matrix.stride, c);
    __m512i words[kTileRows];
    PairRows(rows + c, matrix.stride, count, FirstLanes(right.cols - c), words);
    StoreTile(words, tile);
    if (sums == nullptr) continue;
    __m512 sum = _mm512_loadu_ps(sums + c);
#pragma GCC unroll 16
    for (int r = 0; r < kTileRows; ++r) {
      sum = _mm512_dpbf16_ps(sum, reinterpret_cast<__m512bh>(words[r]),
                             reinterpret_cast<__m512bh>(ones));
    }
    _mm512_storeu_ps(sums + c, sum);
  }
}

SATRAP_AMX void PackTransposed(const Tensor& matrix, const Right& right, int64_t at) {
  char* tile = right.data + at / kTileRows * right.column_bytes;
  for (int64_t k = 0; k < right.depth; k += kStep, tile += kTileBytes) {
    const __mmask32 mask = FirstHalves(right.depth - k);
    __m512i words[kTileRows];
#pragma GCC unroll 16
    for (int r = 0; r < kTileRows; ++r) {
      words[r] = at + r < right.cols ? _mm512_maskz_loadu_epi16(mask, HalvesOf(matrix, at + r) + k)
                                     : _mm512_setzero_si512();
    }
    Transpose(words);
    StoreTile(words, tile);
  }
}

SATRAP_AMX void PackLeft(const Tensor& matrix, int64_t first_row, int64_t count, int64_t begin,
                         int64_t cols, int64_t step, int64_t steps, char* packed) {
  const uint16_t* const rows = HalvesOf(matrix, first_row + step * kStep) + begin;
  char* tile = packed + step * kTileBytes;
  for (int64_t c = 0; c < cols; c += kTileRows, tile += steps * kTileBytes) {
    PrefetchRows(rows, matrix.stride, c);
    __m512i words[kTileRows];
    PairRows(rows + c, matrix.stride, count - step * kStep, FirstLanes(cols - c), words);
    Transpose(words);
    StoreTile(words, tile);
  }
}

Left LeftOf(const Tensor& a, int64_t row, int64_t rows, AlignedScratch* scratch) {
  const int64_t whole = a.cols / kStep;
  const int64_t rest = a.cols % kStep;
  const uint16_t* const from = HalvesOf(a, row);
  if (rows == kBlock) {
    char* const tail = scratch->Get<char>(2 * kTileBytes);
    if (rest > 0) {
      CopyTail(from + whole * kStep, a.stride, rows, rest, kTileRowBytes, tail);
    }
    const int64_t row_bytes = a.stride * 2;
    return {reinterpret_cast<const char*>(from),
            row_bytes,
            kTileRowBytes,
            kTileRows * row_bytes,
            whole,
            rest > 0 ? tail : nullptr};
  }
  const int64_t steps = Ceil(a.cols, kStep);
  const int64_t row_bytes = std::max<int64_t>(1, steps) * kTileRowBytes;
  char* const copy = scratch->Get<char>(kBlock * row_bytes);
  for (int64_t k = 0; k < steps; ++k) {
    CopyTail(from + k * kStep, a.stride, rows, a.cols - k * kStep, row_bytes,
             copy + k * kTileRowBytes);
  }
  return {copy, row_bytes, kTileRowBytes, kTileRows * row_bytes, steps, nullptr};
}

}  // namespace satrap::amx

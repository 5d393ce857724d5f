// Arranges the factors of products of BF16 matrices as the tiles of AMX read them (cpu_amx_bf16.h).
//
// Thread-safe: the functions write only the memory that they are given.

#ifndef SATRAP_NN_WORKER_BACKEND_CPU_CPU_AMX_PACK_H_
#define SATRAP_NN_WORKER_BACKEND_CPU_CPU_AMX_PACK_H_

#include <immintrin.h>

#include <algorithm>
#include <cstdint>

#include "nn_worker/backend/cpu/cpu_matrix.h"
#include "nn_worker/backend/tensor.h"

// Marks functions that use AMX or AVX512_BF16. They run only where CpuAmxBf16::IsSupported().
#define SATRAP_AMX                                                                          \
  __attribute__((target("amx-tile,amx-bf16,avx512f,avx512bw,avx512vl,avx512dq,avx512bf16"), \
                 optimize("O3")))

namespace satrap::amx {

// A tile has 16 rows of 64 bytes. In a left factor these are 16 rows of 32 values; in a right
// factor, 16 rows of 16 words, where a word is a pair of values that follow one another down a
// column; in sums, 16 x 16 values.
constexpr int64_t kTileRows = 16;
constexpr int64_t kTileRowBytes = 64;
constexpr int64_t kTileBytes = kTileRows * kTileRowBytes;
// The number of products that one instruction adds to a sum.
constexpr int64_t kStep = 32;
// A block of sums, two tiles by two, is computed at a time: it needs only two tiles of each factor
// for four instructions. kBlock is the block's number of rows and of columns.
constexpr int64_t kBlock = 2 * kTileRows;

inline int64_t Ceil(int64_t count, int64_t by) { return (count + by - 1) / by; }

// The values of a row of a BF16 tensor.
const uint16_t* HalvesOf(const Tensor& tensor, int64_t row);

// A mask of the first `count` of 16 lanes; empty if `count` is negative.
SATRAP_AMX inline __mmask16 FirstLanes(int64_t count) {
  return static_cast<__mmask16>((1u << std::clamp<int64_t>(count, 0, 16)) - 1);
}

// Rows of a left factor, two tiles high.
struct Left {
  const char* data;
  int64_t row_bytes, step_bytes;
  int64_t second_bytes;  // from the first tile to the second
  int64_t steps;
  // The tiles of one more step, whose rows of kTileRowBytes follow one another; null if there is
  // none.
  const char* tail;
};

// A right factor. The tiles of its first 16 columns follow one another; those of the next 16
// columns come after them.
struct Right {
  Right(int64_t depth, int64_t cols)
      : depth(depth), cols(cols), steps(Ceil(depth, kStep)), column_bytes(steps * kTileBytes) {}
  int64_t num_bytes() const { return Ceil(cols, kTileRows) * column_bytes; }

  int64_t depth, cols;
  int64_t steps;
  int64_t column_bytes;  // of the tiles of 16 columns
  char* data = nullptr;
};

// Packs step `step` of the right factor from rows of `matrix`, for sums that run down its columns.
// Adds the sums of the columns to `sums`, a multiple of 16 values, unless that is null.
void PackRows(const Tensor& matrix, int64_t first_row, const Right& right, int64_t step,
              float* sums);

// Packs 16 columns of the right factor, beginning with column `at`. The factor is the transposed
// `matrix`.
void PackTransposed(const Tensor& matrix, const Right& right, int64_t at);

// Packs step `step` of a left factor, which is the transpose of columns [begin, begin + cols) of
// `count` rows of `matrix`. The `steps` tiles of 16 columns follow one another; those of the next
// 16 columns come after them.
void PackLeft(const Tensor& matrix, int64_t first_row, int64_t count, int64_t begin, int64_t cols,
              int64_t step, int64_t steps, char* packed);

// 32 rows of `a` from `row` on, of which `rows` exist. If a tile would read beyond the rows or
// columns of `a`, it reads a copy that is padded with zeros, because the memory there may hold a
// NaN.
Left LeftOf(const Tensor& a, int64_t row, int64_t rows, AlignedScratch* scratch);

}  // namespace satrap::amx

#endif  // SATRAP_NN_WORKER_BACKEND_CPU_CPU_AMX_PACK_H_

#include "nn_worker/device/kernels/column_sum.h"

#include "nn_worker/device/kernel.h"
#include "nn_worker/device/kernels/value_access.h"

namespace satrap {
namespace {

// A warp reads 32 neighbouring columns of a row at once.
constexpr int kCols = 32;
constexpr int kRowsAtOnce = 8;
constexpr int64_t kAddThreads = 256;
constexpr int64_t kMaxGridY = 65535;

// Writes partials[p, c] = the sum of column c over the rows of piece p. A grid has at most 65535
// rows of blocks, so a block may compute several pieces.
SATRAP_KERNEL void ColumnSumKernel(ConstValues x, float* partials) {
  // The rows have one unused column, so that the lanes of a warp use different banks.
  SHARED_ARRAY(float, sums, [kRowsAtOnce][kCols + 1]);
  const int tx = static_cast<int>(ThreadIndex().x), ty = static_cast<int>(ThreadIndex().y);
  const int64_t c = static_cast<int64_t>(BlockIndex().x) * kCols + tx;
  for (int64_t piece = BlockIndex().y; piece * kColumnSumRows < x.rows; piece += GridSize().y) {
    const int64_t begin = piece * kColumnSumRows;
    const int64_t end = begin + kColumnSumRows < x.rows ? begin + kColumnSumRows : x.rows;
    float sum = 0;
    if (c < x.cols) {
      for (int64_t r = begin + ty; r < end; r += kRowsAtOnce) {
        sum += LoadValue(x, r, c);
      }
    }
    sums[ty][tx] = sum;
    SyncThreads();
    for (int height = kRowsAtOnce / 2; height > 0; height /= 2) {
      if (ty < height) sums[ty][tx] += sums[ty + height][tx];
      SyncThreads();
    }
    if (ty == 0 && c < x.cols) partials[piece * x.cols + c] = sums[0][tx];
    SyncThreads();
  }
}

SATRAP_KERNEL void AddPartialsKernel(const float* partials, int64_t parts, int64_t cols,
                                     float* sums) {
  for (int64_t c = ThreadInGrid(); c < cols; c += ThreadsInGrid()) {
    float sum = 0;
    for (int64_t part = 0; part < parts; ++part) sum += partials[part * cols + c];
    sums[c] = sum;
  }
}

}  // namespace

void ColumnSum(DeviceStream* stream, ConstValues x, float* partials, float* sums) {
  if (x.cols == 0) return;
  const int64_t parts = (x.rows + kColumnSumRows - 1) / kColumnSumRows;
  const auto wide = static_cast<uint32_t>((x.cols + kCols - 1) / kCols);
  if (parts > 0) {
    const auto high = static_cast<uint32_t>(parts < kMaxGridY ? parts : kMaxGridY);
    Launch<ColumnSumKernel>(stream, {wide, high}, {kCols, kRowsAtOnce}, 0, x, partials);
  }
  const auto blocks = static_cast<uint32_t>((x.cols + kAddThreads - 1) / kAddThreads);
  Launch<AddPartialsKernel>(stream, {blocks}, {kAddThreads}, 0, partials, parts, x.cols, sums);
}

}  // namespace satrap

#include "nn_worker/device/kernels/add_pieces.h"

#include "nn_worker/device/kernel.h"
#include "nn_worker/device/kernels/elementwise.h"

namespace satrap {
namespace {

// The number of pieces that a thread loads before it adds them, so that their loads overlap.
constexpr int kPiecesAtOnce = 8;

SATRAP_KERNEL void AddPiecesKernel(const float* pieces, int64_t num_pieces, Matrix<float> sum,
                                   bool aligned) {
  const int64_t count = sum.rows * sum.cols;
  ForEachGroup(sum.rows, GroupsOf(sum.cols), [&](int64_t r, int64_t g) {
    const int64_t c = g * kGroup, left = sum.cols - c;
    const float* const first = pieces + r * sum.cols + c;
    Group total = LoadGroup(first, left, aligned);
    for (int64_t begin = 1; begin < num_pieces; begin += kPiecesAtOnce) {
      Group loaded[kPiecesAtOnce];
      for (int p = 0; p < kPiecesAtOnce; ++p) {
        if (begin + p < num_pieces) {
          loaded[p] = LoadGroup(first + (begin + p) * count, left, aligned);
        }
      }
      for (int p = 0; p < kPiecesAtOnce; ++p) {
        if (begin + p >= num_pieces) break;
        for (int i = 0; i < kGroup; ++i) total.lane[i] += loaded[p].lane[i];
      }
    }
    StoreGroup(sum.data + r * sum.stride + c, total, left, aligned);
  });
}

}  // namespace

void AddPieces(DeviceStream* stream, const float* pieces, int64_t num_pieces, Matrix<float> sum) {
  if (sum.rows == 0 || sum.cols == 0) return;
  const Matrix<float> flat = Flattened(sum);
  // Every row of every piece must begin at a multiple of 16 bytes.
  const bool aligned = RowsAligned(flat, 16) && flat.cols % kGroup == 0 &&
                       reinterpret_cast<uintptr_t>(pieces) % 16 == 0;
  const ElementwiseShape shape = ShapeOf(flat.rows, GroupsOf(flat.cols));
  Launch<AddPiecesKernel>(stream, shape.grid, shape.block, 0, pieces, num_pieces, flat, aligned);
}

}  // namespace satrap

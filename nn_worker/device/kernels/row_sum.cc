#include "nn_worker/device/kernels/row_sum.h"

#include "nn_worker/device/kernel.h"
#include "nn_worker/device/kernels/elementwise.h"
#include "nn_worker/device/kernels/warp_sum.h"

namespace satrap {
namespace {

// Lanes that share a row: few, since most rows have a few groups of values.
constexpr int kLanesARow = 8;
constexpr int kRowsAWarp = kWarpSize / kLanesARow;
constexpr int kWarps = 8;
constexpr int64_t kMaxBlocks = 4096;

// body(row, lane of the row, whether the row exists), for as many rows as there are. All lanes of a
// warp take part in each call, so that the body may add them up.
template <typename Body>
SATRAP_DEVICE void ForEachRow(int64_t rows, Body body) {
  const int lane = static_cast<int>(ThreadIndex().x) % kWarpSize;
  const int64_t warp = ThreadInGrid() / kWarpSize;
  const int64_t rows_at_once = ThreadsInGrid() / kWarpSize * kRowsAWarp;
  for (int64_t first = warp * kRowsAWarp; first < rows; first += rows_at_once) {
    const int64_t row = first + lane / kLanesARow;
    body(row, lane % kLanesARow, row < rows);
  }
}

SATRAP_KERNEL void RowSumKernel(const RowSumInput<const float>* inputs, int num_inputs,
                                Matrix<float> y) {
  ForEachRow(y.rows, [&](int64_t row, int lane, bool exists) {
    float sum = 0;
    for (int f = 0; exists && f < num_inputs; ++f) {
      const RowSumInput<const float> x = inputs[f];
      for (int64_t c = lane * kGroup; c < x.cols; c += kLanesARow * kGroup) {
        const Group values = LoadGroup(x.data + row * x.stride + c, x.cols - c, x.aligned);
        for (int i = 0; i < kGroup; ++i) sum += values.lane[i];
      }
    }
    sum = WarpSum(sum, kLanesARow);
    if (exists && lane == 0) y.data[row * y.stride] = sum;
  });
}

SATRAP_KERNEL void RowSumGradKernel(Matrix<const float> dy, const RowSumInput<float>* inputs) {
  const RowSumInput<float> dx = inputs[BlockIndex().z];
  ForEachGroup(dy.rows, GroupsOf(dx.cols), [&](int64_t r, int64_t g) {
    const int64_t c = g * kGroup;
    const float value = dy.data[r * dy.stride];
    PutGroup(dx.data + r * dx.stride + c, {{value, value, value, value}}, dx.cols - c, dx.aligned,
             dx.add);
  });
}

SATRAP_KERNEL void FmKernel(const RowSumInput<const float>* inputs, int num_inputs, Matrix<float> s,
                            Matrix<float> y, bool aligned) {
  ForEachRow(y.rows, [&](int64_t row, int lane, bool exists) {
    float total = 0;
    for (int64_t c = lane * kGroup; exists && c < s.cols; c += kLanesARow * kGroup) {
      const int64_t left = s.cols - c;
      Group sums = {}, squares = {};
      for (int f = 0; f < num_inputs; ++f) {
        const RowSumInput<const float> x = inputs[f];
        const Group values = LoadGroup(x.data + row * x.stride + c, left, x.aligned);
        for (int i = 0; i < kGroup; ++i) {
          sums.lane[i] += values.lane[i];
          squares.lane[i] += values.lane[i] * values.lane[i];
        }
      }
      StoreGroup(s.data + row * s.stride + c, sums, left, aligned);
      for (int i = 0; i < kGroup; ++i) {
        total += sums.lane[i] * sums.lane[i] - squares.lane[i];
      }
    }
    total = WarpSum(total, kLanesARow);
    if (exists && lane == 0) y.data[row * y.stride] = 0.5f * total;
  });
}

SATRAP_KERNEL void FmGradKernel(const FmGradInput* inputs, Matrix<const float> s,
                                Matrix<const float> dy, bool aligned) {
  const FmGradInput input = inputs[BlockIndex().z];
  ForEachGroup(dy.rows, GroupsOf(s.cols), [&](int64_t r, int64_t g) {
    const int64_t c = g * kGroup, left = s.cols - c;
    const Group sums = LoadGroup(s.data + r * s.stride + c, left, aligned);
    Group values = LoadGroup(input.x.data + r * input.x.stride + c, left, input.x.aligned);
    const float gradient = dy.data[r * dy.stride];
    for (int i = 0; i < kGroup; ++i) values.lane[i] = gradient * (sums.lane[i] - values.lane[i]);
    PutGroup(input.dx.data + r * input.dx.stride + c, values, left, input.dx.aligned, input.dx.add);
  });
}

Dim3 RowGrid(int64_t rows) {
  constexpr int64_t kRowsABlock = kWarps * kRowsAWarp;
  const int64_t blocks = (rows + kRowsABlock - 1) / kRowsABlock;
  return {static_cast<uint32_t>(blocks < kMaxBlocks ? blocks : kMaxBlocks)};
}

// A block's z is the input. A card has at most 65535 of them.
constexpr int kMaxInputs = 65535;

// launch(first input, grid, block) for all inputs, in as few launches as a grid allows.
template <typename LaunchPart>
void ForInputs(int64_t rows, int64_t cols, int num_inputs, LaunchPart launch) {
  if (rows == 0 || cols == 0) return;
  ElementwiseShape shape = ShapeOf(rows, GroupsOf(cols));
  for (int first = 0; first < num_inputs; first += kMaxInputs) {
    const int left = num_inputs - first;
    shape.grid.z = static_cast<uint32_t>(left < kMaxInputs ? left : kMaxInputs);
    launch(first, shape.grid, shape.block);
  }
}

}  // namespace

void RowSum(Stream* stream, const RowSumInput<const float>* inputs, int num_inputs,
            Matrix<float> y) {
  if (y.rows == 0) return;
  Launch<RowSumKernel>(stream, RowGrid(y.rows), {kWarps * kWarpSize}, 0, inputs, num_inputs, y);
}

void RowSumGrad(Stream* stream, Matrix<const float> dy, const RowSumInput<float>* inputs,
                int num_inputs, int64_t max_cols) {
  ForInputs(dy.rows, max_cols, num_inputs, [&](int first, Dim3 grid, Dim3 block) {
    Launch<RowSumGradKernel>(stream, grid, block, 0, dy, inputs + first);
  });
}

void Fm(Stream* stream, const RowSumInput<const float>* inputs, int num_inputs, Matrix<float> s,
        Matrix<float> y) {
  if (y.rows == 0) return;
  Launch<FmKernel>(stream, RowGrid(y.rows), {kWarps * kWarpSize}, 0, inputs, num_inputs, s, y,
                   GroupsAligned(s));
}

void FmGrad(Stream* stream, const FmGradInput* inputs, int num_inputs, Matrix<const float> s,
            Matrix<const float> dy) {
  ForInputs(dy.rows, s.cols, num_inputs, [&](int first, Dim3 grid, Dim3 block) {
    Launch<FmGradKernel>(stream, grid, block, 0, inputs + first, s, dy, GroupsAligned(s));
  });
}

}  // namespace satrap

#include "nn_worker/device/kernels/row_sum.h"

#include "nn_worker/device/kernel.h"
#include "nn_worker/device/kernels/elementwise.h"
#include "nn_worker/device/kernels/value_access.h"
#include "nn_worker/device/kernels/warp_sum.h"

namespace satrap {
namespace {

// The number of lanes that share a row. It is small, because most rows have only a few groups of
// values.
constexpr int kLanesARow = 8;

SATRAP_KERNEL void RowSumKernel(const ConstValues* inputs, int num_inputs, Values y) {
  ForEachRow(y.rows, kLanesARow, [&](int64_t row, int lane, bool exists) {
    float sum = 0;
    for (int f = 0; exists && f < num_inputs; ++f) {
      const ConstValues x = inputs[f];
      for (int64_t c = lane * kGroup; c < x.cols; c += kLanesARow * kGroup) {
        const Group values = LoadGroup(x, row, c);
        for (int i = 0; i < kGroup; ++i) sum += values.lane[i];
      }
    }
    sum = WarpSum(sum, kLanesARow);
    if (exists && lane == 0) StoreValue(y, row, 0, sum);
  });
}

SATRAP_KERNEL void RowSumGradKernel(ConstValues dy, const RowSumTarget* targets) {
  const RowSumTarget target = targets[BlockIndex().z];
  ForEachGroup(dy.rows, GroupsOf(target.dx.cols), [&](int64_t r, int64_t g) {
    const float value = LoadValue(dy, r, 0);
    PutGroup(target.dx, r, g * kGroup, {{value, value, value, value}}, target.add != 0);
  });
}

// For one group of columns: the sums of the inputs, which are also stored, and the sums of their
// squares.
struct SumsOfInputs {
  Group values, squares;
};
SATRAP_DEVICE SumsOfInputs SumInputs(const ConstValues* inputs, int num_inputs, int64_t row,
                                     int64_t c, const Values& s) {
  SumsOfInputs sums = {};
  for (int f = 0; f < num_inputs; ++f) {
    const Group values = LoadGroup(inputs[f], row, c);
    for (int i = 0; i < kGroup; ++i) {
      sums.values.lane[i] += values.lane[i];
      sums.squares.lane[i] += values.lane[i] * values.lane[i];
    }
  }
  StoreGroup(s, row, c, sums.values);
  return sums;
}

SATRAP_KERNEL void FmKernel(const ConstValues* inputs, int num_inputs, Values s, Values y) {
  ForEachRow(y.rows, kLanesARow, [&](int64_t row, int lane, bool exists) {
    float total = 0;
    for (int64_t c = lane * kGroup; exists && c < s.cols; c += kLanesARow * kGroup) {
      const SumsOfInputs sums = SumInputs(inputs, num_inputs, row, c, s);
      for (int i = 0; i < kGroup; ++i) {
        total += sums.values.lane[i] * sums.values.lane[i] - sums.squares.lane[i];
      }
    }
    total = WarpSum(total, kLanesARow);
    if (exists && lane == 0) StoreValue(y, row, 0, 0.5f * total);
  });
}

SATRAP_KERNEL void BiInteractionKernel(const ConstValues* inputs, int num_inputs, Values s,
                                       Values y) {
  ForEachGroup(y.rows, GroupsOf(y.cols), [&](int64_t r, int64_t g) {
    const SumsOfInputs sums = SumInputs(inputs, num_inputs, r, g * kGroup, s);
    Group result;
    for (int i = 0; i < kGroup; ++i) {
      result.lane[i] = 0.5f * (sums.values.lane[i] * sums.values.lane[i] - sums.squares.lane[i]);
    }
    StoreGroup(y, r, g * kGroup, result);
  });
}

SATRAP_KERNEL void FmGradKernel(const ConstValues* inputs, const FmGradTarget* targets,
                                ConstValues s, ConstValues dy) {
  const FmGradTarget target = targets[BlockIndex().z];
  ForEachGroup(s.rows, GroupsOf(s.cols), [&](int64_t r, int64_t g) {
    const int64_t c = g * kGroup;
    const Group sums = LoadGroup(s, r, c);
    Group slopes;
    if (dy.cols == 1) {
      const float slope = LoadValue(dy, r, 0);
      slopes = {{slope, slope, slope, slope}};
    } else {
      slopes = LoadGroup(dy, r, c);
    }
    Group gradient = {};
    for (int32_t f = target.first; f < target.first + target.count; ++f) {
      const Group values = LoadGroup(inputs[f], r, c);
      for (int i = 0; i < kGroup; ++i) {
        gradient.lane[i] += slopes.lane[i] * (sums.lane[i] - values.lane[i]);
      }
    }
    PutGroup(target.dx, r, c, gradient, target.add != 0);
  });
}

// The z index of a block is the number of its target. A card has at most 65535 blocks in z.
constexpr int kMaxTargets = 65535;

// Calls launch(first target, grid, block) until all targets are covered, as few times as the limits
// of a grid allow.
template <typename LaunchPart>
void ForTargets(int64_t rows, int64_t cols, int num_targets, LaunchPart launch) {
  if (rows == 0 || cols == 0) return;
  ElementwiseShape shape = ShapeOf(rows, GroupsOf(cols));
  for (int first = 0; first < num_targets; first += kMaxTargets) {
    const int left = num_targets - first;
    shape.grid.z = static_cast<uint32_t>(left < kMaxTargets ? left : kMaxTargets);
    launch(first, shape.grid, shape.block);
  }
}

}  // namespace

void RowSum(DeviceStream* stream, const ConstValues* inputs, int num_inputs, Values y) {
  if (y.rows == 0) return;
  Launch<RowSumKernel>(stream, RowGrid(y.rows, kLanesARow), kRowBlock, 0, inputs, num_inputs, y);
}

void RowSumGrad(DeviceStream* stream, ConstValues dy, const RowSumTarget* targets, int num_targets,
                int64_t max_cols) {
  ForTargets(dy.rows, max_cols, num_targets, [&](int first, Dim3 grid, Dim3 block) {
    Launch<RowSumGradKernel>(stream, grid, block, 0, dy, targets + first);
  });
}

void Fm(DeviceStream* stream, const ConstValues* inputs, int num_inputs, Values s, Values y) {
  if (y.rows == 0) return;
  Launch<FmKernel>(stream, RowGrid(y.rows, kLanesARow), kRowBlock, 0, inputs, num_inputs, s, y);
}

void BiInteraction(DeviceStream* stream, const ConstValues* inputs, int num_inputs, Values s,
                   Values y) {
  if (y.rows == 0 || y.cols == 0) return;
  const ElementwiseShape shape = ShapeOf(y.rows, GroupsOf(y.cols));
  Launch<BiInteractionKernel>(stream, shape.grid, shape.block, 0, inputs, num_inputs, s, y);
}

void FmGrad(DeviceStream* stream, const ConstValues* inputs, const FmGradTarget* targets,
            int num_targets, ConstValues s, ConstValues dy) {
  ForTargets(s.rows, s.cols, num_targets, [&](int first, Dim3 grid, Dim3 block) {
    Launch<FmGradKernel>(stream, grid, block, 0, inputs, targets + first, s, dy);
  });
}

}  // namespace satrap

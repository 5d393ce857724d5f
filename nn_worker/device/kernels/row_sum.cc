#include "nn_worker/device/kernels/row_sum.h"

#include "nn_worker/device/kernel.h"
#include "nn_worker/device/kernels/chunk.h"
#include "nn_worker/device/kernels/elementwise.h"
#include "nn_worker/device/kernels/value_access.h"
#include "nn_worker/device/kernels/warp_sum.h"

namespace satrap {
namespace {

// The number of lanes that share a row. It is small, because most rows have only a few groups of
// values.
constexpr int kLanesARow = 8;

// The number of loads of a thread that are under way at the same time.
constexpr int kAtOnce = 4;

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

// For one group of columns: the sums of the inputs, and the sums of their squares. The sums of the
// inputs are also stored.
struct SumsOfInputs {
  Group values, squares;
};
SATRAP_DEVICE SumsOfInputs SumInputs(const ConstValues* inputs, int num_inputs, int64_t row,
                                     int64_t c, const Values& s) {
  SumsOfInputs sums = {};
  for (int first = 0; first < num_inputs; first += kAtOnce) {
    RawGroup raw[kAtOnce];
    ElementType types[kAtOnce];
    for (int k = 0; k < kAtOnce; ++k) {
      if (first + k >= num_inputs) continue;
      const ConstValues x = inputs[first + k];
      types[k] = x.type;
      raw[k] = LoadRawGroup(x, row, c, x.cols - c);
    }
    for (int k = 0; k < kAtOnce; ++k) {
      if (first + k >= num_inputs) continue;
      const Group values = GroupOf(raw[k], types[k]);
      for (int i = 0; i < kGroup; ++i) {
        sums.values.lane[i] += values.lane[i];
        sums.squares.lane[i] += values.lane[i] * values.lane[i];
      }
    }
  }
  StoreGroup(s, row, c, sums.values);
  return sums;
}

SATRAP_KERNEL void FmKernel(const ConstValues* inputs, int num_inputs, int lanes, Values s,
                            Values y) {
  ForEachRow(y.rows, lanes, [&](int64_t row, int lane, bool exists) {
    float total = 0;
    for (int64_t c = lane * kGroup; exists && c < s.cols; c += lanes * kGroup) {
      const SumsOfInputs sums = SumInputs(inputs, num_inputs, row, c, s);
      for (int i = 0; i < kGroup; ++i) {
        total += sums.values.lane[i] * sums.values.lane[i] - sums.squares.lane[i];
      }
    }
    total = WarpSum(total, lanes);
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

// A block handles this many targets, so that sums and slopes are not loaded again for each target,
// but small batches still have enough threads.
constexpr int kFmTargets = 8;

// Calls body(0), ..., body(kCount - 1). The loop is unrolled, so that an array which the body
// indexes stays in registers.
template <int kCount, typename Body>
SATRAP_DEVICE void Unrolled(const Body& body) {
  if constexpr (kCount > 0) {
    Unrolled<kCount - 1>(body);
    body(kCount - 1);
  }
}

SATRAP_KERNEL void FmGradKernel(const ConstValues* inputs, const FmGradTarget* targets,
                                int num_targets, ConstValues s, ConstValues dy) {
  const int begin = static_cast<int>(BlockIndex().z) * kFmTargets;
  const int end = begin + kFmTargets < num_targets ? begin + kFmTargets : num_targets;
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
    for (int first = begin; first < end; first += kAtOnce) {
      RawGroup raw[kAtOnce];  // of the first input of each target
      ElementType types[kAtOnce];
      Unrolled<kAtOnce>([&](int k) {
        if (first + k >= end) return;
        const ConstValues x = inputs[targets[first + k].first];
        types[k] = x.type;
        raw[k] = LoadRawGroup(x, r, c, x.cols - c);
      });
      Unrolled<kAtOnce>([&](int k) {
        if (first + k >= end) return;
        const FmGradTarget target = targets[first + k];
        Group values = GroupOf(raw[k], types[k]), gradient = {};
        for (int32_t f = 0; f < target.count; ++f) {
          if (f > 0) values = LoadGroup(inputs[target.first + f], r, c);
          for (int i = 0; i < kGroup; ++i) {
            gradient.lane[i] += slopes.lane[i] * (sums.lane[i] - values.lane[i]);
          }
        }
        PutGroup(target.dx, r, c, gradient, target.add != 0);
      });
    }
  });
}

// The number of groups in a chunk. FmKernel would give each group to its own lane. The sums of the
// groups stay separate until the sums of a row are added, so that the bits are the same.
template <typename T>
inline constexpr int kGroupsAChunk = Chunk<T>::kVectorLanes / kGroup;

// Handles one chunk of the columns: computes and stores the sums of the inputs, and computes the
// sums of their squares. For each group of the chunk, adds the sum of (sums^2 - squares) to one of
// `totals`.
template <typename T>
SATRAP_DEVICE void AddPairs(const ConstValues* inputs, int num_inputs, int64_t row, int64_t c,
                            const Values& s, float* totals) {
  constexpr int kVectorLanes = Chunk<T>::kVectorLanes;
  float sums[kVectorLanes] = {}, squares[kVectorLanes] = {};
  for (int first = 0; first < num_inputs; first += kAtOnce) {
    Chunk<T> chunks[kAtOnce];
    for (int k = 0; k < kAtOnce; ++k) {
      // The last input is loaded again instead of one that does not exist, because a branch would
      // separate the loads.
      const ConstValues& x = inputs[first + k < num_inputs ? first + k : num_inputs - 1];
      chunks[k] = Chunk<T>::Load(static_cast<const T*>(x.data) + row * x.stride + c);
    }
    for (int k = 0; k < kAtOnce; ++k) {
      if (first + k >= num_inputs) continue;
      for (int i = 0; i < kVectorLanes; ++i) {
        const float value = chunks[k].Value(i);
        sums[i] += value;
        squares[i] += value * value;
      }
    }
  }
  for (int g = 0; g < kGroupsAChunk<T>; ++g) {
    Group group;
    for (int i = 0; i < kGroup; ++i) {
      const float sum = sums[g * kGroup + i];
      group.lane[i] = sum;
      totals[g] += sum * sum - squares[g * kGroup + i];
    }
    StoreGroup(s, row, c + g * kGroup, group);
  }
}

template <typename T>
SATRAP_KERNEL void WideFmKernel(const ConstValues* inputs, int num_inputs, int lanes, Values s,
                                Values y) {
  constexpr int kVectorLanes = Chunk<T>::kVectorLanes;
  ForEachRow(y.rows, lanes, [&](int64_t row, int lane, bool exists) {
    float totals[kGroupsAChunk<T>] = {};
    for (int64_t c = lane * kVectorLanes; exists && c < s.cols; c += lanes * kVectorLanes) {
      AddPairs<T>(inputs, num_inputs, row, c, s, totals);
    }
    float total = WarpSum(totals[0], lanes);
    if (kGroupsAChunk<T> == 2) total += WarpSum(totals[kGroupsAChunk<T> - 1], lanes);
    if (exists && lane == 0) StoreValue(y, row, 0, 0.5f * total);
  });
}

template <typename T>
SATRAP_KERNEL void WideFmGradKernel(const WideFmGradTarget* targets, int num_targets, ConstValues s,
                                    ConstValues dy) {
  constexpr int kVectorLanes = Chunk<T>::kVectorLanes;
  SHARED_ARRAY(WideFmGradTarget, list, [kFmTargets]);
  const int begin = static_cast<int>(BlockIndex().z) * kFmTargets;
  const int left = num_targets - begin, count = left < kFmTargets ? left : kFmTargets;
  const Dim3 size = BlockSize(), thread = ThreadIndex();
  const int number = static_cast<int>(thread.y * size.x + thread.x);
  const int threads = static_cast<int>(size.x * size.y);
  for (int k = number; k < count; k += threads) list[k] = targets[begin + k];
  SyncThreads();
  ForEachGroup(s.rows, s.cols / kVectorLanes, [&](int64_t r, int64_t g) {
    const int64_t c = g * kVectorLanes;
    float sums[kVectorLanes], slopes[kVectorLanes];
    for (int i = 0; i < kVectorLanes; i += kGroup) {
      const Group of_s = LoadGroup(s, r, c + i);
      Group of_dy;
      if (dy.cols == 1) {
        const float slope = LoadValue(dy, r, 0);
        of_dy = {{slope, slope, slope, slope}};
      } else {
        of_dy = LoadGroup(dy, r, c + i);
      }
      for (int j = 0; j < kGroup; ++j) {
        sums[i + j] = of_s.lane[j];
        slopes[i + j] = of_dy.lane[j];
      }
    }
    for (int first = 0; first < count; first += kAtOnce) {
      Chunk<T> chunks[kAtOnce];
      for (int k = 0; k < kAtOnce; ++k) {
        const WideFmGradTarget& of = list[first + k < count ? first + k : count - 1];
        chunks[k] = Chunk<T>::Load(static_cast<const T*>(of.x) + r * of.x_stride + c);
      }
      for (int k = 0; k < kAtOnce; ++k) {
        if (first + k >= count) continue;
        const WideFmGradTarget& of = list[first + k];
        T* const dx = static_cast<T*>(of.dx) + r * of.dx_stride + c;
        Chunk<T> before = {}, after = {};
        if (of.add != 0) before = Chunk<T>::Load(dx);
        for (int i = 0; i < kVectorLanes; ++i) {
          float gradient = 0;
          gradient += slopes[i] * (sums[i] - chunks[k].Value(i));
          if (of.add != 0) gradient += before.Value(i);
          after.Set(i, FromFloat<T>(gradient));
        }
        after.Store(dx);
      }
    }
  });
}

// The z index of a block says which targets the block handles. A card has at most 65535 blocks in
// z.
constexpr int kMaxTargets = 65535;

// Calls launch(first target, number of targets, grid, block) until all targets are covered, with as
// few calls as the limits of a grid allow. A block handles `targets_a_block` targets.
template <typename LaunchPart>
void ForTargets(int64_t rows, int64_t groups, int num_targets, int targets_a_block,
                LaunchPart launch) {
  if (rows == 0 || groups == 0) return;
  ElementwiseShape shape = ShapeOf(rows, groups);
  for (int first = 0; first < num_targets; first += kMaxTargets) {
    const int left = num_targets - first, count = left < kMaxTargets ? left : kMaxTargets;
    shape.grid.z = static_cast<uint32_t>((count + targets_a_block - 1) / targets_a_block);
    launch(first, count, shape.grid, shape.block);
  }
}

// The number of lanes that share a row of Fm. It is not larger than the number of groups, because
// further lanes would only add zeros. Each lane handles `groups` neighbouring groups.
int FmLanes(int64_t cols, int groups) {
  int lanes = 1;
  while (lanes * groups < kLanesARow && lanes * groups < GroupsOf(cols)) lanes *= 2;
  return lanes;
}

template <typename T>
void LaunchWideFm(DeviceStream* stream, const ConstValues* inputs, int num_inputs, const Values& s,
                  const Values& y) {
  const int lanes = FmLanes(s.cols, kGroupsAChunk<T>);
  Launch<WideFmKernel<T>>(stream, RowGrid(y.rows, lanes), kRowBlock, 0, inputs, num_inputs, lanes,
                          s, y);
}

template <typename T>
void LaunchWideFmGrad(DeviceStream* stream, const WideFmGradTarget* targets, int num_targets,
                      const ConstValues& s, const ConstValues& dy) {
  ForTargets(s.rows, s.cols / Chunk<T>::kVectorLanes, num_targets, kFmTargets,
             [&](int first, int count, Dim3 grid, Dim3 block) {
               Launch<WideFmGradKernel<T>>(stream, grid, block, 0, targets + first, count, s, dy);
             });
}

}  // namespace

void RowSum(DeviceStream* stream, const ConstValues* inputs, int num_inputs, Values y) {
  if (y.rows == 0) return;
  Launch<RowSumKernel>(stream, RowGrid(y.rows, kLanesARow), kRowBlock, 0, inputs, num_inputs, y);
}

void RowSumGrad(DeviceStream* stream, ConstValues dy, const RowSumTarget* targets, int num_targets,
                int64_t max_cols) {
  ForTargets(dy.rows, GroupsOf(max_cols), num_targets, 1,
             [&](int first, int, Dim3 grid, Dim3 block) {
               Launch<RowSumGradKernel>(stream, grid, block, 0, dy, targets + first);
             });
}

void Fm(DeviceStream* stream, const ConstValues* inputs, int num_inputs, Values s, Values y) {
  if (y.rows == 0) return;
  const int lanes = FmLanes(s.cols, /*groups=*/1);
  Launch<FmKernel>(stream, RowGrid(y.rows, lanes), kRowBlock, 0, inputs, num_inputs, lanes, s, y);
}

void BiInteraction(DeviceStream* stream, const ConstValues* inputs, int num_inputs, Values s,
                   Values y) {
  if (y.rows == 0 || y.cols == 0) return;
  const ElementwiseShape shape = ShapeOf(y.rows, GroupsOf(y.cols));
  Launch<BiInteractionKernel>(stream, shape.grid, shape.block, 0, inputs, num_inputs, s, y);
}

void FmGrad(DeviceStream* stream, const ConstValues* inputs, const FmGradTarget* targets,
            int num_targets, ConstValues s, ConstValues dy) {
  ForTargets(s.rows, GroupsOf(s.cols), num_targets, kFmTargets,
             [&](int first, int count, Dim3 grid, Dim3 block) {
               Launch<FmGradKernel>(stream, grid, block, 0, inputs, targets + first, count, s, dy);
             });
}

void WideFm(DeviceStream* stream, const ConstValues* inputs, int num_inputs, ElementType type,
            Values s, Values y) {
  if (y.rows == 0 || num_inputs == 0 || s.cols == 0) {
    Fm(stream, inputs, num_inputs, s, y);
  } else if (type == ElementType::kF32) {
    LaunchWideFm<float>(stream, inputs, num_inputs, s, y);
  } else if (type == ElementType::kF16) {
    LaunchWideFm<Half>(stream, inputs, num_inputs, s, y);
  } else {
    LaunchWideFm<Bf16>(stream, inputs, num_inputs, s, y);
  }
}

void WideFmGrad(DeviceStream* stream, const WideFmGradTarget* targets, int num_targets,
                ElementType type, ConstValues s, ConstValues dy) {
  if (type == ElementType::kF32) {
    LaunchWideFmGrad<float>(stream, targets, num_targets, s, dy);
  } else if (type == ElementType::kF16) {
    LaunchWideFmGrad<Half>(stream, targets, num_targets, s, dy);
  } else {
    LaunchWideFmGrad<Bf16>(stream, targets, num_targets, s, dy);
  }
}

}  // namespace satrap

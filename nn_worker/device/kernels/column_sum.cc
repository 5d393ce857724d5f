#include "nn_worker/device/kernels/column_sum.h"

#include "nn_worker/device/kernel.h"
#include "nn_worker/device/kernels/activation_function.h"
#include "nn_worker/device/kernels/column_access.h"
#include "nn_worker/device/kernels/column_tiles.h"

namespace satrap {
namespace {

constexpr int kAddCols = 8;    // 32 bytes of sums
constexpr int kAddAtOnce = 8;  // pieces that a thread loads before it adds the first

struct ColumnSumArgs {
  ConstValues y, dy;
  Values dx;
  ColumnTiles tiles;
  Activation activation;
  int32_t aligned;
  float* partials;
};

// These types say what is summed: either the values of dy, or the gradient dx of an activation,
// which is then also stored. Only SumOfGradients reads the activation at run time.
struct SumOfValues {
  static constexpr bool kGradients = false;
};
struct SumOfReluGradients {
  static constexpr bool kGradients = true;
  static constexpr Activation Of(Activation) { return Activation::kRelu; }
};
struct SumOfGradients {
  static constexpr bool kGradients = true;
  static constexpr Activation Of(Activation activation) { return activation; }
};

// Sums up whole octets. The next rows are loaded before the current ones are added. Otherwise a
// compiler that saves registers would load each row only when it is added, and the thread would
// wait for each load.
template <typename Access>
SATRAP_DEVICE void SumAhead(const ConstValues& x, const ColumnsOfThread<Access>& mine,
                            float* sums) {
  constexpr int kRows = Access::kRows;
  if (mine.first_row >= mine.end_row) return;
  Octet<Access> ahead[kRows];
  const auto load = [&](int64_t first) {
    for (int k = 0; k < kRows; ++k) {
      const int64_t row = first + k * mine.lanes;
      // Instead of a row beyond the last one, an existing row is loaded and not used. This needs no
      // branch.
      ahead[k] = mine.template Load<true>(x, row < mine.end_row ? row : first);
    }
  };
  load(mine.first_row);
  for (int64_t first = mine.first_row; first < mine.end_row;) {
    Octet<Access> now[kRows];
    for (int k = 0; k < kRows; ++k) now[k] = ahead[k];
    const int64_t next = first + kRows * mine.lanes;
    if (next < mine.end_row) load(next);
    for (int k = 0; k < kRows; ++k, first += mine.lanes) {
      if (first >= mine.end_row) break;
      for (int i = 0; i < ColumnTiles::kOctet; ++i) sums[i] += now[k].At(i);
    }
  }
}

// If an octet is not whole, its rows are handled one at a time. This path is rare. If it loaded as
// many rows at a time as the other path, the kernel would need more registers, and fewer threads
// would run at the same time.
template <typename Access, typename Summed, bool kWhole>
SATRAP_DEVICE void SumRows(const ColumnSumArgs& args, const ColumnsOfThread<Access>& mine,
                           float* sums) {
  if constexpr (kWhole && !Summed::kGradients) return SumAhead(args.dy, mine, sums);
  constexpr int kOctet = ColumnTiles::kOctet;
  mine.template ForRows<kWhole ? Access::kRows : 1>([&](int64_t first, auto count) {
    constexpr int kCount = decltype(count)::value;
    Octet<Access> dy[kCount];
    [[maybe_unused]] Octet<Access> y[kCount];
    for (int k = 0; k < kCount; ++k) {
      dy[k] = mine.template Load<kWhole>(args.dy, first + k * mine.lanes);
      if constexpr (Summed::kGradients) {
        y[k] = mine.template Load<kWhole>(args.y, first + k * mine.lanes);
      }
    }
    for (int k = 0; k < kCount; ++k) {
      float values[kOctet];
      for (int i = 0; i < kOctet; ++i) {
        values[i] = dy[k].At(i);
        if constexpr (Summed::kGradients) {
          values[i] = ActivationGradient(Summed::Of(args.activation), y[k].At(i), values[i]);
          // Sums the values that dx will hold, as if dx were read again.
          values[i] = Access::Rounded(args.dx, values[i]);
        }
        sums[i] += values[i];
      }
      if constexpr (Summed::kGradients) {
        mine.template Store<kWhole>(args.dx, first + k * mine.lanes, values);
      }
    }
  });
}

template <typename Access, typename Summed>
SATRAP_KERNEL void ColumnSumKernel(ColumnSumArgs args) {
  SHARED_ARRAY(float, shared, [ColumnTiles::kOctet][ColumnTiles::kThreads]);
  const ColumnsOfThread<Access> mine(args.tiles, args.dy.rows, args.aligned != 0);
  float sums[ColumnTiles::kOctet] = {};
  if (mine.whole) {
    SumRows<Access, Summed, true>(args, mine, sums);
  } else {
    SumRows<Access, Summed, false>(args, mine, sums);
  }
  mine.WriteSums(sums, shared, args.partials + mine.piece * args.tiles.cols);
}

// The address for the sum of column `c` of the partials; null if it is not stored. This is not a
// loop: an index that is not known when the kernel is compiled would put the targets into local
// memory.
SATRAP_DEVICE float* TargetOf(const SumTargets& targets, int64_t c) {
  SumTarget target = targets.of[0];
  if (c >= target.cols) {
    c -= target.cols;
    target = targets.of[1];
    if (c >= target.cols) {
      c -= target.cols;
      target = targets.of[2];
      if (c >= target.cols) return nullptr;
    }
  }
  return target.sums == nullptr ? nullptr : target.sums + c * target.stride;
}

SATRAP_KERNEL void AddPartialsKernel(const float* partials, int64_t parts, int64_t stride,
                                     SumTargets targets) {
  SHARED_ARRAY(float, shared, [kPartialLanes][kAddCols]);
  const int tx = static_cast<int>(ThreadIndex().x), ty = static_cast<int>(ThreadIndex().y);
  const int lanes = static_cast<int>(BlockSize().y);  // a power of 2
  const int64_t c = static_cast<int64_t>(BlockIndex().x) * kAddCols + tx;
  float* const target = TargetOf(targets, c);
  const int64_t end = target == nullptr ? 0 : parts;
  float sum = 0;
  // Without a branch around the loads, all of them are under way before the first is added. Adding
  // 0 for pieces that do not exist changes no sum.
  for (int64_t first = ty; first < end; first += kAddAtOnce * lanes) {
    float values[kAddAtOnce];
    for (int k = 0; k < kAddAtOnce; ++k) {
      const int64_t part = first + k * lanes;
      values[k] = part < end ? partials[part * stride + c] : 0;
    }
    for (int k = 0; k < kAddAtOnce; ++k) sum += values[k];
  }
  shared[ty][tx] = sum;
  SyncThreads();
  for (int height = lanes / 2; height > 0; height /= 2) {
    if (ty < height) shared[ty][tx] += shared[ty + height][tx];
    SyncThreads();
  }
  if (ty == 0 && target != nullptr) *target = shared[0][tx];
}

template <typename Access, typename Summed>
void LaunchTiles(DeviceStream* stream, ColumnSumArgs args) {
  args.aligned = RunsAligned(args.dy, Access::kVectorLanes) ? 1 : 0;
  if constexpr (Summed::kGradients) {
    if (!RunsAligned(args.y, Access::kVectorLanes) || !RunsAligned(args.dx, Access::kVectorLanes)) {
      args.aligned = 0;
    }
  }
  const int64_t blocks = args.tiles.Pieces(args.dy.rows) * args.tiles.tiles;
  Launch<ColumnSumKernel<Access, Summed>>(stream, {static_cast<uint32_t>(blocks)},
                                          {ColumnTiles::kThreads}, 0, args);
}

void AddToSums(DeviceStream* stream, const ColumnSumArgs& args, float* sums) {
  const int64_t cols = args.tiles.cols;
  AddPartials(stream, args.partials, args.tiles.Pieces(args.dy.rows), cols, {{{sums, cols, 1}}});
}

}  // namespace

void AddPartials(DeviceStream* stream, const float* partials, int64_t parts, int64_t stride,
                 const SumTargets& targets) {
  int64_t cols = 0;
  bool wanted = false;
  for (const SumTarget& target : targets.of) {
    cols += target.cols;
    wanted |= target.sums != nullptr && target.cols > 0;
  }
  if (!wanted) return;
  const auto blocks = static_cast<uint32_t>((cols + kAddCols - 1) / kAddCols);
  uint32_t lanes = 1;
  while (lanes < kPartialLanes && lanes < parts) lanes *= 2;
  Launch<AddPartialsKernel>(stream, {blocks}, {kAddCols, lanes}, 0, partials, parts, stride,
                            targets);
}

void ColumnSum(DeviceStream* stream, ConstValues x, float* partials, float* sums) {
  if (x.cols == 0) return;
  const ColumnSumArgs args = {{}, x, {}, ColumnTiles(x.cols), Activation::kLinear, 0, partials};
  if (x.rows > 0) {
    WithType(x.type,
             [&](auto access) { LaunchTiles<decltype(access), SumOfValues>(stream, args); });
  }
  AddToSums(stream, args, sums);
}

void ActivateGradColumnSum(DeviceStream* stream, Activation activation, ConstValues y,
                           ConstValues dy, Values dx, float* partials, float* sums) {
  if (dy.cols == 0) return;
  const bool relu = activation == Activation::kRelu;
  // For kLinear the caller's y may be empty, but the kernel loads y for every activation.
  if (activation == Activation::kLinear) y = dy;
  const ColumnSumArgs args = {y, dy, dx, ColumnTiles(dy.cols), activation, 0, partials};
  if (dy.rows > 0) {
    const bool one_type = y.type == dy.type && dy.type == dx.type;
    // Only ReLU, which nearly all networks use, has kernels of its own for each type.
    WithAccess(dy.type, one_type && relu, [&](auto access) {
      if (relu) return LaunchTiles<decltype(access), SumOfReluGradients>(stream, args);
      LaunchTiles<AnyTypes, SumOfGradients>(stream, args);
    });
  }
  AddToSums(stream, args, sums);
}

}  // namespace satrap

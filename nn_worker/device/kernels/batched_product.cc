#include "nn_worker/device/kernels/batched_product.h"

#include "nn_worker/device/kernel.h"
#include "nn_worker/device/kernels/elementwise.h"
#include "nn_worker/device/kernels/value_access.h"
#include "nn_worker/device/vec.h"

namespace satrap {
namespace {

// Loads the values of one row of B that a group of Y needs; in one access if they are contiguous.
SATRAP_DEVICE Group LoadColumns(const RowMatrices& b, int64_t sample, int64_t at, int64_t left) {
  if (b.col_stride == 1) return LoadGroup(b.values, sample, at, left);
  Group group = {};
  for (int i = 0; i < kGroup && i < left; ++i) {
    group.lane[i] = LoadValue(b.values, sample, at + i * b.col_stride);
  }
  return group;
}

SATRAP_KERNEL void BatchedProductKernel(BatchedProductArgs args) {
  const int64_t rows_a_sample = args.count * args.rows;
  ForEachGroup(args.y.rows * rows_a_sample, GroupsOf(args.cols), [&](int64_t n, int64_t g) {
    const int64_t sample = n / rows_a_sample, m = n % rows_a_sample / args.rows;
    const int64_t row = n % args.rows, col = g * kGroup, left = args.cols - col;
    const int64_t of_a = m * args.a.step + row * args.a.row_stride;
    const int64_t of_b = m * args.b.step + col * args.b.col_stride;
    Group sum = {};
    for (int64_t k = 0; k < args.inner; ++k) {
      const float factor = LoadValue(args.a.values, sample, of_a + k * args.a.col_stride);
      const Group values = LoadColumns(args.b, sample, of_b + k * args.b.row_stride, left);
      for (int i = 0; i < kGroup; ++i) sum.lane[i] += factor * values.lane[i];
    }
    for (int i = 0; i < kGroup; ++i) sum.lane[i] *= args.scale;
    PutGroup(args.y, sample, m * args.y_step + row * args.y_stride + col, sum, left, args.add);
  });
}

// Matrices in shared memory, as f32. If the values of a row are neighbours in device memory, they
// are neighbours here, too; otherwise the values of a column are neighbours here. Each `line` of
// neighbours is followed by zeros up to a multiple of 4 values. The distance between lines is an
// odd multiple of 4 values, so that the groups of 8 lines are in different banks.
struct SharedMatrices {
  int64_t lines, length;  // of a matrix: (rows, inner), or (inner, rows)
  int64_t stride;         // from one line to the next
  int64_t floats;         // of a matrix
};
SharedMatrices SharedOf(int64_t lines, int64_t length) {
  const int64_t stride = (GroupsOf(length) | 1) * kGroup;
  // Groups of 4 may also be read across the lines, so there are zeros after the last line, too.
  return {lines, length, stride, GroupsOf(lines) * kGroup * stride};
}

// A block computes the products of `units` matrices, counted over the samples and the matrices of
// each sample. Each thread computes 4 x 4 values of one product. The products are collected in
// shared memory, because Y is written in whole groups.
struct ProductTiles {
  SharedMatrices a, b;
  int32_t units;
  int32_t row_tiles, col_tiles;
};

// Matrix number m of sample `sample`.
struct Unit {
  int64_t sample;
  int32_t m;
  SATRAP_DEVICE void Advance(int64_t count) {
    if (++m < count) return;
    m = 0;
    ++sample;
  }
};
SATRAP_DEVICE Unit UnitOf(int64_t number, int64_t count) {
  return {number / count, static_cast<int32_t>(number % count)};
}

// The number of loads of a thread that are under way at the same time.
constexpr int kAtOnce = 4;

// Copies matrices of one factor into shared memory. `step_of_lines` is the distance from one line
// to the next in device memory.
SATRAP_DEVICE void StageMatrices(const RowMatrices& from, int64_t step_of_lines,
                                 const SharedMatrices& to, const Unit& first, int units,
                                 int64_t count, float* shared) {
  const int groups = static_cast<int>(GroupsOf(to.length));
  const int lines = static_cast<int>(GroupsOf(to.lines)) * kGroup;
  const int threads = static_cast<int>(BlockSize().x);
  for (int i = static_cast<int>(ThreadIndex().x); i < groups * lines; i += threads) {
    const int line = i / groups, col = i % groups * kGroup;
    const int64_t at = line * step_of_lines + col, left = line < to.lines ? to.length - col : 0;
    float* const target = shared + line * to.stride + col;
    Unit unit = first;
    for (int begin = 0; begin < units; begin += kAtOnce) {
      RawGroup raw[kAtOnce];
      for (int k = 0; k < kAtOnce; ++k) {
        if (begin + k >= units) continue;
        raw[k] = LoadRawGroup(from.values, unit.sample, unit.m * from.step + at, left);
        unit.Advance(count);
      }
      for (int k = 0; k < kAtOnce; ++k) {
        if (begin + k >= units) continue;
        StoreVec(target + (begin + k) * to.floats, GroupOf(raw[k], from.values.type));
      }
    }
  }
}

// 4 x 4 values of a factor. Lane k of part i is value (i, k0 + k), where i is a row of A or a
// column of B. If values with the same i are neighbours (kAlong), part i is row first + i * tiles,
// so that neighbouring threads read neighbouring lines. Otherwise part i is row 4 first + i.
struct Block {
  Group part[kGroup];
};
template <bool kAlong>
SATRAP_DEVICE Block LoadBlock(const float* matrix, int64_t stride, int first, int tiles, int k0) {
  Block block;
  for (int i = 0; i < kGroup; ++i) {
    if (kAlong) {
      block.part[i] = LoadVec<kGroup>(matrix + (first + i * tiles) * stride + k0);
    } else {
      const Group line = LoadVec<kGroup>(matrix + (k0 + i) * stride + kGroup * first);
      for (int k = 0; k < kGroup; ++k) block.part[k].lane[i] = line.lane[k];
    }
  }
  return block;
}
template <bool kAlong>
SATRAP_DEVICE int PartIndex(int first, int tiles, int i) {
  return kAlong ? first + i * tiles : kGroup * first + i;
}

// Computes the values of tile number `tile` of Y, without the scale.
template <bool kAlongA, bool kAlongB>
SATRAP_DEVICE void ProductOfTile(const BatchedProductArgs& args, const ProductTiles& tiles,
                                 const float* a, const float* b, int tile,
                                 float (&sums)[kGroup][kGroup]) {
  const int row = tile / tiles.col_tiles, col = tile % tiles.col_tiles;
  for (int k = 0; k < args.inner; k += kGroup) {
    const Block of_a = LoadBlock<kAlongA>(a, tiles.a.stride, row, tiles.row_tiles, k);
    const Block of_b = LoadBlock<kAlongB>(b, tiles.b.stride, col, tiles.col_tiles, k);
    for (int lane = 0; lane < kGroup; ++lane) {
      for (int i = 0; i < kGroup; ++i) {
        for (int j = 0; j < kGroup; ++j) {
          sums[i][j] += of_a.part[i].lane[lane] * of_b.part[j].lane[lane];
        }
      }
    }
  }
}

// Writes the matrices of `units` units from shared memory, where they have no gaps. If the rows of
// a matrix have no gaps in Y either, they are written as one.
SATRAP_DEVICE void StoreProducts(const BatchedProductArgs& args, const Unit& first, int units,
                                 const float* shared) {
  const bool flat = args.y_stride == args.cols;
  const int size = static_cast<int>(args.rows * args.cols);
  const int length = flat ? size : static_cast<int>(args.cols);
  const int groups = static_cast<int>(GroupsOf(length)), of_unit = size / length * groups;
  const int threads = static_cast<int>(BlockSize().x);
  for (int i = static_cast<int>(ThreadIndex().x); i < of_unit; i += threads) {
    const int line = i / groups, col = i % groups * kGroup;
    Unit unit = first;
    for (int u = 0; u < units; ++u) {
      Group group = {};
      for (int k = 0; k < kGroup && col + k < length; ++k) {
        group.lane[k] = shared[u * size + line * length + col + k];
      }
      PutGroup(args.y, unit.sample, unit.m * args.y_step + line * args.y_stride + col, group,
               length - col, args.add);
      unit.Advance(args.count);
    }
  }
}

template <bool kAlongA, bool kAlongB>
SATRAP_KERNEL void ProductTilesKernel(BatchedProductArgs args, ProductTiles tiles) {
  float* const of_a = DynamicShared<float>();
  float* const of_b = of_a + tiles.units * tiles.a.floats;
  const int64_t number = static_cast<int64_t>(BlockIndex().x) * tiles.units;
  const int64_t left = args.y.rows * args.count - number;
  const int units = left < tiles.units ? static_cast<int>(left) : tiles.units;
  const Unit first = UnitOf(number, args.count);
  StageMatrices(args.a, kAlongA ? args.a.row_stride : args.a.col_stride, tiles.a, first, units,
                args.count, of_a);
  StageMatrices(args.b, kAlongB ? args.b.col_stride : args.b.row_stride, tiles.b, first, units,
                args.count, of_b);
  SyncThreads();
  const int of_unit = tiles.row_tiles * tiles.col_tiles;
  const int thread = static_cast<int>(ThreadIndex().x);
  const int unit = thread / of_unit, tile = thread % of_unit;
  float sums[kGroup][kGroup] = {};
  if (unit < units) {
    ProductOfTile<kAlongA, kAlongB>(args, tiles, of_a + unit * tiles.a.floats,
                                    of_b + unit * tiles.b.floats, tile, sums);
  }
  SyncThreads();  // Y takes the place of the factors
  const int cols = static_cast<int>(args.cols), rows = static_cast<int>(args.rows);
  for (int i = 0; unit < units && i < kGroup; ++i) {
    const int row = PartIndex<kAlongA>(tile / tiles.col_tiles, tiles.row_tiles, i);
    for (int j = 0; j < kGroup; ++j) {
      const int col = PartIndex<kAlongB>(tile % tiles.col_tiles, tiles.col_tiles, j);
      if (row >= rows || col >= cols) continue;
      of_a[(unit * rows + row) * cols + col] = args.scale * sums[i][j];
    }
  }
  SyncThreads();
  StoreProducts(args, first, units, of_a);
}

constexpr int64_t kMostSharedFloats = (48 << 10) / static_cast<int64_t>(sizeof(float));
constexpr int64_t kMostThreads = 256;
// In the time in which a tile computes 16 values, the other kernel computes only a few, so tiles
// are worthwhile only if most of the 16 are needed.
constexpr int64_t kLeastForTiles = 8;

// Whether the values of a row of A, or of a column of B, are neighbours.
bool AlongA(const BatchedProductArgs& args) { return args.a.col_stride == 1; }
bool AlongB(const BatchedProductArgs& args) { return args.b.row_stride == 1; }

// The shared memory of a unit. It holds the unit's factors first, and Y later.
int64_t FloatsOf(const BatchedProductArgs& args, const ProductTiles& tiles) {
  const int64_t of_factors = tiles.a.floats + tiles.b.floats, of_y = args.rows * args.cols;
  return of_factors > of_y ? of_factors : of_y;
}

// Returns no units if the matrices are too small for tiles to be worthwhile, or too large for
// shared memory.
ProductTiles TilesOf(const BatchedProductArgs& args) {
  ProductTiles tiles = {};
  if (args.rows < kLeastForTiles || args.cols < kLeastForTiles || args.inner < kGroup) return tiles;
  if (!AlongA(args) && args.a.row_stride != 1) return tiles;
  if (!AlongB(args) && args.b.col_stride != 1) return tiles;
  tiles.a = AlongA(args) ? SharedOf(args.rows, args.inner) : SharedOf(args.inner, args.rows);
  tiles.b = AlongB(args) ? SharedOf(args.cols, args.inner) : SharedOf(args.inner, args.cols);
  const int64_t row_tiles = GroupsOf(args.rows), col_tiles = GroupsOf(args.cols);
  const int64_t by_threads = kMostThreads / (row_tiles * col_tiles);
  const int64_t by_memory = kMostSharedFloats / FloatsOf(args, tiles);
  tiles.row_tiles = static_cast<int32_t>(row_tiles);
  tiles.col_tiles = static_cast<int32_t>(col_tiles);
  tiles.units = static_cast<int32_t>(by_threads < by_memory ? by_threads : by_memory);
  return tiles;
}

template <bool kAlongA, bool kAlongB>
void LaunchTiles(DeviceStream* stream, const BatchedProductArgs& args, const ProductTiles& tiles) {
  const int64_t units = args.y.rows * args.count;
  const int64_t work = int64_t{tiles.units} * tiles.row_tiles * tiles.col_tiles;
  const int64_t threads = (work + kWarpSize - 1) / kWarpSize * kWarpSize;
  const int64_t floats = tiles.units * FloatsOf(args, tiles);
  Launch<ProductTilesKernel<kAlongA, kAlongB>>(
      stream, {static_cast<uint32_t>((units + tiles.units - 1) / tiles.units)},
      {static_cast<uint32_t>(threads)}, floats * static_cast<int64_t>(sizeof(float)), args, tiles);
}

// The steps at which groups begin decide whether a group is loaded in one access.
void LaunchTiles(DeviceStream* stream, BatchedProductArgs args, const ProductTiles& tiles) {
  const bool along_a = AlongA(args), along_b = AlongB(args);
  args.a.values = WithGroupsAt(WithGroupsAt(args.a.values, args.a.step),
                               along_a ? args.a.row_stride : args.a.col_stride);
  args.b.values = WithGroupsAt(WithGroupsAt(args.b.values, args.b.step),
                               along_b ? args.b.col_stride : args.b.row_stride);
  args.y = WithGroupsAt(args.y, args.y_step);
  if (args.y_stride != args.cols) args.y = WithGroupsAt(args.y, args.y_stride);
  if (along_a && along_b) {
    LaunchTiles<true, true>(stream, args, tiles);
  } else if (along_a) {
    LaunchTiles<true, false>(stream, args, tiles);
  } else if (along_b) {
    LaunchTiles<false, true>(stream, args, tiles);
  } else {
    LaunchTiles<false, false>(stream, args, tiles);
  }
}

}  // namespace

void BatchedProduct(DeviceStream* stream, const BatchedProductArgs& args) {
  const int64_t rows = args.y.rows * args.count * args.rows;
  if (rows == 0 || args.cols == 0) return;
  BatchedProductArgs of_kernel = args;
  // With a single matrix the steps are not used, and callers may set them to anything.
  if (args.count == 1) of_kernel.a.step = of_kernel.b.step = of_kernel.y_step = 0;
  const ProductTiles tiles = TilesOf(of_kernel);
  if (tiles.units > 0) {
    LaunchTiles(stream, of_kernel, tiles);
    return;
  }
  of_kernel.b.values =
      WithGroupsAt(WithGroupsAt(args.b.values, of_kernel.b.step), args.b.row_stride);
  of_kernel.y = WithGroupsAt(WithGroupsAt(args.y, of_kernel.y_step), args.y_stride);
  const ElementwiseShape shape = ShapeOf(rows, GroupsOf(args.cols));
  Launch<BatchedProductKernel>(stream, shape.grid, shape.block, 0, of_kernel);
}

}  // namespace satrap

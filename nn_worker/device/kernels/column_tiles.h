// The work of a thread of a kernel that sums up columns (column_sum.h): kOctet columns in some
// rows. For kernel sources.

#ifndef SATRAP_NN_WORKER_DEVICE_KERNELS_COLUMN_TILES_H_
#define SATRAP_NN_WORKER_DEVICE_KERNELS_COLUMN_TILES_H_

#include <cstdint>
#include <type_traits>

#include "nn_worker/device/device_stream.h"
#include "nn_worker/device/kernel.h"
#include "nn_worker/device/kernels/column_sum.h"
#include "nn_worker/device/kernels/values.h"

namespace satrap {

// The values of a thread in one row.
template <typename Access>
struct Octet {
  static constexpr int kRuns = ColumnTiles::kOctet / Access::kVectorLanes;
  typename Access::Run run[kRuns];

  SATRAP_DEVICE float At(int i) const {
    return Access::At(run[i / Access::kVectorLanes], i % Access::kVectorLanes);
  }
};

// The place of a thread: its piece of rows, its lane among them, and its columns. The runs of
// neighbouring threads are neighbours in memory.
template <typename Access>
struct ColumnsOfThread {
  static constexpr int kVectorLanes = Access::kVectorLanes, kRuns = Octet<Access>::kRuns;

  int thread, across, lanes;
  int64_t piece, first_row, end_row;  // the thread's rows are first_row, first_row + lanes, ...
  int64_t first_col, run_step, cols;
  bool whole;

  SATRAP_DEVICE ColumnsOfThread(const ColumnTiles& tiles, int64_t rows, bool aligned)
      : thread(static_cast<int>(ThreadIndex().x)),
        across(tiles.across),
        lanes(tiles.lanes),
        cols(tiles.cols) {
    piece = static_cast<int64_t>(BlockIndex().x) / tiles.tiles;
    const int64_t tile = static_cast<int64_t>(BlockIndex().x) % tiles.tiles;
    const int64_t piece_rows = int64_t{ColumnTiles::kRowsOfLane} * lanes;
    const int64_t begin = piece * piece_rows, left = rows - begin;
    first_row = begin + thread / across;
    end_row = begin + (left < piece_rows ? left : piece_rows);
    if (thread >= across * lanes) end_row = 0;
    first_col = tile * across * ColumnTiles::kOctet + int64_t{thread % across} * kVectorLanes;
    run_step = int64_t{across} * kVectorLanes;
    whole = aligned && first_col + (kRuns - 1) * run_step + kVectorLanes <= cols;
  }
  // Calls rows(first row, count) for the thread's rows in order: kRows at a time while that many
  // are left, and then one by one. `count` is a constant (std::integral_constant), so that the
  // loads of all rows can be under way before the first one is used.
  template <int kRows, typename Body>
  SATRAP_DEVICE void ForRows(Body rows) const {
    int64_t first = first_row;
    for (; first + (kRows - 1) * lanes < end_row; first += kRows * lanes) {
      rows(first, std::integral_constant<int, kRows>());
    }
    for (; first < end_row; first += lanes) rows(first, std::integral_constant<int, 1>());
  }
  SATRAP_DEVICE int64_t Col(int i) const {
    return first_col + i / kVectorLanes * run_step + i % kVectorLanes;
  }
  template <bool kWhole>
  SATRAP_DEVICE Octet<Access> Load(const ConstValues& x, int64_t row) const {
    Octet<Access> octet;
    for (int r = 0; r < kRuns; ++r) {
      octet.run[r] = Access::Load(x, row, first_col + r * run_step, kWhole);
    }
    return octet;
  }
  template <bool kWhole>
  SATRAP_DEVICE void Store(const Values& y, int64_t row, const float* values) const {
    for (int r = 0; r < kRuns; ++r) {
      Access::Store(y, row, first_col + r * run_step, values + r * kVectorLanes, kWhole);
    }
  }

  // Leaves in shared[i][t] the sum of sums[i] over all lanes of thread t's columns, for the threads
  // t of the first lane. All threads of the block call it.
  template <int kCount>
  SATRAP_DEVICE void SumLanes(const float* sums, float (*shared)[ColumnTiles::kThreads]) const {
    SyncThreads();
    for (int i = 0; i < kCount; ++i) shared[i][thread] = sums[i];
    SyncThreads();
    const int lane = thread / across;
    int height = 1;
    while (height < lanes) height *= 2;
    for (height /= 2; height > 0; height /= 2) {
      if (lane < height && lane + height < lanes) {
        for (int i = 0; i < kCount; ++i) shared[i][thread] += shared[i][thread + height * across];
      }
      SyncThreads();
    }
  }
  // Calls SumLanes for the sums of the thread's columns, and writes the results to partials[0,
  // cols).
  SATRAP_DEVICE void WriteSums(const float* sums, float (*shared)[ColumnTiles::kThreads],
                               float* partials) const {
    SumLanes<ColumnTiles::kOctet>(sums, shared);
    if (thread >= across) return;
    for (int i = 0; i < ColumnTiles::kOctet; ++i) {
      if (Col(i) < cols) partials[Col(i)] = shared[i][thread];
    }
  }
};

// Where the sums of some neighbouring columns are written.
struct SumTarget {
  float* sums;
  int64_t cols;
  int64_t stride;  // from one sum to the next
};
struct SumTargets {
  SumTarget of[3];
};

// Adds up the sums of `parts` pieces, partials[parts][stride], and writes the results to the
// targets. The targets have consecutive columns, beginning with the first. Targets without data are
// skipped.
void AddPartials(DeviceStream* stream, const float* partials, int64_t parts, int64_t stride,
                 const SumTargets& targets);

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_DEVICE_KERNELS_COLUMN_TILES_H_

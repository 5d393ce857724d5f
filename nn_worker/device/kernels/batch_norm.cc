#include "nn_worker/device/kernels/batch_norm.h"

#include "nn_worker/device/kernel.h"
#include "nn_worker/device/kernels/elementwise.h"
#include "nn_worker/device/kernels/value_access.h"

namespace satrap {
namespace {

// A warp reads 32 neighbouring columns of a row at once.
constexpr int kCols = 32;
constexpr int kRowsAtOnce = 8;
constexpr int64_t kThreads = 256;
constexpr int64_t kMaxGridY = 65535;

int64_t PiecesOf(int64_t rows) { return (rows + kBatchNormRows - 1) / kBatchNormRows; }

// Writes partials[piece] = [the sums of `first` | the sums of `second`] over the rows of a piece,
// where pair(r, c) returns both values.
struct Two {
  double first, second;
};
template <typename Pair>
SATRAP_DEVICE void SumPairs(int64_t rows, int64_t cols, double* partials, Pair pair) {
  // The rows have one unused column, so that the lanes of a warp use different banks.
  SHARED_ARRAY(double, first, [kRowsAtOnce][kCols + 1]);
  SHARED_ARRAY(double, second, [kRowsAtOnce][kCols + 1]);
  const int tx = static_cast<int>(ThreadIndex().x), ty = static_cast<int>(ThreadIndex().y);
  const int64_t c = static_cast<int64_t>(BlockIndex().x) * kCols + tx;
  // A grid has at most 65535 rows of blocks. If there are more pieces, a block computes several.
  for (int64_t piece = BlockIndex().y; piece * kBatchNormRows < rows; piece += GridSize().y) {
    const int64_t begin = piece * kBatchNormRows;
    const int64_t end = begin + kBatchNormRows < rows ? begin + kBatchNormRows : rows;
    Two sum = {0, 0};
    for (int64_t r = begin + ty; c < cols && r < end; r += kRowsAtOnce) {
      const Two value = pair(r, c);
      sum.first += value.first;
      sum.second += value.second;
    }
    first[ty][tx] = sum.first;
    second[ty][tx] = sum.second;
    SyncThreads();
    for (int height = kRowsAtOnce / 2; height > 0; height /= 2) {
      if (ty < height) {
        first[ty][tx] += first[ty + height][tx];
        second[ty][tx] += second[ty + height][tx];
      }
      SyncThreads();
    }
    if (ty == 0 && c < cols) {
      partials[piece * 2 * cols + c] = first[0][tx];
      partials[piece * 2 * cols + cols + c] = second[0][tx];
    }
    SyncThreads();
  }
}

SATRAP_KERNEL void MomentsKernel(ConstValues x, double* partials) {
  SumPairs(x.rows, x.cols, partials, [&](int64_t r, int64_t c) -> Two {
    const double value = LoadValue(x, r, c);
    return {value, value * value};
  });
}

SATRAP_KERNEL void GradSumsKernel(ConstValues x, BatchNormStats stats, ConstValues dy,
                                  double* partials) {
  SumPairs(x.rows, x.cols, partials, [&](int64_t r, int64_t c) -> Two {
    const float xhat = (LoadValue(x, r, c) - stats.mean[c]) * stats.inverse_std[c];
    const double gradient = LoadValue(dy, r, c);
    return {gradient, gradient * xhat};
  });
}

SATRAP_KERNEL void AddPiecesKernel(const double* partials, int64_t pieces, int64_t count,
                                   double* sums) {
  for (int64_t i = ThreadInGrid(); i < count; i += ThreadsInGrid()) {
    double sum = 0;
    for (int64_t piece = 0; piece < pieces; ++piece) sum += partials[piece * count + i];
    sums[i] = sum;
  }
}

// The number of samples. If there are none it is 1, because the sums are then 0 anyway.
SATRAP_DEVICE double CountOf(const double* sums, int64_t cols) {
  return sums[2 * cols] < 1 ? 1 : sums[2 * cols];
}

// Rounding may make the difference of nearly equal sums negative.
SATRAP_DEVICE double VarianceOf(const double* sums, int64_t cols, int64_t c, double n) {
  const double mean = sums[c] / n, variance = sums[cols + c] / n - mean * mean;
  // Max is not used, because it would hide a NaN.
  return variance < 0 ? 0 : variance;
}

SATRAP_KERNEL void StatsKernel(const double* sums, int64_t cols, float epsilon, float* mean,
                               float* inverse_std) {
  const double n = CountOf(sums, cols);
  for (int64_t c = ThreadInGrid(); c < cols; c += ThreadsInGrid()) {
    mean[c] = static_cast<float>(sums[c] / n);
    inverse_std[c] = static_cast<float>(1 / Sqrt(VarianceOf(sums, cols, c, n) + epsilon));
  }
}

SATRAP_KERNEL void InvertKernel(const float* variance, int64_t cols, float epsilon,
                                float* inverse_std) {
  for (int64_t c = ThreadInGrid(); c < cols; c += ThreadsInGrid()) {
    inverse_std[c] = 1 / Sqrt(variance[c] + epsilon);
  }
}

SATRAP_KERNEL void NormalizeKernel(ConstValues x, BatchNormStats stats, const float* gamma,
                                   const float* beta, Values y) {
  ForEachGroup(y.rows, GroupsOf(y.cols), [&](int64_t r, int64_t g) {
    const int64_t c = g * kGroup, left = y.cols - c;
    Group values = LoadGroup(x, r, c);
    for (int i = 0; i < kGroup && i < left; ++i) {
      values.lane[i] =
          (values.lane[i] - stats.mean[c + i]) * (gamma[c + i] * stats.inverse_std[c + i]) +
          beta[c + i];
    }
    StoreGroup(y, r, c, values);
  });
}

SATRAP_KERNEL void MeansKernel(const double* sums, const double* grad_sums, int64_t cols,
                               float* means) {
  const double n = CountOf(sums, cols);
  for (int64_t i = ThreadInGrid(); i < 2 * cols; i += ThreadsInGrid()) {
    means[i] = static_cast<float>(grad_sums[i] / n);
  }
}

SATRAP_KERNEL void NormalizeGradKernel(ConstValues x, BatchNormStats stats, const float* gamma,
                                       ConstValues dy, const float* means, Values dx, bool add) {
  ForEachGroup(x.rows, GroupsOf(x.cols), [&](int64_t r, int64_t g) {
    const int64_t c = g * kGroup, left = x.cols - c;
    const Group values = LoadGroup(x, r, c);
    Group gradients = LoadGroup(dy, r, c);
    for (int i = 0; i < kGroup && i < left; ++i) {
      const float inverse_std = stats.inverse_std[c + i];
      const float xhat = (values.lane[i] - stats.mean[c + i]) * inverse_std;
      gradients.lane[i] = gamma[c + i] * inverse_std *
                          (gradients.lane[i] - means[c + i] - xhat * means[x.cols + c + i]);
    }
    PutGroup(dx, r, c, gradients, add);
  });
}

SATRAP_KERNEL void RunningKernel(const StepControl* control, const double* sums, int64_t cols,
                                 float momentum, float* mean, float* variance) {
  if (control->apply == 0) return;
  const double n = sums[2 * cols];
  if (n == 0) return;  // without samples nothing is known of the distribution
  const double unbiased = n > 1 ? n / (n - 1) : 1;
  for (int64_t c = ThreadInGrid(); c < cols; c += ThreadsInGrid()) {
    mean[c] = static_cast<float>(momentum * mean[c] + (1 - momentum) * (sums[c] / n));
    variance[c] = static_cast<float>(momentum * variance[c] +
                                     (1 - momentum) * VarianceOf(sums, cols, c, n) * unbiased);
  }
}

uint32_t BlocksOf(int64_t count) {
  return static_cast<uint32_t>((count + kThreads - 1) / kThreads);
}

void LaunchAddPieces(DeviceStream* stream, const double* partials, int64_t rows, int64_t cols,
                     double* sums) {
  Launch<AddPiecesKernel>(stream, {BlocksOf(2 * cols)}, {kThreads}, 0, partials, PiecesOf(rows),
                          2 * cols, sums);
}

Dim3 PieceGrid(int64_t rows, int64_t cols) {
  const int64_t pieces = PiecesOf(rows);
  return {static_cast<uint32_t>((cols + kCols - 1) / kCols),
          static_cast<uint32_t>(pieces < kMaxGridY ? pieces : kMaxGridY)};
}

SATRAP_KERNEL void CountKernel(double* count, double rows) { *count = rows; }

}  // namespace

void SumMoments(DeviceStream* stream, ConstValues x, double* partials, double* sums) {
  Launch<CountKernel>(stream, {1}, {1}, 0, sums + 2 * x.cols, static_cast<double>(x.rows));
  if (x.cols == 0) return;
  if (x.rows > 0) {
    Launch<MomentsKernel>(stream, PieceGrid(x.rows, x.cols), {kCols, kRowsAtOnce}, 0, x, partials);
  }
  LaunchAddPieces(stream, partials, x.rows, x.cols, sums);
}

void MomentsToStats(DeviceStream* stream, const double* sums, int64_t cols, float epsilon,
                    float* mean, float* inverse_std) {
  if (cols == 0) return;
  Launch<StatsKernel>(stream, {BlocksOf(cols)}, {kThreads}, 0, sums, cols, epsilon, mean,
                      inverse_std);
}

void InvertDeviations(DeviceStream* stream, const float* variance, int64_t cols, float epsilon,
                      float* inverse_std) {
  if (cols == 0) return;
  Launch<InvertKernel>(stream, {BlocksOf(cols)}, {kThreads}, 0, variance, cols, epsilon,
                       inverse_std);
}

void Normalize(DeviceStream* stream, ConstValues x, const BatchNormStats& stats, const float* gamma,
               const float* beta, Values y) {
  if (y.rows == 0 || y.cols == 0) return;
  const ElementwiseShape shape = ShapeOf(y.rows, GroupsOf(y.cols));
  Launch<NormalizeKernel>(stream, shape.grid, shape.block, 0, x, stats, gamma, beta, y);
}

void SumBatchNormGrad(DeviceStream* stream, ConstValues x, const BatchNormStats& stats,
                      ConstValues dy, double* partials, double* grad_sums) {
  if (x.cols == 0) return;
  if (x.rows > 0) {
    Launch<GradSumsKernel>(stream, PieceGrid(x.rows, x.cols), {kCols, kRowsAtOnce}, 0, x, stats, dy,
                           partials);
  }
  LaunchAddPieces(stream, partials, x.rows, x.cols, grad_sums);
}

void NormalizeGrad(DeviceStream* stream, ConstValues x, const BatchNormStats& stats,
                   const float* gamma, ConstValues dy, const double* sums, const double* grad_sums,
                   float* means, Values dx, bool add) {
  if (x.rows == 0 || x.cols == 0) return;
  Launch<MeansKernel>(stream, {BlocksOf(2 * x.cols)}, {kThreads}, 0, sums, grad_sums, x.cols,
                      means);
  const ElementwiseShape shape = ShapeOf(x.rows, GroupsOf(x.cols));
  Launch<NormalizeGradKernel>(stream, shape.grid, shape.block, 0, x, stats, gamma, dy, means, dx,
                              add);
}

void UpdateRunningStats(DeviceStream* stream, const StepControl* control, const double* sums,
                        int64_t cols, float momentum, float* mean, float* variance) {
  if (cols == 0) return;
  Launch<RunningKernel>(stream, {BlocksOf(cols)}, {kThreads}, 0, control, sums, cols, momentum,
                        mean, variance);
}

}  // namespace satrap

#include "nn_worker/device/kernels/losses.h"

#include "nn_worker/device/kernel.h"
#include "nn_worker/device/kernels/activation_function.h"
#include "nn_worker/device/kernels/warp_sum.h"

namespace satrap {
namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / kWarpSize;

SATRAP_DEVICE float ValueOf(const Column& column, int64_t i) {
  return column.data == nullptr ? 1.0f : column.data[i * column.stride];
}

// The samples or pairs of this block.
struct Piece {
  int64_t begin, end;
};
SATRAP_DEVICE Piece PieceOfBlock(int64_t count) {
  const int64_t begin = static_cast<int64_t>(BlockIndex().x) * kLossPiece;
  return {begin, begin + kLossPiece < count ? begin + kLossPiece : count};
}

// Sums up `loss` and `total` over the block and writes the sums. All threads of the block must call
// it.
SATRAP_DEVICE void StorePartials(double loss, double total, double* partials) {
  SHARED_ARRAY(double, sums, [2][kWarps]);
  const int thread = static_cast<int>(ThreadIndex().x);
  loss = WarpSum(loss);
  total = WarpSum(total);
  if (thread % kWarpSize == 0) {
    sums[0][thread / kWarpSize] = loss;
    sums[1][thread / kWarpSize] = total;
  }
  SyncThreads();
  if (thread < 2) {
    double sum = 0;
    for (int warp = 0; warp < kWarps; ++warp) sum += sums[thread][warp];
    partials[2 * BlockIndex().x + thread] = sum;
  }
}

// Adds the partial sums in their order. All threads load them, because one thread alone would wait
// for memory again and again.
SATRAP_KERNEL void AddPartialsKernel(const double* partials, int64_t parts, double* sums) {
  SHARED_ARRAY(double, loaded, [kThreads]);
  const int thread = static_cast<int>(ThreadIndex().x);
  double sum = 0;
  for (int64_t begin = 0; begin < 2 * parts; begin += kThreads) {
    const int64_t left = 2 * parts - begin;
    if (thread < left) loaded[thread] = partials[begin + thread];
    SyncThreads();
    if (thread < 2) {
      for (int k = thread; k < kThreads && k < left; k += 2) sum += loaded[k];
    }
    SyncThreads();
  }
  if (thread < 2) sums[thread] = sum;
}

// The loss of one output, and its derivative.
struct Loss {
  float value, slope;
};
struct Bce {
  static SATRAP_DEVICE Loss Of(float z, float y) {
    // Max(z, 0) is not used, because it would hide a NaN in z.
    return {(z < 0 ? 0 : z) - z * y + Log1p(Exp(-Abs(z))), Sigmoid(z) - y};
  }
};
struct Squared {
  static SATRAP_DEVICE Loss Of(float z, float y) { return {(z - y) * (z - y), 2 * (z - y)}; }
};

template <typename LossOfOne>
SATRAP_KERNEL void SampleLossKernel(SampleLossArgs args, double* partials) {
  const Piece piece = PieceOfBlock(args.samples);
  const float scale = args.control->gradient_scale;
  double loss = 0, total = 0;
  for (int64_t i = piece.begin + ThreadIndex().x; i < piece.end; i += kThreads) {
    float* const gradient = args.gradients + i * args.gradient_stride;
    // A masked sample is skipped rather than multiplied by 0, because its label may be NaN.
    if (ValueOf(args.mask, i) == 0) {
      *gradient = 0;
      continue;
    }
    const float weight = ValueOf(args.weights, i);
    const Loss one = LossOfOne::Of(ValueOf(args.outputs, i), ValueOf(args.labels, i));
    loss += weight * one.value;
    total += weight;
    *gradient = weight * one.slope * scale;
  }
  StorePartials(loss, total, partials);
}

// The threads that share a row of scores: `lanes` neighbouring lanes of a warp, or for wide rows a
// whole block. ForEachRow calls body(team, row, whether the row exists) for all rows. All threads
// of a warp or block must call the functions of a team together, also for rows that do not exist. A
// thread handles every `lanes`-th column, and keeps the scores of its first kKept columns, so that
// a row is read only once unless it has more than kKept * lanes columns.
struct LaneTeam {
  static constexpr int kKept = 8;
  int lanes, lane;

  template <typename Body>
  static SATRAP_DEVICE void ForEachRow(int64_t rows, int lanes, Body body) {
    satrap::ForEachRow(rows, lanes, [&](int64_t row, int lane, bool exists) {
      body(LaneTeam{lanes, lane}, row, exists);
    });
  }
  SATRAP_DEVICE float Sum(float value) const { return WarpSum(value, lanes); }
  SATRAP_DEVICE float Largest(float value) const { return WarpMax(value, lanes); }
};

struct BlockTeam {
  static constexpr int kKept = 16;
  int lanes, lane;
  float* of_warps;  // [kWarps], shared

  template <typename Body>
  static SATRAP_DEVICE void ForEachRow(int64_t rows, int, Body body) {
    SHARED_ARRAY(float, of_warps, [kWarps]);
    const BlockTeam team = {kThreads, static_cast<int>(ThreadIndex().x), of_warps};
    for (int64_t row = BlockIndex().x; row < rows; row += GridSize().x) body(team, row, true);
  }
  // Adds the sums of the warps in their order.
  SATRAP_DEVICE float Sum(float value) const {
    Share(WarpSum(value));
    float sum = 0;
    for (int warp = 0; warp < kWarps; ++warp) sum += of_warps[warp];
    SyncThreads();
    return sum;
  }
  SATRAP_DEVICE float Largest(float value) const {
    Share(WarpMax(value, kWarpSize));
    float largest = of_warps[0];
    for (int warp = 1; warp < kWarps; ++warp) largest = Max(largest, of_warps[warp]);
    SyncThreads();
    return largest;
  }
  SATRAP_DEVICE void Share(float of_warp) const {
    if (lane % kWarpSize == 0) of_warps[lane / kWarpSize] = of_warp;
    SyncThreads();
  }
};

// A row of scores. Threads of a row that does not count read and write nothing.
//
// ScoreAt(c, &z) returns whether column c counts, and sets z to its score. A column that does not
// count has the gradient 0. The functions write the gradients, multiplied by `scaled`, and return
// the loss in every thread.
struct Row {
  int64_t columns;  // 0 if the row does not count
  int64_t positive;
  float scaled;
  float* gradients;
};

template <typename Team, typename ScoreAt>
SATRAP_DEVICE float SoftmaxOfRow(const Team& team, const Row& row, ScoreAt score_at) {
  float kept[Team::kKept] = {};
  uint32_t counted = 0;  // bit k: whether the column of kept[k] counts
  float positive = 0, z = 0;
  const int64_t first = static_cast<int64_t>(Team::kKept) * team.lanes + team.lane;
  if (row.columns > 0) score_at(row.positive, &positive);
  float largest = positive;
  for (int k = 0; k < Team::kKept; ++k) {
    const int64_t c = k * team.lanes + team.lane;
    if (c < row.columns && score_at(c, &kept[k])) counted |= 1u << k;
  }
  for (int k = 0; k < Team::kKept; ++k) {
    if ((counted >> k & 1) != 0) largest = Max(largest, kept[k]);
  }
  for (int64_t c = first; c < row.columns; c += team.lanes) {
    if (score_at(c, &z)) largest = Max(largest, z);
  }
  largest = team.Largest(largest);
  float sum = 0;
  for (int k = 0; k < Team::kKept; ++k) {
    if ((counted >> k & 1) == 0) continue;
    kept[k] = Exp(kept[k] - largest);
    sum += kept[k];
  }
  for (int64_t c = first; c < row.columns; c += team.lanes) {
    if (score_at(c, &z)) sum += Exp(z - largest);
  }
  sum = team.Sum(sum);
  const float factor = row.scaled / sum;
  for (int k = 0; k < Team::kKept; ++k) {
    const int64_t c = k * team.lanes + team.lane;
    if (c >= row.columns) continue;
    const float own = c == row.positive ? row.scaled : 0;
    row.gradients[c] = (counted >> k & 1) != 0 ? kept[k] * factor - own : 0;
  }
  for (int64_t c = first; c < row.columns; c += team.lanes) {
    const float own = c == row.positive ? row.scaled : 0;
    row.gradients[c] = score_at(c, &z) ? Exp(z - largest) * factor - own : 0;
  }
  // The largest term is 1, so the sum is at least 1.
  return Log1p(sum - 1) + largest - positive;
}

template <typename Team, typename ScoreAt>
SATRAP_DEVICE float LogisticOfRow(const Team& team, const Row& row, ScoreAt score_at) {
  float sum = 0, z = 0;
  for (int64_t c = team.lane; c < row.columns; c += team.lanes) {
    Loss one = {0, 0};
    if (score_at(c, &z)) one = Bce::Of(z, c == row.positive ? 1.0f : 0.0f);
    sum += one.value;
    row.gradients[c] = row.scaled * one.slope;
  }
  return team.Sum(sum);
}

template <typename Team>
SATRAP_DEVICE void ClearRow(const Team& team, float* gradients, int64_t columns) {
  for (int64_t c = team.lane; c < columns; c += team.lanes) gradients[c] = 0;
}

// The two kernels that handle rows write rows[2 i] = the weighted loss of sample i, and rows[2 i +
// 1] = its weight.
template <typename Team>
SATRAP_KERNEL void SoftmaxLossKernel(SoftmaxLossArgs args, int lanes, double* rows) {
  const float scale = args.control->gradient_scale;
  const int64_t classes = args.logits.cols;
  Team::ForEachRow(args.logits.rows, lanes, [&](const Team& team, int64_t i, bool exists) {
    const bool counts = exists && ValueOf(args.mask, i) != 0;
    const float* const z = args.logits.data + i * args.logits.stride;
    float* const dz = args.gradients.data + i * args.gradients.stride;
    if (exists && !counts) ClearRow(team, dz, classes);
    const float weight = counts ? ValueOf(args.weights, i) : 0;
    const float label = counts ? ValueOf(args.labels, i) : 0;
    // If the label is not a class, this makes the loss and the gradients NaN.
    const float valid = label >= 0 && label < static_cast<float>(classes) ? 1 : Sqrt(-1.0f);
    const int64_t y = valid == 1 ? static_cast<int64_t>(label) : 0;
    const Row row = {counts ? classes : 0, y, scale * weight * valid, dz};
    const float loss = SoftmaxOfRow(team, row, [z](int64_t c, float* score) {
      *score = z[c];
      return true;
    });
    if (exists && team.lane == 0) {
      rows[2 * i] = counts ? weight * static_cast<double>(loss * valid) : 0;
      rows[2 * i + 1] = weight;
    }
  });
}

template <CandidateLossKind kKind, typename Team>
SATRAP_KERNEL void CandidateLossKernel(CandidateLossArrays args, int lanes, double* rows) {
  const float scale = args.control->gradient_scale;
  const int64_t columns = args.scores.cols;
  Team::ForEachRow(args.scores.rows, lanes, [&](const Team& team, int64_t i, bool exists) {
    const bool counts = exists && ValueOf(args.mask, i) != 0;
    const float* const scores = args.scores.data + i * args.scores.stride;
    float* const gradients = args.gradients.data + i * args.gradients.stride;
    if (exists && !counts) ClearRow(team, gradients, columns);
    const float weight = counts ? ValueOf(args.weights, i) : 0;
    const int64_t p = args.positives_on_diagonal ? i : 0;
    const bool remove_hits = args.items != nullptr;
    const uint32_t own = counts && remove_hits ? args.positives[i * args.positives_stride] : 0;
    const auto score_at = [&args, scores, i, p, remove_hits, own](int64_t c, float* z) {
      if (remove_hits && c != p && args.items[c] == own) return false;
      *z = scores[c];
      if (args.log_q != nullptr) *z -= c == p ? ValueOf(args.positive_log_q, i) : args.log_q[c];
      return true;
    };
    const Row row = {counts ? columns : 0, p, scale * weight, gradients};
    const float loss = kKind == CandidateLossKind::kSoftmax ? SoftmaxOfRow(team, row, score_at)
                                                            : LogisticOfRow(team, row, score_at);
    if (exists && team.lane == 0) {
      rows[2 * i] = counts ? weight * static_cast<double>(loss) : 0;
      rows[2 * i + 1] = weight;
    }
  });
}

SATRAP_KERNEL void AddRowsKernel(const double* rows, int64_t samples, double* partials) {
  const Piece piece = PieceOfBlock(samples);
  double loss = 0, total = 0;
  for (int64_t i = piece.begin + ThreadIndex().x; i < piece.end; i += kThreads) {
    loss += rows[2 * i];
    total += rows[2 * i + 1];
  }
  StorePartials(loss, total, partials);
}

// Writes slopes[m] = the amount that pair m adds to the gradient of its negative.
SATRAP_KERNEL void PairLossKernel(PairLossArgs args, double* partials, float* slopes) {
  const Piece piece = PieceOfBlock(args.num_pairs);
  const float scale = args.control->gradient_scale;
  double loss = 0, total = 0;
  for (int64_t m = piece.begin + ThreadIndex().x; m < piece.end; m += kThreads) {
    const uint32_t* const pair = args.pairs + m * args.pair_stride;
    const float weight = ValueOf(args.weights, m);
    const float x = ValueOf(args.scores, pair[1]) - ValueOf(args.scores, pair[0]);
    // Applies exp only to a number that is not positive, so it cannot overflow.
    const float e = Exp(-Abs(x));
    loss += weight * ((x < 0 ? 0 : x) + Log1p(e));
    total += weight;
    slopes[m] = scale * (weight * (x > 0 ? 1.0f : e) / (1 + e));
  }
  StorePartials(loss, total, partials);
}

SATRAP_KERNEL void PairGradientKernel(PairLossArgs args, const float* slopes) {
  SHARED_ARRAY(uint32_t, positives, [kThreads]);
  SHARED_ARRAY(uint32_t, negatives, [kThreads]);
  SHARED_ARRAY(float, of_pairs, [kThreads]);
  const int thread = static_cast<int>(ThreadIndex().x);
  const int64_t sample = static_cast<int64_t>(BlockIndex().x) * kThreads + thread;
  float sum = 0;
  for (int64_t begin = 0; begin < args.num_pairs; begin += kThreads) {
    const int64_t left = args.num_pairs - begin;
    if (thread < left) {
      const uint32_t* const pair = args.pairs + (begin + thread) * args.pair_stride;
      positives[thread] = pair[0];
      negatives[thread] = pair[1];
      of_pairs[thread] = slopes[begin + thread];
    }
    SyncThreads();
    for (int k = 0; k < kThreads && k < left; ++k) {
      if (positives[k] == sample) sum -= of_pairs[k];
      if (negatives[k] == sample) sum += of_pairs[k];
    }
    SyncThreads();
  }
  if (sample < args.gradients.rows) args.gradients.data[sample * args.gradients.stride] = sum;
}

void LaunchAddPartials(DeviceStream* stream, const double* partials, int64_t samples,
                       double* sums) {
  Launch<AddPartialsKernel>(stream, {1}, {kThreads}, 0, partials, LossPartials(samples) / 2, sums);
}

Dim3 PieceGrid(int64_t samples) { return {static_cast<uint32_t>(LossPartials(samples) / 2)}; }

// Adds the losses and weights of rows.
void AddRows(DeviceStream* stream, const double* rows, int64_t samples, double* partials,
             double* sums) {
  if (samples > 0) {
    Launch<AddRowsKernel>(stream, PieceGrid(samples), {kThreads}, 0, rows, samples, partials);
  }
  LaunchAddPartials(stream, partials, samples, sums);
}

// A row with more columns is handled by a whole block.
constexpr int64_t kMostColumnsOfLanes = kWarpSize * LaneTeam::kKept;

Dim3 BlockRowGrid(int64_t rows) {
  return {static_cast<uint32_t>(rows < kMaxRowBlocks ? rows : kMaxRowBlocks)};
}

template <CandidateLossKind kKind>
void CandidateRows(DeviceStream* stream, const CandidateLossArrays& args, double* rows) {
  const int64_t samples = args.scores.rows, columns = args.scores.cols;
  if (columns > kMostColumnsOfLanes) {
    Launch<CandidateLossKernel<kKind, BlockTeam>>(stream, BlockRowGrid(samples), {kThreads}, 0,
                                                  args, kThreads, rows);
    return;
  }
  const int lanes = LanesOf(columns);
  Launch<CandidateLossKernel<kKind, LaneTeam>>(stream, RowGrid(samples, lanes), kRowBlock, 0, args,
                                               lanes, rows);
}

template <typename LossOfOne>
void SampleLoss(DeviceStream* stream, const SampleLossArgs& args, double* partials, double* sums) {
  if (args.samples > 0) {
    Launch<SampleLossKernel<LossOfOne>>(stream, PieceGrid(args.samples), {kThreads}, 0, args,
                                        partials);
  }
  LaunchAddPartials(stream, partials, args.samples, sums);
}

}  // namespace

void BceWithLogits(DeviceStream* stream, const SampleLossArgs& args, double* partials,
                   double* sums) {
  SampleLoss<Bce>(stream, args, partials, sums);
}

void SquaredError(DeviceStream* stream, const SampleLossArgs& args, double* partials,
                  double* sums) {
  SampleLoss<Squared>(stream, args, partials, sums);
}

void SoftmaxCrossEntropy(DeviceStream* stream, const SoftmaxLossArgs& args, double* scratch,
                         double* sums) {
  const int64_t samples = args.logits.rows, classes = args.logits.cols;
  double* const rows = scratch + LossPartials(samples);
  if (samples > 0) {
    if (classes > kMostColumnsOfLanes) {
      Launch<SoftmaxLossKernel<BlockTeam>>(stream, BlockRowGrid(samples), {kThreads}, 0, args,
                                           kThreads, rows);
    } else {
      const int lanes = LanesOf(classes);
      Launch<SoftmaxLossKernel<LaneTeam>>(stream, RowGrid(samples, lanes), kRowBlock, 0, args,
                                          lanes, rows);
    }
  }
  AddRows(stream, rows, samples, scratch, sums);
}

void CandidateLoss(DeviceStream* stream, CandidateLossKind kind, const CandidateLossArrays& args,
                   double* scratch, double* sums) {
  double* const rows = scratch + LossPartials(args.scores.rows);
  if (args.scores.rows > 0) {
    if (kind == CandidateLossKind::kSoftmax) {
      CandidateRows<CandidateLossKind::kSoftmax>(stream, args, rows);
    } else {
      CandidateRows<CandidateLossKind::kLogistic>(stream, args, rows);
    }
  }
  AddRows(stream, rows, args.scores.rows, scratch, sums);
}

void PairwiseLogistic(DeviceStream* stream, const PairLossArgs& args, double* scratch,
                      double* sums) {
  auto* const slopes = reinterpret_cast<float*>(scratch + LossPartials(args.num_pairs));
  if (args.num_pairs > 0) {
    Launch<PairLossKernel>(stream, PieceGrid(args.num_pairs), {kThreads}, 0, args, scratch, slopes);
  }
  LaunchAddPartials(stream, scratch, args.num_pairs, sums);
  if (args.gradients.rows == 0) return;
  const int64_t blocks = (args.gradients.rows + kThreads - 1) / kThreads;
  Launch<PairGradientKernel>(stream, {static_cast<uint32_t>(blocks)}, {kThreads}, 0, args, slopes);
}

}  // namespace satrap

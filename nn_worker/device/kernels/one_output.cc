#include "nn_worker/device/kernels/one_output.h"

#include "nn_worker/device/kernel.h"
#include "nn_worker/device/kernels/activation_function.h"
#include "nn_worker/device/kernels/column_access.h"
#include "nn_worker/device/kernels/column_tiles.h"
#include "nn_worker/device/kernels/elementwise.h"
#include "nn_worker/device/kernels/value_access.h"
#include "nn_worker/device/kernels/warp_sum.h"

namespace satrap {
namespace {

constexpr int kOctet = ColumnTiles::kOctet;

// The lanes that share a sample. Together they read 128 bytes of 16-bit values at a time.
constexpr int kLanesOfSample = 8;
constexpr int kForwardThreads = 256;
constexpr int kSamplesAtOnce = kForwardThreads / kLanesOfSample;
// About as many blocks as a card runs at the same time: more would read all weights more often than
// necessary.
constexpr int64_t kMostForwardBlocks = 528;
// The number of weights that a block holds at a time. It is a multiple of the columns that the
// lanes of a sample read at once, so that the order of a sum does not depend on it.
constexpr int kWeightsAtOnce = 2048;

struct ForwardArgs {
  ConstValues x, w, bias;
  Values y;
  Activation activation;
  int32_t aligned;
};

// Loads the values in rows[0, kCount) of a matrix of one column; a negative row gives 0. All loads
// are under way at the same time, because the type is tested only once.
template <typename T, int kCount>
SATRAP_DEVICE void LoadPlaces(const ConstValues& x, const int64_t* rows, float* values) {
  T loaded[kCount];
  for (int i = 0; i < kCount; ++i) {
    loaded[i] = rows[i] < 0 ? T{} : static_cast<const T*>(x.data)[rows[i] * x.stride];
  }
  for (int i = 0; i < kCount; ++i) values[i] = ToFloat(loaded[i]);
}
template <int kCount>
SATRAP_DEVICE void LoadColumn(const ConstValues& x, const int64_t* rows, float* values) {
  if (x.type == ElementType::kF32) {
    LoadPlaces<float, kCount>(x, rows, values);
  } else if (x.type == ElementType::kF16) {
    LoadPlaces<Half, kCount>(x, rows, values);
  } else {
    LoadPlaces<Bf16, kCount>(x, rows, values);
  }
}

// Copies weights [first, first + kWeightsAtOnce) to shared memory; 0 beyond the last.
SATRAP_DEVICE void LoadWeights(const ConstValues& w, int64_t first, Group* weights) {
  for (int g = static_cast<int>(ThreadIndex().x); g < kWeightsAtOnce / kGroup;
       g += kForwardThreads) {
    const int64_t row = first + g * kGroup;
    if (row >= w.rows + kOctet) return;
    int64_t rows[kGroup];
    for (int i = 0; i < kGroup; ++i) rows[i] = row + i < w.rows ? row + i : -1;
    LoadColumn<kGroup>(w, rows, weights[g].lane);
  }
}

// The columns of a sample whose weights are in shared memory, as one lane reads them.
template <typename Access>
struct ColumnsOfSample {
  static constexpr int kAtOnce = 2 * Access::kRows, kRuns = Octet<Access>::kRuns;

  int64_t row, begin;  // of the first column
  int count, whole;    // columns; octets that can be loaded in whole runs
  int lane;

  SATRAP_DEVICE ColumnsOfSample(const ConstValues& x, bool aligned, int64_t row, int64_t begin,
                                int lane)
      : row(row), begin(begin), lane(lane) {
    const int64_t left = x.cols - begin;
    count = left < kWeightsAtOnce ? static_cast<int>(left) : kWeightsAtOnce;
    whole = aligned ? count / kOctet : 0;
    if (row >= x.rows) whole = count = 0;
  }
  SATRAP_DEVICE Octet<Access> Load(const ConstValues& x, int octet, bool in_runs) const {
    Octet<Access> values;
    for (int r = 0; r < kRuns; ++r) {
      values.run[r] =
          Access::Load(x, row, begin + octet * kOctet + r * Access::kVectorLanes, in_runs);
    }
    return values;
  }
  // The k-th octet of the lane, counted from `octet`. If there are fewer, the last octet of the row
  // is loaded once more and not added.
  SATRAP_DEVICE int Wanted(int octet, int k) const {
    const int wanted = octet + k * kLanesOfSample;
    return wanted < whole ? wanted : whole - 1;
  }
  SATRAP_DEVICE void LoadNext(const ConstValues& x, int octet, Octet<Access>* values) const {
    if (octet >= whole) return;
    for (int k = 0; k < kAtOnce; ++k) values[k] = Load(x, Wanted(octet, k), /*in_runs=*/true);
  }
  // Adds the products of the lane's columns to `sum`. The first kAtOnce octets are in `values`.
  SATRAP_DEVICE float Sum(const ConstValues& x, const Group* weights, Octet<Access>* values,
                          float sum) const {
    const auto add = [&](int octet, const Octet<Access>& of_octet) {
      const Group* const w = weights + octet * (kOctet / kGroup);
      float with = sum;
      for (int i = 0; i < kOctet; ++i) with += of_octet.At(i) * w[i / kGroup].lane[i % kGroup];
      return with;
    };
    int octet = lane;
    for (; octet < whole; octet += kAtOnce * kLanesOfSample) {
      for (int k = 0; k < kAtOnce; ++k) {
        const float with = add(Wanted(octet, k), values[k]);
        sum = octet + k * kLanesOfSample < whole ? with : sum;
      }
      LoadNext(x, octet + kAtOnce * kLanesOfSample, values);
    }
    octet = lane < whole
                ? lane + (whole - lane + kLanesOfSample - 1) / kLanesOfSample * kLanesOfSample
                : lane;
    // Adds the octet that ends with the row or, if rows are not aligned, all octets.
    for (; octet * kOctet < count; octet += kLanesOfSample) {
      sum = add(octet, Load(x, octet, /*in_runs=*/false));
    }
    return sum;
  }
};

// The first octets of a sample are loaded early: before the weights or, for later samples, while
// the lanes' sums of the previous sample are added.
template <typename Access>
SATRAP_KERNEL void ForwardKernel(ForwardArgs args) {
  SHARED_ARRAY(Group, weights, [kWeightsAtOnce / kGroup]);
  using Columns = ColumnsOfSample<Access>;
  const ConstValues x = args.x;
  const bool aligned = args.aligned != 0;
  const int thread = static_cast<int>(ThreadIndex().x);
  const int lane = thread % kLanesOfSample;
  const int64_t at_once = static_cast<int64_t>(GridSize().x) * kSamplesAtOnce;
  const float bias = args.bias.data == nullptr ? 0 : LoadValue(args.bias, 0, 0);
  int64_t first = static_cast<int64_t>(BlockIndex().x) * kSamplesAtOnce;
  Octet<Access> octets[Columns::kAtOnce] = {};
  Columns(x, aligned, first + thread / kLanesOfSample, 0, lane).LoadNext(x, lane, octets);
  int64_t held = -1;  // the first weight in shared memory
  for (; first < x.rows; first += at_once) {
    const int64_t row = first + thread / kLanesOfSample;
    float sum = 0;
    for (int64_t begin = 0; begin < x.cols; begin += kWeightsAtOnce) {
      if (begin != held) {
        SyncThreads();
        LoadWeights(args.w, begin, weights);
        SyncThreads();
        held = begin;
      }
      const Columns columns(x, aligned, row, begin, lane);
      if (begin > 0) columns.LoadNext(x, lane, octets);
      sum = columns.Sum(x, weights, octets, sum);
    }
    Columns(x, aligned, row + at_once, 0, lane).LoadNext(x, lane, octets);
    sum = WarpSum(sum, kLanesOfSample);
    if (lane != 0 || row >= x.rows) continue;
    if (args.bias.data != nullptr) sum += bias;
    StoreValue(args.y, row, 0, Activated(args.activation, sum));
  }
}

struct BackwardArgs {
  OneOutputGradient gradient;
  ColumnTiles tiles;
  int32_t aligned;
  int32_t reads_x;
  float* partials;  // for each piece: dw, db and the input's bias gradient
};

// The number of rows of a thread whose loads are under way at the same time. With more, fewer
// blocks would fit.
constexpr int kBackwardRows = 2;

struct BackwardSums {
  float dw[kOctet];
  float input_bias[kOctet];
  float db;
};

// The gradients of a thread's columns in one row. Returns the values to store in dx.
template <typename Access>
SATRAP_DEVICE void AddRow(const OneOutputGradient& g, const Octet<Access>& x,
                          const Octet<Access>& before, const float* w, float dz, float* dx,
                          BackwardSums* sums) {
  sums->db += dz;
  for (int i = 0; i < kOctet; ++i) {
    const float input = x.At(i);
    sums->dw[i] += input * dz;
    float value = dz * w[i];
    if (g.add) value += before.At(i);
    value = Access::Rounded(g.dx, value);
    if (g.relu_of_x) value = ActivationGradient(Activation::kRelu, input, value);
    sums->input_bias[i] += value;
    dx[i] = value;
  }
}

template <typename Access, bool kWhole>
SATRAP_DEVICE void AddRows(const BackwardArgs& args, const ColumnsOfThread<Access>& mine,
                           const float* w, BackwardSums* sums) {
  const OneOutputGradient& g = args.gradient;
  mine.template ForRows<kWhole ? kBackwardRows : 1>([&](int64_t first, auto count) {
    constexpr int kCount = decltype(count)::value;
    Octet<Access> x[kCount] = {};
    float dz[kCount];
    if (args.reads_x != 0) {
      for (int k = 0; k < kCount; ++k) {
        x[k] = mine.template Load<kWhole>(g.x, first + k * mine.lanes);
      }
    }
    int64_t rows[kCount];
    for (int k = 0; k < kCount; ++k) rows[k] = first + k * mine.lanes;
    LoadColumn<kCount>(g.dz, rows, dz);
    for (int k = 0; k < kCount; ++k) {
      Octet<Access> before = {};
      if (g.add) before = mine.template Load<kWhole>(g.dx, first + k * mine.lanes);
      float dx[kOctet];
      AddRow<Access>(g, x[k], before, w, dz[k], dx, sums);
      if (g.dx.data != nullptr) mine.template Store<kWhole>(g.dx, first + k * mine.lanes, dx);
    }
  });
}

template <typename Access>
SATRAP_KERNEL void BackwardKernel(BackwardArgs args) {
  SHARED_ARRAY(float, shared, [kOctet][ColumnTiles::kThreads]);
  const OneOutputGradient& g = args.gradient;
  const int64_t in = args.tiles.cols;
  const ColumnsOfThread<Access> mine(args.tiles, g.dz.rows, args.aligned != 0);
  float w[kOctet];
  int64_t rows[kOctet];
  for (int i = 0; i < kOctet; ++i) {
    rows[i] = g.dx.data != nullptr && mine.Col(i) < in ? mine.Col(i) : -1;
  }
  LoadColumn<kOctet>(g.w, rows, w);
  BackwardSums sums = {};
  if (mine.whole) {
    AddRows<Access, true>(args, mine, w, &sums);
  } else {
    AddRows<Access, false>(args, mine, w, &sums);
  }
  float* const partials = args.partials + mine.piece * (2 * in + 1);
  if (g.dw.data != nullptr) mine.WriteSums(sums.dw, shared, partials);
  if (g.db != nullptr) {
    mine.template SumLanes<1>(&sums.db, shared);
    // Every tile computes this sum, so only the first one stores it.
    if (mine.thread == 0 && mine.first_col == 0) partials[in] = shared[0][0];
  }
  if (g.input_bias_gradient != nullptr) {
    mine.WriteSums(sums.input_bias, shared, partials + in + 1);
  }
}

template <typename Access>
void LaunchBackward(DeviceStream* stream, BackwardArgs args) {
  const OneOutputGradient& g = args.gradient;
  args.aligned = (args.reads_x == 0 || RunsAligned(g.x, Access::kVectorLanes)) &&
                         (g.dx.data == nullptr || RunsAligned(g.dx, Access::kVectorLanes))
                     ? 1
                     : 0;
  const int64_t blocks = args.tiles.Pieces(g.dz.rows) * args.tiles.tiles;
  Launch<BackwardKernel<Access>>(stream, {static_cast<uint32_t>(blocks)}, {ColumnTiles::kThreads},
                                 0, args);
}

}  // namespace

void OneOutputForward(DeviceStream* stream, ConstValues x, ConstValues w, ConstValues bias,
                      Activation activation, Values y) {
  if (y.rows == 0) return;
  const int64_t needed = (x.rows + kSamplesAtOnce - 1) / kSamplesAtOnce;
  const auto blocks =
      static_cast<uint32_t>(needed < kMostForwardBlocks ? needed : kMostForwardBlocks);
  WithType(x.type, [&](auto access) {
    using Access = decltype(access);
    const ForwardArgs args = {x, w,          bias,
                              y, activation, RunsAligned(x, Access::kVectorLanes) ? 1 : 0};
    Launch<ForwardKernel<Access>>(stream, {blocks}, {kForwardThreads}, 0, args);
  });
}

void OneOutputBackward(DeviceStream* stream, const OneOutputGradient& gradient, float* partials) {
  const OneOutputGradient& g = gradient;
  const int64_t n = g.dz.rows, in = g.dw.data != nullptr ? g.dw.rows : g.w.rows;
  const ColumnTiles tiles(in);
  if (n > 0) {
    const bool reads_x = g.dw.data != nullptr || g.relu_of_x;
    const bool one_type = !reads_x || g.dx.data == nullptr || g.x.type == g.dx.type;
    WithAccess(reads_x ? g.x.type : g.dx.type, one_type, [&](auto access) {
      LaunchBackward<decltype(access)>(stream, {g, tiles, 0, reads_x ? 1 : 0, partials});
    });
  }
  const int64_t input_cols = g.input_bias_gradient == nullptr ? 0 : in;
  AddPartials(
      stream, partials, tiles.Pieces(n), 2 * in + 1,
      {{{g.dw.data, in, g.dw.stride}, {g.db, 1, 1}, {g.input_bias_gradient, input_cols, 1}}});
}

}  // namespace satrap

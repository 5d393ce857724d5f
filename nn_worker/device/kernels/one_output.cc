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

// Lanes that share a sample. Together they read 128 bytes of 16-bit values at a time.
constexpr int kLanesOfSample = 8;
constexpr int kForwardThreads = 256;
constexpr int kSamplesAtOnce = kForwardThreads / kLanesOfSample;
// Not many more than a card runs at the same time, since each block reads all weights.
constexpr int64_t kMostForwardBlocks = 2048;
// Weights that a block holds at a time. A multiple of the columns that the lanes of a sample read
// at once, so that the order of a sum does not depend on it.
constexpr int kWeightsAtOnce = 2048;

struct ForwardArgs {
  ConstValues x, w, bias;
  Values y;
  Activation activation;
  int32_t aligned;
};

// Copies weights [first, first + kWeightsAtOnce) to shared memory; 0 beyond the last.
SATRAP_DEVICE void LoadWeights(const ConstValues& w, int64_t first, Group* weights) {
  for (int g = static_cast<int>(ThreadIndex().x); g < kWeightsAtOnce / kGroup;
       g += kForwardThreads) {
    const int64_t row = first + g * kGroup;
    if (row >= w.rows + kOctet) return;
    Group group = {};
    for (int i = 0; i < kGroup; ++i) {
      if (row + i < w.rows) group.lane[i] = LoadValue(w, row + i, 0);
    }
    weights[g] = group;
  }
}

// Adds the products of a lane's columns among `count` columns from `begin` on to `sum`. The loads
// of kAtOnce octets are under way before the first one is used. Where there are fewer, the last one
// of the row is loaded once more and left out.
template <typename Access>
SATRAP_DEVICE float SumColumns(const ConstValues& x, bool aligned, int64_t row, int64_t begin,
                               int count, int lane, const Group* weights, float sum) {
  constexpr int kAtOnce = 2 * Access::kRows, kRuns = Octet<Access>::kRuns;
  const auto load = [&](int octet, bool whole) {
    Octet<Access> values;
    for (int r = 0; r < kRuns; ++r) {
      values.run[r] = Access::Load(x, row, begin + octet * kOctet + r * Access::kLanes, whole);
    }
    return values;
  };
  const auto add = [&](int octet, const Octet<Access>& values) {
    const Group* const w = weights + octet * (kOctet / kGroup);
    float with = sum;
    for (int i = 0; i < kOctet; ++i) with += values.At(i) * w[i / kGroup].lane[i % kGroup];
    return with;
  };
  const int whole = aligned ? count / kOctet : 0;  // octets
  int octet = lane;
  for (; octet < whole; octet += kAtOnce * kLanesOfSample) {
    const auto of = [&](int k) {
      const int wanted = octet + k * kLanesOfSample;
      return wanted < whole ? wanted : whole - 1;
    };
    Octet<Access> values[kAtOnce];
    for (int k = 0; k < kAtOnce; ++k) values[k] = load(of(k), /*whole=*/true);
    for (int k = 0; k < kAtOnce; ++k) {
      const float with = add(of(k), values[k]);
      sum = octet + k * kLanesOfSample < whole ? with : sum;
    }
  }
  octet = lane < whole
              ? lane + (whole - lane + kLanesOfSample - 1) / kLanesOfSample * kLanesOfSample
              : lane;
  // The octet that ends with the row, or all octets of rows that are not aligned.
  for (; octet * kOctet < count; octet += kLanesOfSample) {
    sum = add(octet, load(octet, /*whole=*/false));
  }
  return sum;
}

template <typename Access>
SATRAP_KERNEL void ForwardKernel(ForwardArgs args) {
  SHARED_ARRAY(Group, weights, [kWeightsAtOnce / kGroup]);
  const ConstValues x = args.x;
  const int thread = static_cast<int>(ThreadIndex().x);
  const int lane = thread % kLanesOfSample;
  int64_t held = -1;  // the first weight in shared memory
  for (int64_t first = static_cast<int64_t>(BlockIndex().x) * kSamplesAtOnce; first < x.rows;
       first += static_cast<int64_t>(GridSize().x) * kSamplesAtOnce) {
    const int64_t row = first + thread / kLanesOfSample;
    float sum = 0;
    for (int64_t begin = 0; begin < x.cols; begin += kWeightsAtOnce) {
      if (begin != held) {
        SyncThreads();
        LoadWeights(args.w, begin, weights);
        SyncThreads();
        held = begin;
      }
      const int64_t left = x.cols - begin;
      const int count = left < kWeightsAtOnce ? static_cast<int>(left) : kWeightsAtOnce;
      if (row >= x.rows) continue;
      sum = SumColumns<Access>(x, args.aligned != 0, row, begin, count, lane, weights, sum);
    }
    sum = WarpSum(sum, kLanesOfSample);
    if (lane != 0 || row >= x.rows) continue;
    if (args.bias.data != nullptr) sum += LoadValue(args.bias, 0, 0);
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
  mine.template ForRows<kWhole ? Access::kRows : 1>([&](int64_t first, auto count) {
    constexpr int kCount = decltype(count)::value;
    Octet<Access> x[kCount] = {};
    float dz[kCount];
    if (args.reads_x != 0) {
      for (int k = 0; k < kCount; ++k) {
        x[k] = mine.template Load<kWhole>(g.x, first + k * mine.lanes);
      }
    }
    for (int k = 0; k < kCount; ++k) dz[k] = LoadValue(g.dz, first + k * mine.lanes, 0);
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
  float w[kOctet] = {};
  for (int i = 0; i < kOctet; ++i) {
    if (g.dx.data != nullptr && mine.Col(i) < in) w[i] = LoadValue(g.w, mine.Col(i), 0);
  }
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
    // Every tile has this sum.
    if (mine.thread == 0 && mine.first_col == 0) partials[in] = shared[0][0];
  }
  if (g.input_bias_gradient != nullptr) {
    mine.WriteSums(sums.input_bias, shared, partials + in + 1);
  }
}

template <typename Access>
void LaunchBackward(DeviceStream* stream, BackwardArgs args) {
  const OneOutputGradient& g = args.gradient;
  args.aligned = (args.reads_x == 0 || RunsAligned(g.x, Access::kLanes)) &&
                         (g.dx.data == nullptr || RunsAligned(g.dx, Access::kLanes))
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
    const ForwardArgs args = {x, w, bias, y, activation, RunsAligned(x, Access::kLanes) ? 1 : 0};
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

#include "nn_worker/device/kernels/scatter_rows.h"

#include <bit>

#include "nn_worker/device/kernel.h"
#include "nn_worker/device/kernels/elementwise.h"
#include "nn_worker/device/kernels/loaded_group.h"
#include "nn_worker/device/kernels/pooling_scale.h"
#include "nn_worker/device/kernels/value_access.h"
#include "nn_worker/device/vec.h"

namespace satrap {
namespace {

constexpr int64_t kLocatingThreads = 256;
constexpr int64_t kMaxLocatingBlocks = 4096;
constexpr int kMaxGridY = 65535;
// A block has one thread for each group of a row, for as many rows as fit.
constexpr int32_t kSummingThreads = 128;
// Few enough blocks that a thread handles several rows: 24 blocks for each of 132 multiprocessors,
// which run 5 to 7 blocks at the same time.
constexpr int64_t kMaxSummingBlocks = 132 * 24;
// The number of gradients that a thread loads at the same time.
constexpr int kLoadsAtOnce = 4;
constexpr auto kPiece = static_cast<uint32_t>(kIdsOfPiece);
constexpr uint32_t kNoRow = 0xffffffffu;

struct SumArgs : ScatterArgs {
  uint32_t reciprocal;  // of `samples`, times 2^32, rounded down
};

SATRAP_KERNEL void LocateIdsKernel(const ScatterFeature* features, uint32_t first_feature,
                                   int64_t samples, IdPlace* places) {
  const uint32_t number = first_feature + BlockIndex().y;
  const ScatterFeature feature = features[number];
  const bool sequence = feature.pooling == RowPooling::kNone;
  const int64_t at_once = static_cast<int64_t>(GridSize().x) * BlockSize().x;
  for (int64_t s = static_cast<int64_t>(BlockIndex().x) * BlockSize().x + ThreadIndex().x;
       s < samples; s += at_once) {
    const auto own = static_cast<uint32_t>(s);
    const uint32_t begin = feature.offsets == nullptr ? own : feature.offsets[s];
    const uint32_t end = feature.offsets == nullptr ? own + 1 : feature.offsets[s + 1];
    const float scale = PoolingScale(feature.pooling, feature.weights, begin, end);
    for (uint32_t j = begin; j < end; ++j) {
      const bool cut_off = sequence && j - begin >= static_cast<uint32_t>(feature.max_length);
      const float weight = feature.weights == nullptr ? 1 : feature.weights[j];
      places[feature.first_id + j] = {number, own, sequence && !cut_off ? j - begin : 0,
                                      cut_off ? 0 : weight * scale};
    }
  }
}

// With the reciprocal, the quotient of 32-bit numbers takes only a few instructions. This quotient
// is too small by at most 1.
SATRAP_DEVICE IdPlace PlaceOf(const SumArgs& args, uint32_t id) {
  if (args.places != nullptr) return args.places[id];
  auto feature = static_cast<uint32_t>(static_cast<uint64_t>(id) * args.reciprocal >> 32);
  uint32_t sample = id - feature * args.samples;
  if (sample >= args.samples) {
    sample -= args.samples;
    ++feature;
  }
  return {feature, sample, 0, 1};
}

// Loads groups of gradients if all gradients have the type In.
template <typename In>
struct GradientsOf {
  using Loaded = LoadedGroup<In>;
  static SATRAP_DEVICE const void* At(const ScatterSource& source, int64_t at) {
    return static_cast<const In*>(source.gradient) + at;
  }
  static SATRAP_DEVICE Loaded Start(const void* p, ElementType, int32_t count, bool inside) {
    return StartLoad(static_cast<const In*>(p), count, inside);
  }
  static SATRAP_DEVICE Group Get(const Loaded& loaded) { return ValuesOf(loaded); }
};

// A group of F32 that is not aligned is loaded value by value, since two accesses of 16 bytes would
// take twice as many registers.
template <>
struct GradientsOf<float> {
  using Loaded = Group;
  static SATRAP_DEVICE const void* At(const ScatterSource& source, int64_t at) {
    return static_cast<const float*>(source.gradient) + at;
  }
  static SATRAP_DEVICE Loaded Start(const void* p, ElementType, int32_t count, bool) {
    const bool aligned = reinterpret_cast<uintptr_t>(p) % sizeof(Group) == 0;
    return LoadGroup(static_cast<const float*>(p), count, aligned);
  }
  static SATRAP_DEVICE Group Get(const Loaded& loaded) { return loaded; }
};

// Loads groups of gradients of different types. Both halves of a group of a 16-bit type are kept
// where an F32 group has its four values, so that they need no further registers.
struct MixedGradients {
  struct Loaded {
    Group values;
    uint32_t shift;
    ElementType type;
  };
  static SATRAP_DEVICE const void* At(const ScatterSource& source, int64_t at) {
    return static_cast<const char*>(source.gradient) + at * ElementBytes(source.type);
  }
  static SATRAP_DEVICE Loaded Start(const void* p, ElementType type, int32_t count, bool inside) {
    if (type == ElementType::kF32) {
      return {GradientsOf<float>::Start(p, type, count, inside), 0, type};
    }
    // A load treats both 16-bit types alike.
    const LoadedGroup<Half> halves = StartLoad(static_cast<const Half*>(p), count, inside);
    const Halves kept = {{halves.low, halves.high}};
    return {std::bit_cast<Group>(kept), halves.shift, type};
  }
  static SATRAP_DEVICE Group Get(const Loaded& loaded) {
    if (loaded.type == ElementType::kF32) return loaded.values;
    const auto kept = std::bit_cast<Halves>(loaded.values);
    if (loaded.type == ElementType::kF16) {
      return ValuesOf(LoadedGroup<Half>{kept.lane[0], kept.lane[1], loaded.shift});
    }
    return ValuesOf(LoadedGroup<Bf16>{kept.lane[0], kept.lane[1], loaded.shift});
  }

 private:
  using Halves = Vec<uint64_t, 2>;
};

// A gradient in memory, or a null pointer.
struct Addend {
  const void* values;
  ElementType type;
  float coefficient;
  bool inside;  // StartLoad
};

template <typename Gradients>
SATRAP_DEVICE Addend AddendOf(const SumArgs& args, const ScatterGroup& group, uint32_t id) {
  const IdPlace place = PlaceOf(args, id);
  const ScatterSource& source =
      args.sources[static_cast<int64_t>(place.feature) * args.num_spans + group.span];
  // An id with the coefficient 0 is skipped rather than multiplied by 0, because its gradient may
  // be infinite.
  if (source.gradient == nullptr || place.coefficient == 0) return {nullptr, source.type, 0, false};
  const int64_t at = static_cast<int64_t>(place.sample) * source.stride +
                     static_cast<int64_t>(place.position) * source.position_stride + group.offset;
  return {Gradients::At(source, at), source.type, place.coefficient,
          place.sample + kRowsBeforeEnd < args.samples};
}

// The range of the list that holds the ids of a row, or of a piece of it.
struct IdRange {
  uint32_t begin, end;
};
// The next ids of a range, as many as a thread uses at the same time. If there are fewer, the last
// one is repeated.
struct NextIds {
  uint32_t of[kLoadsAtOnce];
};
SATRAP_DEVICE NextIds LoadIds(const SumArgs& args, uint32_t first, uint32_t end) {
  NextIds ids = {};
  if (first >= end) return ids;
  for (int i = 0; i < kLoadsAtOnce; ++i) {
    ids.of[i] = args.ids[first + i < end ? first + i : end - 1];
  }
  return ids;
}

// The sum over a range, in its order. `ids` are the first ids of the range.
template <typename Gradients>
SATRAP_DEVICE Group SumIds(const SumArgs& args, const ScatterGroup& group, const IdRange& range,
                           NextIds ids) {
  Group sum = {};
  for (uint32_t first = range.begin; first < range.end; first += kLoadsAtOnce) {
    Addend addends[kLoadsAtOnce];
    for (int i = 0; i < kLoadsAtOnce; ++i) {
      addends[i] = AddendOf<Gradients>(args, group, ids.of[i]);
    }
    typename Gradients::Loaded loaded[kLoadsAtOnce];
    for (int i = 0; i < kLoadsAtOnce; ++i) {
      loaded[i] = {};
      if (addends[i].values != nullptr && first + i < range.end) {
        loaded[i] =
            Gradients::Start(addends[i].values, addends[i].type, group.count, addends[i].inside);
      }
    }
    // These loads are under way together with those of the gradients.
    ids = LoadIds(args, first + kLoadsAtOnce, range.end);
    for (int i = 0; i < kLoadsAtOnce; ++i) {
      if (addends[i].values == nullptr || first + i >= range.end) continue;
      const Group values = Gradients::Get(loaded[i]);
      for (int k = 0; k < kGroup; ++k) {
        sum.lane[k] += addends[i].coefficient * values.lane[k];
      }
    }
  }
  return sum;
}

// The row that has the id at `position` of the list. Each step divides the remaining rows into 16
// parts, because a step takes the time of one access to memory, no matter how many accesses it
// makes side by side.
SATRAP_DEVICE uint32_t RowAt(const uint32_t* starts, int64_t num_rows, uint32_t position) {
  constexpr int kParts = 16;
  int64_t low = 0, high = num_rows;  // starts[low] <= position < starts[high]
  while (low + 1 < high) {
    const int64_t part = (high - low + kParts - 1) / kParts;
    int64_t before = 0;  // parts whose ends are at or before `position`
    for (int64_t i = 1; i < kParts; ++i) {
      const int64_t end = low + i * part;
      const uint32_t start = starts[end < high ? end : high];
      before += start <= position ? 1 : 0;
    }
    low += before * part;
    high = low + part < high ? low + part : high;
  }
  return static_cast<uint32_t>(low);
}

// The slot for the sum of piece `piece` of a row whose ids begin at `begin`. A row's first piece
// may begin within the same 256 positions of the list as the last piece of another row. So a first
// piece has an odd slot, and all other pieces have even slots.
SATRAP_DEVICE int64_t SlotOf(uint32_t begin, int64_t piece) {
  return 2 * (begin / kIdsOfPiece + piece) + (piece == 0 ? 1 : 0);
}

struct Piece {
  uint32_t row;  // kNoRow: there is none
  uint32_t number, begin, end;
};

// Finds a piece of the row that has the id at position 256 * j of the list (j > 0). Finds none if
// the row is not large. If `later` is false, finds the row's first piece, unless that piece begins
// more than 256 ids before this position or exactly at it. If `later` is true, finds the later
// piece, if any, that begins within the 256 ids from this position on. So each piece is found
// exactly once, because a large row has more than 256 ids.
SATRAP_DEVICE Piece FindPiece(const ScatterArgs& args, int64_t num_rows, uint32_t j, bool later) {
  const uint32_t position = j * kPiece;
  const uint32_t row = RowAt(args.starts, num_rows, position);
  const uint32_t begin = args.starts[row], end = args.starts[row + 1];
  if (end - begin <= kPiece) return {kNoRow, 0, 0, 0};
  if (!later) {
    if (begin == position || position - begin > kPiece) return {kNoRow, 0, 0, 0};
    return {row, 0, begin, begin + kPiece};
  }
  const uint32_t number = (position - begin + kPiece - 1) / kPiece;
  const uint32_t first = begin + number * kPiece;
  if (number == 0 || first >= end || first - position >= kPiece) return {kNoRow, 0, 0, 0};
  return {row, number, first, end - first < kPiece ? end : first + kPiece};
}

// What a thread of a block handles: the slot for a row, and the first of the thread's groups.
struct Part {
  int32_t slot, lane;    // slot: under `slots`, or the thread has nothing to do
  int32_t slots, width;  // how many threads share a row
};

SATRAP_DEVICE Part PartOf(const ScatterArgs& args) {
  const int32_t width = args.num_groups < kSummingThreads ? args.num_groups : kSummingThreads;
  const auto thread = static_cast<int32_t>(ThreadIndex().x);
  const int32_t slot = thread / width;
  return {slot, thread - slot * width, kSummingThreads / width, width};
}

template <typename Gradients>
SATRAP_DEVICE void SumPieces(const SumArgs& args, Matrix<float> gradients, const Part& part,
                             int64_t blocks) {
  const int64_t stride = PieceColumns(gradients.cols);
  const int64_t count = 2 * ((static_cast<int64_t>(args.num_ids) - 1) / kPiece);
  for (int64_t unit = BlockIndex().x * part.slots + part.slot; unit < count;
       unit += blocks * part.slots) {
    const auto j = static_cast<uint32_t>(unit / 2 + 1);
    const bool later = unit % 2 != 0;
    const Piece piece = FindPiece(args, gradients.rows, j, later);
    if (!later && part.lane == 0) args.large_rows[j] = piece.row;
    if (piece.row == kNoRow) continue;
    float* const sums = args.pieces + SlotOf(args.starts[piece.row], piece.number) * stride;
    const NextIds ids = LoadIds(args, piece.begin, piece.end);
    for (int32_t g = part.lane; g < args.num_groups; g += part.width) {
      const ScatterGroup group = args.groups[g];
      const Group sum = SumIds<Gradients>(args, group, {piece.begin, piece.end}, ids);
      StoreGroup(sums + group.column, sum, group.count, group.column % kGroup == 0);
    }
  }
}

// The ids of a row. There are none if the row is beyond the last one.
SATRAP_DEVICE IdRange RangeOf(const SumArgs& args, int64_t num_rows, int64_t row) {
  if (row >= num_rows) return {0, 0};
  return {args.starts[row], args.starts[row + 1]};
}

// While a row is summed, the thread loads the first ids of its next row, and the range of ids of
// the row after that. So a row takes the time of one access to memory instead of three.
template <typename Gradients>
SATRAP_DEVICE void SumRows(const SumArgs& args, Matrix<float> gradients, bool aligned,
                           const Part& part, int64_t piece_blocks) {
  const int64_t step = (GridSize().x - piece_blocks) * part.slots;
  for (int32_t g = part.lane; g < args.num_groups; g += part.width) {
    const ScatterGroup group = args.groups[g];
    const bool wide = aligned && group.column % kGroup == 0;
    int64_t r = (BlockIndex().x - piece_blocks) * part.slots + part.slot;
    IdRange range = RangeOf(args, gradients.rows, r);
    IdRange next_range = RangeOf(args, gradients.rows, r + step);
    NextIds ids = LoadIds(args, range.begin, range.end);
    for (; r < gradients.rows; r += step) {
      const IdRange later_range = RangeOf(args, gradients.rows, r + 2 * step);
      const NextIds next_ids = LoadIds(args, next_range.begin, next_range.end);
      if (range.end - range.begin <= kPiece) {
        const Group sum = SumIds<Gradients>(args, group, range, ids);
        StoreGroup(gradients.data + r * gradients.stride + group.column, sum, group.count, wide);
      }
      range = next_range;
      next_range = later_range;
      ids = next_ids;
    }
  }
}

// The first `piece_blocks` blocks sum the pieces of large rows, which take longest. The other
// blocks sum all other rows.
template <typename Gradients>
SATRAP_KERNEL void SumKernel(SumArgs args, Matrix<float> gradients, bool aligned,
                             int64_t piece_blocks) {
  const Part part = PartOf(args);
  if (part.slot >= part.slots) return;
  if (BlockIndex().x < piece_blocks) {
    SumPieces<Gradients>(args, gradients, part, piece_blocks);
  } else {
    SumRows<Gradients>(args, gradients, aligned, part, piece_blocks);
  }
}

// Adds at most 256 partial sums. Neighbouring ones are `each` pieces apart.
SATRAP_DEVICE Group SumOfPieces(const float* pieces, int64_t stride, const ScatterGroup& group,
                                uint32_t begin, int64_t first, int64_t end, int64_t each) {
  constexpr int kAtOnce = 16;
  const bool aligned = group.column % kGroup == 0;
  Group sum = {};
  for (int64_t piece = first; piece < end; piece += kAtOnce * each) {
    Group values[kAtOnce];
    for (int i = 0; i < kAtOnce; ++i) {
      const int64_t at = piece + i * each < end ? piece + i * each : piece;
      values[i] =
          LoadGroup(pieces + SlotOf(begin, at) * stride + group.column, group.count, aligned);
    }
    for (int i = 0; i < kAtOnce; ++i) {
      if (piece + i * each >= end) break;
      for (int k = 0; k < kGroup; ++k) sum.lane[k] += values[i].lane[k];
    }
  }
  return sum;
}

SATRAP_DEVICE int64_t PiecesOf(const ScatterArgs& args, uint32_t row) {
  return (static_cast<int64_t>(args.starts[row + 1]) - args.starts[row] + kIdsOfPiece - 1) /
         kIdsOfPiece;
}

// Adds the sums of the pieces of a row that has more than 256 pieces. The sum of every 256 pieces
// is stored in place of the sum of the first of these pieces. All threads of the block call it.
SATRAP_DEVICE void SumLargeRow(const ScatterArgs& args, Matrix<float> gradients, bool aligned,
                               const Part& part, uint32_t row) {
  const int64_t stride = PieceColumns(gradients.cols);
  const uint32_t begin = args.starts[row];
  const int64_t pieces = PiecesOf(args, row);
  int64_t each = 1;
  for (; pieces > each * kIdsOfPiece; each *= kIdsOfPiece) {
    const int64_t larger = each * kIdsOfPiece;
    for (int64_t first = part.slot * larger; part.slot < part.slots && first < pieces;
         first += part.slots * larger) {
      const int64_t end = first + larger < pieces ? first + larger : pieces;
      for (int32_t g = part.lane; g < args.num_groups; g += part.width) {
        const ScatterGroup group = args.groups[g];
        const Group sum = SumOfPieces(args.pieces, stride, group, begin, first, end, each);
        StoreGroup(args.pieces + SlotOf(begin, first) * stride + group.column, sum, group.count,
                   group.column % kGroup == 0);
      }
    }
    SyncThreads();
  }
  if (part.slot != 0) return;
  for (int32_t g = part.lane; g < args.num_groups; g += part.width) {
    const ScatterGroup group = args.groups[g];
    const Group sum = SumOfPieces(args.pieces, stride, group, begin, 0, pieces, each);
    StoreGroup(gradients.data + row * gradients.stride + group.column, sum, group.count,
               aligned && group.column % kGroup == 0);
  }
}

// Each slot of a block handles the large row, if any, that FindPiece found for one j. If the row
// has at most 256 pieces, the slot's threads add them; otherwise the whole block does.
SATRAP_KERNEL void SumLargeRowsKernel(ScatterArgs args, Matrix<float> gradients, bool aligned) {
  SHARED_ARRAY(int32_t, larger_rows, [1]);
  const Part part = PartOf(args);
  const int64_t last = (static_cast<int64_t>(args.num_ids) - 1) / kIdsOfPiece;
  const int64_t first = 1 + static_cast<int64_t>(BlockIndex().x) * part.slots;
  if (ThreadIndex().x == 0) larger_rows[0] = 0;
  SyncThreads();
  const bool searches = part.slot < part.slots && first + part.slot <= last;
  const uint32_t row = searches ? args.large_rows[first + part.slot] : kNoRow;
  const int64_t pieces = row == kNoRow ? 0 : PiecesOf(args, row);
  if (pieces > kIdsOfPiece) {
    AtomicMax(&larger_rows[0], 1);
  } else if (pieces > 0) {
    for (int32_t g = part.lane; g < args.num_groups; g += part.width) {
      const ScatterGroup group = args.groups[g];
      const Group sum = SumOfPieces(args.pieces, PieceColumns(gradients.cols), group,
                                    args.starts[row], 0, pieces, 1);
      StoreGroup(gradients.data + row * gradients.stride + group.column, sum, group.count,
                 aligned && group.column % kGroup == 0);
    }
  }
  SyncThreads();
  if (larger_rows[0] == 0) return;
  for (int64_t j = first; j < first + part.slots && j <= last; ++j) {
    const uint32_t larger = args.large_rows[j];
    if (larger == kNoRow || PiecesOf(args, larger) <= kIdsOfPiece) continue;
    SumLargeRow(args, gradients, aligned, part, larger);
  }
}

int64_t BlocksOf(int64_t count, int64_t each, int64_t most) {
  const int64_t blocks = (count + each - 1) / each;
  return blocks < most ? blocks : most;
}

}  // namespace

void LocateIds(DeviceStream* stream, const ScatterFeature* features, int num_features,
               int64_t samples, IdPlace* places) {
  if (samples == 0) return;
  const auto blocks =
      static_cast<uint32_t>(BlocksOf(samples, kLocatingThreads, kMaxLocatingBlocks));
  for (int first = 0; first < num_features; first += kMaxGridY) {
    const int count = num_features - first < kMaxGridY ? num_features - first : kMaxGridY;
    Launch<LocateIdsKernel>(stream, {blocks, static_cast<uint32_t>(count)}, {kLocatingThreads}, 0,
                            features, first, samples, places);
  }
}

void ScatterRows(DeviceStream* stream, const ScatterArgs& args, Matrix<float> gradients) {
  if (gradients.rows == 0 || gradients.cols == 0) return;
  const bool aligned = RowsAligned(gradients, kGroup * sizeof(float));
  const int64_t width = args.num_groups < kSummingThreads ? args.num_groups : kSummingThreads;
  const int64_t slots = kSummingThreads / width;
  const int64_t steps = args.num_ids == 0 ? 0 : (args.num_ids - 1) / kIdsOfPiece;
  const int64_t piece_blocks = BlocksOf(2 * steps, slots, kMaxSummingBlocks);
  const Dim3 grid = {
      static_cast<uint32_t>(piece_blocks + BlocksOf(gradients.rows, slots, kMaxSummingBlocks))};
  const Dim3 block = {static_cast<uint32_t>(kSummingThreads)};
  const SumArgs sum_args = {args, args.samples == 0 ? 0 : 0xffffffffu / args.samples};
  const auto launch = [&](auto gradients_of) {
    Launch<SumKernel<decltype(gradients_of)>>(stream, grid, block, 0, sum_args, gradients, aligned,
                                              piece_blocks);
  };
  if (args.mixed) {
    launch(MixedGradients());
  } else if (args.type == ElementType::kF32) {
    launch(GradientsOf<float>());
  } else if (args.type == ElementType::kF16) {
    launch(GradientsOf<Half>());
  } else {
    launch(GradientsOf<Bf16>());
  }
  if (steps == 0) return;
  const int64_t blocks = (steps + slots - 1) / slots;
  Launch<SumLargeRowsKernel>(stream, {static_cast<uint32_t>(blocks)}, block, 0, args, gradients,
                             aligned);
}

}  // namespace satrap

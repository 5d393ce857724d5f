#include "nn_worker/device/kernels/pair_dots.h"

#include "nn_worker/device/kernel.h"
#include "nn_worker/device/kernels/chunk.h"
#include "nn_worker/device/kernels/elementwise.h"
#include "nn_worker/device/kernels/staged_vectors.h"
#include "nn_worker/device/kernels/value_access.h"
#include "nn_worker/device/vec.h"

namespace satrap {
namespace {

// Loads a group of the vector that begins at column `begin`, in one access if the vector begins at
// a multiple of 4 values.
SATRAP_DEVICE Group LoadPart(const ConstValues& x, int64_t row, int64_t begin, int64_t offset,
                             int64_t left) {
  return LoadGroup(x.data, x.type, row * x.stride + begin + offset, left,
                   x.aligned != 0 && begin % kGroup == 0);
}

// Each thread computes one product. Neighbouring threads compute neighbouring terms of a sample,
// whose vectors are in the cache.
SATRAP_KERNEL void PairDotsKernel(const ConstValues* inputs, const DotTerm* terms, int64_t dim,
                                  Values y) {
  ForEachGroup(y.rows, y.cols, [&](int64_t r, int64_t t) {
    const DotTerm term = terms[t];
    const ConstValues a = inputs[term.a], b = inputs[term.b];
    float sum = 0;
    for (int64_t d = 0; d < dim; d += kGroup) {
      const Group of_a = LoadPart(a, r, term.a_column, d, dim - d);
      const Group of_b = LoadPart(b, r, term.b_column, d, dim - d);
      for (int i = 0; i < kGroup; ++i) sum += of_a.lane[i] * of_b.lane[i];
    }
    StoreValue(y, r, t, sum);
  });
}

SATRAP_KERNEL void PairDotsGradKernel(const ConstValues* inputs, const DotGradPiece* pieces,
                                      const DotFactor* factors, ConstValues dy) {
  const DotGradPiece piece = pieces[BlockIndex().z];
  const bool aligned = piece.dx.aligned != 0 && piece.column % kGroup == 0;
  ForEachGroup(dy.rows, GroupsOf(piece.width), [&](int64_t r, int64_t g) {
    const int64_t offset = g * kGroup, left = piece.width - offset;
    const int64_t at = r * piece.dx.stride + piece.column + offset;
    Group sum = {};
    for (int32_t f = piece.first; f < piece.first + piece.count; ++f) {
      const DotFactor factor = factors[f];
      const float slope = LoadValue(dy, r, factor.term);
      const Group values = LoadPart(inputs[factor.input], r, factor.column, offset, left);
      for (int i = 0; i < kGroup; ++i) sum.lane[i] += slope * values.lane[i];
    }
    if (piece.add != 0) {
      const Group before = LoadGroup(piece.dx.data, piece.dx.type, at, left, aligned);
      for (int i = 0; i < kGroup; ++i) sum.lane[i] += before.lane[i];
    }
    StoreGroup(piece.dx.data, piece.dx.type, at, sum, left, aligned);
  });
}

// The places of a tile's products in the row of a sample, in bytes. A word holds two of them,
// because a thread keeps the places of its tile for all of its samples.
struct TilePlaces {
  static constexpr uint32_t kNone = 0xffff;  // more bytes than fit into shared memory
  uint32_t words[kTileProducts / 2];

  // `terms` points to the term of the first product; the terms of the other products follow at
  // distances of `num_tiles`.
  static SATRAP_DEVICE TilePlaces Load(const int32_t* terms, int num_tiles) {
    TilePlaces places;
    for (int i = 0; i < kTileProducts; i += 2) {
      const uint32_t low = PlaceOf(terms[i * num_tiles]);
      places.words[i / 2] = low | PlaceOf(terms[(i + 1) * num_tiles]) << 16;
    }
    return places;
  }
  static SATRAP_DEVICE uint32_t PlaceOf(int32_t term) {
    return term < 0 ? kNone : static_cast<uint32_t>(term) * uint32_t{sizeof(float)};
  }
  SATRAP_DEVICE uint32_t Of(int product) const {
    return words[product / 2] >> product % 2 * 16 & kNone;
  }
};

// Computes the products of a tile. `a` and `b` are its first vectors in shared memory; the others
// follow at distances of `step` bytes. In the last tiles some vectors do not exist, and their
// products are not used.
template <typename T>
SATRAP_DEVICE void DotsOfTile(const unsigned char* a, const unsigned char* b, int step, int chunks,
                              const TilePlaces& places, float* dots) {
  // Only 4 values of each vector are held at a time, so that a multiprocessor has registers for
  // more threads.
  using Part = Chunk<T, static_cast<int>(sizeof(T))>;
  constexpr int kPartBytes = Part::kVectorLanes * static_cast<int>(sizeof(T));
  float sums[kDotTile][kDotTile] = {};
  for (int c = 0; c < chunks * kChunkBytes; c += kPartBytes) {
    Part of_a[kDotTile], of_b[kDotTile];
    for (int i = 0; i < kDotTile; ++i) {
      of_a[i] = Part::Load(a + i * step + c);
      of_b[i] = Part::Load(b + i * step + c);
    }
    for (int lane = 0; lane < Part::kVectorLanes; ++lane) {
      for (int i = 0; i < kDotTile; ++i) {
        for (int j = 0; j < kDotTile; ++j) {
          sums[i][j] += of_a[i].Value(lane) * of_b[j].Value(lane);
        }
      }
    }
  }
  for (int i = 0; i < kDotTile; ++i) {
    for (int j = 0; j < kDotTile; ++j) {
      const uint32_t place = places.Of(i * kDotTile + j);
      if (place == TilePlaces::kNone) continue;
      *reinterpret_cast<float*>(reinterpret_cast<unsigned char*>(dots) + place) = sums[i][j];
    }
  }
}

// Rows of y in shared memory consist of whole chunks of any type.
constexpr int kMostLanes = kVecLanes<uint16_t>;
constexpr int64_t DotsOfRow(int64_t terms) {
  return (terms + kMostLanes - 1) / kMostLanes * kMostLanes;
}

// Writes rows of y from shared memory. Each row is written by one warp.
template <typename T>
SATRAP_DEVICE void StoreDots(const float* dots, int64_t first, int samples, const Values& y) {
  using Row = Chunk<T>;
  const int thread = static_cast<int>(ThreadIndex().x), lane = thread % kWarpSize;
  const int warps = static_cast<int>(BlockSize().x) / kWarpSize;
  const int cols = static_cast<int>(y.cols), stride = static_cast<int>(DotsOfRow(cols));
  for (int i = thread / kWarpSize; i < samples; i += warps) {
    T* const row = static_cast<T*>(y.data) + (first + i) * y.stride;
    const float* const values = dots + i * stride;
    const int whole = IsChunk(row) ? cols / Row::kVectorLanes * Row::kVectorLanes : 0;
    for (int c = lane * Row::kVectorLanes; c < whole; c += kWarpSize * Row::kVectorLanes) {
      Row chunk = {};
      for (int k = 0; k < Row::kVectorLanes; k += kGroup) {
        const auto group = LoadVec<kGroup>(values + c + k);
        for (int n = 0; n < kGroup; ++n) chunk.Set(k + n, FromFloat<T>(group.lane[n]));
      }
      chunk.Store(row + c);
    }
    for (int c = whole + lane; c < cols; c += kWarpSize) row[c] = FromFloat<T>(values[c]);
  }
}

// A block computes the products of `samples_a_block` samples. They are collected in shared memory,
// because a row of y is written in whole chunks. A thread computes the same tile for several
// samples.
template <typename T>
SATRAP_KERNEL void DotTilesKernel(DotVectors vectors, const DotTile* tiles, const int32_t* terms,
                                  int num_tiles, int samples_a_block, Values y) {
  auto* const shared = DynamicShared<unsigned char>();
  const SharedRows rows = SharedRowsOf(sizeof(T), vectors.dim);
  const int64_t first = static_cast<int64_t>(BlockIndex().x) * samples_a_block;
  const int64_t left = y.rows - first;
  const int samples = left < samples_a_block ? static_cast<int>(left) : samples_a_block;
  const int thread = static_cast<int>(ThreadIndex().x), threads = static_cast<int>(BlockSize().x);
  const int step = DotTileStep(vectors.count) * rows.bytes, sample_bytes = step * kDotTile;
  const int stride = static_cast<int>(DotsOfRow(y.cols));
  auto* const dots = reinterpret_cast<float*>(shared + samples_a_block * sample_bytes);
  StageVectors<T>(vectors, first, samples, rows, sample_bytes, shared);
  SyncThreads();
  const int at_once = threads < num_tiles ? 1 : threads / num_tiles;  // samples
  const int sample = threads < num_tiles ? 0 : thread / num_tiles;
  for (int k = thread - sample * num_tiles; k < num_tiles && sample < at_once; k += threads) {
    const DotTile tile = tiles[k];
    const TilePlaces places = TilePlaces::Load(terms + k, num_tiles);
    for (int i = sample; i < samples; i += at_once) {
      const unsigned char* const x = shared + i * sample_bytes;
      DotsOfTile<T>(x + tile.a * rows.bytes, x + tile.b * rows.bytes, step, rows.chunks, places,
                    dots + i * stride);
    }
  }
  SyncThreads();
  if (y.type == ElementType::kF32) {
    StoreDots<float>(dots, first, samples, y);
  } else if (y.type == ElementType::kF16) {
    StoreDots<Half>(dots, first, samples, y);
  } else {
    StoreDots<Bf16>(dots, first, samples, y);
  }
}

// The derivatives of one term, and the places in the symmetric matrices of samples to which they
// are copied. The members point to the next sample.
template <typename T>
struct SlopesOfTerm {
  const T* dy;
  int64_t dy_stride;
  float *ab, *ba;
  int of_sample;  // values from a sample's matrix to the next one's

  // Moves on by `samples` samples, or back if `samples` is negative.
  SATRAP_DEVICE void Skip(int samples) {
    dy += samples * dy_stride;
    ab += samples * of_sample;
    ba += samples * of_sample;
  }
  // Copies the derivatives of kCount samples. All loads are under way at the same time.
  template <int kCount>
  SATRAP_DEVICE void Copy() {
    T values[kCount];
    for (int i = 0; i < kCount; ++i, dy += dy_stride) values[i] = *dy;
    for (int i = 0; i < kCount; ++i, ab += of_sample, ba += of_sample) {
      *ab = *ba = ToFloat(values[i]);
    }
  }
};

// Writes the derivatives of each sample's terms into a symmetric matrix, whose diagonal is 0.
// Values beyond the vectors are never used. Neighbouring threads handle neighbouring terms, so that
// few of them write to the same bank. `dy` points to the first sample.
template <typename T>
SATRAP_DEVICE void StageSlopes(const T* dy, int64_t dy_stride, int terms, const DotPair* pairs,
                               int samples, int vectors, float* slopes) {
  constexpr int kMany = 8, kSome = 4;
  const int stride = DotTileStep(vectors) * kDotTile, of_sample = vectors * stride;
  const int thread = static_cast<int>(ThreadIndex().x), threads = static_cast<int>(BlockSize().x);
  for (int t = thread; t < terms; t += threads) {
    const DotPair pair = pairs[t];
    SlopesOfTerm<T> of_term = {dy + t, dy_stride, slopes + pair.a * stride + pair.b,
                               slopes + pair.b * stride + pair.a, of_sample};
    int left = samples;
    for (; left >= kMany; left -= kMany) of_term.template Copy<kMany>();
    for (; left >= kSome; left -= kSome) of_term.template Copy<kSome>();
    if (left > 0 && samples >= kSome) {
      // Some samples are copied again, because loads of single values would wait for one another.
      of_term.Skip(left - kSome);
      of_term.template Copy<kSome>();
      left = 0;
    }
    for (; left > 0; --left) of_term.template Copy<1>();
  }
  for (int v = thread; v < vectors; v += threads) {
    for (int i = 0; i < samples; ++i) slopes[i * of_sample + v * (stride + 1)] = 0;
  }
}
SATRAP_DEVICE void StageSlopes(const ConstValues& dy, const DotPair* pairs, int64_t first,
                               int samples, int vectors, float* slopes) {
  const int terms = static_cast<int>(dy.cols);
  const int64_t at = first * dy.stride;
  if (dy.type == ElementType::kF32) {
    StageSlopes(static_cast<const float*>(dy.data) + at, dy.stride, terms, pairs, samples, vectors,
                slopes);
  } else if (dy.type == ElementType::kF16) {
    StageSlopes(static_cast<const Half*>(dy.data) + at, dy.stride, terms, pairs, samples, vectors,
                slopes);
  } else {
    StageSlopes(static_cast<const Bf16*>(dy.data) + at, dy.stride, terms, pairs, samples, vectors,
                slopes);
  }
}

// Stores a chunk of a gradient or, with `add`, adds it. Only the first `left` values exist.
template <typename T>
SATRAP_DEVICE void PutChunk(T* p, const float* values, int64_t left, bool add) {
  constexpr int kVectorLanes = Chunk<T>::kVectorLanes;
  if (left < kVectorLanes || !IsChunk(p)) {
    for (int i = 0; i < kVectorLanes; ++i) {
      if (i < left) p[i] = FromFloat<T>(add ? values[i] + ToFloat(p[i]) : values[i]);
    }
    return;
  }
  Chunk<T> after = {};
  if (add) {
    const Chunk<T> before = Chunk<T>::Load(p);
    for (int i = 0; i < kVectorLanes; ++i) after.Set(i, FromFloat<T>(values[i] + before.Value(i)));
  } else {
    for (int i = 0; i < kVectorLanes; ++i) after.Set(i, FromFloat<T>(values[i]));
  }
  after.Store(p);
}

// One chunk of the gradient of each of 4 vectors. The first of these is vector number `first`.
template <typename T>
using TileSums = float[kDotTile][Chunk<T>::kVectorLanes];

// `x` points to the chunk of vector 0; the chunks of other vectors are `step` bytes apart. `slopes`
// points to the derivatives of the terms of vector 0 with the 4 vectors; those of other vectors are
// `stride` values apart. With kSkip, a vector's own value is skipped rather than multiplied by 0,
// because the product would be NaN if the value is infinite.
template <typename T, bool kSkip>
SATRAP_DEVICE void GradientsOfTile(const unsigned char* x, int step, const float* slopes,
                                   int stride, int first, int count, TileSums<T>& sums) {
  for (int i = 0; i < kDotTile; ++i) {
    for (int lane = 0; lane < Chunk<T>::kVectorLanes; ++lane) sums[i][lane] = 0;
  }
  for (int other = 0; other < count; ++other) {
    const Chunk<T> values = Chunk<T>::Load(x + other * step);
    const auto factors = LoadVec<kDotTile>(slopes + other * stride);
    for (int i = 0; i < kDotTile; ++i) {
      if (kSkip && other == first + i) continue;
      for (int lane = 0; lane < Chunk<T>::kVectorLanes; ++lane) {
        sums[i][lane] += factors.lane[i] * values.Value(lane);
      }
    }
  }
}

template <typename T>
SATRAP_DEVICE bool HasNan(const TileSums<T>& sums) {
  bool has = false;
  for (int i = 0; i < kDotTile; ++i) {
    for (int lane = 0; lane < Chunk<T>::kVectorLanes; ++lane) has |= sums[i][lane] != sums[i][lane];
  }
  return has;
}

// Each thread computes one chunk of the gradients of 4 vectors. Neighbouring threads handle
// neighbouring samples, for the same reason as in StageVectors.
template <typename T>
SATRAP_KERNEL void DotGradTilesKernel(DotVectors vectors, const DotGradTarget* targets,
                                      const DotPair* pairs, int samples_a_block, ConstValues dy) {
  auto* const shared = DynamicShared<unsigned char>();
  const SharedRows rows = DenseRowsOf(sizeof(T), vectors.dim);
  const int64_t first = static_cast<int64_t>(BlockIndex().x) * samples_a_block;
  const int64_t left = dy.rows - first;
  const int samples = left < samples_a_block ? static_cast<int>(left) : samples_a_block;
  const int count = vectors.count, tiles = DotTileStep(count), stride = tiles * kDotTile;
  const int sample_bytes = (count | 1) * rows.bytes;
  auto* const slopes = reinterpret_cast<float*>(shared + samples_a_block * sample_bytes);
  StageVectors<T>(vectors, first, samples, rows, sample_bytes, shared);
  StageSlopes(dy, pairs, first, samples, count, slopes);
  SyncThreads();
  const int threads = static_cast<int>(BlockSize().x), parts = samples * rows.chunks;
  for (int part = static_cast<int>(ThreadIndex().x); part < tiles * parts; part += threads) {
    const int tile = part / parts * kDotTile, of_tile = part % parts;
    const int sample = of_tile / rows.chunks, chunk = of_tile % rows.chunks;
    const unsigned char* const x = shared + sample * sample_bytes + chunk * kChunkBytes;
    const float* const slope = slopes + sample * count * stride + tile;
    TileSums<T> sums;
    GradientsOfTile<T, false>(x, rows.bytes, slope, stride, tile, count, sums);
    if (HasNan<T>(sums)) {
      GradientsOfTile<T, true>(x, rows.bytes, slope, stride, tile, count, sums);
    }
    const int64_t offset = static_cast<int64_t>(chunk) * Chunk<T>::kVectorLanes;
    for (int i = 0; i < kDotTile; ++i) {
      if (tile + i >= count) continue;
      const DotGradTarget target = targets[tile + i];
      if (target.data == nullptr) continue;
      T* const dx = static_cast<T*>(target.data) + (first + sample) * target.stride;
      PutChunk(dx + offset, sums[i], vectors.dim - offset, target.add != 0);
    }
  }
}

constexpr int64_t kMostSharedBytes = 48 << 10;
// With more samples, there would be few blocks for each multiprocessor, and loads would not become
// any wider.
constexpr int64_t kMostTileSamples = 16;
constexpr int64_t kMostTileThreads = 256;

// A block with as many threads as there are parts of `work`, up to the maximum. If threads have to
// handle several parts, all handle about the same number.
Dim3 BlockFor(int64_t work) {
  const int64_t rounds = (work + kMostTileThreads - 1) / kMostTileThreads;
  const int64_t threads = rounds > 1 ? (work + rounds - 1) / rounds : work;
  const int64_t warps = (threads + kWarpSize - 1) / kWarpSize;
  return {static_cast<uint32_t>((warps > 1 ? warps : 1) * kWarpSize)};
}

int SamplesIn(int64_t sample_bytes) {
  const int64_t samples = kMostSharedBytes / sample_bytes;
  return static_cast<int>(samples < kMostTileSamples ? samples : kMostTileSamples);
}

// Includes the vectors of all tiles, even those that do not exist.
int64_t BytesOfDots(int vectors, ElementType type, int64_t dim, int64_t terms) {
  return int64_t{DotTileStep(vectors)} * kDotTile * SharedRowsOf(ElementBytes(type), dim).bytes +
         DotsOfRow(terms) * static_cast<int64_t>(sizeof(float));
}

int64_t BytesOfDotGrad(int vectors, ElementType type, int64_t dim) {
  return int64_t{vectors | 1} * DenseRowsOf(ElementBytes(type), dim).bytes +
         int64_t{vectors} * DotTileStep(vectors) * kDotTile * static_cast<int64_t>(sizeof(float));
}

Dim3 GridFor(int64_t rows, int samples) {
  return {static_cast<uint32_t>((rows + samples - 1) / samples)};
}

int64_t PartsOfDotGrad(int vectors, ElementType type, int64_t dim) {
  return int64_t{DotTileStep(vectors)} * DenseRowsOf(ElementBytes(type), dim).chunks;
}

// The number of lanes that `parts` parts of work occupy, including lanes that have nothing to do.
int64_t LanesFor(int64_t parts) {
  const int64_t threads = BlockFor(parts).x;
  return (parts + threads - 1) / threads * threads;
}

template <typename T>
void LaunchTiles(DeviceStream* stream, const DotVectors& vectors, const DotTile* tiles,
                 const int32_t* terms, int num_tiles, const Values& y) {
  const int samples = DotTileSamples(vectors.count, vectors.type, vectors.dim, y.cols);
  const int64_t bytes = BytesOfDots(vectors.count, vectors.type, vectors.dim, y.cols);
  // The block has threads for all tiles of as many samples as possible.
  const int64_t most = kMostTileThreads / num_tiles;
  const int64_t rounds = most > 0 ? (samples + most - 1) / most : 1;
  const int64_t at_once = most > 0 ? (samples + rounds - 1) / rounds : 1;
  Launch<DotTilesKernel<T>>(stream, GridFor(y.rows, samples), BlockFor(at_once * num_tiles),
                            samples * bytes, vectors, tiles, terms, num_tiles, samples, y);
}

template <typename T>
void LaunchGradTiles(DeviceStream* stream, const DotVectors& vectors, const DotGradTarget* targets,
                     const DotPair* pairs, const ConstValues& dy) {
  const int samples = DotGradSamples(vectors.count, vectors.type, vectors.dim);
  const int64_t bytes = BytesOfDotGrad(vectors.count, vectors.type, vectors.dim);
  const int64_t work = samples * PartsOfDotGrad(vectors.count, vectors.type, vectors.dim);
  Launch<DotGradTilesKernel<T>>(stream, GridFor(dy.rows, samples), BlockFor(work), samples * bytes,
                                vectors, targets, pairs, samples, dy);
}

// The z index of a block is the number of its piece. A card has at most 65535 blocks in z.
constexpr int kMaxPieces = 65535;

}  // namespace

void PairDots(DeviceStream* stream, const ConstValues* inputs, const DotTerm* terms, int64_t dim,
              Values y) {
  if (y.rows == 0 || y.cols == 0) return;
  const ElementwiseShape shape = ShapeOf(y.rows, y.cols);
  Launch<PairDotsKernel>(stream, shape.grid, shape.block, 0, inputs, terms, dim, y);
}

void PairDotsGrad(DeviceStream* stream, const ConstValues* inputs, const DotGradPiece* pieces,
                  int num_pieces, int64_t max_width, const DotFactor* factors, ConstValues dy) {
  if (dy.rows == 0 || max_width == 0) return;
  ElementwiseShape shape = ShapeOf(dy.rows, GroupsOf(max_width));
  for (int first = 0; first < num_pieces; first += kMaxPieces) {
    const int left = num_pieces - first;
    shape.grid.z = static_cast<uint32_t>(left < kMaxPieces ? left : kMaxPieces);
    Launch<PairDotsGradKernel>(stream, shape.grid, shape.block, 0, inputs, pieces + first, factors,
                               dy);
  }
}

int DotTileSamples(int vectors, ElementType type, int64_t dim, int64_t terms) {
  return SamplesIn(BytesOfDots(vectors, type, dim, terms));
}

// The number of samples per block for which the number of occupied lanes per sample is smallest.
int DotGradSamples(int vectors, ElementType type, int64_t dim) {
  const int most = SamplesIn(BytesOfDotGrad(vectors, type, dim));
  const int64_t parts = PartsOfDotGrad(vectors, type, dim);
  int best = most;
  for (int samples = most - 1; samples > most / 2; --samples) {
    if (LanesFor(samples * parts) * best < LanesFor(best * parts) * samples) best = samples;
  }
  return best;
}

void PairDotsInTiles(DeviceStream* stream, const DotVectors& vectors, const DotTile* tiles,
                     const int32_t* terms, int num_tiles, Values y) {
  if (y.rows == 0 || num_tiles == 0) return;
  if (vectors.type == ElementType::kF32) {
    LaunchTiles<float>(stream, vectors, tiles, terms, num_tiles, y);
  } else if (vectors.type == ElementType::kF16) {
    LaunchTiles<Half>(stream, vectors, tiles, terms, num_tiles, y);
  } else {
    LaunchTiles<Bf16>(stream, vectors, tiles, terms, num_tiles, y);
  }
}

void PairDotsGradInTiles(DeviceStream* stream, const DotVectors& vectors,
                         const DotGradTarget* targets, const DotPair* pairs, ConstValues dy) {
  if (dy.rows == 0 || vectors.count == 0) return;
  if (vectors.type == ElementType::kF32) {
    LaunchGradTiles<float>(stream, vectors, targets, pairs, dy);
  } else if (vectors.type == ElementType::kF16) {
    LaunchGradTiles<Half>(stream, vectors, targets, pairs, dy);
  } else {
    LaunchGradTiles<Bf16>(stream, vectors, targets, pairs, dy);
  }
}

}  // namespace satrap

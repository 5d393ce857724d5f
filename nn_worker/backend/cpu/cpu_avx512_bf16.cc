#include "nn_worker/backend/cpu/cpu_avx512_bf16.h"

#include <cpuid.h>
#include <immintrin.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "common/base/check.h"
#include "nn_worker/backend/cpu/cpu_matrix.h"
#include "nn_worker/backend/cpu/host_tensor.h"

// g++ 12 warns about values that its own intrinsics leave undefined on purpose.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"

// Marks functions that use the AVX512_BF16 instructions. They run only where IsSupported().
#define SATRAP_AVX512_BF16 \
  __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512bf16"), optimize("O3")))

namespace satrap {
namespace {

// The number of sums in a vector, and of 32-bit words in a vector of packed factors. A word is a
// pair of BF16 values, the first of them in its lower half.
constexpr int64_t kVectorLanes = 16;
// The maximum number of vectors in a row of a tile. With 6 rows, 4 vectors take 24 registers of
// sums, which leaves 8 for the factors. More rows would not hide more of the instruction's latency,
// and fewer would load more.
constexpr int64_t kMostVectors = 4;
constexpr int kTileRows[kMostVectors + 1] = {0, 12, 12, 9, 6};  // by vectors
// A multiple of every number of rows that a tile can have.
constexpr int64_t kBlockRows = 36;
// The number of rows in a slice of y or dx: large enough that the packed weights are read seldom,
// and small enough that threads share a part of some thousand samples evenly.
constexpr int64_t kSliceRows = 4 * kBlockRows;
// The number of rows that PairRows prefetches ahead, and the number of 16-bit values in a cache
// line.
constexpr int64_t kPrefetchRows = 24;
constexpr int64_t kLineHalves = 32;

// The left factor of a tile. The word at data + r * row_bytes + k * pair_bytes is the k-th pair of
// values of row r.
struct Left {
  const char* data;
  int64_t row_bytes, pair_bytes;
  int64_t pairs;
  bool odd;  // one more value of each row follows its pairs

  Left Rows(int64_t begin) const {
    Left rows = *this;
    rows.data += begin * row_bytes;
    return rows;
  }
};

// Where the sums of a tile go.
struct Target {
  char* data;
  int64_t row_bytes;
  int64_t cols;  // of the tile
  bool is_bf16, add, relu;
  const float* bias;  // of the tile's columns, or null
};

SATRAP_AVX512_BF16 inline __m512i WordEverywhere(const char* at) {
  int32_t word;
  std::memcpy(&word, at, sizeof(word));
  return _mm512_set1_epi32(word);
}
SATRAP_AVX512_BF16 inline __m512i HalfEverywhere(const char* at) {
  uint16_t half;
  std::memcpy(&half, at, sizeof(half));
  return _mm512_set1_epi32(half);
}
SATRAP_AVX512_BF16 inline __m512bh Pairs(__m512i words) {
  return reinterpret_cast<__m512bh>(words);
}
SATRAP_AVX512_BF16 inline __mmask16 FirstLanes(int64_t count) {
  return static_cast<__mmask16>((1u << std::clamp<int64_t>(count, 0, kVectorLanes)) - 1);
}

// As Bf16FromF32 (common/numeric/half.h), except that subnormal values become 0. A ForkJoinPool
// flushes them anyway (common/numeric/denormals.h), so none reaches this function.
SATRAP_AVX512_BF16 inline __m256i Rounded(__m512 values) {
  return reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(values));
}
SATRAP_AVX512_BF16 inline __m512 Widened(__m256i halves) {
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(halves), 16));
}

// Finishes and stores the sums of 16 columns of a row, starting at column `at` of the tile.
SATRAP_AVX512_BF16 inline void Store(__m512 sums, const Target& target, char* row, int64_t at) {
  const __mmask16 mask = FirstLanes(target.cols - at);
  if (target.bias != nullptr) {
    sums = _mm512_add_ps(sums, _mm512_maskz_loadu_ps(mask, target.bias + at));
  }
  if (target.is_bf16) {
    char* const to = row + at * static_cast<int64_t>(sizeof(uint16_t));
    if (target.add) sums = _mm512_add_ps(Widened(_mm256_maskz_loadu_epi16(mask, to)), sums);
    // With the operands in this order, a NaN in `sums` stays a NaN.
    if (target.relu) sums = _mm512_max_ps(_mm512_setzero_ps(), sums);
    _mm256_mask_storeu_epi16(to, mask, Rounded(sums));
  } else {
    char* const to = row + at * static_cast<int64_t>(sizeof(float));
    if (target.add) sums = _mm512_add_ps(_mm512_maskz_loadu_ps(mask, to), sums);
    if (target.relu) sums = _mm512_max_ps(_mm512_setzero_ps(), sums);
    _mm512_mask_storeu_ps(to, mask, sums);
  }
}

// Multiplies kRows rows of the left factor by kVectors vectors of columns of `right`, whose words
// are [pairs][kVectors][16]. Reads all of the kRows rows, but writes only the first `rows` rows of
// the result.
template <int kRows, int kVectors>
SATRAP_AVX512_BF16 void Tile(const Left& left, const uint32_t* right, const Target& target,
                             int64_t rows) {
  constexpr int kThirds = (kRows + 2) / 3;
  __m512 sums[kRows][kVectors];
#pragma GCC unroll 12
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) sums[r][v] = _mm512_setzero_ps();
  }
  // One pointer for every three rows: addresses of the form base + 2 * index need no register of
  // their own.
  const char* thirds[kThirds];
#pragma GCC unroll 4
  for (int g = 0; g < kThirds; ++g) thirds[g] = left.data + 3 * g * left.row_bytes;
  const int64_t row_bytes = left.row_bytes;
  const int64_t pair_bytes = left.pair_bytes;
  for (int64_t k = 0; k < left.pairs; ++k) {
    __m512bh factors[kVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      factors[v] = Pairs(_mm512_loadu_si512(right + v * kVectorLanes));
    }
    right += kVectors * kVectorLanes;
#pragma GCC unroll 12
    for (int r = 0; r < kRows; ++r) {
      const __m512bh value = Pairs(WordEverywhere(thirds[r / 3] + r % 3 * row_bytes));
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) {
        sums[r][v] = _mm512_dpbf16_ps(sums[r][v], value, factors[v]);
      }
    }
#pragma GCC unroll 4
    for (int g = 0; g < kThirds; ++g) thirds[g] += pair_bytes;
  }
  if (left.odd) {
    // The last value of a row has no partner. The memory after it may hold a NaN, so only the value
    // itself is read; the packed factor has 0 for the missing partner.
#pragma GCC unroll 12
    for (int r = 0; r < kRows; ++r) {
      const __m512bh value = Pairs(HalfEverywhere(thirds[r / 3] + r % 3 * row_bytes));
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) {
        const __m512bh factor = Pairs(_mm512_loadu_si512(right + v * kVectorLanes));
        sums[r][v] = _mm512_dpbf16_ps(sums[r][v], value, factor);
      }
    }
  }
#pragma GCC unroll 12
  for (int r = 0; r < kRows; ++r) {
    if (r >= rows) break;
    char* const row = target.data + r * target.row_bytes;
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) Store(sums[r][v], target, row, v * kVectorLanes);
  }
}

template <int kVectors>
void RunTileOf(const Left& left, const uint32_t* right, const Target& target, int64_t rows) {
  // Sums of columns have only one row, which is not worth the work of a whole tile.
  if (rows == 1) return Tile<1, kVectors>(left, right, target, 1);
  Tile<kTileRows[kVectors], kVectors>(left, right, target, rows);
}

void RunTile(int64_t vectors, const Left& left, const uint32_t* right, const Target& target,
             int64_t rows) {
  switch (vectors) {
    case 1:
      return RunTileOf<1>(left, right, target, rows);
    case 2:
      return RunTileOf<2>(left, right, target, rows);
    case 3:
      return RunTileOf<3>(left, right, target, rows);
    case 4:
      return RunTileOf<4>(left, right, target, rows);
    default:
      CHECK(false) << vectors << " vectors";
  }
}

// out[c] = the pair (first[c], second[c]) for c in [0, cols), and 0 for c in [cols, padded).
// `padded` is a multiple of 16. A null `second` stands for zeros.
//
// Only a few cache lines of each row are read, and those of the next row are `stride` further on.
// The CPU's own prefetcher does not predict that, so the lines of later rows are prefetched here.
SATRAP_AVX512_BF16 void PairRows(const uint16_t* first, const uint16_t* second, int64_t stride,
                                 int64_t cols, int64_t padded, uint32_t* out) {
  const uint16_t* const later = first + kPrefetchRows * stride;
  for (int64_t c = 0; c < cols; c += kLineHalves) {
    __builtin_prefetch(later + c);
    __builtin_prefetch(later + stride + c);
  }
  for (int64_t c = 0; c < padded; c += kVectorLanes) {
    const __mmask16 mask = FirstLanes(cols - c);
    __m512i words = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(mask, first + c));
    if (second != nullptr) {
      const __m512i upper = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(mask, second + c));
      words = _mm512_or_si512(words, _mm512_slli_epi32(upper, 16));
    }
    _mm512_storeu_si512(out + c, words);
  }
}

// The columns of a right factor, divided into panels. Panels have nearly equal numbers of vectors,
// at most kMostVectors, and each is packed in the order in which Tile reads it.
class Panels {
 public:
  // `depth`: the number of products in each sum.
  Panels(int64_t depth, int64_t cols)
      : words_((depth + 1) / 2),
        cols_(cols),
        vectors_((cols + kVectorLanes - 1) / kVectorLanes),
        count_((vectors_ + kMostVectors - 1) / kMostVectors) {}

  int64_t count() const { return count_; }
  int64_t num_words() const { return words_ * vectors_ * kVectorLanes; }
  int64_t pair_rows() const { return words_; }
  int64_t vectors(int64_t panel) const {
    return vectors_ / count_ + (panel < vectors_ % count_ ? 1 : 0);
  }
  int64_t begin(int64_t panel) const {
    return BeginVector(panel) * kVectorLanes;
  }  // its first column
  int64_t cols(int64_t panel) const {
    return std::min(cols_ - begin(panel), vectors(panel) * kVectorLanes);
  }
  // Where the panel's words begin, as [pair_rows()][vectors][16].
  int64_t offset(int64_t panel) const { return begin(panel) * words_; }

 private:
  int64_t BeginVector(int64_t panel) const {
    return panel * (vectors_ / count_) + std::min(panel, vectors_ % count_);
  }

  int64_t words_, cols_, vectors_, count_;
};

const uint16_t* HalvesOf(const Tensor& tensor, int64_t row) {
  return reinterpret_cast<const uint16_t*>(BytesOf(tensor, row));
}

// Packs rows 2k and 2k + 1 of `matrix` as pairs, for sums that run down its columns.
void PackRows(const Tensor& matrix, const Panels& panels, int64_t panel, uint32_t* packed) {
  const int64_t begin = panels.begin(panel);
  const int64_t width = panels.vectors(panel) * kVectorLanes;
  uint32_t* out = packed + panels.offset(panel);
  for (int64_t k = 0; k < panels.pair_rows(); ++k, out += width) {
    PairRows(HalvesOf(matrix, 2 * k) + begin,
             2 * k + 1 < matrix.rows ? HalvesOf(matrix, 2 * k + 1) + begin : nullptr, matrix.stride,
             panels.cols(panel), width, out);
  }
}

// Packs columns 2k and 2k + 1 of `matrix` as pairs, for sums that run along its rows, as they do
// for a transposed factor.
void PackColumns(const Tensor& matrix, const Panels& panels, int64_t panel, uint32_t* packed) {
  const int64_t begin = panels.begin(panel);
  const int64_t width = panels.vectors(panel) * kVectorLanes;
  uint32_t* const out = packed + panels.offset(panel);
  const int64_t pairs = matrix.cols / 2;
  for (int64_t c = 0; c < width; ++c) {
    if (c >= panels.cols(panel)) {
      for (int64_t k = 0; k < panels.pair_rows(); ++k) out[k * width + c] = 0;
      continue;
    }
    const uint16_t* const row = HalvesOf(matrix, begin + c);
    for (int64_t k = 0; k < pairs; ++k) std::memcpy(&out[k * width + c], row + 2 * k, 4);
    if (pairs < panels.pair_rows()) out[pairs * width + c] = row[2 * pairs];
  }
}

Target TargetOf(const Tensor& tensor, bool add) {
  CHECK(tensor.dtype == DType::kBF16 || tensor.dtype == DType::kF32);
  return {static_cast<char*>(tensor.data),
          tensor.stride * DTypeBytes(tensor.dtype),
          tensor.cols,
          tensor.dtype == DType::kBF16,
          add,
          /*relu=*/false,
          /*bias=*/nullptr};
}

// Multiplies `rows` rows of the left factor by a panel. Reads the rows of the left factor up to the
// next multiple of kBlockRows.
void MultiplyPanel(const Left& left, const Panels& panels, int64_t panel, const uint32_t* packed,
                   int64_t first_word, const Target& target, int64_t rows) {
  const int64_t vectors = panels.vectors(panel);
  const uint32_t* const right = packed + panels.offset(panel) + first_word * vectors * kVectorLanes;
  Target part = target;
  part.data += panels.begin(panel) * (target.is_bf16 ? 2 : 4);
  part.cols = panels.cols(panel);
  if (part.bias != nullptr) part.bias += panels.begin(panel);
  const int tile_rows = kTileRows[vectors];
  for (int64_t r = 0; r < rows; r += tile_rows) {
    RunTile(vectors, left.Rows(r), right, part, std::min<int64_t>(tile_rows, rows - r));
    part.data += tile_rows * part.row_bytes;
  }
}

void MultiplyRows(const Left& left, const Panels& panels, const uint32_t* packed,
                  int64_t first_word, const Target& target, int64_t rows) {
  for (int64_t panel = 0; panel < panels.count(); ++panel) {
    MultiplyPanel(left, panels, panel, packed, first_word, target, rows);
  }
}

int64_t RoundUp(int64_t count, int64_t to) { return (count + to - 1) / to * to; }

constexpr int64_t kSumPairs = CpuAvx512Bf16::kSumSamples / 2;

// Splits the pairs into runs whose sums are computed separately, and calls body(first, count, add)
// for each run. Calls it at least once, even if there are no pairs.
template <typename Body>
void ForSums(const Panels& panels, Body body) {
  int64_t first = 0;
  do {
    body(first, std::min(kSumPairs, panels.pair_rows() - first), /*add=*/first > 0);
    first += kSumPairs;
  } while (first < panels.pair_rows());
}

// The sums of the columns of a panel, computed as products with ones.
void SumColumns(const Panels& panels, int64_t panel, const uint32_t* packed, const Tensor& sums) {
  constexpr uint32_t kOnes = 0x3f803f80;
  const char* const ones = reinterpret_cast<const char*>(&kOnes);
  ForSums(panels, [&](int64_t first, int64_t count, bool add) {
    MultiplyPanel({ones, 0, 0, count, false}, panels, panel, packed, first, TargetOf(sums, add), 1);
  });
}

// y = x^T times the packed factor. Packs a run of samples of x at a time. Unless x is wide, the run
// stays in the L2 cache while all panels are multiplied with it.
void MultiplyColumns(const Tensor& x, const Panels& panels, const uint32_t* packed, const Tensor& y,
                     AlignedScratch* scratch) {
  // Tiles read whole blocks of rows of the left factor, so zeros are added after x's columns.
  const int64_t width = RoundUp(RoundUp(x.cols, kBlockRows), kVectorLanes);
  uint32_t* const pairs = scratch->Get<uint32_t>(kSumPairs * width);
  ForSums(panels, [&](int64_t first, int64_t count, bool add) {
    for (int64_t k = first; k < first + count; ++k) {
      PairRows(HalvesOf(x, 2 * k), 2 * k + 1 < x.rows ? HalvesOf(x, 2 * k + 1) : nullptr, x.stride,
               x.cols, width, pairs + (k - first) * width);
    }
    const auto* const data = reinterpret_cast<const char*>(pairs);
    MultiplyRows({data, 4, width * 4, count, false}, panels, packed, first, TargetOf(y, add),
                 y.rows);
  });
}

}  // namespace

struct CpuAvx512Bf16::Rep {
  explicit Rep(ForkJoinPool* pool) : pool(pool), scratch(pool->num_threads()) {}

  // Multiplies `a` by the packed factor in slices of rows. Calls before(begin, end) ahead of each
  // slice.
  void Multiply(const Tensor& a, const Panels& panels, const Target& target,
                absl::FunctionRef<void(int64_t, int64_t)> before);

  ForkJoinPool* const pool;
  AlignedScratch packed;
  std::vector<AlignedScratch> scratch;  // by thread
};

void CpuAvx512Bf16::Rep::Multiply(const Tensor& a, const Panels& panels, const Target& target,
                                  absl::FunctionRef<void(int64_t, int64_t)> before) {
  const uint32_t* const words = packed.Get<uint32_t>(panels.num_words());
  pool->Run((a.rows + kSliceRows - 1) / kSliceRows, [&](int64_t slice, int thread) {
    const int64_t begin = slice * kSliceRows;
    const int64_t rows = std::min(kSliceRows, a.rows - begin);
    before(begin, begin + rows);
    const Left left = {reinterpret_cast<const char*>(HalvesOf(a, begin)), a.stride * 2, 4,
                       a.cols / 2, a.cols % 2 != 0};
    Target part = target;
    part.data += begin * target.row_bytes;
    const int64_t whole = rows / kBlockRows * kBlockRows;
    MultiplyRows(left, panels, words, 0, part, whole);
    if (whole == rows) return;
    // Tiles read whole blocks of rows, so the last rows are copied to memory that continues with
    // zeros.
    const int64_t stride = RoundUp(a.cols, 2);
    uint16_t* const tail = scratch[thread].Get<uint16_t>(kBlockRows * stride + 1);
    std::memset(tail, 0, kBlockRows * stride * sizeof(uint16_t));
    for (int64_t r = whole; r < rows; ++r) {
      if (a.cols > 0) std::memcpy(tail + (r - whole) * stride, HalvesOf(a, begin + r), a.cols * 2);
    }
    part.data += whole * target.row_bytes;
    MultiplyRows({reinterpret_cast<const char*>(tail), stride * 2, 4, left.pairs, left.odd}, panels,
                 words, 0, part, rows - whole);
  });
}

bool CpuAvx512Bf16::IsSupported() {
  // Asks CPUID itself about avx512bf16, because not every compiler's __builtin_cpu_supports knows
  // that name. The calls of __builtin_cpu_supports also cover whether the operating system saves
  // the registers.
  static const bool is_supported = [] {
    unsigned int eax, ebx, ecx, edx;
    constexpr unsigned int kAvx512Bf16 = 1u << 5;
    return __get_cpuid_count(7, 1, &eax, &ebx, &ecx, &edx) != 0 && (eax & kAvx512Bf16) != 0 &&
           __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
  }();
  return is_supported;
}

CpuAvx512Bf16::CpuAvx512Bf16(ForkJoinPool* pool) : rep_(std::make_unique<Rep>(pool)) {
  CHECK(IsSupported());
}
CpuAvx512Bf16::~CpuAvx512Bf16() = default;

void CpuAvx512Bf16::Product(const Tensor& x, const Tensor& w, const Tensor& bias, bool relu,
                            const Tensor& y) {
  CHECK(x.rows == y.rows && x.cols == w.rows && w.cols == y.cols);
  CHECK(bias.empty() || bias.cols == y.cols);
  const Panels panels(x.cols, y.cols);
  uint32_t* const words = rep_->packed.Get<uint32_t>(panels.num_words());
  rep_->pool->Run(panels.count(), [&](int64_t panel, int) { PackRows(w, panels, panel, words); });
  Target target = TargetOf(y, /*add=*/false);
  target.relu = relu;
  target.bias = bias.empty() ? nullptr : FloatsOf(bias);
  rep_->Multiply(x, panels, target, [](int64_t, int64_t) {});
}

void CpuAvx512Bf16::InputGradient(const Tensor& dz, const Tensor& w, const GradientTarget& dx,
                                  absl::FunctionRef<void(int64_t, int64_t)> before) {
  if (!dx.wanted()) {
    return rep_->pool->Run((dz.rows + kSliceRows - 1) / kSliceRows, [&](int64_t slice, int) {
      before(slice * kSliceRows, std::min(dz.rows, (slice + 1) * kSliceRows));
    });
  }
  CHECK(dz.rows == dx.tensor.rows && dx.tensor.cols == w.rows && dz.cols == w.cols);
  const Panels panels(dz.cols, dx.tensor.cols);
  uint32_t* const words = rep_->packed.Get<uint32_t>(panels.num_words());
  rep_->pool->Run(panels.count(),
                  [&](int64_t panel, int) { PackColumns(w, panels, panel, words); });
  rep_->Multiply(dz, panels, TargetOf(dx.tensor, dx.add), before);
}

void CpuAvx512Bf16::WeightGradient(const Tensor& x, const Tensor& dz, const Tensor& dw,
                                   const Tensor& db) {
  CHECK(x.rows == dz.rows && dw.rows == x.cols && dw.cols == dz.cols && !dw.has_gaps());
  const int64_t n = x.rows;
  const Panels panels(n, dz.cols);
  uint32_t* const words = rep_->packed.Get<uint32_t>(panels.num_words());
  rep_->pool->Run(panels.count(), [&](int64_t panel, int) { PackRows(dz, panels, panel, words); });

  // Makes two slices of dw for each thread, so that a thread that starts late does not keep the
  // others waiting for long. The sums of db's panels are separate pieces of work.
  const int64_t wanted_slices = 2 * rep_->pool->num_threads();
  const int64_t slice_rows =
      RoundUp(std::max<int64_t>(1, (dw.rows + wanted_slices - 1) / wanted_slices), kBlockRows);
  const int64_t slices = (dw.rows + slice_rows - 1) / slice_rows;
  rep_->pool->Run(slices + (db.empty() ? 0 : panels.count()), [&](int64_t slice, int thread) {
    if (slice >= slices) return SumColumns(panels, slice - slices, words, db);
    const int64_t begin = slice * slice_rows;
    const Tensor rows = dw.Rows(begin, std::min(slice_rows, dw.rows - begin));
    MultiplyColumns(x.Columns(begin, rows.rows), panels, words, rows, &rep_->scratch[thread]);
  });
}

}  // namespace satrap

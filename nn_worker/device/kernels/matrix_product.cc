#include "nn_worker/device/kernels/matrix_product.h"

#include "nn_worker/device/kernel.h"
#include "nn_worker/device/kernels/activation_function.h"
#include "nn_worker/device/kernels/add_pieces.h"
#include "nn_worker/device/kernels/value_access.h"

namespace satrap {
namespace {

constexpr int kThreads = 256;
constexpr int kTileK = 16;
constexpr int64_t kMaxGridYZ = 65535;

// The tile of c that a block computes. Its kDown x kAcross threads compute kRows x kCols outputs
// each, and the outputs of a thread are kDown rows and kAcross columns apart.
template <int kDownThreads, int kAcrossThreads, int kRowsEach, int kColsEach>
struct Tile {
  static_assert(kDownThreads * kAcrossThreads == kThreads);
  static constexpr int kDown = kDownThreads, kAcross = kAcrossThreads;
  static constexpr int kRows = kRowsEach, kCols = kColsEach;
  static constexpr int kHeight = kDown * kRows, kWidth = kAcross * kCols;
};
using WideTile = Tile<16, 16, 4, 4>;
using NarrowTile = Tile<32, 8, 4, 1>;

// Loads tile[k][i] = m[first + i, begin + k] for kSize rows and kTileK columns; 0 outside the
// matrix. Neighbouring threads read neighbouring values, whether the matrix is transposed or not.
template <int kSize>
SATRAP_DEVICE void LoadTile(const Factor& m, int64_t rows, int64_t first, int64_t begin,
                            int64_t end, int thread, float (*tile)[kSize + 1]) {
  const bool by_column = m.col_stride == 1;
  for (int n = thread; n < kSize * kTileK; n += kThreads) {
    const int k = by_column ? n % kTileK : n / kSize;
    const int i = by_column ? n / kTileK : n % kSize;
    const bool inside = first + i < rows && begin + k < end;
    const int64_t at = (first + i) * m.row_stride + (begin + k) * m.col_stride;
    tile[k][i] = inside ? LoadValue(m.data, m.type, at) : 0;
  }
}

// Computes a tile of c. With `partials`, k is split into pieces. The sums over each piece are then
// stored in `partials` instead of c: first all sums of the first piece, then all of the second, and
// so on.
template <typename T>
SATRAP_KERNEL void ProductKernel(MatrixProduct product, int64_t piece_terms, float* partials) {
  // The rows have one unused value, so that the threads which load them use different banks.
  SHARED_ARRAY(float, a_tile, [kTileK][T::kHeight + 1]);
  SHARED_ARRAY(float, b_tile, [kTileK][T::kWidth + 1]);
  const int thread = static_cast<int>(ThreadIndex().x);
  const int down = thread / T::kAcross, across = thread % T::kAcross;
  const Values c = product.c;
  const int64_t first_row = static_cast<int64_t>(BlockIndex().x) * T::kHeight;
  // LoadTile takes b transposed, so its "rows" are the columns of c.
  const Factor b_by_column = {product.b.data, product.b.type, product.b.col_stride,
                              product.b.row_stride};
  for (int64_t first_col = static_cast<int64_t>(BlockIndex().y) * T::kWidth; first_col < c.cols;
       first_col += static_cast<int64_t>(GridSize().y) * T::kWidth) {
    // If k is 0 there is still one piece, whose sums are 0.
    for (int64_t piece = BlockIndex().z; piece == 0 || piece * piece_terms < product.k;
         piece += GridSize().z) {
      const int64_t left = product.k - piece * piece_terms;
      const int64_t end = piece * piece_terms + (left < piece_terms ? left : piece_terms);
      float sums[T::kRows][T::kCols] = {};
      for (int64_t begin = piece * piece_terms; begin < end; begin += kTileK) {
        LoadTile<T::kHeight>(product.a, c.rows, first_row, begin, end, thread, a_tile);
        LoadTile<T::kWidth>(b_by_column, c.cols, first_col, begin, end, thread, b_tile);
        SyncThreads();
        for (int k = 0; k < kTileK; ++k) {
          float a[T::kRows], b[T::kCols];
          for (int i = 0; i < T::kRows; ++i) a[i] = a_tile[k][down + i * T::kDown];
          for (int j = 0; j < T::kCols; ++j) b[j] = b_tile[k][across + j * T::kAcross];
          for (int i = 0; i < T::kRows; ++i) {
            for (int j = 0; j < T::kCols; ++j) sums[i][j] += a[i] * b[j];
          }
        }
        SyncThreads();
      }
      for (int i = 0; i < T::kRows; ++i) {
        const int64_t row = first_row + down + i * T::kDown;
        for (int j = 0; row < c.rows && j < T::kCols; ++j) {
          const int64_t col = first_col + across + j * T::kAcross;
          if (col >= c.cols) continue;
          if (partials != nullptr) {
            partials[(piece * c.rows + row) * c.cols + col] = sums[i][j];
            continue;
          }
          const float biased =
              sums[i][j] + (product.bias.data == nullptr ? 0 : LoadValue(product.bias, 0, col));
          PutValue(c, row, col, Activated(product.activation, biased), product.add);
        }
      }
    }
  }
}

template <typename T>
void LaunchTiles(DeviceStream* stream, const MatrixProduct& product, int64_t pieces,
                 int64_t piece_terms, float* partials) {
  const int64_t down = (product.c.rows + T::kHeight - 1) / T::kHeight;
  const int64_t across = (product.c.cols + T::kWidth - 1) / T::kWidth;
  const Dim3 grid = {static_cast<uint32_t>(down),
                     static_cast<uint32_t>(across < kMaxGridYZ ? across : kMaxGridYZ),
                     static_cast<uint32_t>(pieces < kMaxGridYZ ? pieces : kMaxGridYZ)};
  Launch<ProductKernel<T>>(stream, grid, {kThreads}, 0, product, piece_terms, partials);
}

void Start(DeviceStream* stream, const MatrixProduct& product, int64_t pieces, int64_t piece_terms,
           float* partials) {
  if (product.c.cols <= NarrowTile::kWidth) {
    LaunchTiles<NarrowTile>(stream, product, pieces, piece_terms, partials);
  } else {
    LaunchTiles<WideTile>(stream, product, pieces, piece_terms, partials);
  }
}

}  // namespace

void Multiply(DeviceStream* stream, const MatrixProduct& product) {
  if (product.c.rows == 0 || product.c.cols == 0) return;
  Start(stream, product, 1, product.k > 0 ? product.k : 1, nullptr);
}

void MultiplyInPieces(DeviceStream* stream, const MatrixProduct& product, float* partials,
                      int64_t piece) {
  const int64_t count = product.c.rows * product.c.cols;
  if (count == 0) return;
  if (product.k <= piece) return Multiply(stream, product);
  const int64_t pieces = (product.k + piece - 1) / piece;
  Start(stream, product, pieces, piece, partials);
  AddPieces(stream, partials, pieces, {static_cast<float*>(product.c.data), 1, count, count});
}

}  // namespace satrap

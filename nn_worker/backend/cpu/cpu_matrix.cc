#include "nn_worker/backend/cpu/cpu_matrix.h"

#include <omp.h>
#include <oneapi/dnnl/dnnl.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "common/base/check.h"
#include "nn_worker/backend/cpu/cpu_kernels.h"
#include "nn_worker/backend/cpu/host_tensor.h"

namespace satrap {
namespace {

// The number of rows of dw in one slice. With more, threads would be idle at the end; with fewer,
// oneDNN would pack dz too often, because it packs dz for each slice.
constexpr int64_t kWeightRows = 112;

// c = a b, or c += a b, in the calling thread.
void Sgemm(char transpose_a, int64_t m, int64_t n, int64_t k, const float* a, int64_t a_stride,
           const float* b, int64_t b_stride, bool add, float* c, int64_t c_stride) {
  // Debian's oneDNN is built for OpenMP. The setting applies only to the calling thread, so it is
  // made here, in the thread of the pool that computes the slice. The product then runs in that
  // thread, with its floating-point mode (common/numeric/denormals.h).
  omp_set_num_threads(1);
  const dnnl_status_t status = dnnl_sgemm(transpose_a, 'N', m, n, k, 1.0f, a, a_stride, b, b_stride,
                                          add ? 1.0f : 0.0f, c, c_stride);
  CHECK(status == dnnl_success) << "dnnl_sgemm " << m << " x " << n << " x " << k << ": " << status;
}

int64_t Slices(int64_t count, int64_t of) { return (count + of - 1) / of; }

void Nothing(int64_t, int64_t) {}

}  // namespace

void* AlignedScratch::GetBytes(int64_t bytes) {
  if (bytes > capacity_bytes_) {
    const int64_t rounded = (bytes + 4095) / 4096 * 4096;
    data_.reset(std::aligned_alloc(64, rounded));
    CHECK(data_ != nullptr) << "out of memory: " << rounded << " bytes";
    capacity_bytes_ = rounded;
  }
  return data_.get();
}

CpuMatrix::CpuMatrix(ForkJoinPool* pool) : pool_(pool) {}

void CpuMatrix::RowSlices(Tensor a, const float* b, int64_t b_stride, Tensor c, bool add,
                          absl::FunctionRef<void(int64_t, int64_t)> before,
                          absl::FunctionRef<void(int64_t, int64_t)> after) {
  const int64_t k = a.cols;
  float* tail_a = tail_.Get<float>(kRowBlock * (k + c.cols));
  float* tail_c = tail_a + kRowBlock * k;
  pool_->Run(Slices(a.rows, kRowBlock), [&](int64_t slice, int) {
    const int64_t begin = slice * kRowBlock;
    const int64_t end = std::min(a.rows, begin + kRowBlock);
    before(begin, end);
    if (end - begin == kRowBlock) {
      Sgemm('N', kRowBlock, c.cols, k, FloatsOf(a, begin), a.stride, b, b_stride, add,
            FloatsOf(c, begin), c.stride);
    } else {
      // The last slice is padded with rows of zeros to the size of all others.
      const Tensor part_a = TensorF32(tail_a, kRowBlock, k);
      const Tensor part_c = TensorF32(tail_c, kRowBlock, c.cols);
      std::memset(tail_a, 0, kRowBlock * (k + c.cols) * sizeof(float));
      for (int64_t i = begin; i < end; ++i) {
        std::copy_n(FloatsOf(a, i), k, FloatsOf(part_a, i - begin));
        if (add) std::copy_n(FloatsOf(c, i), c.cols, FloatsOf(part_c, i - begin));
      }
      Sgemm('N', kRowBlock, c.cols, k, tail_a, k, b, b_stride, add, tail_c, c.cols);
      for (int64_t i = begin; i < end; ++i) {
        std::copy_n(FloatsOf(part_c, i - begin), c.cols, FloatsOf(c, i));
      }
    }
    after(begin, end);
  });
}

void CpuMatrix::Product(Tensor x, Tensor w, Tensor y,
                        absl::FunctionRef<void(int64_t, int64_t)> after) {
  RowSlices(x, FloatsOf(w), w.stride, y, /*add=*/false, Nothing, after);
}

void CpuMatrix::InputGradient(Tensor dz, Tensor w, GradientTarget dx,
                              absl::FunctionRef<void(int64_t, int64_t)> before) {
  if (!dx.wanted()) {
    pool_->Run(Slices(dz.rows, kRowBlock), [&](int64_t slice, int) {
      before(slice * kRowBlock, std::min(dz.rows, (slice + 1) * kRowBlock));
    });
    return;
  }
  const int64_t in = w.rows;
  const int64_t stride = (in + 15) / 16 * 16;
  float* transposed = transposed_.Get<float>(stride * w.cols);
  constexpr int64_t kStrip = 64;
  pool_->Run(Slices(in, kStrip), [&](int64_t strip, int) {
    cpu::TransposeRows(FloatsOf(w), w.cols, strip * kStrip, std::min(in, (strip + 1) * kStrip),
                       transposed, stride);
  });
  RowSlices(dz, transposed, stride, dx.tensor, dx.add, before, Nothing);
}

void CpuMatrix::WeightGradient(Tensor x, Tensor dz, Tensor dw) {
  if (x.rows == 0) {
    std::memset(FloatsOf(dw), 0, dw.size() * sizeof(float));
    return;
  }
  // As many slices as kWeightRows requires, of nearly equal size, in multiples of 8 rows.
  const int64_t slices = Slices(dw.rows, kWeightRows);
  const int64_t rows = (Slices(dw.rows, slices) + 7) / 8 * 8;
  pool_->Run(Slices(dw.rows, rows), [&](int64_t slice, int) {
    const int64_t begin = slice * rows;
    const int64_t count = std::min(rows, dw.rows - begin);
    Sgemm('T', count, dw.cols, x.rows, FloatsOf(x) + begin, x.stride, FloatsOf(dz), dz.stride,
          /*add=*/false, FloatsOf(dw, begin), dw.stride);
  });
}

}  // namespace satrap

// Copies the vectors of some samples into shared memory, where the threads of a block read each of
// them several times. For kernel sources.

#ifndef SATRAP_NN_WORKER_DEVICE_KERNELS_STAGED_VECTORS_H_
#define SATRAP_NN_WORKER_DEVICE_KERNELS_STAGED_VECTORS_H_

#include <cstdint>

#include "nn_worker/device/kernel.h"
#include "nn_worker/device/kernels/chunk.h"
#include "nn_worker/device/kernels/pair_dots.h"

namespace satrap {

// The vectors of a sample follow each other in shared memory. Each takes `bytes`, an odd multiple
// of 16, so that the same chunks of 8 neighbouring vectors are in different banks.
struct SharedRows {
  int chunks, bytes;
};
constexpr SharedRows SharedRowsOf(int64_t value_bytes, int64_t dim) {
  const int chunks = static_cast<int>((dim * value_bytes + kChunkBytes - 1) / kChunkBytes);
  return {chunks, (chunks | 1) * kChunkBytes};
}
// Rows without a gap, for threads that read the same vector of neighbouring samples. A sample takes
// an odd number of such rows, so that those vectors are in different banks.
constexpr SharedRows DenseRowsOf(int64_t value_bytes, int64_t dim) {
  const int chunks = SharedRowsOf(value_bytes, dim).chunks;
  return {chunks, chunks * kChunkBytes};
}

// The number of loads of a thread that are under way at the same time.
inline constexpr int kStagedAtOnce = 4;

// Copies the vectors of `samples` samples, from number `first` on, into shared memory, where the
// vectors of a sample take `sample_bytes`. Neighbouring threads copy the same vector of
// neighbouring samples, because these are often side by side in memory.
template <typename T>
SATRAP_DEVICE void StageVectors(const DotVectors& vectors, int64_t first, int samples,
                                const SharedRows& rows, int sample_bytes, unsigned char* shared) {
  int shift = 0;
  while (1 << shift < rows.chunks && 1 << shift < kWarpSize) ++shift;
  const int thread = static_cast<int>(ThreadIndex().x), lanes = 1 << shift;
  const int step = static_cast<int>(BlockSize().x) >> shift;
  const int vector_step = step / samples, sample_step = step % samples;
  for (int chunk = thread & (lanes - 1); chunk < rows.chunks; chunk += lanes) {
    const int64_t offset = static_cast<int64_t>(chunk) * Chunk<T>::kVectorLanes;
    const int64_t left = vectors.dim - offset;
    const int row = thread >> shift;
    int vector = row / samples, sample = row % samples;
    while (vector < vectors.count) {
      const T* from[kStagedAtOnce];
      int to[kStagedAtOnce];
      bool whole = left >= Chunk<T>::kVectorLanes;
      for (int i = 0; i < kStagedAtOnce; ++i) {
        // A thread that has no vector left loads the last one again, so that its loads are not
        // separated by branches, but does not store it.
        const bool exists = vector < vectors.count;
        const DotVector of = vectors.list[exists ? vector : vectors.count - 1];
        from[i] = static_cast<const T*>(of.data) + (first + sample) * of.stride + offset;
        whole = whole && IsChunk(from[i]);
        to[i] = exists ? sample * sample_bytes + vector * rows.bytes + chunk * kChunkBytes : -1;
        vector += vector_step;
        sample += sample_step;
        if (sample >= samples) {
          sample -= samples;
          ++vector;
        }
      }
      Chunk<T> values[kStagedAtOnce];
      if (whole) {
        for (int i = 0; i < kStagedAtOnce; ++i) values[i] = Chunk<T>::Load(from[i]);
      } else {
        for (int i = 0; i < kStagedAtOnce; ++i) values[i] = LoadChunk(from[i], left);
      }
      for (int i = 0; i < kStagedAtOnce; ++i) {
        if (to[i] >= 0) values[i].Store(shared + to[i]);
      }
    }
  }
}

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_DEVICE_KERNELS_STAGED_VECTORS_H_

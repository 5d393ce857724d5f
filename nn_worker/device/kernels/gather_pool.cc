#include "nn_worker/device/kernels/gather_pool.h"

#include "nn_worker/device/kernel.h"

namespace satrap {
namespace {

// The threads of a block: neighbours take neighbouring groups of a row.
constexpr uint32_t kGroupsAtOnce = 8;
constexpr uint32_t kSamplesAtOnce = 32;
constexpr int64_t kMaxBlocks = 2048;

// One over the divisor of a sample's sum; 0 if the divisor is 0.
template <typename Out>
SATRAP_DEVICE float ScaleOf(const GatherTarget<Out>& target, uint32_t begin, uint32_t end) {
  if (target.pooling == RowPooling::kSum || begin == end) return 1;
  float divisor = static_cast<float>(end - begin);
  if (target.weights != nullptr) {
    divisor = 0;
    for (uint32_t j = begin; j < end; ++j) {
      const float weight = target.weights[j];
      divisor += target.pooling == RowPooling::kMean ? weight : weight * weight;
    }
  }
  if (target.pooling == RowPooling::kSqrtN) divisor = Sqrt(divisor);
  return divisor == 0 ? 0 : 1 / divisor;
}

// out[c ... c + N) = scale times the weighted sum of the rows of ids [begin, end).
template <typename Out, int N>
SATRAP_DEVICE void PoolGroup(const GatherTarget<Out>& target, const Matrix<const float>& table_rows,
                             uint32_t begin, uint32_t end, float scale, int32_t c, Out* out) {
  Vec<float, N> sum = {};
  for (uint32_t j = begin; j < end; ++j) {
    const auto row =
        LoadVec<N>(table_rows.data + target.rows[j] * table_rows.stride + target.column + c);
    const float weight = target.weights == nullptr ? 1 : target.weights[j];
    for (int i = 0; i < N; ++i) sum.lane[i] += weight * row.lane[i];
  }
  Vec<Out, N> result;
  for (int i = 0; i < N; ++i) {
    // A divisor of 0 gives zeros, even if the sum is not finite.
    result.lane[i] = FromFloat<Out>(scale == 0 ? 0 : sum.lane[i] * scale);
  }
  StoreVec(out + c, result);
}

template <typename Out, int N>
SATRAP_KERNEL void GatherPoolKernel(const GatherTarget<Out>* targets, int64_t samples,
                                    Matrix<const float> table_rows) {
  const GatherTarget<Out> target = targets[BlockIndex().y];
  const bool sequence = target.pooling == RowPooling::kNone;
  const int64_t samples_at_once = static_cast<int64_t>(GridSize().x) * kSamplesAtOnce;
  for (int64_t s = static_cast<int64_t>(BlockIndex().x) * kSamplesAtOnce + ThreadIndex().y;
       s < samples; s += samples_at_once) {
    const auto own = static_cast<uint32_t>(s);
    const uint32_t begin = target.offsets == nullptr ? own : target.offsets[s];
    const uint32_t end = target.offsets == nullptr ? own + 1 : target.offsets[s + 1];
    const auto max_length = static_cast<uint32_t>(target.max_length);
    const uint32_t length = end - begin < max_length ? end - begin : max_length;
    if (target.lengths != nullptr && ThreadIndex().x == 0) {
      target.lengths[s * target.lengths_stride] = static_cast<float>(length);
    }
    const float scale = sequence ? 1 : ScaleOf(target, begin, end);
    for (int32_t c = static_cast<int32_t>(ThreadIndex().x) * N; c < target.width;
         c += static_cast<int32_t>(kGroupsAtOnce) * N) {
      Out* out = target.out + s * target.out_stride;
      if (!sequence) {
        PoolGroup<Out, N>(target, table_rows, begin, end, scale, c, out);
        continue;
      }
      // A position after the last id pools nothing, which gives zeros.
      for (uint32_t p = 0; p < max_length; ++p, out += target.width) {
        const uint32_t j = begin + p;
        PoolGroup<Out, N>(target, table_rows, j, p < length ? j + 1 : j, scale, c, out);
      }
    }
  }
}

}  // namespace

template <typename Out>
void GatherAndPool(Stream* stream, const GatherTarget<Out>* targets, int num_targets,
                   int64_t samples, Matrix<const float> table_rows, bool aligned) {
  if (num_targets == 0 || samples == 0) return;
  int64_t blocks = (samples + kSamplesAtOnce - 1) / kSamplesAtOnce;
  if (blocks > kMaxBlocks) blocks = kMaxBlocks;
  const Dim3 grid{static_cast<uint32_t>(blocks), static_cast<uint32_t>(num_targets)};
  const Dim3 block{kGroupsAtOnce, kSamplesAtOnce};
  if (aligned) {
    Launch<GatherPoolKernel<Out, 4>>(stream, grid, block, 0, targets, samples, table_rows);
  } else {
    Launch<GatherPoolKernel<Out, 1>>(stream, grid, block, 0, targets, samples, table_rows);
  }
}

template void GatherAndPool(Stream*, const GatherTarget<float>*, int, int64_t, Matrix<const float>,
                            bool);
template void GatherAndPool(Stream*, const GatherTarget<Half>*, int, int64_t, Matrix<const float>,
                            bool);
template void GatherAndPool(Stream*, const GatherTarget<Bf16>*, int, int64_t, Matrix<const float>,
                            bool);

}  // namespace satrap

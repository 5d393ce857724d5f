#include "nn_worker/device/kernels/scatter_rows.h"

#include "nn_worker/device/float16.h"
#include "nn_worker/device/kernel.h"

namespace satrap {
namespace {

constexpr uint32_t kColumnsAtOnce = 16;
constexpr uint32_t kRowsAtOnce = 16;
constexpr int64_t kMaxBlocks = 4096;

template <typename In>
SATRAP_KERNEL void ScatterRowsKernel(ScatterArgs<In> args, Matrix<float> gradients) {
  const ScatterSegment segment = args.segments[BlockIndex().y];
  const ScatterSource<In>* const sources =
      args.sources + static_cast<int64_t>(BlockIndex().y) * args.num_features;
  const int64_t rows_at_once = static_cast<int64_t>(GridSize().x) * kRowsAtOnce;
  for (int64_t r = static_cast<int64_t>(BlockIndex().x) * kRowsAtOnce + ThreadIndex().y;
       r < gradients.rows; r += rows_at_once) {
    const uint32_t begin = args.starts[r], end = args.starts[r + 1];
    for (int32_t c = static_cast<int32_t>(ThreadIndex().x); c < segment.width;
         c += static_cast<int32_t>(kColumnsAtOnce)) {
      float sum = 0;
      for (uint32_t k = begin; k < end; ++k) {
        const RowPosition position = args.positions[k];
        const ScatterSource<In> source = sources[position.feature];
        if (source.data == nullptr) continue;
        sum += position.coefficient * ToFloat(source.data[position.sample * source.stride +
                                                          position.position * segment.width + c]);
      }
      gradients.data[r * gradients.stride + segment.column + c] = sum;
    }
  }
}

}  // namespace

template <typename In>
void ScatterRows(Stream* stream, const ScatterArgs<In>& args, Matrix<float> gradients) {
  if (args.num_segments == 0 || gradients.rows == 0) return;
  int64_t blocks = (gradients.rows + kRowsAtOnce - 1) / kRowsAtOnce;
  if (blocks > kMaxBlocks) blocks = kMaxBlocks;
  Launch<ScatterRowsKernel<In>>(
      stream, {static_cast<uint32_t>(blocks), static_cast<uint32_t>(args.num_segments)},
      {kColumnsAtOnce, kRowsAtOnce}, 0, args, gradients);
}

template void ScatterRows(Stream*, const ScatterArgs<float>&, Matrix<float>);
template void ScatterRows(Stream*, const ScatterArgs<Half>&, Matrix<float>);
template void ScatterRows(Stream*, const ScatterArgs<Bf16>&, Matrix<float>);

}  // namespace satrap

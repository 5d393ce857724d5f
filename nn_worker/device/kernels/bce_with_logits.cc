#include "nn_worker/device/kernels/bce_with_logits.h"

#include "nn_worker/device/kernel.h"
#include "nn_worker/device/kernels/activation_function.h"
#include "nn_worker/device/kernels/warp_sum.h"

namespace satrap {
namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / kWarpSize;

SATRAP_DEVICE float ValueOf(const Column& column, int64_t i) {
  return column.data == nullptr ? 1.0f : column.data[i * column.stride];
}

SATRAP_KERNEL void BceKernel(BceArgs args, double* partials) {
  SHARED_ARRAY(double, sums, [2][kWarps]);
  const int thread = static_cast<int>(ThreadIndex().x);
  const int64_t begin = static_cast<int64_t>(BlockIndex().x) * kBceSamples;
  const int64_t end = begin + kBceSamples < args.samples ? begin + kBceSamples : args.samples;
  const float scale = args.control->gradient_scale;
  double loss = 0, total = 0;
  for (int64_t i = begin + thread; i < end; i += kThreads) {
    float* const dlogit = args.dlogits + i * args.dlogits_stride;
    // Left out, not multiplied by 0: a masked label may be NaN.
    if (ValueOf(args.mask, i) == 0) {
      *dlogit = 0;
      continue;
    }
    const float weight = ValueOf(args.weights, i);
    const float z = ValueOf(args.logits, i), y = ValueOf(args.labels, i);
    // Not Max(z, 0), which would hide that z is NaN.
    loss += weight * ((z < 0 ? 0 : z) - z * y + Log1p(Exp(-Abs(z))));
    total += weight;
    *dlogit = weight * (Sigmoid(z) - y) * scale;
  }
  loss = WarpSum(loss);
  total = WarpSum(total);
  if (thread % kWarpSize == 0) {
    sums[0][thread / kWarpSize] = loss;
    sums[1][thread / kWarpSize] = total;
  }
  SyncThreads();
  if (thread < 2) {
    double sum = 0;
    for (int warp = 0; warp < kWarps; ++warp) sum += sums[thread][warp];
    partials[2 * BlockIndex().x + thread] = sum;
  }
}

SATRAP_KERNEL void AddBcePartialsKernel(const double* partials, int64_t parts, double* sums) {
  double sum = 0;
  for (int64_t part = 0; part < parts; ++part) sum += partials[2 * part + ThreadIndex().x];
  sums[ThreadIndex().x] = sum;
}

}  // namespace

void BceWithLogits(Stream* stream, const BceArgs& args, double* partials, double* sums) {
  const int64_t parts = BcePartials(args.samples) / 2;
  if (parts > 0) {
    Launch<BceKernel>(stream, {static_cast<uint32_t>(parts)}, {kThreads}, 0, args, partials);
  }
  Launch<AddBcePartialsKernel>(stream, {1}, {2}, 0, partials, parts, sums);
}

}  // namespace satrap

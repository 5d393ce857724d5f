#include "nn_worker/device/kernels/activation.h"

#include "nn_worker/device/kernel.h"
#include "nn_worker/device/kernels/activation_function.h"
#include "nn_worker/device/kernels/elementwise.h"

namespace satrap {
namespace {

SATRAP_KERNEL void BiasActivateKernel(Matrix<const float> x, const float* bias,
                                      Activation activation, Matrix<float> y, bool aligned) {
  ForEachGroup(y.rows, GroupsOf(y.cols), [&](int64_t r, int64_t g) {
    const int64_t c = g * kGroup, left = y.cols - c;
    Group values = LoadGroup(x.data + r * x.stride + c, left, aligned);
    if (bias != nullptr) {
      // A bias is a parameter, which begins wherever the one before it ended.
      const Group added = LoadGroup(bias + c, left, /*aligned=*/false);
      for (int i = 0; i < kGroup; ++i) values.lane[i] += added.lane[i];
    }
    for (int i = 0; i < kGroup; ++i) values.lane[i] = Activated(activation, values.lane[i]);
    StoreGroup(y.data + r * y.stride + c, values, left, aligned);
  });
}

SATRAP_KERNEL void ActivateGradKernel(Activation activation, Matrix<const float> y,
                                      Matrix<const float> dy, Matrix<float> dx, bool add,
                                      bool aligned) {
  ForEachGroup(y.rows, GroupsOf(y.cols), [&](int64_t r, int64_t g) {
    const int64_t c = g * kGroup, left = y.cols - c;
    const Group values = LoadGroup(y.data + r * y.stride + c, left, aligned);
    Group gradients = LoadGroup(dy.data + r * dy.stride + c, left, aligned);
    for (int i = 0; i < kGroup; ++i) {
      gradients.lane[i] = ActivationGradient(activation, values.lane[i], gradients.lane[i]);
    }
    PutGroup(dx.data + r * dx.stride + c, gradients, left, aligned, add);
  });
}

}  // namespace

void BiasActivate(Stream* stream, Matrix<const float> x, const float* bias, Activation activation,
                  Matrix<float> y) {
  if (y.rows == 0 || y.cols == 0) return;
  const ElementwiseShape shape = ShapeOf(y.rows, GroupsOf(y.cols));
  Launch<BiasActivateKernel>(stream, shape.grid, shape.block, 0, x, bias, activation, y,
                             GroupsAligned(x) && GroupsAligned(y));
}

void ActivateGrad(Stream* stream, Activation activation, Matrix<const float> y,
                  Matrix<const float> dy, Matrix<float> dx, bool add) {
  if (y.rows == 0 || y.cols == 0) return;
  const ElementwiseShape shape = ShapeOf(y.rows, GroupsOf(y.cols));
  Launch<ActivateGradKernel>(stream, shape.grid, shape.block, 0, activation, y, dy, dx, add,
                             GroupsAligned(y) && GroupsAligned(dy) && GroupsAligned(dx));
}

}  // namespace satrap

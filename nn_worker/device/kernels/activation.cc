#include "nn_worker/device/kernels/activation.h"

#include "nn_worker/device/kernel.h"
#include "nn_worker/device/kernels/activation_function.h"
#include "nn_worker/device/kernels/elementwise.h"
#include "nn_worker/device/kernels/value_access.h"

namespace satrap {
namespace {

SATRAP_KERNEL void BiasActivateKernel(ConstValues x, ConstValues bias, Activation activation,
                                      Values y) {
  ForEachGroup(y.rows, GroupsOf(y.cols), [&](int64_t r, int64_t g) {
    const int64_t c = g * kGroup;
    Group values = LoadGroup(x, r, c);
    if (bias.data != nullptr) {
      const Group added = LoadGroup(bias, 0, c);
      for (int i = 0; i < kGroup; ++i) values.lane[i] += added.lane[i];
    }
    for (int i = 0; i < kGroup; ++i) values.lane[i] = Activated(activation, values.lane[i]);
    StoreGroup(y, r, c, values);
  });
}

SATRAP_KERNEL void ActivateGradKernel(Activation activation, ConstValues y, ConstValues dy,
                                      Values dx, bool add) {
  ForEachGroup(y.rows, GroupsOf(y.cols), [&](int64_t r, int64_t g) {
    const int64_t c = g * kGroup;
    const Group values = LoadGroup(y, r, c);
    Group gradients = LoadGroup(dy, r, c);
    for (int i = 0; i < kGroup; ++i) {
      gradients.lane[i] = ActivationGradient(activation, values.lane[i], gradients.lane[i]);
    }
    PutGroup(dx, r, c, gradients, add);
  });
}

}  // namespace

void BiasActivate(DeviceStream* stream, ConstValues x, ConstValues bias, Activation activation,
                  Values y) {
  if (y.rows == 0 || y.cols == 0) return;
  const ElementwiseShape shape = ShapeOf(y.rows, GroupsOf(y.cols));
  Launch<BiasActivateKernel>(stream, shape.grid, shape.block, 0, x, bias, activation, y);
}

void ActivateGrad(DeviceStream* stream, Activation activation, ConstValues y, ConstValues dy,
                  Values dx, bool add) {
  if (y.rows == 0 || y.cols == 0) return;
  const ElementwiseShape shape = ShapeOf(y.rows, GroupsOf(y.cols));
  Launch<ActivateGradKernel>(stream, shape.grid, shape.block, 0, activation, y, dy, dx, add);
}

}  // namespace satrap

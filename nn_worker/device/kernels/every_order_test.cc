// Instantiates the suite to which the tests of all kernels belong. They are one program, so this is
// done once.

#include "nn_worker/device/testing/device_testing.h"

namespace satrap {
namespace {

IN_EVERY_ORDER(KernelTest);

}  // namespace
}  // namespace satrap

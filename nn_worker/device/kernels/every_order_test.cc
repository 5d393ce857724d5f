// The tests of all kernels are one suite of one program, so it is instantiated once.

#include "nn_worker/device/testing/device_testing.h"

namespace satrap {
namespace {

IN_EVERY_ORDER(KernelTest);

}  // namespace
}  // namespace satrap

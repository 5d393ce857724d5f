// Instantiates KernelTest, the suite to which the tests of all kernels belong. All of them are in
// one program, so this must be done only once.

#include "nn_worker/device/testing/device_testing.h"

namespace satrap {
namespace {

IN_EVERY_ORDER(KernelTest);

}  // namespace
}  // namespace satrap

// The two 16-bit floating-point formats as stored in memory: Half (IEEE 754 binary16) and Bf16 (the
// upper half of an f32). They have no arithmetic: kernels convert with ToFloat and FromFloat
// (kernel.h) and compute in f32. Host code converts with common/numeric/half.h.

#ifndef SATRAP_NN_WORKER_DEVICE_FLOAT16_H_
#define SATRAP_NN_WORKER_DEVICE_FLOAT16_H_

#include <cstdint>

namespace satrap {

struct Half {
  uint16_t bits;
};
struct Bf16 {
  uint16_t bits;
};

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_DEVICE_FLOAT16_H_

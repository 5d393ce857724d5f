// Numbers that tell processes and runs apart.

#ifndef SATRAP_COMMON_ROLE_RANDOM_ID_H_
#define SATRAP_COMMON_ROLE_RANDOM_ID_H_

#include <cstdint>

namespace satrap {

// 64 bits of the kernel's random numbers: another value at each call in every process. Never 0,
// which means a missing field. Thread-safe.
uint64_t RandomId();

}  // namespace satrap

#endif  // SATRAP_COMMON_ROLE_RANDOM_ID_H_

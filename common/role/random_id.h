// Numbers that distinguish processes and runs.

#ifndef SATRAP_COMMON_ROLE_RANDOM_ID_H_
#define SATRAP_COMMON_ROLE_RANDOM_ID_H_

#include <cstdint>

namespace satrap {

// 64 random bits from the kernel, different at each call and in each process. Never 0, which means
// a missing field. Thread-safe.
uint64_t RandomId();

}  // namespace satrap

#endif  // SATRAP_COMMON_ROLE_RANDOM_ID_H_

// The memory of a process: how much it uses, and settings of malloc for a role's process.
//
// Roles allocate and free messages of a few MiB all the time. By default malloc returns such blocks
// to the kernel and gets them back as zeroed pages. That costs more than filling the blocks: for a
// call with an answer of 1 MiB it takes a quarter of the processor time of both ends
// (tests/benchmark/rpc_benchmark.cc).

#ifndef SATRAP_COMMON_BASE_PROCESS_MEMORY_H_
#define SATRAP_COMMON_BASE_PROCESS_MEMORY_H_

#include <sys/types.h>

#include <cstdint>

#include "absl/types/optional.h"

namespace satrap {

// Makes malloc keep freed blocks of less than 32 MiB, up to 256 MiB at the end of each of its
// arenas. It changes the whole process, so only main functions call it. No effect on a malloc other
// than glibc's.
void KeepFreedMemory();

// The resident memory of a process; absent if there is no such process. Thread-safe.
absl::optional<uint64_t> ResidentBytes(pid_t pid);

}  // namespace satrap

#endif  // SATRAP_COMMON_BASE_PROCESS_MEMORY_H_

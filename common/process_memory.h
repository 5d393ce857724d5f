// How the memory of a role's process is kept. Messages of a few MiB come and go all the time. By
// its default malloc gives such blocks back to the kernel when they are freed and gets them again
// page by page, zeroed, which costs more than filling them: of a call with an answer of 1 MiB, a
// quarter of the processor time at both ends (tests/benchmark/rpc_benchmark.cc).

#ifndef SATRAP_COMMON_PROCESS_MEMORY_H_
#define SATRAP_COMMON_PROCESS_MEMORY_H_

namespace satrap {

// Lets malloc keep what is freed, for blocks under 32 MiB, up to 256 MiB at the end of each of its
// arenas. For main functions: it changes the whole process. Without effect where malloc is not
// glibc's.
void KeepFreedMemory();

}  // namespace satrap

#endif  // SATRAP_COMMON_PROCESS_MEMORY_H_

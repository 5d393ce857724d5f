#include "common/base/process_memory.h"

#include <malloc.h>

namespace satrap {

void KeepFreedMemory() {
  mallopt(M_MMAP_THRESHOLD, 32 << 20);  // the largest value that glibc takes
  mallopt(M_TRIM_THRESHOLD, 256 << 20);
}

}  // namespace satrap

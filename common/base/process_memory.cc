#include "common/base/process_memory.h"

#include <malloc.h>
#include <unistd.h>

#include <fstream>

#include "absl/strings/str_cat.h"

namespace satrap {

void KeepFreedMemory() {
  mallopt(M_MMAP_THRESHOLD, 32 << 20);  // the largest value that glibc takes
  mallopt(M_TRIM_THRESHOLD, 256 << 20);
}

absl::optional<uint64_t> ResidentBytes(pid_t pid) {
  std::ifstream file(absl::StrCat("/proc/", pid, "/statm"));
  uint64_t size = 0;
  uint64_t resident = 0;
  if (!(file >> size >> resident)) return absl::nullopt;
  return resident * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

}  // namespace satrap

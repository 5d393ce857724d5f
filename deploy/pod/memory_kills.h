// Counts how often the kernel has killed a process of this container because the container's memory
// was used up. The counts come from the container's cgroup. Without them such a kill looks like any
// other SIGKILL.
//
//   v1   memory.oom_control, "oom_kill N"; the limit is memory.limit_in_bytes
//   v2   memory.events, "oom_kill N"; the limit is memory.max
//
// Thread-safe.

#ifndef SATRAP_DEPLOY_POD_MEMORY_KILLS_H_
#define SATRAP_DEPLOY_POD_MEMORY_KILLS_H_

#include <cstdint>
#include <string>

#include "absl/types/optional.h"

namespace satrap {

class MemoryKills {
 public:
  // Finds the cgroup by the files `mountinfo` and `cgroup` of a folder such as /proc/self. A
  // machine that shows none of them has no counters, and Count() is then 0.
  explicit MemoryKills(const std::string& proc_folder);

  int64_t Count() const;
  // The container's memory limit; nullopt if there is none.
  absl::optional<int64_t> LimitBytes() const;

 private:
  std::string count_path_;  // empty: there is no counter
  std::string limit_path_;
};

}  // namespace satrap

#endif  // SATRAP_DEPLOY_POD_MEMORY_KILLS_H_

#include "common/config/job_change.h"

namespace satrap {

absl::Status CheckJobChange(const JobConfig& from, const JobConfig& to) {
  if (from.seed() != to.seed()) {
    return absl::InvalidArgumentError("seed must not change between the generations of a run");
  }
  return absl::OkStatus();
}

}  // namespace satrap

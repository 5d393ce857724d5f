// The counts that a PsEngine has kept since it was created.

#ifndef SATRAP_EMBEDDING_PS_PS_COUNTS_H_
#define SATRAP_EMBEDDING_PS_PS_COUNTS_H_

#include <cstdint>

#include "absl/types/optional.h"
#include "embedding_ps/ps_cuts.h"

namespace satrap {

struct PsCounts {
  uint64_t lookup_keys = 0;
  uint64_t absent_keys = 0;  // among lookup_keys
  uint64_t updates = 0;      // applied
  uint64_t update_keys = 0;
  uint64_t rows_created = 0;
  absl::optional<int64_t> data_time_ms;  // the latest of the Updates applied; nullopt: none had one
  PsCuts::Counts cuts;
};

}  // namespace satrap

#endif  // SATRAP_EMBEDDING_PS_PS_COUNTS_H_

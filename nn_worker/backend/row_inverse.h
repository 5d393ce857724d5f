// Makes the RowInverse of a part's table (row_exchange_args.h) on the host.

#ifndef SATRAP_NN_WORKER_BACKEND_ROW_INVERSE_H_
#define SATRAP_NN_WORKER_BACKEND_ROW_INVERSE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace satrap {

struct HostRowInverse {
  std::vector<uint32_t> starts;     // [num_rows + 1]
  std::vector<uint32_t> positions;  // [number of ids]
};

// `ids` has the ids of each feature of the table, in the order in which ScatterGradients gets the
// features. This is a counting sort: its time is linear in rows and ids. Reuses the memory of
// `*inverse`.
// REQUIRES: every id < num_rows; fewer than 2^32 ids
void InvertIds(absl::Span<const absl::Span<const uint32_t>> ids, size_t num_rows,
               HostRowInverse* inverse);

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_BACKEND_ROW_INVERSE_H_

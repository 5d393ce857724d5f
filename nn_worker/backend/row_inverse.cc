#include "nn_worker/backend/row_inverse.h"

#include "common/base/check.h"

namespace satrap {

void InvertIds(absl::Span<const absl::Span<const uint32_t>> ids, size_t num_rows,
               HostRowInverse* inverse) {
  std::vector<uint32_t>& starts = inverse->starts;
  starts.assign(num_rows + 1, 0);
  size_t count = 0;
  for (const absl::Span<const uint32_t> of_feature : ids) {
    count += of_feature.size();
    for (const uint32_t row : of_feature) {
      CHECK(row < num_rows) << row;
      ++starts[row + 1];
    }
  }
  CHECK(count <= UINT32_MAX) << count;
  for (size_t row = 0; row < num_rows; ++row) starts[row + 1] += starts[row];
  // starts[row] is incremented for each id of its row and ends where the next row begins. So at the
  // end all entries have moved by one.
  inverse->positions.resize(count);
  uint32_t position = 0;
  for (const absl::Span<const uint32_t> of_feature : ids) {
    for (const uint32_t row : of_feature) inverse->positions[starts[row]++] = position++;
  }
  for (size_t row = num_rows; row > 0; --row) starts[row] = starts[row - 1];
  starts[0] = 0;
}

}  // namespace satrap

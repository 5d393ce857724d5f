#include "data_loader/transform/feature_cross.h"

#include "absl/strings/string_view.h"
#include "common/base/check.h"
#include "common/numeric/hash.h"

namespace satrap {

uint64_t CrossId(absl::Span<const uint64_t> ids) {
  CHECK(ids.size() <= kMaxCrossColumns) << ids.size();
  // Write the ids byte by byte, so that the result does not depend on the machine's byte order.
  char bytes[kMaxCrossColumns * sizeof(uint64_t)];
  size_t size = 0;
  for (const uint64_t id : ids) {
    for (int shift = 0; shift < 64; shift += 8) bytes[size++] = static_cast<char>(id >> shift);
  }
  return Xxh64(absl::string_view(bytes, size));
}

}  // namespace satrap

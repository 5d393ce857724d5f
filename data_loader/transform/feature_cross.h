// The id of a feature cross: one id for a combination of ids (docs/formats.md, "Feature crosses").
//
// Thread-safe: a function of its arguments.

#ifndef SATRAP_DATA_LOADER_TRANSFORM_FEATURE_CROSS_H_
#define SATRAP_DATA_LOADER_TRANSFORM_FEATURE_CROSS_H_

#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"

namespace satrap {

// The most columns that a cross may have. Validation enforces this.
inline constexpr size_t kMaxCrossColumns = 16;

// The XXH64 (seed 0) of the ids, in this order, as little-endian u64s. Stored rows depend on it, so
// it must never change; tests have golden values. REQUIRES: at most kMaxCrossColumns ids
uint64_t CrossId(absl::Span<const uint64_t> ids);

}  // namespace satrap

#endif  // SATRAP_DATA_LOADER_TRANSFORM_FEATURE_CROSS_H_

// CRC-32C (Castagnoli), the checksum of Satrap's files. Example: "123456789" gives 0xE3069283.
//
// Thread-safe: no state.

#ifndef SATRAP_COMMON_NUMERIC_CRC32C_H_
#define SATRAP_COMMON_NUMERIC_CRC32C_H_

#include <cstdint>

#include "absl/strings/string_view.h"

namespace satrap {

// Continues a checksum: ExtendCrc32c(Crc32c(a), b) == Crc32c(a + b). Uses SSE4.2 if the CPU has it.
uint32_t ExtendCrc32c(uint32_t crc, absl::string_view bytes);

inline uint32_t Crc32c(absl::string_view bytes) { return ExtendCrc32c(0, bytes); }

namespace internal {
// Like ExtendCrc32c, but without SSE4.2.
uint32_t ExtendCrc32cByTable(uint32_t crc, absl::string_view bytes);
}  // namespace internal

}  // namespace satrap

#endif  // SATRAP_COMMON_NUMERIC_CRC32C_H_

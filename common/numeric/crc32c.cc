#include "common/numeric/crc32c.h"

#include <immintrin.h>

#include <array>
#include <cstddef>
#include <cstring>

namespace satrap {
namespace {

// Castagnoli's polynomial, bits reversed (RFC 3720, appendix B.4).
constexpr uint32_t kPolynomial = 0x82f63b78;

constexpr std::array<uint32_t, 256> MakeTable() {
  std::array<uint32_t, 256> table{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? kPolynomial : 0);
    table[byte] = crc;
  }
  return table;
}

constexpr std::array<uint32_t, 256> kTable = MakeTable();

__attribute__((target("sse4.2"))) uint32_t ExtendBySse42(uint32_t crc, absl::string_view bytes) {
  const char* p = bytes.data();
  const char* const end = p + bytes.size();
  uint64_t state = ~crc;
  for (; end - p >= 8; p += 8) {
    uint64_t word;
    std::memcpy(&word, p, sizeof(word));
    state = _mm_crc32_u64(state, word);
  }
  for (; p < end; ++p) {
    state = _mm_crc32_u8(static_cast<uint32_t>(state), static_cast<uint8_t>(*p));
  }
  return ~static_cast<uint32_t>(state);
}

}  // namespace

uint32_t internal::ExtendCrc32cByTable(uint32_t crc, absl::string_view bytes) {
  crc = ~crc;
  for (const char c : bytes) crc = (crc >> 8) ^ kTable[(crc ^ static_cast<uint8_t>(c)) & 0xff];
  return ~crc;
}

uint32_t ExtendCrc32c(uint32_t crc, absl::string_view bytes) {
  if (__builtin_cpu_supports("sse4.2")) return ExtendBySse42(crc, bytes);
  return internal::ExtendCrc32cByTable(crc, bytes);
}

}  // namespace satrap

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

// The product of two polynomials modulo kPolynomial, bits reversed: bit 31 is x^0.
constexpr uint32_t Multiply(uint32_t a, uint32_t b) {
  uint32_t product = 0;
  for (; a != 0; a <<= 1) {
    if ((a & 0x80000000) != 0) product ^= b;
    b = (b >> 1) ^ ((b & 1) != 0 ? kPolynomial : 0);
  }
  return product;
}

// x^(8 n): appending n zero bytes multiplies a state by this factor.
constexpr uint32_t PowerOfBytes(size_t n) {
  uint32_t power = 0x80000000;   // x^0
  uint32_t square = 0x00800000;  // x^8
  for (; n != 0; n >>= 1) {
    if ((n & 1) != 0) power = Multiply(power, square);
    square = Multiply(square, square);
  }
  return power;
}

// Computes the state after `bytes` more zero bytes of input, with one table lookup for each byte of
// the state.
struct Shift {
  explicit constexpr Shift(size_t bytes) {
    const uint32_t power = PowerOfBytes(bytes);
    for (int place = 0; place < 4; ++place) {
      for (uint32_t byte = 0; byte < 256; ++byte) {
        tables[place][byte] = Multiply(byte << (8 * place), power);
      }
    }
  }
  uint32_t operator()(uint32_t state) const {
    return tables[0][state & 0xff] ^ tables[1][state >> 8 & 0xff] ^ tables[2][state >> 16 & 0xff] ^
           tables[3][state >> 24];
  }
  uint32_t tables[4][256] = {};
};

// The CRC instruction has a latency of 3 cycles, but one can begin in each cycle. So three streams
// of kStream bytes are computed side by side. The states of the first two are then shifted over the
// bytes that follow them.
constexpr size_t kStream = 1024;
constexpr Shift kOneStream(kStream);
constexpr Shift kTwoStreams(2 * kStream);

__attribute__((target("sse4.2"))) uint64_t AddWord(uint64_t state, const char* p) {
  uint64_t word;
  std::memcpy(&word, p, sizeof(word));
  return _mm_crc32_u64(state, word);
}

__attribute__((target("sse4.2"))) uint32_t ExtendBySse42(uint32_t crc, absl::string_view bytes) {
  const char* p = bytes.data();
  const char* const end = p + bytes.size();
  uint64_t state = static_cast<uint32_t>(~crc);
  for (; static_cast<size_t>(end - p) >= 3 * kStream; p += 3 * kStream) {
    uint64_t second = 0, third = 0;
    for (size_t i = 0; i < kStream; i += 8) {
      state = AddWord(state, p + i);
      second = AddWord(second, p + kStream + i);
      third = AddWord(third, p + 2 * kStream + i);
    }
    state = kTwoStreams(static_cast<uint32_t>(state)) ^ kOneStream(static_cast<uint32_t>(second)) ^
            third;
  }
  for (; end - p >= 8; p += 8) state = AddWord(state, p);
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

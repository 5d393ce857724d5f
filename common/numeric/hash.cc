#include "common/numeric/hash.h"

#include <cstddef>
#include <cstring>

namespace satrap {
namespace {

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
              "Satrap reads its formats without swapping bytes");

// The primes and the rounds are those of the XXH64 specification.
constexpr uint64_t kPrime1 = 0x9E3779B185EBCA87ULL;
constexpr uint64_t kPrime2 = 0xC2B2AE3D27D4EB4FULL;
constexpr uint64_t kPrime3 = 0x165667B19E3779F9ULL;
constexpr uint64_t kPrime4 = 0x85EBCA77C2B2AE63ULL;
constexpr uint64_t kPrime5 = 0x27D4EB2F165667C5ULL;

uint64_t RotateLeft(uint64_t x, int bits) { return (x << bits) | (x >> (64 - bits)); }

template <typename T>
T Load(const char* p) {
  T value;
  std::memcpy(&value, p, sizeof(T));
  return value;
}

uint64_t Round(uint64_t accumulator, uint64_t lane) {
  return RotateLeft(accumulator + lane * kPrime2, 31) * kPrime1;
}

uint64_t Merge(uint64_t hash, uint64_t accumulator) {
  return (hash ^ Round(0, accumulator)) * kPrime1 + kPrime4;
}

// Hashes the stripes of 32 bytes and advances *p past them.
uint64_t HashStripes(const char** p, const char* end, uint64_t seed) {
  uint64_t a1 = seed + kPrime1 + kPrime2;
  uint64_t a2 = seed + kPrime2;
  uint64_t a3 = seed;
  uint64_t a4 = seed - kPrime1;
  for (; end - *p >= 32; *p += 32) {
    a1 = Round(a1, Load<uint64_t>(*p));
    a2 = Round(a2, Load<uint64_t>(*p + 8));
    a3 = Round(a3, Load<uint64_t>(*p + 16));
    a4 = Round(a4, Load<uint64_t>(*p + 24));
  }
  uint64_t hash = RotateLeft(a1, 1) + RotateLeft(a2, 7) + RotateLeft(a3, 12) + RotateLeft(a4, 18);
  for (const uint64_t accumulator : {a1, a2, a3, a4}) hash = Merge(hash, accumulator);
  return hash;
}

}  // namespace

uint64_t Xxh64(absl::string_view bytes, uint64_t seed) {
  const char* p = bytes.data();
  const char* const end = p + bytes.size();
  uint64_t hash = bytes.size() >= 32 ? HashStripes(&p, end, seed) : seed + kPrime5;
  hash += bytes.size();
  for (; end - p >= 8; p += 8) {
    hash = RotateLeft(hash ^ Round(0, Load<uint64_t>(p)), 27) * kPrime1 + kPrime4;
  }
  if (end - p >= 4) {
    hash = RotateLeft(hash ^ (Load<uint32_t>(p) * kPrime1), 23) * kPrime2 + kPrime3;
    p += 4;
  }
  for (; p < end; ++p) {
    hash = RotateLeft(hash ^ (static_cast<uint8_t>(*p) * kPrime5), 11) * kPrime1;
  }
  hash = (hash ^ (hash >> 33)) * kPrime2;
  hash = (hash ^ (hash >> 29)) * kPrime3;
  return hash ^ (hash >> 32);
}

}  // namespace satrap

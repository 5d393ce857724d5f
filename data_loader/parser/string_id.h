// Computes the id of a string: the XXH64 of its bytes. Strings of eight bytes are hashed inline,
// because all strings of Criteo have that length.

#ifndef SATRAP_DATA_LOADER_PARSER_STRING_ID_H_
#define SATRAP_DATA_LOADER_PARSER_STRING_ID_H_

#include <cstdint>
#include <cstring>

#include "absl/strings/string_view.h"
#include "common/numeric/hash.h"

namespace satrap {

// The XXH64 with seed 0 of the 8 bytes of `word` (specification of XXH64: one round of the 8-byte
// step, then the avalanche).
inline uint64_t Xxh64OfWord(uint64_t word) {
  constexpr uint64_t kPrime1 = 0x9e3779b185ebca87ULL;
  constexpr uint64_t kPrime2 = 0xc2b2ae3d27d4eb4fULL;
  constexpr uint64_t kPrime3 = 0x165667b19e3779f9ULL;
  constexpr uint64_t kPrime4 = 0x85ebca77c2b2ae63ULL;
  constexpr uint64_t kPrime5 = 0x27d4eb2f165667c5ULL;
  const auto rotate = [](uint64_t x, int bits) { return (x << bits) | (x >> (64 - bits)); };
  uint64_t hash = kPrime5 + 8;
  hash ^= rotate(word * kPrime2, 31) * kPrime1;
  hash = rotate(hash, 27) * kPrime1 + kPrime4;
  hash = (hash ^ (hash >> 33)) * kPrime2;
  hash = (hash ^ (hash >> 29)) * kPrime3;
  return hash ^ (hash >> 32);
}

inline uint64_t StringId(const char* bytes, size_t size) {
  if (size != 8) return Xxh64(absl::string_view(bytes, size));
  uint64_t word;
  std::memcpy(&word, bytes, 8);
  return Xxh64OfWord(word);
}
inline uint64_t StringId(absl::string_view bytes) { return StringId(bytes.data(), bytes.size()); }

}  // namespace satrap

#endif  // SATRAP_DATA_LOADER_PARSER_STRING_ID_H_

// The hashes that are part of Satrap's formats. They are the same in every process, on every
// machine and in every build. Golden values are in hash_test.cc and docs/formats.md.

#ifndef SATRAP_COMMON_NUMERIC_HASH_H_
#define SATRAP_COMMON_NUMERIC_HASH_H_

#include <cstdint>

#include "absl/strings/string_view.h"

namespace satrap {

// XXH64 of the bytes, which it reads as little-endian numbers (xxHash by Yann Collet, specification
// of XXH64).
uint64_t Xxh64(absl::string_view bytes, uint64_t seed = 0);

// A bijection of u64 with good avalanche (Stafford's variant 13 of the MurmurHash3 finaliser, as in
// SplitMix64).
inline uint64_t Mix64(uint64_t x) {
  x ^= x >> 30;
  x *= 0xbf58476d1ce4e5b9ULL;
  x ^= x >> 27;
  x *= 0x94d049bb133111ebULL;
  x ^= x >> 31;
  return x;
}

// The key of an id in an id space. Within each space different ids have different keys.
// `id_space_hash` is Xxh64(id_space).
inline uint64_t KeyOf(uint64_t id, uint64_t id_space_hash) { return Mix64(id ^ id_space_hash); }

// The top bits of a row's key give its partition of the table. The number of partitions is a
// constant of the format.
inline constexpr int kNumPartitions = 4096;
inline int PartitionOf(uint64_t key) { return static_cast<int>(key >> 52); }

// The embedding PS that owns a partition. Each PS owns a contiguous range, and the ranges have
// nearly equal lengths. REQUIRES: 0 <= partition < kNumPartitions, 0 < num_ps <= kNumPartitions
inline int PsOfPartition(int partition, int num_ps) {
  return static_cast<int>((static_cast<int64_t>(partition) * num_ps) / kNumPartitions);
}

}  // namespace satrap

#endif  // SATRAP_COMMON_NUMERIC_HASH_H_

#include "common/numeric/half.h"

#include <cpuid.h>
#include <immintrin.h>

#include <cstddef>
#include <cstring>

#include "common/base/check.h"
#include "common/numeric/vectorize.h"

namespace satrap {
namespace {

uint32_t BitsOf(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}

float FloatOf(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

// Reads CPUID, because clang 14's __builtin_cpu_supports does not know F16C. Also needs "avx",
// which says that the operating system saves the wide registers.
bool HasF16c() {
  static const bool has_f16c = [] {
    unsigned int eax, ebx, ecx, edx;
    return __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx & bit_F16C) != 0 &&
           __builtin_cpu_supports("avx");
  }();
  return has_f16c;
}
bool HasAvx2() { return __builtin_cpu_supports("avx2"); }

// Each kernel below converts as many whole vectors as fit, and returns the number of values
// converted.

__attribute__((target("avx,f16c"))) size_t F16FromF32Vectors(const float* from, uint16_t* to,
                                                             size_t count) {
  size_t i = 0;
  for (; i + 8 <= count; i += 8) {
    const __m128i halves =
        _mm256_cvtps_ph(_mm256_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i), halves);
  }
  return i;
}

__attribute__((target("avx,f16c"))) size_t F32FromF16Vectors(const uint16_t* from, float* to,
                                                             size_t count) {
  size_t i = 0;
  for (; i + 8 <= count; i += 8) {
    const __m128i halves = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i));
    _mm256_storeu_ps(to + i, _mm256_cvtph_ps(halves));
  }
  return i;
}

// Rounds in integer arithmetic: the CPU's own instruction (AVX512_BF16) flushes subnormals to zero,
// so its bits would differ from those of a CPU without it.
__attribute__((target("avx2"))) __m256i Bf16InUpperHalves(__m256 values) {
  const __m256i bits = _mm256_castps_si256(values);
  const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
  const __m256i rounded = _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
  const __m256i quiet = _mm256_or_si256(bits, _mm256_set1_epi32(0x00400000));
  const __m256i is_nan = _mm256_castps_si256(_mm256_cmp_ps(values, values, _CMP_UNORD_Q));
  return _mm256_srli_epi32(_mm256_blendv_epi8(rounded, quiet, is_nan), 16);
}

__attribute__((target("avx2"))) size_t Bf16FromF32Vectors(const float* from, uint16_t* to,
                                                          size_t count) {
  size_t i = 0;
  for (; i + 16 <= count; i += 16) {
    const __m256i low = Bf16InUpperHalves(_mm256_loadu_ps(from + i));
    const __m256i high = Bf16InUpperHalves(_mm256_loadu_ps(from + i + 8));
    // packus works within 128-bit lanes; the permutation restores the order.
    const __m256i packed = _mm256_permute4x64_epi64(_mm256_packus_epi32(low, high), 0xd8);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + i), packed);
  }
  return i;
}

__attribute__((target("avx2"))) size_t F32FromBf16Vectors(const uint16_t* from, float* to,
                                                          size_t count) {
  size_t i = 0;
  for (; i + 8 <= count; i += 8) {
    const __m128i halves = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i));
    const __m256i bits = _mm256_slli_epi32(_mm256_cvtepu16_epi32(halves), 16);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + i), bits);
  }
  return i;
}

// Subtracting 1 from infinity's bit pattern gives that of 65504, the largest finite value. There is
// no branch: sums that overflow are rare, and without them the loop must cost next to nothing.
SATRAP_VECTORIZE_SAME_BITS size_t SaturateValues(uint16_t* values, size_t count) {
  size_t saturated = 0;
  for (size_t i = 0; i < count; ++i) {
    const uint16_t infinite = (values[i] & 0x7fff) == 0x7c00 ? 1 : 0;
    values[i] -= infinite;
    saturated += infinite;
  }
  return saturated;
}

// The bits of absolute values have the same order as the values, so they are compared as integers.
SATRAP_VECTORIZE_SAME_BITS uint32_t LargestFiniteBits(const float* values, size_t count) {
  uint32_t largest = 0;
  for (size_t i = 0; i < count; ++i) {
    uint32_t bits;
    std::memcpy(&bits, values + i, sizeof(bits));
    bits &= 0x7fffffff;
    bits = bits < 0x7f800000 ? bits : 0;
    largest = bits > largest ? bits : largest;
  }
  return largest;
}

SATRAP_VECTORIZE_SAME_BITS size_t CountUnderflowed(const float* from, const uint16_t* to,
                                                   size_t count) {
  size_t underflowed = 0;
  for (size_t i = 0; i < count; ++i) {
    uint32_t bits;
    std::memcpy(&bits, from + i, sizeof(bits));
    underflowed += (bits & 0x7fffffff) != 0 && (to[i] & 0x7fff) == 0 ? 1 : 0;
  }
  return underflowed;
}

}  // namespace

uint16_t F16FromF32(float value) {
  const uint32_t bits = BitsOf(value);
  const uint32_t sign = (bits >> 16) & 0x8000;
  const uint32_t magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000) return sign | 0x7e00 | ((magnitude >> 13) & 0x3ff);
  if (magnitude >= 0x47800000) return sign | 0x7c00;  // 2^16 and more
  if (magnitude >= 0x38800000) {                      // 2^-14 and more: a normal f16
    // Changes the exponent's bias from 127 to 15. A carry out of the rounded mantissa increments
    // the exponent, which is correct: the value was rounded up to the next power of two.
    const uint32_t odd = (magnitude >> 13) & 1;
    return sign | ((magnitude - 0x38000000 + 0xfff + odd) >> 13);
  }
  if (magnitude < 0x33000000) return sign;  // under 2^-25
  // A subnormal f16 counts units of 2^-24. That count is the mantissa with its hidden bit, shifted.
  const uint32_t shift = 126 - (magnitude >> 23);
  const uint32_t mantissa = (magnitude & 0x7fffff) | 0x800000;
  const uint32_t units = mantissa >> shift;
  const uint32_t rest = mantissa & ((1u << shift) - 1);
  const uint32_t half = 1u << (shift - 1);
  return sign | (units + (rest > half || (rest == half && (units & 1) != 0) ? 1 : 0));
}

float F32FromF16(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000) << 16;
  const uint32_t exponent = (bits >> 10) & 0x1f;
  const uint32_t mantissa = bits & 0x3ff;
  if (exponent == 0x1f) {
    const uint32_t quiet = mantissa != 0 ? 0x400000 : 0;
    return FloatOf(sign | 0x7f800000 | quiet | (mantissa << 13));
  }
  if (exponent == 0) {
    const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
    return FloatOf(sign | BitsOf(magnitude));
  }
  return FloatOf(sign | ((exponent + 112) << 23) | (mantissa << 13));
}

uint16_t Bf16FromF32(float value) {
  const uint32_t bits = BitsOf(value);
  if ((bits & 0x7fffffff) > 0x7f800000) return (bits | 0x00400000) >> 16;
  return (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
}

float F32FromBf16(uint16_t bits) { return FloatOf(static_cast<uint32_t>(bits) << 16); }

void F16FromF32(absl::Span<const float> from, absl::Span<uint16_t> to) {
  CHECK(from.size() == to.size()) << from.size() << " and " << to.size();
  size_t i = HasF16c() ? F16FromF32Vectors(from.data(), to.data(), from.size()) : 0;
  for (; i < from.size(); ++i) to[i] = F16FromF32(from[i]);
}

void F32FromF16(absl::Span<const uint16_t> from, absl::Span<float> to) {
  CHECK(from.size() == to.size()) << from.size() << " and " << to.size();
  size_t i = HasF16c() ? F32FromF16Vectors(from.data(), to.data(), from.size()) : 0;
  for (; i < from.size(); ++i) to[i] = F32FromF16(from[i]);
}

void Bf16FromF32(absl::Span<const float> from, absl::Span<uint16_t> to) {
  CHECK(from.size() == to.size()) << from.size() << " and " << to.size();
  size_t i = HasAvx2() ? Bf16FromF32Vectors(from.data(), to.data(), from.size()) : 0;
  for (; i < from.size(); ++i) to[i] = Bf16FromF32(from[i]);
}

void F32FromBf16(absl::Span<const uint16_t> from, absl::Span<float> to) {
  CHECK(from.size() == to.size()) << from.size() << " and " << to.size();
  size_t i = HasAvx2() ? F32FromBf16Vectors(from.data(), to.data(), from.size()) : 0;
  for (; i < from.size(); ++i) to[i] = F32FromBf16(from[i]);
}

size_t SaturateF16(absl::Span<uint16_t> values) {
  return SaturateValues(values.data(), values.size());
}

float LargestFiniteMagnitude(absl::Span<const float> values) {
  return FloatOf(LargestFiniteBits(values.data(), values.size()));
}

size_t CountUnderflowedF16(absl::Span<const float> from, absl::Span<const uint16_t> to) {
  CHECK(from.size() == to.size()) << from.size() << " and " << to.size();
  return CountUnderflowed(from.data(), to.data(), from.size());
}

}  // namespace satrap

// Conversions between f32 and the two 16-bit formats: f16 (IEEE 754 binary16) and bf16 (the upper
// half of an f32).
//
// To 16 bits: rounds to nearest, ties to even. A value that is too large becomes an infinity, a
// subnormal result is kept, and a NaN becomes a quiet NaN with the upper bits of its payload. To 32
// bits: exact, except that a signalling f16 NaN becomes quiet. The bulk functions use the vector
// instructions that the CPU has and give the same bits as the scalar ones, even in a thread that
// flushes subnormal f32 to zero (denormals.h).
//
// Thread-safe: no state.

#ifndef SATRAP_COMMON_NUMERIC_HALF_H_
#define SATRAP_COMMON_NUMERIC_HALF_H_

#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"

namespace satrap {

uint16_t F16FromF32(float value);
float F32FromF16(uint16_t bits);
uint16_t Bf16FromF32(float value);
float F32FromBf16(uint16_t bits);

// REQUIRES, for each of these functions: from.size() == to.size(), no overlap
void F16FromF32(absl::Span<const float> from, absl::Span<uint16_t> to);
void F32FromF16(absl::Span<const uint16_t> from, absl::Span<float> to);
void Bf16FromF32(absl::Span<const float> from, absl::Span<uint16_t> to);
void F32FromBf16(absl::Span<const uint16_t> from, absl::Span<float> to);

// Replaces each infinity by the largest finite f16 of its sign (65504) and returns the number of
// replaced values. A NaN stays. After F16FromF32 an infinity comes either from a value that was too
// large for an f16, or from an infinity in the input. A caller that must distinguish the two looks
// at the input.
size_t SaturateF16(absl::Span<uint16_t> values);

// The largest absolute value of the finite values; 0 if no value is finite.
float LargestFiniteMagnitude(absl::Span<const float> values);

// `to` is `from` converted to F16. Counts the values that are not 0 in `from` but 0 in `to`,
// because they are too small for an F16. REQUIRES: from.size() == to.size()
size_t CountUnderflowedF16(absl::Span<const float> from, absl::Span<const uint16_t> to);

}  // namespace satrap

#endif  // SATRAP_COMMON_NUMERIC_HALF_H_

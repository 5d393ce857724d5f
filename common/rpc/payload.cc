#include "common/rpc/payload.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "common/numeric/half.h"
#include "common/numeric/vectorize.h"

namespace satrap::rpc {

namespace {

// The number of values that are converted at a time by way of f32. A block fits in the first-level
// cache.
constexpr size_t kConvertBlock = 1024;

// The values of an F16 section are scaled to magnitudes below 2^kScaledBits, so that no value
// rounds to infinity, and a sum of two values still fits.
constexpr int kScaledBits = 15;

absl::Span<const uint16_t> Halves(const WireValues& values) {
  return absl::Span<const uint16_t>(reinterpret_cast<const uint16_t*>(values.bytes), values.count);
}

// 2^exponent. REQUIRES: `exponent` or -`exponent` is in the range of Section.scale_exponent
float PowerOfTwo(int exponent) { return std::ldexp(1.0f, exponent); }

SATRAP_VECTORIZE_SAME_BITS void ScaleValues(float factor, float* values, size_t count) {
  for (size_t i = 0; i < count; ++i) values[i] *= factor;
}

void Scale(float factor, absl::Span<float> values) {
  if (factor != 1) ScaleValues(factor, values.data(), values.size());
}

// Decodes `from` to f32, a block at a time, and calls visit(block, position of its first value).
template <typename Visit>
void ForBlocks(const WireValues& from, Visit visit) {
  float block[kConvertBlock];
  for (size_t i = 0; i < from.count; i += kConvertBlock) {
    const absl::Span<float> values(block, std::min(kConvertBlock, from.count - i));
    DecodeWire(from.Subrange(i, values.size()), values);
    visit(values, i);
  }
}

WireValues ViewOf(absl::Span<const float> values) {
  return WireValues{F32, values.size(), reinterpret_cast<const uint8_t*>(values.data())};
}

absl::StatusOr<const uint8_t*> CheckedBytes(const Buffer& payload, const Section& section,
                                            uint64_t count, size_t value_bytes,
                                            absl::string_view field) {
  // Divides instead of multiplying: the count comes from the peer, and count * value_bytes might
  // overflow.
  if (section.size_bytes() % value_bytes != 0 || section.size_bytes() / value_bytes != count) {
    return absl::InvalidArgumentError(absl::StrCat(field, ": a section of ", section.size_bytes(),
                                                   " bytes cannot hold ", count, " values of ",
                                                   value_bytes, " bytes"));
  }
  if (section.offset_bytes() % kBufferAlignment != 0) {
    return absl::InvalidArgumentError(absl::StrCat(field, ": offset ", section.offset_bytes(),
                                                   " is not a multiple of ", kBufferAlignment));
  }
  if (section.offset_bytes() > payload.size() ||
      section.size_bytes() > payload.size() - section.offset_bytes()) {
    return absl::InvalidArgumentError(
        absl::StrCat(field, ": ", section.size_bytes(), " bytes at offset ", section.offset_bytes(),
                     " do not lie in a payload of ", payload.size(), " bytes"));
  }
  return payload.data() + section.offset_bytes();
}

absl::Status CheckScale(const Section& section, bool scaled, absl::string_view field) {
  const int exponent = section.scale_exponent();
  if (!scaled && exponent != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(field, ": scale_exponent is ", exponent, " in a section that is not F16"));
  }
  if (exponent < kLeastScaleExponent || exponent > kLargestScaleExponent) {
    return absl::InvalidArgumentError(absl::StrCat(field, ": scale_exponent must be in [",
                                                   kLeastScaleExponent, ", ", kLargestScaleExponent,
                                                   "], got ", exponent));
  }
  return absl::OkStatus();
}

}  // namespace

void PayloadBuilder::ReserveBytes(size_t size_bytes, Section* section) {
  CHECK(!allocated_);
  const size_t aligned = (size_bytes_ + kBufferAlignment - 1) / kBufferAlignment * kBufferAlignment;
  if (aligned != size_bytes_ && size_bytes > 0) gaps_.push_back({size_bytes_, aligned});
  section->set_offset_bytes(size_bytes > 0 ? aligned : 0);
  section->set_size_bytes(size_bytes);
  if (size_bytes > 0) size_bytes_ = aligned + size_bytes;
}

void PayloadBuilder::Allocate(std::shared_ptr<BufferAllocator> allocator) {
  CHECK(!allocated_);
  allocated_ = true;
  if (size_bytes_ == 0) return;
  payload_ = Buffer(size_bytes_, std::move(allocator));
  // Zeroes the gaps, so that equal messages have equal bytes and no old memory leaves the process.
  for (const Range& gap : gaps_)
    std::memset(payload_.mutable_data() + gap.from, 0, gap.to - gap.from);
}

Buffer PayloadBuilder::Take() {
  CHECK(allocated_);
  return std::move(payload_);
}

void PayloadBuilder::Encode(absl::Span<const float> values, WireDtype dtype, Section* section) {
  if (values.empty()) return;
  const absl::Span<uint8_t> to = Fill<uint8_t>(*section);
  CHECK(to.size() == values.size() * WireValueBytes(dtype)) << to.size();
  const int exponent = ScaleExponentFor(ViewOf(values), dtype);
  SetScale(dtype, exponent, section);
  EncodeWire(values, dtype, exponent, to.data());
}

absl::StatusOr<const uint8_t*> CheckedSection(const Buffer& payload, const Section& section,
                                              uint64_t count, size_t value_bytes,
                                              absl::string_view field) {
  RETURN_IF_ERROR(CheckScale(section, /*scaled=*/false, field));
  return CheckedBytes(payload, section, count, value_bytes, field);
}

WireValues WireValues::Subrange(size_t from, size_t n) const {
  CHECK(from <= count && n <= count - from);
  return WireValues{dtype, n, bytes + from * WireValueBytes(dtype), scale_exponent};
}

absl::StatusOr<WireValues> WireView(const Buffer& payload, const Section& section, WireDtype dtype,
                                    uint64_t count, absl::string_view field) {
  RETURN_IF_ERROR(CheckScale(section, /*scaled=*/dtype == F16, field));
  ASSIGN_OR_RETURN(const uint8_t* const bytes,
                   CheckedBytes(payload, section, count, WireValueBytes(dtype), field));
  return WireValues{dtype, count, bytes, section.scale_exponent()};
}

int ScaleExponentOf(float largest) {
  if (largest == 0) return kLeastScaleExponent;
  int exponent;  // largest < 2^exponent
  std::frexp(largest, &exponent);
  return std::clamp(exponent - kScaledBits, kLeastScaleExponent, kLargestScaleExponent);
}

int ScaleExponentFor(const WireValues& values, WireDtype to_dtype) {
  if (to_dtype != F16) return 0;
  if (values.dtype == F16) return values.scale_exponent;
  if (values.dtype == F32) {
    return ScaleExponentOf(LargestFiniteMagnitude(
        absl::MakeSpan(reinterpret_cast<const float*>(values.bytes), values.count)));
  }
  float largest = 0;
  ForBlocks(values, [&](absl::Span<float> block, size_t) {
    largest = std::max(largest, LargestFiniteMagnitude(block));
  });
  return ScaleExponentOf(largest);
}

void SetScale(WireDtype dtype, int scale_exponent, Section* section) {
  if (dtype == F16) section->set_scale_exponent(scale_exponent);
}

void DecodeWire(const WireValues& from, absl::Span<float> to) {
  CHECK(to.size() == from.count);
  if (from.count == 0) return;
  switch (from.dtype) {
    case F32:
      std::memcpy(to.data(), from.bytes, from.count * sizeof(float));
      return;
    case F16:
      F32FromF16(Halves(from), to);
      Scale(PowerOfTwo(from.scale_exponent), to);
      return;
    case BF16:
      F32FromBf16(Halves(from), to);
      return;
  }
}

void EncodeWire(absl::Span<const float> from, WireDtype dtype, int scale_exponent, uint8_t* to) {
  ConvertWire(ViewOf(from), dtype, scale_exponent, to);
}

void ConvertWire(const WireValues& from, WireDtype to_dtype, int scale_exponent, uint8_t* to) {
  CHECK(to_dtype == F16 || scale_exponent == 0) << scale_exponent;
  if (from.count == 0) return;
  const absl::Span<uint16_t> halves(reinterpret_cast<uint16_t*>(to), from.count);
  if (from.dtype == to_dtype && from.scale_exponent == scale_exponent) {
    std::memcpy(to, from.bytes, from.count * WireValueBytes(to_dtype));
  } else if (to_dtype == F32) {
    DecodeWire(from, absl::Span<float>(reinterpret_cast<float*>(to), from.count));
  } else if (to_dtype == F16) {
    ForBlocks(from, [&](absl::Span<float> block, size_t at) {
      Scale(PowerOfTwo(-scale_exponent), block);
      F16FromF32(block, halves.subspan(at, block.size()));
    });
  } else if (from.dtype == F32) {
    Bf16FromF32(absl::MakeSpan(reinterpret_cast<const float*>(from.bytes), from.count), halves);
  } else {
    ForBlocks(from, [&](absl::Span<float> block, size_t at) {
      Bf16FromF32(block, halves.subspan(at, block.size()));
    });
  }
}

WireLosses ConvertGradients(const WireValues& from, WireDtype to_dtype, int scale_exponent,
                            uint8_t* to) {
  WireLosses losses;
  if (to_dtype != F16) {
    ConvertWire(from, to_dtype, scale_exponent, to);
    return losses;
  }
  const absl::Span<uint16_t> halves(reinterpret_cast<uint16_t*>(to), from.count);
  if (from.dtype == F16 && from.scale_exponent == scale_exponent) {
    ConvertWire(from, to_dtype, scale_exponent, to);
    losses.saturated = SaturateF16(halves);
    return losses;
  }
  ForBlocks(from, [&](absl::Span<float> block, size_t at) {
    const absl::Span<uint16_t> encoded = halves.subspan(at, block.size());
    Scale(PowerOfTwo(-scale_exponent), block);
    F16FromF32(block, encoded);
    losses.Add({SaturateF16(encoded), CountUnderflowedF16(block, encoded)});
  });
  return losses;
}

}  // namespace satrap::rpc

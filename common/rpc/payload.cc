#include "common/rpc/payload.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/numeric/half.h"

namespace satrap::rpc {

namespace {

// Values converted at a time when both sides have 16 bits: small enough for the first-level cache.
constexpr size_t kConvertBlock = 1024;

absl::Span<const uint16_t> Halves(const WireValues& values) {
  return absl::Span<const uint16_t>(reinterpret_cast<const uint16_t*>(values.bytes), values.count);
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

void PayloadBuilder::Allocate() {
  CHECK(!allocated_);
  allocated_ = true;
  if (size_bytes_ == 0) return;
  payload_ = Buffer(size_bytes_);
  // Gaps are zeroed so that equal messages have equal bytes, and no old memory leaves the process.
  for (const Range& gap : gaps_)
    std::memset(payload_.mutable_data() + gap.from, 0, gap.to - gap.from);
}

Buffer PayloadBuilder::Take() {
  CHECK(allocated_);
  return std::move(payload_);
}

absl::StatusOr<const uint8_t*> CheckedSection(const Buffer& payload, const Section& section,
                                              uint64_t count, size_t value_bytes,
                                              absl::string_view field) {
  // Divided, not multiplied: the count is the peer's and its product may overflow.
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

WireValues WireValues::Subrange(size_t from, size_t n) const {
  CHECK(from <= count && n <= count - from);
  return WireValues{dtype, n, bytes + from * WireValueBytes(dtype)};
}

absl::StatusOr<WireValues> WireView(const Buffer& payload, const Section& section, WireDtype dtype,
                                    uint64_t count, absl::string_view field) {
  absl::StatusOr<const uint8_t*> bytes =
      CheckedSection(payload, section, count, WireValueBytes(dtype), field);
  if (!bytes.ok()) return bytes.status();
  return WireValues{dtype, count, *bytes};
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
      return;
    case BF16:
      F32FromBf16(Halves(from), to);
      return;
  }
}

void EncodeWire(absl::Span<const float> from, WireDtype dtype, uint8_t* to) {
  if (from.empty()) return;
  absl::Span<uint16_t> halves(reinterpret_cast<uint16_t*>(to), from.size());
  switch (dtype) {
    case F32:
      std::memcpy(to, from.data(), from.size() * sizeof(float));
      return;
    case F16:
      F16FromF32(from, halves);
      return;
    case BF16:
      Bf16FromF32(from, halves);
      return;
  }
}

void ConvertWire(const WireValues& from, WireDtype to_dtype, uint8_t* to) {
  if (from.count == 0) return;
  if (from.dtype == to_dtype) {
    std::memcpy(to, from.bytes, from.count * WireValueBytes(to_dtype));
  } else if (to_dtype == F32) {
    DecodeWire(from, absl::Span<float>(reinterpret_cast<float*>(to), from.count));
  } else if (from.dtype == F32) {
    EncodeWire(absl::Span<const float>(reinterpret_cast<const float*>(from.bytes), from.count),
               to_dtype, to);
  } else {
    float block[kConvertBlock];
    for (size_t i = 0; i < from.count; i += kConvertBlock) {
      const size_t n = std::min(kConvertBlock, from.count - i);
      DecodeWire(from.Subrange(i, n), absl::Span<float>(block, n));
      EncodeWire(absl::Span<const float>(block, n), to_dtype, to + i * WireValueBytes(to_dtype));
    }
  }
}

}  // namespace satrap::rpc

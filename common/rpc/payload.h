// The payload of a hot message: arrays one after another in one Buffer, each at an offset that is a
// multiple of 64. The header states the position of each array as a Section (proto/hot.proto).
// Little-endian; docs/formats.md shows a payload byte by byte.
//
// A sender reserves all sections, allocates once and fills them in:
//
//   PayloadBuilder builder;
//   builder.Reserve<uint64_t>(keys.size(), header.mutable_keys());
//   builder.Reserve(dtype, num_rows * row_values, header.mutable_values());
//   builder.Allocate();
//   absl::Span<uint64_t> to = builder.Fill<uint64_t>(header.keys());
//   ...
//   message.payload = builder.Take();
//
// A receiver gets each array by SectionView or WireView. These never read outside the payload,
// whatever the peer sent. INVALID_ARGUMENT if a section lies outside the payload, is misaligned, or
// has a size other than its counts imply. The values of an F16 section are scaled by a power of two
// that the section states, so that the largest is in [2^14, 2^15). The scaling is exact except for
// values under 2^-28 of the largest.
//
// Not thread-safe. Different threads may fill different sections.

#ifndef SATRAP_COMMON_RPC_PAYLOAD_H_
#define SATRAP_COMMON_RPC_PAYLOAD_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/base/buffer.h"
#include "proto/hot.pb.h"

namespace satrap::rpc {

// The number of bytes of one value on the wire.
inline size_t WireValueBytes(WireDtype dtype) { return dtype == F32 ? 4 : 2; }

class PayloadBuilder {
 public:
  // Appends a section of `count` values and stores its position in `*section`. REQUIRES: before
  // Allocate
  template <typename T>
  void Reserve(size_t count, Section* section) {
    ReserveBytes(count * sizeof(T), section);
  }
  void Reserve(WireDtype dtype, size_t count, Section* section) {
    ReserveBytes(count * WireValueBytes(dtype), section);
  }

  // The size of the payload with the sections reserved so far.
  size_t size_bytes() const { return size_bytes_; }

  // Makes the payload, with memory from `allocator` unless that is null. The bytes of sections are
  // uninitialised; those between sections are zero. REQUIRES: called once
  void Allocate(std::shared_ptr<BufferAllocator> allocator = nullptr);

  // The section's values, to be written. REQUIRES: after Allocate; `section` came from Reserve
  template <typename T>
  absl::Span<T> Fill(const Section& section) {
    return payload_.MutableView<T>(section.offset_bytes(), section.size_bytes() / sizeof(T));
  }

  // Writes as many values as were reserved, and stores their scale in `*section`. REQUIRES: as for
  // Fill
  void Encode(absl::Span<const float> values, WireDtype dtype, Section* section);

  // The payload, with all sections filled. The builder is used up. REQUIRES: after Allocate
  Buffer Take();

 private:
  void ReserveBytes(size_t size_bytes, Section* section);

  struct Range {
    size_t from;
    size_t to;
  };
  std::vector<Range> gaps_;  // alignment bytes between sections
  size_t size_bytes_ = 0;
  bool allocated_ = false;
  Buffer payload_;
};

// Returns the section's first byte. INVALID_ARGUMENT, naming `field`, unless the section has
// exactly `count` * `value_bytes` bytes, begins at a multiple of 64 and lies within the payload.
absl::StatusOr<const uint8_t*> CheckedSection(const Buffer& payload, const Section& section,
                                              uint64_t count, size_t value_bytes,
                                              absl::string_view field);

// The `count` values of a section, valid as long as the payload. Errors are those of
// CheckedSection.
template <typename T>
absl::StatusOr<absl::Span<const T>> SectionView(const Buffer& payload, const Section& section,
                                                uint64_t count, absl::string_view field) {
  absl::StatusOr<const uint8_t*> bytes = CheckedSection(payload, section, count, sizeof(T), field);
  if (!bytes.ok()) return bytes.status();
  return absl::Span<const T>(reinterpret_cast<const T*>(*bytes), count);
}

// Values of a wire dtype, not decoded yet.
struct WireValues {
  WireDtype dtype = F32;
  size_t count = 0;
  const uint8_t* bytes = nullptr;
  int scale_exponent = 0;  // F16: the values are those of `bytes` times 2^scale_exponent

  // Values [from, from + n). REQUIRES: from + n <= count
  WireValues Subrange(size_t from, size_t n) const;
};

// The range of Section.scale_exponent. The largest exponent is the one that the largest f32 needs.
// The least exponent is used for all sections whose magnitudes are below 2^-85, so the smallest f32
// values may underflow. For each e in the range, 2^e and 2^-e are normal floats.
constexpr int kLeastScaleExponent = -100;
constexpr int kLargestScaleExponent = 113;

// The `count` values of a section of `dtype`. INVALID_ARGUMENT if CheckedSection returns it, or if
// the scale is out of range.
absl::StatusOr<WireValues> WireView(const Buffer& payload, const Section& section, WireDtype dtype,
                                    uint64_t count, absl::string_view field);

// The scale for an F16 section whose largest finite magnitude is `largest`; kLeastScaleExponent if
// `largest` is 0. So several arrays in one section can use the largest of their scales: an array of
// zeros does not raise it.
int ScaleExponentOf(float largest);
// The scale for `values` in a section of `to_dtype`: 0 unless `to_dtype` is F16, and the values'
// own scale if they are F16 already.
int ScaleExponentFor(const WireValues& values, WireDtype to_dtype);
void SetScale(WireDtype dtype, int scale_exponent, Section* section);

// The numbers of values that F16 could not hold. Both are 0 for other dtypes.
struct WireLosses {
  uint64_t saturated = 0;    // infinite or too large for the scale: the largest value was written
  uint64_t underflowed = 0;  // not 0, but too small: 0 was written

  void Add(const WireLosses& other) {
    saturated += other.saturated;
    underflowed += other.underflowed;
  }
};

// Converts to f32, which is exact. REQUIRES: to.size() == from.count
void DecodeWire(const WireValues& from, absl::Span<float> to);
// Converts from f32, rounding to nearest, ties to even. `to` has room for from.size() values of
// `dtype`. REQUIRES, here and below: scale_exponent is 0 unless the new dtype is F16
void EncodeWire(absl::Span<const float> from, WireDtype dtype, int scale_exponent, uint8_t* to);
// Converts between any two dtypes. Equal dtypes and scales copy the bits.
void ConvertWire(const WireValues& from, WireDtype to_dtype, int scale_exponent, uint8_t* to);
// Like ConvertWire, but for gradients: an F16 output has no infinities.
WireLosses ConvertGradients(const WireValues& from, WireDtype to_dtype, int scale_exponent,
                            uint8_t* to);

}  // namespace satrap::rpc

#endif  // SATRAP_COMMON_RPC_PAYLOAD_H_

// The payload of a hot message: arrays one after another in one Buffer, each at an offset that is a
// multiple of 64 and that the header states as a Section (proto/hot.proto). Little-endian;
// docs/formats.md shows one byte by byte.
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
// whatever the peer sent: a section that lies outside it, is misaligned, or has a size other than
// its counts imply is INVALID_ARGUMENT.
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

// Bytes of one value on the wire.
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

  // Bytes of the payload with the sections reserved so far.
  size_t size_bytes() const { return size_bytes_; }

  // Makes the payload. Bytes of sections are uninitialised, those between them zero. REQUIRES: once
  void Allocate();

  // The section's values, to be written. REQUIRES: after Allocate; `section` came from Reserve.
  template <typename T>
  absl::Span<T> Fill(const Section& section) {
    return payload_.MutableView<T>(section.offset_bytes(), section.size_bytes() / sizeof(T));
  }

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

// The `count` values of a section, valid as long as the payload. Errors as CheckedSection.
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

  // Values [from, from + n). REQUIRES: within count
  WireValues Subrange(size_t from, size_t n) const;
};

// The `count` values of a section of `dtype`. Errors as CheckedSection.
absl::StatusOr<WireValues> WireView(const Buffer& payload, const Section& section, WireDtype dtype,
                                    uint64_t count, absl::string_view field);

// To f32: exact. REQUIRES: to.size() == from.count
void DecodeWire(const WireValues& from, absl::Span<float> to);
// From f32: rounded to nearest, ties to even. `to` has room for from.size() values of `dtype`.
void EncodeWire(absl::Span<const float> from, WireDtype dtype, uint8_t* to);
// Between any two dtypes. Equal dtypes copy the bits.
void ConvertWire(const WireValues& from, WireDtype to_dtype, uint8_t* to);

}  // namespace satrap::rpc

#endif  // SATRAP_COMMON_RPC_PAYLOAD_H_

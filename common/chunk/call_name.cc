#include "common/chunk/call_name.h"

#include <algorithm>

#include "google/protobuf/io/coded_stream.h"

namespace satrap::rpc {
namespace {

// Field number << 3 | wire type: 2 for a message, 0 for a varint.
constexpr char kEnvelopeTag = 0x0a;
constexpr char kCallTag = 0x12;
constexpr char kStreamTag = 0x18;

// Takes a tag and the varint after it from the beginning of `from`.
bool TakeVarint(char tag, absl::string_view* from, uint64_t* value) {
  if (from->empty() || from->front() != tag) return false;
  google::protobuf::io::CodedInputStream in(reinterpret_cast<const uint8_t*>(from->data()) + 1,
                                            static_cast<int>(from->size()) - 1);
  if (!in.ReadVarint64(value)) return false;
  from->remove_prefix(1 + static_cast<size_t>(in.CurrentPosition()));
  return true;
}

template <typename Field>
bool TakeMessage(char tag, absl::string_view* from, Field* field) {
  uint64_t bytes;
  if (!TakeVarint(tag, from, &bytes) || bytes > from->size()) return false;
  if (!field->ParseFromArray(from->data(), static_cast<int>(bytes))) return false;
  from->remove_prefix(bytes);
  return true;
}

}  // namespace

absl::optional<NamedCall> CallOf(const Method& method, absl::string_view header) {
  // No prefix is longer than this, so a long header need not be read to its end.
  constexpr size_t kMostPrefixBytes = 256;
  absl::string_view left = header.substr(0, kMostPrefixBytes);
  NamedCall named;
  CallId call;
  if (!TakeMessage(kEnvelopeTag, &left, &named.envelope)) return absl::nullopt;
  if (!TakeMessage(kCallTag, &left, &call) || call.number() == 0) return absl::nullopt;
  named.name = {method.path, call.sender(), call.number(), 0};
  TakeVarint(kStreamTag, &left, &named.name.stream);
  return named;
}

}  // namespace satrap::rpc

// A CallName identifies the call that a message is an attempt of. A repeat of a call has the same
// name, so it replaces the chunks of an earlier attempt (chunked_handler.h) and keeps the call's
// turn (chunk_memory.h).
//
// The name of a numbered request (CallPrefix in proto/hot.proto) has its method, its sender, its
// number and, if the header's field after the prefix is a varint, that field. In a method that has
// streams this field is the stream, and calls are numbered per stream. All of this is at the
// beginning of the header, so the first chunk of a request has it.
//
// Thread-safe: the functions depend only on their arguments.

#ifndef SATRAP_COMMON_CHUNK_CALL_NAME_H_
#define SATRAP_COMMON_CHUNK_CALL_NAME_H_

#include <cstdint>
#include <string>
#include <tuple>

#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "common/rpc/rpc.h"
#include "proto/hot.pb.h"

namespace satrap::rpc {

struct CallName {
  absl::string_view method;  // Method::path
  uint32_t sender = 0;
  uint64_t number = 0;
  uint64_t stream = 0;

  friend bool operator==(const CallName& a, const CallName& b) {
    return std::tie(a.method, a.sender, a.number, a.stream) ==
           std::tie(b.method, b.sender, b.number, b.stream);
  }
};

struct NamedCall {
  CallName name;
  Envelope envelope;
};

// `header` is the beginning of a request's header. Returns the call that this request is an attempt
// of; nullopt if the bytes are not the beginning of a numbered request's header, or do not include
// its whole CallPrefix.
absl::optional<NamedCall> CallOf(const Method& method, absl::string_view header);

}  // namespace satrap::rpc

#endif  // SATRAP_COMMON_CHUNK_CALL_NAME_H_

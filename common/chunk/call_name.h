// Which call a message is an attempt of. A repeat of a call has the same name, so it takes the
// place of an earlier attempt's chunks (chunked_handler.h) and keeps the call's turn
// (chunk_memory.h).
//
// A numbered request (CallPrefix in proto/hot.proto) is named by its method, the sender, the number
// and the field after the prefix, if that is a varint: numbers grow per stream, and the stream is
// that field. All of this is at the beginning of the header, so the first chunk of a request has
// it.
//
// Thread-safe: functions of their arguments.

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

// The call that a request belongs to, whose header begins with `header`. Nullopt if these bytes are
// not the beginning of a numbered request's header, with all of its CallPrefix.
absl::optional<NamedCall> CallOf(const Method& method, absl::string_view header);

}  // namespace satrap::rpc

#endif  // SATRAP_COMMON_CHUNK_CALL_NAME_H_

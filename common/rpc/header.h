// What every receiver does first with a call: it parses the header and checks that the call belongs
// to its own run.
//
// Thread-safe: functions of their arguments.

#ifndef SATRAP_COMMON_RPC_HEADER_H_
#define SATRAP_COMMON_RPC_HEADER_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/rpc/rpc.h"
#include "google/protobuf/message_lite.h"
#include "proto/hot.pb.h"

namespace satrap::rpc {

// A message of `header` without a payload.
inline Message MessageOf(const google::protobuf::MessageLite& header) {
  return {header.SerializeAsString(), Buffer()};
}

// INVALID_ARGUMENT if `bytes` are not a serialized Header.
template <typename Header>
absl::StatusOr<Header> ParseHeader(const std::string& bytes) {
  Header header;
  if (header.ParseFromString(bytes)) return header;
  return absl::InvalidArgumentError(absl::StrCat("malformed ", header.GetTypeName()));
}

// FAILED_PRECONDITION unless a call with the envelope `call` belongs to the run `own`. `receiver`
// names this process in the error: "embedding_ps 3".
inline absl::Status CheckEnvelope(const Envelope& call, const Envelope& own,
                                  absl::string_view receiver) {
  if (call.job_fingerprint() == own.job_fingerprint() && call.generation() == own.generation()) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(absl::StrCat(
      receiver, " runs generation ", own.generation(), " of job ", own.job_fingerprint(), ", not ",
      call.generation(), " of ", call.job_fingerprint()));
}

}  // namespace satrap::rpc

#endif  // SATRAP_COMMON_RPC_HEADER_H_

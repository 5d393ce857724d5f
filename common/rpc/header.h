// The first checks of every receiver of a call: the header must parse, and the call must belong to
// the receiver's own run.
//
// Thread-safe: the functions depend only on their arguments.

#ifndef SATRAP_COMMON_RPC_HEADER_H_
#define SATRAP_COMMON_RPC_HEADER_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
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

// The beginning of CheckEnvelope's error message.
inline constexpr char kOfAnotherRun[] = "the call belongs to another run: ";

// Whether `status` comes from a peer of another run, generation or job, which has refused a call
// with CheckEnvelope. Callers may have put text before its message.
inline bool IsOfAnotherRun(const absl::Status& status) {
  return absl::IsFailedPrecondition(status) && absl::StrContains(status.message(), kOfAnotherRun);
}

// FAILED_PRECONDITION unless `call`, the envelope of a request, has the run, the generation and the
// job of `own`. `receiver` is the name of this process, such as "embedding_ps 3".
inline absl::Status CheckEnvelope(const Envelope& call, const Envelope& own,
                                  absl::string_view receiver) {
  if (call.run_id() == own.run_id() && call.generation() == own.generation() &&
      call.job_fingerprint() == own.job_fingerprint()) {
    return absl::OkStatus();
  }
  const auto text = [](const Envelope& envelope) {
    return absl::StrCat("run ", absl::Hex(envelope.run_id(), absl::kZeroPad16), ", generation ",
                        envelope.generation(), ", job ",
                        absl::Hex(envelope.job_fingerprint(), absl::kZeroPad16));
  };
  return absl::FailedPreconditionError(absl::StrCat(kOfAnotherRun, receiver, " serves ", text(own),
                                                    "; the caller is of ", text(call)));
}

}  // namespace satrap::rpc

#endif  // SATRAP_COMMON_RPC_HEADER_H_

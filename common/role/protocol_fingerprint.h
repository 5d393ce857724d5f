// Tells builds apart whose messages differ: XXH64 over the definitions of the messages that
// processes exchange. The coordinator refuses a process with another one, because fields that it
// does not know would be dropped without a word.
//
// Thread-safe.

#ifndef SATRAP_COMMON_ROLE_PROTOCOL_FINGERPRINT_H_
#define SATRAP_COMMON_ROLE_PROTOCOL_FINGERPRINT_H_

#include <cstdint>
#include <vector>

#include "google/protobuf/descriptor.h"

namespace satrap {

// The fingerprint of proto/hot.proto, proto/control.proto, proto/job.proto and all that they
// import.
uint64_t ProtocolFingerprint();

// That of `files` and all that they import, whatever their order. Comments do not count, nor what
// stands beside settings (proto/options.proto): a build with another range talks to its peers.
uint64_t FingerprintOf(const std::vector<const google::protobuf::FileDescriptor*>& files);

}  // namespace satrap

#endif  // SATRAP_COMMON_ROLE_PROTOCOL_FINGERPRINT_H_

// Detects builds whose messages differ: XXH64 over the definitions of the messages that processes
// exchange. The coordinator refuses a process whose fingerprint differs from its own, because
// fields that it does not know would be dropped silently.
//
// Thread-safe.

#ifndef SATRAP_COMMON_ROLE_PROTOCOL_FINGERPRINT_H_
#define SATRAP_COMMON_ROLE_PROTOCOL_FINGERPRINT_H_

#include <cstdint>
#include <vector>

#include "google/protobuf/descriptor.h"

namespace satrap {

// The fingerprint of proto/chunk.proto, proto/hot.proto, proto/control.proto, proto/job.proto and
// everything that they import.
uint64_t ProtocolFingerprint();

// The fingerprint of `files` and everything that they import, whatever the order of `files`.
// Ignores comments and the options of settings (proto/options.proto), so builds that only differ in
// the range of a setting can still talk to each other.
uint64_t FingerprintOf(const std::vector<const google::protobuf::FileDescriptor*>& files);

}  // namespace satrap

#endif  // SATRAP_COMMON_ROLE_PROTOCOL_FINGERPRINT_H_

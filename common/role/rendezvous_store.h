// A key-value store through which the processes of a collective find each other: one process sets a
// key once, and others wait for it. In a run the coordinator provides it (coordinator_client.h).
//
// Thread-safe. Calls block, so never make one from a task of an executor.

#ifndef SATRAP_COMMON_ROLE_RENDEZVOUS_STORE_H_
#define SATRAP_COMMON_ROLE_RENDEZVOUS_STORE_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace satrap {

class RendezvousStore {
 public:
  virtual ~RendezvousStore() = default;

  // ALREADY_EXISTS if the key has another value. UNAVAILABLE if the store cannot be reached.
  virtual absl::Status Set(const std::string& key, const std::string& value) = 0;

  // Waits until the key is set; DEADLINE_EXCEEDED after `timeout_ms`. With a timeout of 0 it reads
  // the key once.
  virtual absl::StatusOr<std::string> Get(const std::string& key, int64_t timeout_ms) = 0;
};

}  // namespace satrap

#endif  // SATRAP_COMMON_ROLE_RENDEZVOUS_STORE_H_

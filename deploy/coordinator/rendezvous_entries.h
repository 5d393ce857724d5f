// The key-value store through which the ranks of a generation find each other.
//
// Not thread-safe: the lock of the coordinator's engine guards it.

#ifndef SATRAP_DEPLOY_COORDINATOR_RENDEZVOUS_ENTRIES_H_
#define SATRAP_DEPLOY_COORDINATOR_RENDEZVOUS_ENTRIES_H_

#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "proto/control.pb.h"

namespace satrap {

class RendezvousEntries {
 public:
  // ALREADY_EXISTS if the key has another value; a repeated call succeeds.
  absl::StatusOr<StoreSetAnswer> Set(const StoreSetRequest& request);
  StoreGetAnswer Get(const StoreGetRequest& request) const;

 private:
  std::map<std::string, std::string> values_;
};

}  // namespace satrap

#endif  // SATRAP_DEPLOY_COORDINATOR_RENDEZVOUS_ENTRIES_H_

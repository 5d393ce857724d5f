// CallNumbers is for the calls that one sender makes by one method on one stream. It assigns
// numbers to them, from 1, and knows which calls are open. Every attempt carries its call's number
// and oldest_open(), from which the receiver knows the answers that it need not keep
// (answer_window.h).
//
// Thread-safe.

#ifndef SATRAP_COMMON_RPC_CALL_NUMBERS_H_
#define SATRAP_COMMON_RPC_CALL_NUMBERS_H_

#include <cstdint>

#include "absl/container/btree_set.h"
#include "common/thread/mutex.h"

namespace satrap::rpc {

class CallNumbers {
 public:
  // Opens a call and returns its number.
  uint64_t Begin();

  // Closes a call: no further attempt of it will be sent. REQUIRES: `number` is open
  void End(uint64_t number);

  // The smallest open number, or the next number if none is open. Never decreases.
  uint64_t oldest_open() const;

  // The number of open calls.
  size_t num_open() const;

 private:
  mutable Mutex mutex_;
  uint64_t next_ GUARDED_BY(mutex_) = 1;
  absl::btree_set<uint64_t> open_ GUARDED_BY(mutex_);
};

}  // namespace satrap::rpc

#endif  // SATRAP_COMMON_RPC_CALL_NUMBERS_H_

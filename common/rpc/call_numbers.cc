#include "common/rpc/call_numbers.h"

#include "common/base/check.h"

namespace satrap::rpc {

uint64_t CallNumbers::Begin() {
  MutexLock lock(&mutex_);
  open_.insert(open_.end(), next_);
  return next_++;
}

void CallNumbers::End(uint64_t number) {
  MutexLock lock(&mutex_);
  CHECK(open_.erase(number) == 1) << "call " << number << " is not open";
}

uint64_t CallNumbers::oldest_open() const {
  MutexLock lock(&mutex_);
  return open_.empty() ? next_ : *open_.begin();
}

size_t CallNumbers::num_open() const {
  MutexLock lock(&mutex_);
  return open_.size();
}

}  // namespace satrap::rpc

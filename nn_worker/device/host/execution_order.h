// The order in which the host's device runs things that a card may run in any order: blocks, warps,
// the lanes of a warp, and operations of different streams. If a result differs between two orders,
// it depends on an order that a card does not promise: a barrier or an event is missing. A single
// order can hide this: if warps run in ascending order, a warp that reads a value of an earlier
// warp without a barrier still reads the right value.

#ifndef SATRAP_NN_WORKER_DEVICE_HOST_EXECUTION_ORDER_H_
#define SATRAP_NN_WORKER_DEVICE_HOST_EXECUTION_ORDER_H_

#include <cstdint>
#include <numeric>

#include "common/numeric/random.h"

namespace satrap::host {

struct ExecutionOrder {
  enum Kind { kForward, kReverse, kSeeded };
  Kind kind = kForward;
  uint64_t seed = 0;  // of kSeeded
};

// A permutation of [0, count): At(i) is the i-th to run. For kSeeded it is a map i -> (a i + b) mod
// count, where a and b depend on (seed, salt).
class Permutation {
 public:
  // REQUIRES: 0 <= count < 2^31
  Permutation(const ExecutionOrder& order, int64_t count, uint64_t salt)
      : kind_(order.kind), count_(count) {
    if (count == 0 || kind_ != ExecutionOrder::kSeeded) return;
    const uint64_t bits = RandomBits(order.seed, salt, static_cast<uint64_t>(count));
    offset_ = static_cast<int64_t>((bits >> 32) % static_cast<uint64_t>(count));
    // The factor must have no common divisor with count. A few steps are enough to find such a
    // factor.
    factor_ = 1 + static_cast<int64_t>((bits & 0xffffffff) % static_cast<uint64_t>(count));
    while (std::gcd(factor_, count) != 1) ++factor_;
  }

  int64_t At(int64_t i) const {
    if (kind_ == ExecutionOrder::kForward) return i;
    if (kind_ == ExecutionOrder::kReverse) return count_ - 1 - i;
    return (i * factor_ + offset_) % count_;
  }

 private:
  ExecutionOrder::Kind kind_;
  int64_t count_;
  int64_t factor_ = 1;
  int64_t offset_ = 0;
};

}  // namespace satrap::host

#endif  // SATRAP_NN_WORKER_DEVICE_HOST_EXECUTION_ORDER_H_

// A BrokerOutage counts the readers of a process that get no answer from the broker, so that the
// process warns only once for all of them.
//
// Thread-safe.

#ifndef SATRAP_COMMON_KAFKA_BROKER_OUTAGE_H_
#define SATRAP_COMMON_KAFKA_BROKER_OUTAGE_H_

#include <atomic>

namespace satrap {

class BrokerOutage {
 public:
  // Call this when a reader gets no answers any more. Returns true for the first reader without
  // answers, which then warns.
  bool Begin() { return silent_.fetch_add(1) == 0; }
  // Call this when the reader gets answers again, or ends. Returns true for the last reader that
  // was without answers; this reader then reports that the broker answers again. REQUIRES: one call
  // for each Begin
  bool End() { return silent_.fetch_sub(1) == 1; }

 private:
  std::atomic<int> silent_{0};
};

}  // namespace satrap

#endif  // SATRAP_COMMON_KAFKA_BROKER_OUTAGE_H_

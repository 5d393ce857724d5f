// A BrokerOutage counts the readers of a process that get no answer from the broker, so that one
// warning speaks for all of them.
//
// Thread-safe.

#ifndef SATRAP_COMMON_KAFKA_BROKER_OUTAGE_H_
#define SATRAP_COMMON_KAFKA_BROKER_OUTAGE_H_

#include <atomic>

namespace satrap {

class BrokerOutage {
 public:
  // A reader gets no answers. True for the first one, which then warns.
  bool Begin() { return silent_.fetch_add(1) == 0; }
  // The reader gets answers again, or ends. True for the last one, which then reports that the
  // broker is back. REQUIRES: one call for each Begin
  bool End() { return silent_.fetch_sub(1) == 1; }

 private:
  std::atomic<int> silent_{0};
};

}  // namespace satrap

#endif  // SATRAP_COMMON_KAFKA_BROKER_OUTAGE_H_

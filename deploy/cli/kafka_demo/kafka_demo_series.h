// What `satrap demo --kafka` measures while it trains: lag and memory over time, and whether they
// remain constant.
//
// Not thread-safe.

#ifndef SATRAP_DEPLOY_CLI_KAFKA_DEMO_KAFKA_DEMO_SERIES_H_
#define SATRAP_DEPLOY_CLI_KAFKA_DEMO_KAFKA_DEMO_SERIES_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/types/optional.h"

namespace satrap {

struct ProcessMemory {
  uint64_t resident = 0;              // bytes
  absl::optional<uint64_t> rows = 0;  // how many of these hold embedding rows; absent: not known
};

struct KafkaDemoLook {
  double seconds = 0;  // since training began
  uint64_t samples = 0;
  absl::optional<uint64_t> lag_messages;        // absent: not known
  std::map<std::string, ProcessMemory> memory;  // of each process, by name
};

class KafkaDemoSeries {
 public:
  // REQUIRES: seconds ascend
  void Add(KafkaDemoLook look) { looks_.push_back(std::move(look)); }

  // Compares the two halves of the time after the warm-up, which is the first third of the run.
  // Returns one line, for people, for each of these: the rate, the mean lag, and the mean memory of
  // each process that every measurement after the warm-up includes. Tables grow with the ids that
  // are seen, so embedding rows have a line of their own and are subtracted from their process's
  // memory. A measurement that lacks the rows of a process is left out of both lines of that
  // process. If the series is too short, returns one line that says so.
  std::string Text() const;

 private:
  std::vector<KafkaDemoLook> looks_;
};

}  // namespace satrap

#endif  // SATRAP_DEPLOY_CLI_KAFKA_DEMO_KAFKA_DEMO_SERIES_H_

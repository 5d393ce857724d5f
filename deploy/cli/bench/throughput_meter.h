// Measures a training run from its statuses: samples per second after a warm-up, the loss, and the
// processor time of each role.
//
// Not thread-safe.

#ifndef SATRAP_DEPLOY_CLI_BENCH_THROUGHPUT_METER_H_
#define SATRAP_DEPLOY_CLI_BENCH_THROUGHPUT_METER_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "proto/control.pb.h"

namespace satrap {

class ThroughputMeter {
 public:
  // Measures for `seconds`, starting `warmup_seconds` after the first step.
  ThroughputMeter(double warmup_seconds, double seconds)
      : warmup_seconds_(warmup_seconds), seconds_(seconds) {}

  // Takes the status at `now_seconds` of a monotonic clock. False once enough has been measured.
  bool Add(const StatusAnswer& status, double now_seconds);

  // The rank reports about one window a second.
  size_t num_windows() const { return rates_.size(); }
  double MedianRate() const;  // samples a second; 0 without windows
  double MeanRate() const;    // all samples divided by the whole time
  uint64_t samples() const { return last_samples_ - first_samples_; }
  double seconds() const { return last_seconds_ - first_seconds_; }
  double first_loss() const { return first_loss_; }  // of the first window, even during warm-up
  double last_loss() const { return last_loss_; }
  // Microseconds of processor time, summed over a role's processes.
  std::map<std::string, double> CpuPerSampleUs() const;

 private:
  double RateOf(const TrainProgress& train, double now_seconds) const;
  std::map<std::string, double> CpuSeconds(const StatusAnswer& status) const;

  const double warmup_seconds_;
  const double seconds_;
  bool started_ = false;
  bool measuring_ = false;
  double start_seconds_ = 0;
  double first_seconds_ = 0;
  double last_seconds_ = 0;
  uint64_t first_samples_ = 0;
  uint64_t last_samples_ = 0;
  double first_loss_ = 0;  // 0: no window has been reported yet
  double last_loss_ = 0;
  std::vector<double> rates_;
  std::map<std::string, double> first_cpu_;
  std::map<std::string, double> last_cpu_;
};

}  // namespace satrap

#endif  // SATRAP_DEPLOY_CLI_BENCH_THROUGHPUT_METER_H_

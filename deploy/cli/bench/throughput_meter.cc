#include "deploy/cli/bench/throughput_meter.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "common/role/role_flags.h"

namespace satrap {
namespace {

// User and system time of a process, in seconds; 0 if the process does not exist.
double ProcessCpuSeconds(int64_t pid) {
  std::ifstream file(absl::StrCat("/proc/", pid, "/stat"));
  std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  // The second field is the program's name in parentheses, which may contain spaces and
  // parentheses. User and system time are the 12th and 13th fields after it.
  const size_t name_end = text.rfind(')');
  if (name_end == std::string::npos) return 0;
  std::istringstream fields(text.substr(name_end + 2));
  std::string skipped;
  for (int i = 0; i < 11; ++i) fields >> skipped;
  double user_ticks = 0;
  double system_ticks = 0;
  fields >> user_ticks >> system_ticks;
  return (user_ticks + system_ticks) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

}  // namespace

std::map<std::string, double> ThroughputMeter::CpuSeconds(const StatusAnswer& status) const {
  std::map<std::string, double> seconds;
  for (const RoleStatus& role : status.roles()) {
    seconds[std::string(RoleName(role.member().role()))] += ProcessCpuSeconds(role.member().pid());
  }
  return seconds;
}

bool ThroughputMeter::Add(const StatusAnswer& status, double now_seconds) {
  const TrainProgress& train = status.train();
  // Statuses come more often than the rank's reports: skip a status without a new report.
  if (train.step() == 0 || (started_ && train.samples() == last_samples_)) return true;
  if (!started_) {
    started_ = true;
    start_seconds_ = now_seconds;
  }
  if (first_loss_ == 0) first_loss_ = train.window_loss();
  const double rate = RateOf(train, now_seconds);
  last_samples_ = train.samples();
  last_seconds_ = now_seconds;
  last_loss_ = train.window_loss();
  if (now_seconds - start_seconds_ < warmup_seconds_) return true;
  // The first status after the warm-up only marks the beginning; windows count from the next status
  // on.
  last_cpu_ = CpuSeconds(status);
  if (!measuring_) {
    measuring_ = true;
    first_seconds_ = now_seconds;
    first_samples_ = last_samples_;
    first_cpu_ = last_cpu_;
    return true;
  }
  rates_.push_back(rate);
  return now_seconds - first_seconds_ < seconds_;
}

// The rate in the rank's last window, or between the last two statuses if the rank's epochs are too
// short for a window.
double ThroughputMeter::RateOf(const TrainProgress& train, double now_seconds) const {
  if (train.samples_per_second() > 0 || now_seconds <= last_seconds_) {
    return train.samples_per_second();
  }
  return static_cast<double>(train.samples() - last_samples_) / (now_seconds - last_seconds_);
}

double ThroughputMeter::MedianRate() const {
  if (rates_.empty()) return 0;
  std::vector<double> sorted = rates_;
  std::sort(sorted.begin(), sorted.end());
  const size_t middle = sorted.size() / 2;
  return sorted.size() % 2 == 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

double ThroughputMeter::MeanRate() const {
  return seconds() > 0 ? static_cast<double>(samples()) / seconds() : 0;
}

std::map<std::string, double> ThroughputMeter::CpuPerSampleUs() const {
  std::map<std::string, double> result;
  if (samples() == 0) return result;
  for (const auto& [role, seconds] : last_cpu_) {
    const auto first = first_cpu_.find(role);
    const double begun = first == first_cpu_.end() ? 0 : first->second;
    result[role] = (seconds - begun) * 1e6 / static_cast<double>(samples());
  }
  return result;
}

}  // namespace satrap

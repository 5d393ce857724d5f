// Metrics are the numbers that a process exports to Prometheus. A MetricsRegistry holds those of
// one replica of a role; every metric carries the labels `role` and `index`. A metric's name
// consists of "satrap_", what is counted, its unit, and for counters "_total"; docs/operations.md
// lists them.
//
//   prometheus::Counter* rows = registry->AddCounter("satrap_lookup_rows_total", "Rows looked up");
//   rows->Increment(26);
//
// Thread-safe, and so are the metrics. Adding takes a lock: do it once, at start, and keep the
// pointer.

#ifndef SATRAP_COMMON_METRICS_METRICS_H_
#define SATRAP_COMMON_METRICS_METRICS_H_

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace satrap {

class MetricsRegistry {
 public:
  using Labels = std::map<std::string, std::string>;

  MetricsRegistry(const std::string& role, int index);
  ~MetricsRegistry();
  MetricsRegistry(const MetricsRegistry&) = delete;
  MetricsRegistry& operator=(const MetricsRegistry&) = delete;

  // Each of these returns the metric of that name and labels, and creates it if there is none. The
  // metric lives as long as the registry. REQUIRES: a name is used for one kind of metric, with the
  // same label keys
  prometheus::Counter* AddCounter(const std::string& name, const std::string& help,
                                  const Labels& labels = {});
  prometheus::Gauge* AddGauge(const std::string& name, const std::string& help,
                              const Labels& labels = {});
  // `bounds` are the buckets' upper ends, increasing; one more bucket holds larger values.
  prometheus::Histogram* AddHistogram(const std::string& name, const std::string& help,
                                      const std::vector<double>& bounds, const Labels& labels = {});

  // All metrics in Prometheus's text format.
  std::string Text() const;

 private:
  friend class MetricsServer;
  struct Rep;
  const std::shared_ptr<Rep> rep_;
};

// Raises `counter` to `value`, the latest reading of a count that is kept elsewhere. Does nothing
// if the counter is higher already. REQUIRES: called by one thread at a time
void RaiseTo(prometheus::Counter* counter, uint64_t value);

// Upper ends of histogram buckets for latencies in seconds: 100 us to 13 s, doubling.
std::vector<double> LatencyBounds();

// An address of this machine alone, with a port that the system chooses.
inline constexpr char kLocalMetrics[] = "127.0.0.1:0";

// Serves a registry over HTTP at /metrics.
class MetricsServer {
 public:
  // `registry` is not owned. Once the registry is destroyed the server no longer shows its metrics.
  // `address` is IP:PORT, IPv6 in brackets; port 0 lets the system choose. UNAVAILABLE if it is not
  // available.
  static absl::StatusOr<std::unique_ptr<MetricsServer>> Start(
      const MetricsRegistry* registry, const std::string& address = kLocalMetrics);
  ~MetricsServer();
  MetricsServer(const MetricsServer&) = delete;
  MetricsServer& operator=(const MetricsServer&) = delete;

  // Where it serves: "127.0.0.1:40123"
  const std::string& address() const;

  // From now on GET /ready succeeds, so probes see that the process is ready. Before that there is
  // no such page. May be called again.
  void ShowReady();

 private:
  struct Rep;
  explicit MetricsServer(std::unique_ptr<Rep> rep);
  const std::unique_ptr<Rep> rep_;
};

}  // namespace satrap

#endif  // SATRAP_COMMON_METRICS_METRICS_H_

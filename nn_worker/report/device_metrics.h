// The Prometheus metrics of a rank on a device: memory, copies, graphs, and the time of its steps.
//
// Thread-safe, except that only one thread at a time may call Refresh.

#ifndef SATRAP_NN_WORKER_REPORT_DEVICE_METRICS_H_
#define SATRAP_NN_WORKER_REPORT_DEVICE_METRICS_H_

#include <memory>

#include "common/metrics/metrics.h"

namespace satrap {

class DeviceMeter;  // nn_worker/device/metered_device.h

class DeviceMetrics {
 public:
  // `registry` must outlive this object.
  DeviceMetrics(MetricsRegistry* registry, std::shared_ptr<const DeviceMeter> meter);

  // For NetworkTrainerOptions.on_device_step.
  void ObserveStep(double seconds) { step_seconds_->Observe(seconds); }
  // Sets all other metrics from the meter.
  void Refresh();

 private:
  const std::shared_ptr<const DeviceMeter> meter_;
  prometheus::Gauge* const memory_bytes_;
  prometheus::Gauge* const memory_peak_bytes_;
  prometheus::Gauge* const pinned_bytes_;
  prometheus::Counter* const copied_in_bytes_;
  prometheus::Counter* const copied_out_bytes_;
  prometheus::Counter* const graph_launches_;
  prometheus::Histogram* const step_seconds_;
};

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_REPORT_DEVICE_METRICS_H_

#include "nn_worker/report/device_metrics.h"

#include <cstdint>
#include <utility>

#include "nn_worker/device/metered_device.h"

namespace satrap {

DeviceMetrics::DeviceMetrics(MetricsRegistry* registry, std::shared_ptr<const DeviceMeter> meter)
    : meter_(std::move(meter)),
      memory_bytes_(
          registry->AddGauge("satrap_device_memory_bytes", "Device memory that this rank holds")),
      memory_peak_bytes_(registry->AddGauge("satrap_device_memory_peak_bytes",
                                            "The most device memory that this rank has held")),
      pinned_bytes_(registry->AddGauge("satrap_device_pinned_bytes",
                                       "Page-locked memory of the host that this rank holds")),
      copied_in_bytes_(registry->AddCounter("satrap_device_copied_in_bytes_total",
                                            "Bytes that were copied from the host to the device")),
      copied_out_bytes_(registry->AddCounter("satrap_device_copied_out_bytes_total",
                                             "Bytes that were copied from the device to the host")),
      graph_launches_(
          registry->AddCounter("satrap_device_graph_launches_total",
                               "Launches of captured graphs; a training pass has one or several")),
      step_seconds_(registry->AddHistogram("satrap_device_step_seconds",
                                           "From handing a part's inputs to the device until its "
                                           "gradients are back",
                                           LatencyBounds())) {}

void DeviceMetrics::Refresh() {
  const DeviceMeter::Reading reading = meter_->Read();
  memory_bytes_->Set(static_cast<double>(reading.bytes));
  memory_peak_bytes_->Set(static_cast<double>(reading.peak_bytes));
  pinned_bytes_->Set(static_cast<double>(reading.pinned_bytes));
  RaiseTo(copied_in_bytes_, static_cast<uint64_t>(reading.copied_in_bytes));
  RaiseTo(copied_out_bytes_, static_cast<uint64_t>(reading.copied_out_bytes));
  RaiseTo(graph_launches_, static_cast<uint64_t>(reading.graph_launches));
}

}  // namespace satrap

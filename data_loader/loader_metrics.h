// LoaderMetrics shows the progress of a loader as metrics; common/metrics/refresh.h brings them
// up to date:
//
//   now               satrap_ready_parts, satrap_unaccepted_parts
//   since the start   satrap_read_records_total, satrap_read_bytes_total,
//                     satrap_bad_records_total, satrap_sent_parts_total,
//                     satrap_sent_samples_total
//
// All streams, epochs and passes count. Both gauges at their limits mean that embedding workers
// have no room: that is the back-pressure.

#ifndef SATRAP_DATA_LOADER_LOADER_METRICS_H_
#define SATRAP_DATA_LOADER_LOADER_METRICS_H_

#include "common/metrics/metrics.h"
#include "data_loader/engine/loader_engine.h"
#include "data_loader/loader_streams.h"

namespace satrap {

class LoaderMetrics {
 public:
  // Nothing is owned; all must outlive this object.
  LoaderMetrics(const LoaderStreams* streams, const LoaderEngine* engine,
                MetricsRegistry* registry);

  // Brings the metrics up to date.
  void Refresh();

 private:
  const LoaderStreams* const streams_;
  const LoaderEngine* const engine_;
  prometheus::Gauge* const ready_parts_;
  prometheus::Gauge* const unaccepted_parts_;
  prometheus::Counter* const read_records_;
  prometheus::Counter* const read_bytes_;
  prometheus::Counter* const bad_records_;
  prometheus::Counter* const sent_parts_;
  prometheus::Counter* const sent_samples_;
};

}  // namespace satrap

#endif  // SATRAP_DATA_LOADER_LOADER_METRICS_H_

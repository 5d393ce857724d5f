// LoaderMetrics exports the progress of a loader. Refresh is called by the loop of
// common/metrics/refresh.h:
//
//   gauges     satrap_ready_parts, satrap_unaccepted_parts
//   counters   satrap_read_records_total, satrap_read_bytes_total, satrap_skipped_records_total,
//              satrap_bad_records_total, satrap_sent_parts_total, satrap_sent_samples_total
//
// They sum over all streams, epochs and passes. When both gauges are at their limits, the embedding
// workers have no room: that is back-pressure.

#ifndef SATRAP_DATA_LOADER_LOADER_METRICS_H_
#define SATRAP_DATA_LOADER_LOADER_METRICS_H_

#include "common/metrics/metrics.h"
#include "data_loader/engine/loader_engine.h"
#include "data_loader/loader_streams.h"

namespace satrap {

class LoaderMetrics {
 public:
  // Nothing is owned; all three must outlive this object.
  LoaderMetrics(const LoaderStreams* streams, const LoaderEngine* engine,
                MetricsRegistry* registry);

  // Updates all metrics.
  void Refresh();

 private:
  const LoaderStreams* const streams_;
  const LoaderEngine* const engine_;
  prometheus::Gauge* const ready_parts_;
  prometheus::Gauge* const unaccepted_parts_;
  prometheus::Counter* const read_records_;
  prometheus::Counter* const read_bytes_;
  prometheus::Counter* const skipped_records_;
  prometheus::Counter* const bad_records_;
  prometheus::Counter* const sent_parts_;
  prometheus::Counter* const sent_samples_;
};

}  // namespace satrap

#endif  // SATRAP_DATA_LOADER_LOADER_METRICS_H_

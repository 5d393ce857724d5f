// Exports the progress of a loader as metrics. main.cc does so every second
// (common/metrics/refresh.h):
//
//   gauges     satrap_ready_parts, satrap_unaccepted_parts
//   counters   satrap_read_records_total, satrap_read_bytes_total, satrap_skipped_records_total,
//              satrap_bad_records_total, satrap_clamped_numbers_total, satrap_sent_parts_total,
//              satrap_sent_samples_total
//
// and, if the train stream comes from topics:
//
//   gauges     satrap_topic_lag_messages, satrap_topic_lag_seconds, satrap_topic_open_blocks,
//              satrap_topic_watermark_seconds
//   counters   satrap_late_records_total, satrap_dead_letters_total, satrap_lost_messages_total
//
// All metrics of the first list, and the counters of dead letters and of lost messages, are sums
// over all streams, epochs and passes. The other metrics cover only the train stream. When
// satrap_ready_parts and satrap_unaccepted_parts are at their limits, the embedding workers have no
// room: that is back-pressure.

#ifndef SATRAP_DATA_LOADER_LOADER_METRICS_H_
#define SATRAP_DATA_LOADER_LOADER_METRICS_H_

#include "common/metrics/metrics.h"
#include "data_loader/engine/loader_engine.h"
#include "data_loader/loader_streams.h"

namespace satrap {

// Sets the metrics, and makes those that do not exist yet. Nothing is owned. For one thread at a
// time.
void ExportLoaderMetrics(const LoaderStreams& streams, const LoaderEngine& engine,
                         MetricsRegistry* registry);

}  // namespace satrap

#endif  // SATRAP_DATA_LOADER_LOADER_METRICS_H_

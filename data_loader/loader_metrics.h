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
// The metrics of the first list cover all streams, epochs and passes; but
// satrap_clamped_numbers_total covers only the first epoch or pass of each stream. Of the second
// list, satrap_dead_letters_total and satrap_lost_messages_total also cover all of them; the other
// metrics cover only the train stream. If satrap_ready_parts and satrap_unaccepted_parts are at
// their limits, the embedding workers have no room: that is back-pressure.

#ifndef SATRAP_DATA_LOADER_LOADER_METRICS_H_
#define SATRAP_DATA_LOADER_LOADER_METRICS_H_

#include "common/metrics/metrics.h"
#include "data_loader/engine/loader_engine.h"
#include "data_loader/loader_streams.h"

namespace satrap {

// Sets the metrics, and creates those that do not exist yet. Owns nothing. To be called by one
// thread at a time.
void ExportLoaderMetrics(const LoaderStreams& streams, const LoaderEngine& engine,
                         MetricsRegistry* registry);

}  // namespace satrap

#endif  // SATRAP_DATA_LOADER_LOADER_METRICS_H_

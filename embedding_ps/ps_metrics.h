// Exports the progress of a PsEngine as metrics. main.cc calls it every second
// (common/metrics/refresh.h). Only one thread at a time may call it.
//
//   satrap_data_time_seconds         since 1970; missing until an Update has a time
//   satrap_table_rows{table}, satrap_table_bytes{table}                             now
//   satrap_lookup_keys_total, satrap_absent_keys_total, satrap_updates_total,
//   satrap_update_keys_total, satrap_rows_created_total,
//   satrap_ps_cuts_begun_total, satrap_ps_cuts_abandoned_total, satrap_cut_copied_rows_total,
//   satrap_cut_copied_bytes_total, satrap_cut_written_bytes_total,
//   satrap_cut_writing_seconds_total                                                since the start

#ifndef SATRAP_EMBEDDING_PS_PS_METRICS_H_
#define SATRAP_EMBEDDING_PS_PS_METRICS_H_

#include "common/metrics/metrics.h"
#include "embedding_ps/ps_engine.h"

namespace satrap {

// Updates the metrics, and creates those that do not exist yet. Nothing is owned.
void ExportPsMetrics(const PsEngine& engine, MetricsRegistry* registry);

}  // namespace satrap

#endif  // SATRAP_EMBEDDING_PS_PS_METRICS_H_

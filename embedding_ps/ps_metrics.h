// PsMetrics exports the progress of a PsEngine as metrics. Refresh updates them; main.cc calls it
// every second (common/metrics/refresh.h). Not thread-safe.
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

class PsMetrics {
 public:
  // Nothing is owned; all must outlive this object.
  PsMetrics(const PsEngine* engine, MetricsRegistry* registry);

  // Brings the metrics up to date.
  void Refresh();

 private:
  const PsEngine* const engine_;
  MetricsRegistry* const registry_;
  prometheus::Counter* const lookup_keys_;
  prometheus::Counter* const absent_keys_;
  prometheus::Counter* const updates_;
  prometheus::Counter* const update_keys_;
  prometheus::Counter* const rows_created_;
  prometheus::Counter* const cuts_begun_;
  prometheus::Counter* const cuts_abandoned_;
  prometheus::Counter* const cut_rows_copied_;
  prometheus::Counter* const cut_bytes_copied_;
  prometheus::Counter* const cut_bytes_written_;
  prometheus::Counter* const cut_seconds_;
};

}  // namespace satrap

#endif  // SATRAP_EMBEDDING_PS_PS_METRICS_H_

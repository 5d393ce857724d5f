#include "embedding_ps/ps_metrics.h"

namespace satrap {

void ExportPsMetrics(const PsEngine& engine, MetricsRegistry* registry) {
  const PsEngine::Counts counts = engine.counts();
  const auto count = [registry](const char* name, const char* help, auto value) {
    RaiseTo(registry->AddCounter(name, help), value);
  };
  count("satrap_lookup_keys_total", "Keys looked up", counts.lookup_keys);
  count("satrap_absent_keys_total", "Keys looked up that had no row", counts.absent_keys);
  count("satrap_updates_total", "Updates applied", counts.updates);
  count("satrap_update_keys_total", "Keys updated", counts.update_keys);
  count("satrap_rows_created_total", "Rows created by updates", counts.rows_created);
  count("satrap_ps_cuts_begun_total", "Cuts marked", counts.cuts.begun);
  count("satrap_ps_cuts_abandoned_total", "Cuts abandoned at this PS", counts.cuts.abandoned);
  count("satrap_cut_copied_rows_total", "Rows copied out before an update changed them",
        counts.cuts.rows_copied);
  count("satrap_cut_copied_bytes_total",
        "Bytes of the rows copied out before an update changed them", counts.cuts.bytes_copied);
  count("satrap_cut_written_bytes_total", "Bytes of saved rows written", counts.cuts.bytes_written);
  count("satrap_cut_writing_seconds_total",
        "Time from a cut's mark to the end of its writing, summed over all cuts",
        counts.cuts.seconds);
  // The gauge does not exist before an Update has a time, because a 0 would mean 1970.
  if (counts.data_time_ms.has_value()) {
    registry
        ->AddGauge("satrap_data_time_seconds", "Latest time of the records that updated the rows")
        ->Set(static_cast<double>(*counts.data_time_ms) * 1e-3);
  }
  for (const TableStats& table : engine.Stats()) {
    const MetricsRegistry::Labels labels = {{"table", table.name()}};
    registry->AddGauge("satrap_table_rows", "Rows of a table", labels)
        ->Set(static_cast<double>(table.rows()));
    registry->AddGauge("satrap_table_bytes", "Index, metadata and committed rows", labels)
        ->Set(static_cast<double>(table.bytes()));
  }
}

}  // namespace satrap

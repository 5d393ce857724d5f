#include "embedding_ps/ps_metrics.h"

namespace satrap {

PsMetrics::PsMetrics(const PsEngine* engine, MetricsRegistry* registry)
    : engine_(engine),
      registry_(registry),
      lookup_keys_(registry->AddCounter("satrap_lookup_keys_total", "Keys looked up")),
      absent_keys_(
          registry->AddCounter("satrap_absent_keys_total", "Keys looked up that had no row")),
      updates_(registry->AddCounter("satrap_updates_total", "Updates applied")),
      update_keys_(registry->AddCounter("satrap_update_keys_total", "Keys updated")),
      rows_created_(registry->AddCounter("satrap_rows_created_total", "Rows created by updates")),
      cuts_begun_(registry->AddCounter("satrap_ps_cuts_begun_total", "Cuts marked")),
      cuts_abandoned_(
          registry->AddCounter("satrap_ps_cuts_abandoned_total", "Cuts abandoned at this PS")),
      cut_rows_copied_(registry->AddCounter("satrap_cut_copied_rows_total",
                                            "Rows copied out before an update changed them")),
      cut_bytes_copied_(
          registry->AddCounter("satrap_cut_copied_bytes_total", "Memory of the rows copied out")),
      cut_bytes_written_(
          registry->AddCounter("satrap_cut_written_bytes_total", "Bytes of saved rows written")),
      cut_seconds_(registry->AddCounter("satrap_cut_writing_seconds_total",
                                        "Time from marks to the ends of writing")) {}

void PsMetrics::Refresh() {
  const PsEngine::Counts counts = engine_->counts();
  RaiseTo(lookup_keys_, counts.lookup_keys);
  RaiseTo(absent_keys_, counts.absent_keys);
  RaiseTo(updates_, counts.updates);
  RaiseTo(update_keys_, counts.update_keys);
  RaiseTo(rows_created_, counts.rows_created);
  RaiseTo(cuts_begun_, counts.cuts.begun);
  RaiseTo(cuts_abandoned_, counts.cuts.abandoned);
  RaiseTo(cut_rows_copied_, counts.cuts.rows_copied);
  RaiseTo(cut_bytes_copied_, counts.cuts.bytes_copied);
  RaiseTo(cut_bytes_written_, counts.cuts.bytes_written);
  RaiseTo(cut_seconds_, counts.cuts.seconds);
  // There is no gauge before an Update has a time: a 0 would be read as 1970.
  if (counts.data_time_ms.has_value()) {
    registry_
        ->AddGauge("satrap_data_time_seconds", "Latest time of the records that updated the rows")
        ->Set(static_cast<double>(*counts.data_time_ms) * 1e-3);
  }
  for (const TableStats& table : engine_->Stats()) {
    const MetricsRegistry::Labels labels = {{"table", table.name()}};
    registry_->AddGauge("satrap_table_rows", "Rows of a table", labels)
        ->Set(static_cast<double>(table.rows()));
    registry_->AddGauge("satrap_table_bytes", "Index, metadata and committed rows", labels)
        ->Set(static_cast<double>(table.bytes()));
  }
}

}  // namespace satrap

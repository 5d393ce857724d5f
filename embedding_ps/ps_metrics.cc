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
      rows_created_(registry->AddCounter("satrap_rows_created_total", "Rows created by updates")) {}

void PsMetrics::Refresh() {
  const PsEngine::Counts counts = engine_->counts();
  RaiseTo(lookup_keys_, counts.lookup_keys);
  RaiseTo(absent_keys_, counts.absent_keys);
  RaiseTo(updates_, counts.updates);
  RaiseTo(update_keys_, counts.update_keys);
  RaiseTo(rows_created_, counts.rows_created);
  for (const TableStats& table : engine_->Stats()) {
    const MetricsRegistry::Labels labels = {{"table", table.name()}};
    registry_->AddGauge("satrap_table_rows", "Rows of a table", labels)
        ->Set(static_cast<double>(table.rows()));
    registry_->AddGauge("satrap_table_bytes", "Index, metadata and committed rows", labels)
        ->Set(static_cast<double>(table.bytes()));
  }
}

}  // namespace satrap

#include "data_loader/loader_metrics.h"

namespace satrap {

LoaderMetrics::LoaderMetrics(const LoaderStreams* streams, const LoaderEngine* engine,
                             MetricsRegistry* registry)
    : streams_(streams),
      engine_(engine),
      ready_parts_(registry->AddGauge("satrap_ready_parts", "Parts made and not yet sent")),
      unaccepted_parts_(registry->AddGauge("satrap_unaccepted_parts",
                                           "Parts sent or waiting their turn, not yet accepted")),
      read_records_(registry->AddCounter("satrap_read_records_total", "Good records read")),
      read_bytes_(registry->AddCounter("satrap_read_bytes_total", "Bytes read, as on disk")),
      skipped_records_(registry->AddCounter("satrap_skipped_records_total",
                                            "Records left out: trained before the restart")),
      bad_records_(registry->AddCounter("satrap_bad_records_total", "Records quarantined")),
      sent_parts_(registry->AddCounter("satrap_sent_parts_total", "Parts accepted by workers")),
      sent_samples_(
          registry->AddCounter("satrap_sent_samples_total", "Samples of accepted parts")) {}

void LoaderMetrics::Refresh() {
  const LoaderEngine::Counts sent = engine_->counts();
  const LoaderProgress read = streams_->Progress();
  ready_parts_->Set(static_cast<double>(streams_->ready_parts()));
  unaccepted_parts_->Set(static_cast<double>(sent.open_parts));
  RaiseTo(read_records_, read.records());
  RaiseTo(read_bytes_, read.bytes());
  RaiseTo(skipped_records_, streams_->skipped_records());
  RaiseTo(bad_records_, read.quarantined());
  RaiseTo(sent_parts_, sent.parts);
  RaiseTo(sent_samples_, sent.samples);
}

}  // namespace satrap

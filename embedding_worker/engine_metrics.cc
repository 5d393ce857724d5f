#include "embedding_worker/engine_metrics.h"

namespace satrap {

void ExportEngineMetrics(const EmbeddingWorkerEngine& engine, MetricsRegistry* registry) {
  const EmbeddingWorkerEngine::Progress progress = engine.progress();
  const auto show = [registry](const char* name, const char* help, size_t value) {
    registry->AddGauge(name, help)->Set(static_cast<double>(value));
  };
  const auto count = [registry](const char* name, const char* help, uint64_t value) {
    RaiseTo(registry->AddCounter(name, help), value);
  };
  show("satrap_accepted_parts", "Parts accepted and not yet handed out", progress.accepted_parts);
  show("satrap_held_puts", "PutBatches that wait for queue capacity or for their epoch",
       progress.held_puts);
  show("satrap_waiting_requests", "NextBatches that wait for a part", progress.waiting_requests);
  show("satrap_outstanding_parts", "Parts handed out, not pushed or released",
       progress.outstanding_parts);
  count("satrap_parts_total", "Parts planned", progress.parts);
  count("satrap_ids_total", "Ids of planned parts", progress.ids);
  count("satrap_keys_total", "Unique keys of planned parts", progress.keys);
  count("satrap_pushes_total", "PushGradients applied", progress.pushes);
  count("satrap_gradient_values_total", "Values of gradients sent to embedding PSs",
        progress.gradient_values);
  count("satrap_saturated_values_total",
        "Values of satrap_gradient_values_total that were too large for an F16 on the wire",
        progress.losses.saturated);
  count("satrap_underflowed_values_total",
        "Values of satrap_gradient_values_total that were not 0 but became 0 as an F16 on the wire",
        progress.losses.underflowed);
}

}  // namespace satrap

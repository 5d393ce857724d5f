#include "embedding_worker/engine_metrics.h"

namespace satrap {

namespace {

void Set(prometheus::Gauge* gauge, size_t value) { gauge->Set(static_cast<double>(value)); }

}  // namespace

EngineMetrics::EngineMetrics(const EmbeddingWorkerEngine* engine, MetricsRegistry* registry)
    : engine_(engine),
      accepted_parts_(
          registry->AddGauge("satrap_accepted_parts", "Parts accepted and not yet handed out")),
      held_puts_(registry->AddGauge("satrap_held_puts",
                                    "PutBatches that wait for queue capacity or for their epoch")),
      waiting_requests_(
          registry->AddGauge("satrap_waiting_requests", "NextBatches that wait for a part")),
      outstanding_parts_(registry->AddGauge("satrap_outstanding_parts",
                                            "Parts handed out, not pushed or released")),
      parts_(registry->AddCounter("satrap_parts_total", "Parts planned")),
      ids_(registry->AddCounter("satrap_ids_total", "Ids of planned parts")),
      keys_(registry->AddCounter("satrap_keys_total", "Unique keys of planned parts")),
      pushes_(registry->AddCounter("satrap_pushes_total", "PushGradients applied")),
      gradient_values_(registry->AddCounter("satrap_gradient_values_total",
                                            "Values of gradients sent to embedding PSs")),
      saturated_values_(
          registry->AddCounter("satrap_saturated_values_total",
                               "Of these, those that were too large for an F16 on the wire")),
      underflowed_values_(registry->AddCounter(
          "satrap_underflowed_values_total",
          "Of these, those that were not 0 and became 0 as an F16 on the wire")) {}

void EngineMetrics::Refresh() {
  const EmbeddingWorkerEngine::Progress progress = engine_->progress();
  Set(accepted_parts_, progress.accepted_parts);
  Set(held_puts_, progress.held_puts);
  Set(waiting_requests_, progress.waiting_requests);
  Set(outstanding_parts_, progress.outstanding_parts);
  RaiseTo(parts_, progress.parts);
  RaiseTo(ids_, progress.ids);
  RaiseTo(keys_, progress.keys);
  RaiseTo(pushes_, progress.pushes);
  RaiseTo(gradient_values_, progress.gradient_values);
  RaiseTo(saturated_values_, progress.losses.saturated);
  RaiseTo(underflowed_values_, progress.losses.underflowed);
}

}  // namespace satrap

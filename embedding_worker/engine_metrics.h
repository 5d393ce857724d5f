// Exports the progress of an EmbeddingWorkerEngine as metrics. main.cc does so every second
// (common/metrics/refresh.h):
//
//     now               satrap_accepted_parts, satrap_held_puts, satrap_waiting_requests,
//                       satrap_outstanding_parts
//     since the start   satrap_parts_total, satrap_ids_total, satrap_keys_total,
//                       satrap_pushes_total, satrap_gradient_values_total,
//                       satrap_saturated_values_total, satrap_underflowed_values_total
//
// Keys divided by ids is the fraction of ids that are unique in their part.

#ifndef SATRAP_EMBEDDING_WORKER_ENGINE_METRICS_H_
#define SATRAP_EMBEDDING_WORKER_ENGINE_METRICS_H_

#include "common/metrics/metrics.h"
#include "embedding_worker/embedding_worker_engine.h"

namespace satrap {

// Sets the metrics, and makes those that do not exist yet. Nothing is owned. For one thread at a
// time.
void ExportEngineMetrics(const EmbeddingWorkerEngine& engine, MetricsRegistry* registry);

}  // namespace satrap

#endif  // SATRAP_EMBEDDING_WORKER_ENGINE_METRICS_H_

// EngineMetrics exports the progress of an EmbeddingWorkerEngine as metrics. Its owner refreshes
// them (common/metrics/refresh.h):
//
//     now               satrap_accepted_parts, satrap_held_puts, satrap_waiting_requests,
//                       satrap_outstanding_parts
//     since the start   satrap_parts_total, satrap_ids_total, satrap_keys_total,
//                       satrap_pushes_total, satrap_gradient_values_total,
//                       satrap_saturated_values_total, satrap_underflowed_values_total
//
// The ratio of keys to ids is the share of ids that are unique in their part.

#ifndef SATRAP_EMBEDDING_WORKER_ENGINE_METRICS_H_
#define SATRAP_EMBEDDING_WORKER_ENGINE_METRICS_H_

#include "common/metrics/metrics.h"
#include "embedding_worker/embedding_worker_engine.h"

namespace satrap {

class EngineMetrics {
 public:
  // Nothing is owned; all must outlive this object.
  EngineMetrics(const EmbeddingWorkerEngine* engine, MetricsRegistry* registry);

  // Brings the metrics up to date.
  void Refresh();

 private:
  const EmbeddingWorkerEngine* const engine_;
  prometheus::Gauge* const accepted_parts_;
  prometheus::Gauge* const held_puts_;
  prometheus::Gauge* const waiting_requests_;
  prometheus::Gauge* const outstanding_parts_;
  prometheus::Counter* const parts_;
  prometheus::Counter* const ids_;
  prometheus::Counter* const keys_;
  prometheus::Counter* const pushes_;
  prometheus::Counter* const gradient_values_;
  prometheus::Counter* const saturated_values_;
  prometheus::Counter* const underflowed_values_;
};

}  // namespace satrap

#endif  // SATRAP_EMBEDDING_WORKER_ENGINE_METRICS_H_

// LoaderMetrics exports the progress of a loader. Refresh is called by the loop of
// common/metrics/refresh.h:
//
//   gauges     satrap_ready_parts, satrap_unaccepted_parts
//   counters   satrap_read_records_total, satrap_read_bytes_total, satrap_skipped_records_total,
//              satrap_bad_records_total, satrap_clamped_numbers_total, satrap_sent_parts_total,
//              satrap_sent_samples_total
//
// and, if the train stream comes from topics:
//
//   gauges     satrap_topic_lag_messages, satrap_topic_lag_seconds, satrap_topic_open_blocks,
//              satrap_topic_watermark_seconds
//   counters   satrap_late_records_total, satrap_dead_letters_total, satrap_lost_messages_total
//
// The metrics of the first list, dead letters and lost messages sum over all streams, epochs and
// passes; the others cover the train stream only. When satrap_ready_parts and
// satrap_unaccepted_parts are at their limits, the embedding workers have no room: that is
// back-pressure.

#ifndef SATRAP_DATA_LOADER_LOADER_METRICS_H_
#define SATRAP_DATA_LOADER_LOADER_METRICS_H_

#include "common/metrics/metrics.h"
#include "data_loader/engine/loader_engine.h"
#include "data_loader/loader_streams.h"
#include "proto/control.pb.h"

namespace satrap {

class LoaderMetrics {
 public:
  // Nothing is owned; all three must outlive this object.
  LoaderMetrics(const LoaderStreams* streams, const LoaderEngine* engine,
                MetricsRegistry* registry);

  // Updates all metrics.
  void Refresh();

 private:
  // Null without topics.
  struct OfTopics {
    prometheus::Gauge* lag_messages = nullptr;
    prometheus::Gauge* lag_seconds = nullptr;
    prometheus::Gauge* open_blocks = nullptr;
    prometheus::Gauge* watermark_seconds = nullptr;
    prometheus::Counter* late_records = nullptr;
    prometheus::Counter* dead_letters = nullptr;
    prometheus::Counter* lost_messages = nullptr;
  };
  void RefreshTopics(const LoaderProgress& read);

  const LoaderStreams* const streams_;
  const LoaderEngine* const engine_;
  prometheus::Gauge* const ready_parts_;
  prometheus::Gauge* const unaccepted_parts_;
  prometheus::Counter* const read_records_;
  prometheus::Counter* const read_bytes_;
  prometheus::Counter* const skipped_records_;
  prometheus::Counter* const bad_records_;
  prometheus::Counter* const clamped_numbers_;
  prometheus::Counter* const sent_parts_;
  prometheus::Counter* const sent_samples_;
  OfTopics topics_;
};

}  // namespace satrap

#endif  // SATRAP_DATA_LOADER_LOADER_METRICS_H_

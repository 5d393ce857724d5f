#include "data_loader/loader_metrics.h"

#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace satrap {

void ExportLoaderMetrics(const LoaderStreams& streams, const LoaderEngine& engine,
                         MetricsRegistry* registry) {
  const LoaderEngine::Counts sent = engine.counts();
  const LoaderProgress read = streams.Progress();
  const auto show = [registry](const char* name, const char* help, double value) {
    registry->AddGauge(name, help)->Set(value);
  };
  const auto count = [registry](const char* name, const char* help, uint64_t value) {
    RaiseTo(registry->AddCounter(name, help), value);
  };
  show("satrap_ready_parts", "Parts made and not yet sent",
       static_cast<double>(streams.ready_parts()));
  show("satrap_unaccepted_parts", "Parts sent or waiting their turn, not yet accepted",
       static_cast<double>(sent.open_parts));
  count("satrap_read_records_total", "Good records read", read.records());
  count("satrap_read_bytes_total", "Bytes read, as on disk", read.bytes());
  count("satrap_skipped_records_total", "Records left out: trained before the restart",
        streams.skipped_records());
  count("satrap_bad_records_total", "Records quarantined", read.quarantined());
  count("satrap_clamped_numbers_total",
        "Numbers that numerics.clamp has bounded, in the first epoch or pass of each stream",
        read.clamped());
  count("satrap_sent_parts_total", "Parts accepted by workers", sent.parts);
  count("satrap_sent_samples_total", "Samples of accepted parts", sent.samples);
  if (streams.topics() == nullptr) return;
  const TopicProgress::Lag lag = streams.topics()->progress.LagAt(streams.topics()->access.now_ms(),
                                                                  absl::ToUnixMillis(absl::Now()));
  show("satrap_topic_lag_messages", "Offsets of the loader's partitions that are not in parts yet",
       static_cast<double>(lag.messages));
  show("satrap_topic_lag_seconds", "Age of the newest message that was read, while there is a lag",
       lag.seconds);
  show("satrap_topic_open_blocks", "Blocks that are not all in parts yet",
       static_cast<double>(lag.open_blocks));
  show("satrap_topic_watermark_seconds", "Watermark of the records' times, since 1970; 0: none",
       static_cast<double>(read.watermark_ms()) / 1000);
  count("satrap_late_records_total", "Records below the watermark by more than allowed_lateness_ms",
        read.late_records());
  count("satrap_dead_letters_total", "Bad records that the broker has acknowledged",
        read.dead_letters());
  count("satrap_lost_messages_total", "Offsets that the broker no longer had",
        read.lost_messages());
}

}  // namespace satrap

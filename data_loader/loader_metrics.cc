#include "data_loader/loader_metrics.h"

#include "absl/time/clock.h"
#include "absl/time/time.h"

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
      clamped_numbers_(registry->AddCounter(
          "satrap_clamped_numbers_total",
          "Numbers that numerics.clamp has bounded, in the first epoch or pass of each stream")),
      sent_parts_(registry->AddCounter("satrap_sent_parts_total", "Parts accepted by workers")),
      sent_samples_(
          registry->AddCounter("satrap_sent_samples_total", "Samples of accepted parts")) {
  if (streams->topics() == nullptr) return;
  topics_.lag_messages = registry->AddGauge(
      "satrap_topic_lag_messages", "Offsets of the loader's partitions that are not in parts yet");
  topics_.lag_seconds = registry->AddGauge(
      "satrap_topic_lag_seconds", "Age of the newest message that was read, while there is a lag");
  topics_.open_blocks =
      registry->AddGauge("satrap_topic_open_blocks", "Blocks that are not all in parts yet");
  topics_.watermark_seconds = registry->AddGauge(
      "satrap_topic_watermark_seconds", "Watermark of the records' times, since 1970; 0: none");
  topics_.late_records = registry->AddCounter(
      "satrap_late_records_total", "Records below the watermark by more than allowed_lateness_ms");
  topics_.dead_letters = registry->AddCounter("satrap_dead_letters_total",
                                              "Bad records that the broker has acknowledged");
  topics_.lost_messages =
      registry->AddCounter("satrap_lost_messages_total", "Offsets that the broker no longer had");
}

void LoaderMetrics::Refresh() {
  const LoaderEngine::Counts sent = engine_->counts();
  const LoaderProgress read = streams_->Progress();
  ready_parts_->Set(static_cast<double>(streams_->ready_parts()));
  unaccepted_parts_->Set(static_cast<double>(sent.open_parts));
  RaiseTo(read_records_, read.records());
  RaiseTo(read_bytes_, read.bytes());
  RaiseTo(skipped_records_, streams_->skipped_records());
  RaiseTo(bad_records_, read.quarantined());
  RaiseTo(clamped_numbers_, read.clamped());
  RaiseTo(sent_parts_, sent.parts);
  RaiseTo(sent_samples_, sent.samples);
  if (streams_->topics() != nullptr) RefreshTopics(read);
}

void LoaderMetrics::RefreshTopics(const LoaderProgress& read) {
  const int64_t wall_ms = absl::ToUnixMillis(absl::Now());
  const TopicProgress::Lag lag =
      streams_->topics()->progress.LagAt(streams_->topics()->access.now_ms(), wall_ms);
  topics_.lag_messages->Set(static_cast<double>(lag.messages));
  topics_.lag_seconds->Set(lag.seconds);
  topics_.open_blocks->Set(static_cast<double>(lag.open_blocks));
  topics_.watermark_seconds->Set(static_cast<double>(read.watermark_ms()) / 1000);
  RaiseTo(topics_.late_records, read.late_records());
  RaiseTo(topics_.dead_letters, read.dead_letters());
  RaiseTo(topics_.lost_messages, read.lost_messages());
}

}  // namespace satrap

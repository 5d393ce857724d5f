#include "data_loader/kafka/fake_topic.h"

#include <algorithm>
#include <memory>

#include "absl/strings/str_cat.h"

namespace satrap {

class FakeTopics::Source final : public MessageSource {
 public:
  Source(FakeTopics* topics, std::vector<KafkaPlace> places)
      : topics_(topics), places_(std::move(places)), lost_(places_.size()) {
    ++topics_->open_sources;
  }
  ~Source() override { --topics_->open_sources; }

  absl::Status Read(size_t index, size_t max_messages, MessageBatch* batch) override {
    batch->Clear();
    KafkaPlace& place = places_[index];
    const Log& log = topics_->logs_[place.partition];
    if (place.offset < log.begin || place.offset > log.end) {
      lost_[index] = Lost{place.offset, place.offset > log.end ? log.end : log.begin};
      return absl::OutOfRangeError(
          absl::StrCat("offset ", place.offset, " of ", place.partition.ToString(), " was wanted"));
    }
    const size_t most = std::min(max_messages, topics_->max_read);
    auto at = log.messages.lower_bound(place.offset);
    const auto held_back = log.messages.lower_bound(log.held_back);
    for (; at != held_back && batch->size() < most; ++at) {
      batch->Add(at->second);
      place.offset = at->first + 1;
    }
    // After its last message a real reader learns where the partition ends, and then moves there,
    // past offsets without messages.
    if (at == log.messages.end() && batch->size() < most) place.offset = log.end;
    topics_->messages_read += static_cast<int64_t>(batch->size());
    return absl::OkStatus();
  }
  int64_t next_offset(size_t index) const override { return places_[index].offset; }
  bool at_end(size_t index) const override {
    return places_[index].offset == topics_->logs_[places_[index].partition].end;
  }
  absl::optional<Lost> lost(size_t index) const override { return lost_[index]; }
  bool Wait(absl::Span<const size_t> indices, absl::Duration limit) override {
    for (const size_t index : indices) {
      if (!at_end(index) &&
          places_[index].offset < topics_->logs_[places_[index].partition].held_back) {
        return true;
      }
    }
    topics_->now_ms += absl::ToInt64Milliseconds(limit);
    if (topics_->on_wait) topics_->on_wait();
    return false;
  }
  int64_t end_offset(size_t index) const override {
    return topics_->logs_[places_[index].partition].end;
  }

 private:
  FakeTopics* const topics_;
  std::vector<KafkaPlace> places_;
  std::vector<absl::optional<Lost>> lost_;
};

class FakeTopics::Sink final : public DeadLetterSink {
 public:
  explicit Sink(FakeTopics* topics) : topics_(topics) {}
  absl::Status Send(absl::string_view key, absl::string_view value,
                    absl::string_view reason) override {
    topics_->letters.push_back({std::string(key), std::string(value), std::string(reason)});
    return absl::OkStatus();
  }
  absl::StatusOr<bool> Flush() override {
    if (!topics_->letter_error.ok()) return topics_->letter_error;
    if (topics_->flushes_in_vain > 0) {
      --topics_->flushes_in_vain;
      topics_->now_ms += 50;
      return false;
    }
    for (Letter& letter : topics_->letters) letter.is_flushed = true;
    return true;
  }
  uint64_t acknowledged() const override {
    return static_cast<uint64_t>(std::count_if(topics_->letters.begin(), topics_->letters.end(),
                                               [](const Letter& l) { return l.is_flushed; }));
  }

 private:
  FakeTopics* const topics_;
};

TopicAccess FakeTopics::Access() {
  TopicAccess access;
  access.open_source = [this](const KafkaConfig& config, std::vector<KafkaPlace> places,
                              bool trains) -> absl::StatusOr<std::unique_ptr<MessageSource>> {
    queue_bytes.push_back(config.queue_bytes());
    opened_to_train.push_back(trains);
    for (const KafkaPlace& place : places) opened.push_back(place);
    return std::unique_ptr<MessageSource>(new Source(this, std::move(places)));
  };
  access.open_dead_letters =
      [this](const KafkaConfig&) -> absl::StatusOr<std::unique_ptr<DeadLetterSink>> {
    return std::unique_ptr<DeadLetterSink>(new Sink(this));
  };
  access.now_ms = [this] { return now_ms; };
  return access;
}

}  // namespace satrap

#include "common/kafka/partition_guard.h"

#include <librdkafka/rdkafka.h>

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/kafka/client.h"
#include "common/numeric/hash.h"
#include "common/thread/clock.h"

namespace satrap {
namespace {

// How far before the start a message is searched for: the offset right before it may hold the mark
// of a transaction, or be compacted.
constexpr int64_t kLookBack = 1000;

using KafkaMessage = std::unique_ptr<rd_kafka_message_t,
                                     KafkaDestroyer<rd_kafka_message_t, rd_kafka_message_destroy>>;

absl::Status AnotherTopic(const KafkaPartition& partition, int64_t offset) {
  return absl::FailedPreconditionError(absl::StrCat(
      partition.ToString(), ", offset ", offset,
      ": the message is not the one that was there when the run read it; the topic was ",
      "deleted and made anew, or its log was lost. This run cannot go on with it: begin ",
      "a new one"));
}

// Reads the first message of each place, at its offset or after it. Leaves out what the brokers do
// not return within `limit_ms`, or before `stop` returns true.
absl::StatusOr<std::vector<absl::optional<MessageMark>>> ReadFirst(
    KafkaClient* client, const std::vector<KafkaPlace>& places, int64_t limit_ms,
    const std::function<bool()>& stop) {
  TopicPartitions list(places.size());
  std::map<KafkaPartition, size_t> index_of;
  for (size_t i = 0; i < places.size(); ++i) {
    list.Add(places[i].partition, places[i].offset);
    index_of[places[i].partition] = i;
  }
  const rd_kafka_resp_err_t error = rd_kafka_assign(client->get(), list.get());
  if (error != RD_KAFKA_RESP_ERR_NO_ERROR) return KafkaError("cannot read partitions", error);
  std::vector<absl::optional<MessageMark>> found(places.size());
  std::vector<bool> is_answered(places.size());
  const int64_t deadline_ms = MonotonicMs() + limit_ms;
  size_t left = places.size();
  while (left > 0 && MonotonicMs() < deadline_ms && !stop()) {
    const KafkaMessage message(rd_kafka_consumer_poll(client->get(), PartitionGuard::kSliceMs));
    if (message == nullptr || message->rkt == nullptr) continue;
    const auto at = index_of.find({rd_kafka_topic_name(message->rkt), message->partition});
    if (at == index_of.end() || is_answered[at->second]) continue;
    if (message->err == RD_KAFKA_RESP_ERR_NO_ERROR) {
      const absl::string_view value(static_cast<const char*>(message->payload), message->len);
      found[at->second] = MessageMark{message->offset, Xxh64(value)};
    }
    // If there is no message, this is the end of the partition, or an error, which the reader
    // reports.
    is_answered[at->second] = true;
    --left;
  }
  return found;
}

// Asks for an offset of all partitions at once: RD_KAFKA_OFFSET_BEGINNING or _END. -1 where the
// brokers do not answer within kOffsetsMs.
std::vector<int64_t> AskOffsets(KafkaClient* client, const std::vector<KafkaPartition>& partitions,
                                int64_t which) {
  std::vector<int64_t> offsets(partitions.size(), -1);
  if (partitions.empty()) return offsets;
  TopicPartitions list(partitions.size());
  for (const KafkaPartition& partition : partitions) list.Add(partition, which);
  const rd_kafka_resp_err_t error =
      rd_kafka_offsets_for_times(client->get(), list.get(), PartitionGuard::kOffsetsMs);
  if (error != RD_KAFKA_RESP_ERR_NO_ERROR) return offsets;
  for (size_t i = 0; i < list.size(); ++i) {
    if (list[i].err == RD_KAFKA_RESP_ERR_NO_ERROR) offsets[i] = list[i].offset;
  }
  return offsets;
}

}  // namespace

absl::Status CompareAnchor(const KafkaPartition& partition, const MessageMark& anchor,
                           const PartitionLook& look) {
  if (look.latest >= 0 && look.latest <= anchor.offset) {
    return AnotherTopic(partition, anchor.offset);
  }
  // Retention or compaction may have removed the anchor's message since.
  if (!look.first.has_value() || look.first->offset > anchor.offset) return absl::OkStatus();
  return look.first->hash == anchor.hash ? absl::OkStatus()
                                         : AnotherTopic(partition, anchor.offset);
}

PartitionGuard::PartitionGuard(const KafkaConfig& config, const std::vector<KafkaPlace>& places,
                               Logger logger, std::function<void()> wake, AnchorSink keep)
    : config_(config),
      logger_(std::move(logger)),
      wake_(std::move(wake)),
      keep_(std::move(keep)),
      next_look_ms_(MonotonicMs() + kFirstLookMs) {
  for (const KafkaPlace& place : places) {
    Guarded guarded;
    guarded.name = place.partition;
    guarded.start = place.offset;
    if (place.anchor.has_value()) {
      guarded.anchor = place.anchor->message;
      guarded.earliest = place.anchor->earliest;
      guarded.has_early_anchor = true;
      next_look_ms_ = 0;
    }
    partitions_.push_back(std::move(guarded));
  }
  thread_ = std::thread([this] { Run(); });
}

PartitionGuard::~PartitionGuard() {
  {
    MutexLock lock(&mutex_);
    ending_ = true;
  }
  changed_.NotifyAll();
  thread_.join();
}

void PartitionGuard::NoteRead(size_t index, const MessageMark& message) {
  MutexLock lock(&mutex_);
  Guarded& guarded = partitions_[index];
  // The anchor is not replaced by a message that was read after the last look: the topic may have
  // been made anew since then. Only the first message of a partition that is read from offset 0
  // becomes the anchor at once.
  const bool is_first = !guarded.anchor.has_value() && guarded.start == 0;
  (is_first ? guarded.anchor : guarded.latest) = message;
}

void PartitionGuard::NoteEnd(size_t index, int64_t end) {
  bool doubt = false;
  {
    MutexLock lock(&mutex_);
    Guarded& guarded = partitions_[index];
    doubt = std::exchange(guarded.is_missing, false);
    doubt = end < std::exchange(guarded.end, end) || doubt;
    guarded.doubt = guarded.doubt || doubt;
    doubt_ = doubt_ || doubt;
  }
  if (doubt) changed_.NotifyAll();
}

void PartitionGuard::NoteMissing(size_t index) {
  MutexLock lock(&mutex_);
  partitions_[index].is_missing = true;
}

absl::Status PartitionGuard::status(size_t index) const {
  MutexLock lock(&mutex_);
  return partitions_[index].status;
}

void PartitionGuard::Keep() const {
  std::vector<std::pair<KafkaPartition, PartitionAnchor>> anchors;
  {
    MutexLock lock(&mutex_);
    for (const Guarded& guarded : partitions_) {
      if (!guarded.status.ok() || (!guarded.anchor.has_value() && guarded.earliest < 0)) continue;
      anchors.push_back({guarded.name, {guarded.anchor, guarded.earliest}});
    }
  }
  if (!anchors.empty()) keep_(anchors);
}

bool PartitionGuard::knows(size_t index) const {
  MutexLock lock(&mutex_);
  const Guarded& guarded = partitions_[index];
  return guarded.anchor.has_value() || guarded.start == 0 || guarded.earliest >= 0;
}

bool PartitionGuard::ending() const {
  MutexLock lock(&mutex_);
  return ending_;
}

absl::Status PartitionGuard::LookNow(size_t index) {
  std::vector<Question> questions(1);
  {
    MutexLock lock(&mutex_);
    questions[0] = QuestionOf(index);
  }
  Ask(std::move(questions));
  return status(index);
}

void PartitionGuard::Run() {
  for (;;) {
    {
      MutexLock lock(&mutex_);
      if (!Await()) return;
      doubt_ = false;
    }
    Ask(Questions());
    if (!has_looked_.exchange(true)) wake_();
    if (keep_) Keep();
    MutexLock lock(&mutex_);
    next_look_ms_ = MonotonicMs() + kPeriodMs;
  }
}

// Waits for the time of the next look; false to end.
bool PartitionGuard::Await() {
  for (;;) {
    if (ending_) return false;
    const int64_t left_ms = next_look_ms_ - MonotonicMs();
    if (doubt_ || left_ms <= 0) return true;
    changed_.WaitFor(&mutex_, left_ms);
  }
}

PartitionGuard::Question PartitionGuard::QuestionOf(size_t index) {
  const Guarded& guarded = partitions_[index];
  const int64_t from = guarded.anchor.has_value() ? guarded.anchor->offset
                                                  : std::max<int64_t>(guarded.start - kLookBack, 0);
  return {index,          {guarded.name, from}, guarded.anchor,
          guarded.latest, guarded.end,          guarded.has_early_anchor};
}

// Questions about the partitions that may have changed since the last look.
std::vector<PartitionGuard::Question> PartitionGuard::Questions() {
  MutexLock lock(&mutex_);
  std::vector<Question> questions;
  for (size_t i = 0; i < partitions_.size(); ++i) {
    Guarded& guarded = partitions_[i];
    // After a doubt, the result of the last look no longer counts.
    if (std::exchange(guarded.doubt, false)) guarded.looked_end = -2;
    if (!guarded.status.ok() || guarded.end == guarded.looked_end) continue;
    // Without an anchor nothing was read, and if the start is 0, there is nothing before it to
    // miss.
    if (!guarded.anchor.has_value() && guarded.start == 0) continue;
    questions.push_back(QuestionOf(i));
  }
  return questions;
}

void PartitionGuard::Ask(std::vector<Question> questions) {
  if (questions.empty()) return;
  KafkaClient::Options options;
  options.role = KafkaRole::kReader;
  options.partitions = questions.size();
  options.logger = logger_;
  KafkaConfig config = config_;
  // Uses the smallest queue: one answer of the broker for each partition is enough.
  config.set_queue_bytes(1);
  const auto client = KafkaClient::Create(config, std::move(options));
  // The reader uses the same settings, and reports what is wrong with them.
  if (!client.ok()) return;
  std::vector<PartitionLook> looks(questions.size());
  std::vector<KafkaPartition> names;
  bool asks_earliest = false;
  bool asks_latest = false;
  for (const Question& question : questions) {
    names.push_back(question.place.partition);
    asks_earliest = asks_earliest || !question.anchor.has_value();
    asks_latest = asks_latest || question.asks_latest;
  }
  const std::vector<int64_t> earliest =
      asks_earliest ? AskOffsets(client->get(), names, RD_KAFKA_OFFSET_BEGINNING)
                    : std::vector<int64_t>(names.size(), -1);
  if (ending()) return;
  const std::vector<int64_t> latest = asks_latest
                                          ? AskOffsets(client->get(), names, RD_KAFKA_OFFSET_END)
                                          : std::vector<int64_t>(names.size(), -1);
  std::vector<KafkaPlace> places;
  for (size_t i = 0; i < questions.size(); ++i) {
    Question& question = questions[i];
    if (!question.anchor.has_value()) {
      looks[i].earliest = earliest[i];
      question.place.offset = std::max(question.place.offset, looks[i].earliest);
    }
    if (question.asks_latest) looks[i].latest = latest[i];
    places.push_back(question.place);
  }
  const auto found = ReadFirst(client->get(), places, kLookMs, [this] { return ending(); });
  if (!found.ok()) return;
  for (size_t i = 0; i < places.size(); ++i) {
    looks[i].first = (*found)[i];
    Take(questions[i], looks[i]);
  }
}

void PartitionGuard::Take(const Question& question, const PartitionLook& look) {
  {
    MutexLock lock(&mutex_);
    Guarded& guarded = partitions_[question.index];
    if (!guarded.status.ok()) return;
    guarded.has_early_anchor = guarded.has_early_anchor && look.latest < 0;
    if (look.first.has_value() || look.earliest >= 0) guarded.looked_end = question.end;
    if (question.anchor.has_value()) {
      guarded.status = CompareAnchor(guarded.name, *question.anchor, look);
      if (look.first.has_value() && question.latest.has_value()) guarded.anchor = question.latest;
    } else if (guarded.earliest > 0 && look.earliest == 0) {
      guarded.status = AnotherTopic(guarded.name, 0);
    } else if (look.earliest >= 0 && !guarded.anchor.has_value()) {
      guarded.earliest = look.earliest;
      const bool is_before = look.first.has_value() && look.first->offset < guarded.start;
      guarded.anchor = is_before ? look.first : question.latest;
    }
    if (guarded.status.ok()) return;
    any_changed_.store(true, std::memory_order_release);
  }
  wake_();
}

}  // namespace satrap

#include "common/kafka/partition_guard.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/kafka/client.h"
#include "common/thread/clock.h"

namespace satrap {
namespace {

// How far before the start a message is searched for. The offset just before the start may hold the
// mark of a transaction, or compaction may have removed its message.
constexpr int64_t kLookBack = 1000;

absl::Status AnotherTopic(const KafkaPartition& partition, int64_t offset) {
  return absl::FailedPreconditionError(absl::StrCat(
      partition.ToString(), ", offset ", offset,
      ": the message is not the one that was there when the run read it; the topic was ",
      "deleted and made anew, or its log was lost. This run cannot continue with the topic: ",
      "begin a new run"));
}

}  // namespace

absl::Status CompareAnchor(const KafkaPartition& partition, const MessageMark& anchor,
                           const PartitionLook& look) {
  if (look.latest >= 0 && look.latest <= anchor.offset) {
    return AnotherTopic(partition, anchor.offset);
  }
  // A look that has found no message at the anchor's offset does not prove a change: retention or
  // compaction may have removed the message since it was read. A look that failed has no message
  // either; the reader will report the error.
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
      begin_ms_(MonotonicMs()),
      awaits_(new std::atomic<bool>[places.size()]),
      next_look_ms_(begin_ms_ + kFirstLookMs) {
  for (const KafkaPlace& place : places) {
    std::atomic<bool>& awaits = awaits_[partitions_.size()];
    awaits = false;
    Guarded guarded;
    guarded.name = place.partition;
    guarded.start = place.offset;
    if (place.anchor.has_value()) {
      guarded.anchor = place.anchor->message;
      guarded.earliest = place.anchor->earliest;
      // No look is needed if there was no message and reading begins at offset 0: then no message
      // can be missed.
      awaits = guarded.anchor.has_value() || guarded.start > 0;
      if (awaits) next_look_ms_ = 0;
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
  // A message that was read after the last look must not replace the anchor, because the topic may
  // have been made anew since then. Exception: the first message of a partition that is read from
  // offset 0 becomes the anchor at once.
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
    for (size_t i = 0; i < partitions_.size(); ++i) {
      const Guarded& guarded = partitions_[i];
      if (!guarded.status.ok() || awaits_look(i)) continue;
      if (!guarded.anchor.has_value() && guarded.earliest < 0) continue;
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
  std::vector<Asked> asked;
  std::vector<PartitionQuestion> questions;
  {
    MutexLock lock(&mutex_);
    AddQuestion(index, &asked, &questions);
  }
  Ask(asked, questions);
  return status(index);
}

void PartitionGuard::Run() {
  for (;;) {
    {
      MutexLock lock(&mutex_);
      if (!Await()) return;
      doubt_ = false;
    }
    AskWhatMayHaveChanged();
    if (keep_) Keep();
    const int64_t pause_ms = AnyAwaits() ? kRetryMs : kPeriodMs;
    MutexLock lock(&mutex_);
    next_look_ms_ = MonotonicMs() + pause_ms;
  }
}

// Waits until the next look is due. Returns false if the guard is being destroyed.
bool PartitionGuard::Await() {
  for (;;) {
    if (ending_) return false;
    const int64_t left_ms = next_look_ms_ - MonotonicMs();
    if (doubt_ || left_ms <= 0) return true;
    changed_.WaitFor(&mutex_, left_ms);
  }
}

bool PartitionGuard::AnyAwaits() {
  // Wait kLookMs longer than the reader does. So if all brokers are unreachable, the reader reports
  // this first, with an error that names the brokers.
  const int64_t limit_ms = static_cast<int64_t>(config_.broker_wait_seconds() * 1000) + kLookMs;
  const int64_t waited_ms = MonotonicMs() - begin_ms_;
  bool any = false;
  {
    MutexLock lock(&mutex_);
    for (size_t i = 0; i < partitions_.size(); ++i) {
      if (!awaits_look(i)) continue;
      any = true;
      if (waited_ms < limit_ms || ending_) continue;
      partitions_[i].status = absl::UnavailableError(
          absl::StrCat("for ", absl::FormatDuration(absl::Milliseconds(waited_ms)),
                       " (broker_wait_seconds) the brokers have not delivered the message of ",
                       partitions_[i].name.ToString(), " by which the run recognises its topic"));
      any_changed_.store(true, std::memory_order_release);
      awaits_[i].store(false, std::memory_order_release);
    }
  }
  if (any_changed()) wake_();
  return any;
}

void PartitionGuard::AddQuestion(size_t index, std::vector<Asked>* asked,
                                 std::vector<PartitionQuestion>* questions) const {
  const Guarded& guarded = partitions_[index];
  asked->push_back({index, guarded.anchor, guarded.latest, guarded.end});
  PartitionQuestion question;
  question.partition = guarded.name;
  question.offset = guarded.anchor.has_value() ? guarded.anchor->offset
                                               : std::max<int64_t>(guarded.start - kLookBack, 0);
  question.asks_earliest = !guarded.anchor.has_value();
  question.asks_latest = guarded.anchor.has_value() && awaits_look(index);
  questions->push_back(std::move(question));
}

void PartitionGuard::AskWhatMayHaveChanged() {
  std::vector<Asked> asked;
  std::vector<PartitionQuestion> questions;
  {
    MutexLock lock(&mutex_);
    for (size_t i = 0; i < partitions_.size(); ++i) {
      Guarded& guarded = partitions_[i];
      // If there is a reason to doubt the partition, the result of its last look no longer counts.
      if (std::exchange(guarded.doubt, false)) guarded.looked_end = -2;
      if (!guarded.status.ok() || guarded.end == guarded.looked_end) continue;
      // If there is no anchor and the start is 0, nothing was read yet, because the first message
      // would have become the anchor, and there are no earlier messages that could be missed.
      if (!guarded.anchor.has_value() && guarded.start == 0) continue;
      AddQuestion(i, &asked, &questions);
    }
  }
  Ask(asked, questions);
}

void PartitionGuard::Ask(const std::vector<Asked>& asked,
                         const std::vector<PartitionQuestion>& questions) {
  if (questions.empty()) return;
  KafkaClient::Options options;
  options.role = KafkaRole::kReader;
  options.partitions = questions.size();
  options.logger = logger_;
  KafkaConfig config = config_;
  // The smallest queue is enough, because the brokers give one answer for each partition.
  config.set_queue_bytes(1);
  const auto client = KafkaClient::Create(config, std::move(options));
  // The reader, which has the same settings, reports the error.
  if (!client.ok()) return;
  LookAtPartitions(
      client->get(), questions, kLookMs, [this] { return ending(); },
      [&](size_t i, const PartitionLook& look) { Take(asked[i], look); });
}

void PartitionGuard::Take(const Asked& asked, const PartitionLook& look) {
  bool awaited = false;
  {
    MutexLock lock(&mutex_);
    Guarded& guarded = partitions_[asked.index];
    if (!guarded.status.ok()) return;
    if (look.first.has_value() || look.earliest >= 0) guarded.looked_end = asked.end;
    if (asked.anchor.has_value()) {
      guarded.status = CompareAnchor(guarded.name, *asked.anchor, look);
      if (look.first.has_value() && asked.latest.has_value()) guarded.anchor = asked.latest;
    } else if (guarded.earliest > 0 && look.earliest == 0) {
      guarded.status = AnotherTopic(guarded.name, 0);
    } else if (look.earliest >= 0 && !guarded.anchor.has_value()) {
      guarded.earliest = look.earliest;
      const bool is_before = look.first.has_value() && look.first->offset < guarded.start;
      guarded.anchor = is_before ? look.first : asked.latest;
    }
    if (!guarded.status.ok()) any_changed_.store(true, std::memory_order_release);
    // Cleared only after the status was set, because a thread that sees false reads the status as
    // the result of this look.
    awaited = awaits_[asked.index].exchange(false, std::memory_order_acq_rel);
    if (guarded.status.ok() && !awaited) return;
  }
  wake_();
}

}  // namespace satrap

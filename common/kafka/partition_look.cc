#include "common/kafka/partition_look.h"

#include <librdkafka/rdkafka.h>

#include <algorithm>
#include <deque>
#include <map>
#include <memory>

#include "absl/status/status.h"
#include "common/kafka/client.h"
#include "common/kafka/partition_offsets.h"
#include "common/numeric/hash.h"
#include "common/thread/clock.h"

namespace satrap {
namespace {

// How long a poll waits for a message before `stop` is asked again.
constexpr int kSliceMs = 100;

using KafkaMessage = std::unique_ptr<rd_kafka_message_t,
                                     KafkaDestroyer<rd_kafka_message_t, rd_kafka_message_destroy>>;
class Looker {
 public:
  Looker(KafkaClient* client, const std::vector<PartitionQuestion>& questions, int64_t limit_ms,
         const std::function<bool()>& stop,
         const std::function<void(size_t, const PartitionLook&)>& found)
      : client_(client),
        questions_(questions),
        deadline_ms_(MonotonicMs() + limit_ms),
        stop_(stop),
        found_(found),
        looks_(questions.size()),
        is_answered_(questions.size()) {}

  void Look() {
    AskEarliest();
    Read();
  }

 private:
  bool is_over() const { return MonotonicMs() >= deadline_ms_ || stop_(); }

  void AskEarliest() {
    std::vector<KafkaPartition> partitions;
    std::vector<size_t> of;
    for (size_t i = 0; i < questions_.size(); ++i) {
      if (!questions_[i].asks_earliest) continue;
      partitions.push_back(questions_[i].partition);
      of.push_back(i);
    }
    const std::vector<PartitionOffset> answers =
        AskOffsets(client_, partitions, RD_KAFKA_OFFSET_BEGINNING, [this] { return is_over(); });
    for (size_t at = 0; at < of.size(); ++at) {
      const size_t i = of[at];
      if (answers[at].error == RD_KAFKA_RESP_ERR_NO_ERROR) {
        looks_[i].earliest = answers[at].offset;
      } else if (!MayPass(KafkaError("cannot look", answers[at].error))) {
        is_answered_[i] = true;
        found_(i, looks_[i]);
      }
    }
  }

  // A topic that is unknown now may become known: a broker that has just started may not know every
  // topic yet.
  static bool MayPass(const absl::Status& error) {
    return absl::IsUnavailable(error) || absl::IsNotFound(error);
  }

  // Call when the brokers have said that the partition of question `i` ends at or before the
  // question's offset. Asks where the partition begins and ends. Completes the look, or returns
  // false. A leader that was just elected answers this only when it knows how far its log is
  // committed; until then it gives messages as if the partition ended earlier.
  bool AskEnds(size_t i) {
    const PartitionQuestion& question = questions_[i];
    int64_t earliest = -1;
    int64_t latest = -1;
    const rd_kafka_resp_err_t error = rd_kafka_query_watermark_offsets(
        client_->get(), question.partition.topic.c_str(), question.partition.partition, &earliest,
        &latest, kPartitionQueryMs);
    if (error != RD_KAFKA_RESP_ERR_NO_ERROR || latest < 0) {
      ask_again_.push_back(i);
      return false;
    }
    // The partition has grown meanwhile, and now has a message at the offset. Only the message
    // itself shows whether the partition is another one. A later fetch or look will give that
    // message.
    if (earliest <= question.offset && latest > question.offset) return false;
    looks_[i].latest = latest;
    return true;
  }

  void Read() {
    std::map<KafkaPartition, size_t> index_of;
    TopicPartitions list(questions_.size());
    for (size_t i = 0; i < questions_.size(); ++i) {
      const PartitionQuestion& question = questions_[i];
      if (is_answered_[i] || (question.asks_earliest && looks_[i].earliest < 0)) continue;
      list.Add(question.partition, std::max(question.offset, looks_[i].earliest));
      index_of[question.partition] = i;
    }
    if (index_of.empty() || rd_kafka_assign(client_->get(), list.get()) != 0) return;
    for (size_t left = index_of.size(); left > 0 && !is_over();) {
      const KafkaMessage message(rd_kafka_consumer_poll(client_->get(), kSliceMs));
      absl::optional<size_t> answered;
      if (message == nullptr) {
        answered = AskLatestAgain();
      } else if (message->rkt != nullptr) {
        const auto at = index_of.find({rd_kafka_topic_name(message->rkt), message->partition});
        if (at == index_of.end() || is_answered_[at->second]) continue;
        if (IsAnswer(*message, at->second)) answered = at->second;
      }
      if (!answered.has_value() || is_answered_[*answered]) continue;
      is_answered_[*answered] = true;
      --left;
      found_(*answered, looks_[*answered]);
    }
  }

  // Completes the look at question `i` with `message`. Returns false if it does not answer the
  // question.
  bool IsAnswer(const rd_kafka_message_t& message, size_t i) {
    const PartitionQuestion& question = questions_[i];
    PartitionLook& look = looks_[i];
    if (message.err == RD_KAFKA_RESP_ERR_NO_ERROR) {
      const absl::string_view value(static_cast<const char*>(message.payload), message.len);
      look.first = MessageMark{message.offset, Xxh64(value)};
      return true;
    }
    const bool is_end = message.err == RD_KAFKA_RESP_ERR__PARTITION_EOF;
    if (is_end && message.offset > question.offset) {
      look.latest = message.offset;  // there are no messages in between
      return true;
    }
    const absl::Status status = KafkaError("cannot look", message.err);
    if (is_end || absl::IsOutOfRange(status)) {
      // Either messages have expired, or the partition has become shorter.
      if (!question.asks_latest) return true;
      return AskEnds(i);
    }
    return !MayPass(status);  // otherwise librdkafka keeps trying
  }

  // Asks for the end of a partition again, because librdkafka gives no further message of that
  // partition. Of the questions that need this, takes the one that has waited longest, and returns
  // it if it is answered now.
  absl::optional<size_t> AskLatestAgain() {
    if (ask_again_.empty()) return absl::nullopt;
    const size_t i = ask_again_.front();
    ask_again_.pop_front();
    if (AskEnds(i)) return i;
    return absl::nullopt;
  }

  KafkaClient* const client_;
  const std::vector<PartitionQuestion>& questions_;
  const int64_t deadline_ms_;
  const std::function<bool()>& stop_;
  const std::function<void(size_t, const PartitionLook&)>& found_;
  std::vector<PartitionLook> looks_;
  std::vector<bool> is_answered_;
  std::deque<size_t> ask_again_;  // for the end of their partitions
};

}  // namespace

void LookAtPartitions(KafkaClient* client, const std::vector<PartitionQuestion>& questions,
                      int64_t limit_ms, const std::function<bool()>& stop,
                      const std::function<void(size_t, const PartitionLook&)>& found) {
  Looker(client, questions, limit_ms, stop, found).Look();
}

}  // namespace satrap

#include "common/checkpoint/order_fingerprint.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/numeric/hash.h"

namespace satrap {
namespace {

// Keeps only the fields that name the messages and say how they are read. Clears max_wait_ms
// although it affects where blocks end: a run may change it, because the ledger records the bounds
// of blocks.
void ClearWhatOrdersNothing(KafkaConfig* kafka) {
  kafka->clear_brokers();
  kafka->clear_settings();
  kafka->clear_group_id();
  kafka->clear_queue_bytes();
  kafka->clear_max_wait_ms();
  kafka->clear_allowed_lateness_ms();
  kafka->clear_dead_letter_topic();
  kafka->clear_on_lost_offsets();
  kafka->clear_broker_wait_seconds();
}

}  // namespace

uint64_t OrderFingerprint(const JobConfig& job, const SplitList& splits) {
  // Writes numbers, not names, so that renaming a field changes nothing. A word before each number
  // keeps two neighbours from being read as one.
  std::string text = absl::StrCat("mode ", static_cast<int>(job.mode()), " seed ", job.seed(),
                                  " batch ", job.global_batch_size(), " lanes ",
                                  job.mode() == JobConfig::SYNC ? job.lanes() : 0);
  // The data section without its file lists: parser, columns, filters, blocks, splits.
  DataConfig data = job.data();
  data.clear_train_files();
  data.clear_valid_files();
  data.clear_test_files();
  // This limit can only end a run; it does not change the order.
  data.clear_max_bad_fraction();
  if (data.has_kafka()) ClearWhatOrdersNothing(data.mutable_kafka());
  if (data.has_valid_kafka()) ClearWhatOrdersNothing(data.mutable_valid_kafka());
  if (data.has_test_kafka()) ClearWhatOrdersNothing(data.mutable_test_kafka());
  absl::StrAppend(&text, " data ", Xxh64(data.SerializeAsString()));
  for (const StreamFiles& stream : splits.streams()) {
    absl::StrAppend(&text, " stream ", stream.stream());
    for (const FileIdentity& file : stream.files()) {
      absl::StrAppend(&text, " file ", file.bytes(), " ", file.content());
    }
  }
  // The list of candidates affects what is trained.
  if (splits.has_candidates()) {
    absl::StrAppend(&text, " candidates ", splits.candidates().bytes(), " ",
                    splits.candidates().content());
  }
  for (const StreamTopics& stream : splits.topics()) {
    // A list of partitions without ends may grow while the run trains, so it is left out.
    const bool is_bounded =
        std::all_of(stream.partitions().begin(), stream.partitions().end(),
                    [](const TopicPartition& partition) { return partition.has_end(); });
    if (!is_bounded) continue;
    absl::StrAppend(&text, " topics ", stream.stream(), " cluster ", stream.cluster_id());
    for (const TopicPartition& partition : stream.partitions()) {
      absl::StrAppend(&text, " partition ", partition.topic(), " ", partition.partition(), " ",
                      partition.start(), " ", partition.end());
    }
  }
  return Xxh64(text);
}

}  // namespace satrap

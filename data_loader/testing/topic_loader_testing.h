// Helpers for tests of loaders of topics: a job, in-memory topics, and a loader with all lanes.

#ifndef SATRAP_DATA_LOADER_TESTING_TOPIC_LOADER_TESTING_H_
#define SATRAP_DATA_LOADER_TESTING_TOPIC_LOADER_TESTING_H_

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/checkpoint/ledger/ledger.h"
#include "common/testing/manual_executor.h"
#include "data_loader/kafka/testing/fake_topic.h"
#include "data_loader/loader_streams.h"

namespace satrap {

using Parts = std::vector<Part>;

inline std::string BytesOf(const Part& part) {
  const char* const payload = reinterpret_cast<const char*>(part.payload.data());
  return part.header.SerializeAsString() + std::string(payload, part.payload.size());
}

inline void Consume(const Part& part, Ledger* ledger) {
  for (const ProvenanceRange& range : part.header.part().provenance()) {
    const absl::Status added = ledger->Add(part.header.epoch(), range);
    ASSERT_TRUE(added.ok()) << added;
  }
}

// The numbers in the records of a part. Each record has only this one numeric.
inline std::vector<float> NumbersOf(const Part& part) {
  const Section& section = part.header.part().numeric_values();
  const float* values =
      reinterpret_cast<const float*>(part.payload.data() + section.offset_bytes());
  return {values, values + section.size_bytes() / sizeof(float)};
}

class TopicLoaderTest : public testing::Test {
 protected:
  JobConfig Job(JobConfig::Mode mode) const {
    JobConfig job;
    job.set_mode(mode);
    job.set_lanes(2);
    job.set_epochs(2);
    job.set_global_batch_size(8);
    job.mutable_nn_worker()->set_replicas(3);
    job.mutable_data_loader()->set_prefetch_parts(1);
    DataConfig* const data = job.mutable_data();
    for (const char* name : {"y", "x"}) data->mutable_csv()->add_columns()->set_name(name);
    data->mutable_csv()->mutable_columns(0)->set_kind(ColumnConfig::LABEL);
    data->mutable_csv()->mutable_columns(1)->set_kind(ColumnConfig::NUMERIC);
    data->add_numerics()->set_name("x");
    data->set_shuffle_rows(7);
    data->set_max_bad_fraction(1);
    data->mutable_kafka()->set_format(KafkaConfig::LINES);
    data->mutable_kafka()->set_max_wait_ms(mode == JobConfig::SYNC ? 0 : 1000);
    return job;
  }
  // Writes five partitions from offset 3, with gaps, messages of several lines, and bad and empty
  // messages. One partition has no record, and another has no offset.
  void WriteTopic() {
    int number = 0;
    for (int p = 0; p < 3; ++p) {
      const KafkaPartition to{"clicks", p};
      for (int i = 0; i < 30 + 9 * p; ++i) {
        std::string value = absl::StrCat(i % 2, ",", number++);
        if (i % 5 == 2) absl::StrAppend(&value, "\nbad\n", i % 2, ",", number++, "\n");
        if (i % 11 == 7) value = "worse";
        if (i % 13 == 5) value = "";
        if (i % 6 == 4) topics_.Skip(to, i % 4);
        topics_.Write(to, value);
      }
      if (p == 1) topics_.Skip(to, 20);
    }
    topics_.Skip({"clicks", 3}, 12);
    topics_.Write({"clicks", 3}, "bad");
    topics_.Skip({"clicks", 4}, 3);
  }
  SplitList Partitions(bool with_ends = true) {
    SplitList list;
    list.add_topics()->set_stream(TRAIN_STREAM);
    for (int p = 0; p < 5; ++p) {
      TopicPartition* const partition = list.mutable_topics(0)->add_partitions();
      partition->set_topic("clicks");
      partition->set_partition(p);
      partition->set_start(3);
      if (with_ends) partition->set_end(static_cast<uint64_t>(topics_.end({"clicks", p})));
    }
    return list;
  }
  std::unique_ptr<LoaderStreams> Begin(const JobConfig& job, const SplitList& partitions,
                                       LoaderStreams::Begin begin = LoaderStreams::Begin()) {
    begin.topics = topics_.Access();
    begin.fix_files = [&partitions](SplitList listed) {
      *listed.mutable_topics() = partitions.topics();
      return listed;
    };
    auto streams = LoaderStreams::Make(job, 0, nullptr, begin);
    EXPECT_TRUE(streams.ok()) << streams.status();
    (*streams)->MakeSources(&executor_, nullptr);
    return *std::move(streams);
  }
  // Requests a part. Runs the executor until the part comes, at most a minute of the topics' clock.
  absl::StatusOr<absl::optional<Part>> NextPart(PartSource* source) {
    // The answer is in a shared_ptr, because it may come after this function has returned.
    auto answer = std::make_shared<absl::optional<absl::StatusOr<absl::optional<Part>>>>();
    source->Next(
        [answer](absl::StatusOr<absl::optional<Part>> part) { *answer = std::move(part); });
    const int64_t end_ms = topics_.now_ms + 60000;
    while (!answer->has_value() && topics_.now_ms < end_ms && executor_.RunOne()) continue;
    if (!answer->has_value()) return absl::DeadlineExceededError("no part");
    return **std::move(answer);
  }
  // Reads the next epoch of the train stream. ReadEpoch returns the parts of each source, ReadParts
  // only those of the first source.
  std::vector<Parts> ReadEpoch(LoaderStreams* streams) {
    std::vector<Parts> all;
    for (PartSource* source : streams->sources()[0].sources) {
      all.emplace_back();
      auto part = NextPart(source);
      for (; part.ok() && part->has_value(); part = NextPart(source)) {
        all.back().push_back(**std::move(part));
      }
      EXPECT_TRUE(part.ok()) << part.status();
    }
    return all;
  }
  Parts ReadParts(LoaderStreams* streams) { return std::move(ReadEpoch(streams)[0]); }
  // Reads the first source's epoch. Returns the error that ends it, or OK if it ends normally.
  absl::Status ReadToError(LoaderStreams* streams) {
    auto part = NextPart(streams->sources()[0].sources[0]);
    while (part.ok() && part->has_value()) part = NextPart(streams->sources()[0].sources[0]);
    return part.status();
  }
  static LoaderStreams::Begin At(const Ledger& ledger) {
    LoaderStreams::Begin begin;
    begin.ledger = ledger.ToState();
    return begin;
  }
  FakeTopics topics_;
  ManualExecutor executor_;
};

}  // namespace satrap

#endif  // SATRAP_DATA_LOADER_TESTING_TOPIC_LOADER_TESTING_H_

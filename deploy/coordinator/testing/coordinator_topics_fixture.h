// Base class of tests of how the coordinator's engine treats topics: a run that reads the topics of
// an in-memory cluster.

#ifndef SATRAP_DEPLOY_COORDINATOR_TESTING_COORDINATOR_TOPICS_FIXTURE_H_
#define SATRAP_DEPLOY_COORDINATOR_TESTING_COORDINATOR_TOPICS_FIXTURE_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/rpc/header.h"
#include "deploy/coordinator/testing/coordinator_fixture.h"
#include "deploy/coordinator/topics/testing/fake_topic_source.h"
#include "gtest/gtest.h"

namespace satrap {

class CoordinatorTopicsTest : public CoordinatorFixture {
 protected:
  static constexpr int64_t kLookUs = 11 * 1000 * 1000;  // new partitions are found within this time

  CoordinatorTopicsTest() {
    job_.mutable_data_loader()->set_replicas(2);
    job_.mutable_data()->clear_format();
    kafka()->add_brokers("b:9092");
    kafka()->add_topics("clicks");
    cluster_.partitions[{"clicks", 0}] = {0, 100, {}};
    cluster_.partitions[{"clicks", 1}] = {0, 50, {}};
    options_.topics = &cluster_;
    options_.topic_executor = &topic_executor_;
    options_.warn = [this](const std::string& warning) { warnings_.push_back(warning); };
    BeginAnew();
  }
  // Destroys the engine first, because it refers to the members above.
  ~CoordinatorTopicsTest() override { engine_.reset(); }

  KafkaConfig* kafka() { return job_.mutable_data()->mutable_kafka(); }
  // Begins another run with the current job_.
  void BeginAnew() {
    engine_.reset();
    EXPECT_TRUE(disk_.Remove(kRun).ok() && disk_.CreateFolders(kRun).ok());
    Begin();
  }

  FixSplitsRequest FixOf(uint32_t loader) const {
    FixSplitsRequest request;
    *request.mutable_envelope() = ThisRun();
    request.set_loader(loader);
    request.mutable_splits()->add_streams();
    return request;
  }
  void RunAll() {
    while (disk_executor_.num_ready() + topic_executor_.num_ready() > 0) {
      disk_executor_.RunReady();
      topic_executor_.RunReady();
    }
  }
  // The topics of the train stream, as loader `loader` receives them.
  absl::StatusOr<StreamTopics> Fix(uint32_t loader);
  static std::vector<uint64_t> StartsOf(const absl::StatusOr<StreamTopics>& topics) {
    EXPECT_TRUE(topics.ok()) << topics.status();
    std::vector<uint64_t> starts;
    if (!topics.ok()) return starts;
    for (const auto& partition : topics->partitions()) starts.push_back(partition.start());
    return starts;
  }
  // Advances the run until all members are ready and the topics are fixed.
  void StartTopics();
  // Sends heartbeats of all members for `us` microseconds, and runs what becomes due meanwhile.
  void BeatFor(int64_t us);
  void Settle() {
    executor_.RunReady();
    RunAll();
  }
  // The partitions that the answer to a heartbeat of `loader` hands out, as "SPLIT->LOADER", if the
  // loader already knows `known` partitions.
  std::vector<std::string> DealtTo(int loader, uint32_t known);
  std::vector<StreamTopics> TopicsEntries();
  // From now on nothing can be appended to the log.
  void FillDisk();
  // Writes a cut of this generation that has consumed [0, `consumed`) of each partition, and more
  // after a gap.
  void MakeTopicCut(uint64_t cut, const std::vector<uint64_t>& consumed, uint64_t order = 0);
  // The offsets of all commits, one after another.
  std::vector<std::vector<int64_t>> Commits() const {
    std::vector<std::vector<int64_t>> commits;
    for (const auto& commit : cluster_.commits) {
      std::vector<int64_t>& offsets = commits.emplace_back();
      for (const KafkaPlace& place : commit) offsets.push_back(place.offset);
    }
    return commits;
  }

  FakeTopicSource cluster_;
  ManualExecutor topic_executor_;
  std::vector<std::string> warnings_;
};

}  // namespace satrap

#endif  // SATRAP_DEPLOY_COORDINATOR_TESTING_COORDINATOR_TOPICS_FIXTURE_H_

#include "deploy/cli/tools/streams_of_run.h"

#include "common/checkpoint/ledger/ledger.h"
#include "common/checkpoint/manifest.h"
#include "common/checkpoint/run_log.h"
#include "deploy/launcher/testing/logged_run.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class StreamsOfRunTest : public LoggedRunTest {
 protected:
  void BeginRun() {
    Append("generation { generation: 1 job {} }");
    Append(
        "topics { topics { stream: 0 cluster_id: 'C'"
        "  partitions { topic: 'a' partition: 0 start: 100 }"
        "  partitions { topic: 'a' partition: 1 start: 0 end: 70 } }"
        " topics { stream: 2 cluster_id: 'C' partitions { topic: 'b' partition: 0 end: 9 } } }");
  }
  std::map<Stream, StreamOfRun> Read() {
    auto streams = StreamsOfRun(dir_);
    EXPECT_TRUE(streams.ok()) << streams.status();
    return *std::move(streams);
  }
};

TEST_F(StreamsOfRunTest, ARunOfFilesHasNone) {
  Append("generation { generation: 1 job {} }");
  EXPECT_THAT(Read(), IsEmpty());
}

TEST_F(StreamsOfRunTest, WithoutACutNothingIsConsumed) {
  BeginRun();
  auto streams = Read();
  ASSERT_EQ(streams.size(), 2u);
  EXPECT_THAT(streams[TRAIN_STREAM].in_cut, ElementsAre(100, 0));
  EXPECT_EQ(streams[TRAIN_STREAM].topics.partitions_size(), 2);
  EXPECT_EQ(streams[TEST_STREAM].topics.partitions(0).end(), 9u);
  EXPECT_THAT(streams[TEST_STREAM].in_cut, IsEmpty()) << "no cut holds what is only scored";
}

TEST_F(StreamsOfRunTest, OffsetsAreThoseOfTheLedgerOfTheNewestCut) {
  BeginRun();
  Append("cut { cut: 'cut_0001_000001' generation: 1 step: 5 }");
  Append("topics { topics { stream: 0 cluster_id: 'C' partitions { topic: 'a' partition: 2 } } }");
  Ledger ledger;
  ProvenanceRange range;
  range.set_split(0);
  range.set_block(100);
  range.set_block_end(130);
  range.set_to(30);
  range.set_records(30);
  range.set_last_offset(129);
  range.set_last_hash(1);
  ASSERT_EQ(ledger.Add(0, range), absl::OkStatus());
  WriteCut(dir_, 1, 1, 5);
  const std::string folder = FolderOfCut(dir_, "cut_0001_000001");
  auto manifest = ReadManifest(folder);
  ASSERT_TRUE(manifest.ok()) << manifest.status();
  *manifest->mutable_ledger() = ledger.ToState();
  ASSERT_TRUE(WriteManifest(folder, *manifest).ok());
  EXPECT_THAT(Read()[TRAIN_STREAM].in_cut, ElementsAre(130, 0, 0));
}

TEST_F(StreamsOfRunTest, ACutThatIsNotThereIsAnError) {
  BeginRun();
  Append("cut { cut: 'cut_0001_000001' generation: 1 step: 5 }");
  EXPECT_FALSE(StreamsOfRun(dir_).ok());
}

}  // namespace
}  // namespace satrap

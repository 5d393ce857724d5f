#include "data_loader/kafka/topic_anchors.h"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <future>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/file/testing/memory_file_system.h"
#include "common/testing/temp_dir.h"

namespace satrap {
namespace {

class TopicAnchorsTest : public testing::Test {
 protected:
  std::shared_ptr<TopicAnchors> Open(int loader = 0) {
    auto anchors = TopicAnchors::Open(dir_.path(), loader, Logger());
    EXPECT_TRUE(anchors.ok()) << anchors.status();
    return *std::move(anchors);
  }
  static PartitionAnchor Message(int64_t offset, uint64_t hash) {
    PartitionAnchor anchor;
    anchor.message = MessageMark{offset, hash};
    return anchor;
  }
  static int64_t OffsetOf(const TopicAnchors& anchors, const KafkaPartition& partition) {
    const auto anchor = anchors.Of(partition);
    return anchor.has_value() && anchor->message.has_value() ? anchor->message->offset : -1;
  }

  const KafkaPartition clicks_{"clicks", 3};
  const KafkaPartition views_{"views", 0};
  TempDir dir_;
};

TEST_F(TopicAnchorsTest, ALaterGenerationKnowsWhatAnEarlierOneHasKept) {
  EXPECT_FALSE(Open()->Of(clicks_).has_value());
  PartitionAnchor expired;
  expired.earliest = 50;
  Open()->Keep({{clicks_, Message(70, 0x1234)}, {views_, expired}});
  const auto after = Open();
  ASSERT_TRUE(after->Of(clicks_).has_value());
  EXPECT_EQ(after->Of(clicks_)->message->hash, 0x1234u);
  EXPECT_EQ(after->Of(clicks_)->earliest, -1);
  EXPECT_FALSE(after->Of(views_)->message.has_value());
  EXPECT_EQ(after->Of(views_)->earliest, 50);
}

TEST_F(TopicAnchorsTest, AnotherLoaderMayReadThePartitionInTheNextGeneration) {
  Open(0)->Keep({{clicks_, Message(70, 1)}});
  Open(1)->Keep({{clicks_, Message(90, 2)}, {views_, Message(5, 3)}});
  for (const int loader : {0, 1, 2}) {
    const auto anchors = Open(loader);
    EXPECT_EQ(OffsetOf(*anchors, clicks_), 90) << "of two the later one, which is there longer";
    EXPECT_EQ(OffsetOf(*anchors, views_), 5);
  }
}

TEST_F(TopicAnchorsTest, TheAnchorsOfSeveralReadersOfALoaderAreInOneFile) {
  const auto anchors = Open();
  anchors->Keep({{clicks_, Message(70, 1)}});
  anchors->Keep({{views_, Message(5, 3)}});
  anchors->Keep({{clicks_, Message(71, 2)}});
  EXPECT_EQ(OffsetOf(*Open(), clicks_), 71);
  EXPECT_EQ(OffsetOf(*Open(), views_), 5);
}

// While one thread writes the anchors to a disk that hangs, another thread that opens partitions
// must still be able to read them.
TEST_F(TopicAnchorsTest, NobodyWaitsForADiskThatHangsToHearOfAnAnchor) {
  MemoryFileSystem disk;
  ASSERT_TRUE(disk.CreateFolders("/runs/a").ok());
  const auto anchors = TopicAnchors::Open("/runs/a", 0, Logger(), &disk);
  ASSERT_TRUE(anchors.ok()) << anchors.status();
  std::promise<void> hangs, goes_on;
  disk.SetHook([&, hung = false](const std::string& operation) mutable {
    if (operation.rfind("sync ", 0) == 0 && !std::exchange(hung, true)) {
      hangs.set_value();
      goes_on.get_future().wait();
    }
    return absl::OkStatus();
  });
  std::thread guard([&] { (*anchors)->Keep({{clicks_, Message(70, 1)}}); });
  hangs.get_future().wait();
  std::future<int64_t> offset =
      std::async(std::launch::async, [&] { return OffsetOf(**anchors, clicks_); });
  EXPECT_EQ(offset.wait_for(std::chrono::seconds(60)), std::future_status::ready);
  goes_on.set_value();
  guard.join();
  EXPECT_EQ(offset.get(), 70);
}

TEST_F(TopicAnchorsTest, AFileThatCannotBeReplacedStaysAsItIsAndNoDraftIsLeft) {
  MemoryFileSystem disk;
  ASSERT_TRUE(disk.CreateFolders("/runs/a").ok());
  const auto anchors = TopicAnchors::Open("/runs/a", 0, Logger(), &disk);
  ASSERT_TRUE(anchors.ok()) << anchors.status();
  // What a loader that was killed has left.
  disk.Put("/runs/a/topic_anchors/loader-0.partial", "anchors {");
  (*anchors)->Keep({{clicks_, Message(70, 1)}});
  const std::string kept = disk.ContentOf("/runs/a/topic_anchors/loader-0");
  for (const std::string failing : {"append ", "sync ", "rename "}) {
    disk.SetHook([&](const std::string& operation) {
      return operation.rfind(failing, 0) == 0 ? absl::ResourceExhaustedError("no space left")
                                              : absl::OkStatus();
    });
    (*anchors)->Keep({{clicks_, Message(71, failing.size())}});
    EXPECT_EQ(disk.List("/runs/a/topic_anchors").value(), std::vector<std::string>{"loader-0"})
        << failing;
    EXPECT_EQ(disk.ContentOf("/runs/a/topic_anchors/loader-0"), kept) << failing;
  }
}

TEST_F(TopicAnchorsTest, WhatALoaderDoesNotReadNowStaysInItsFile) {
  Open()->Keep({{clicks_, Message(70, 1)}, {views_, Message(5, 3)}});
  // In this generation loader 0 does not read `clicks_`. Perhaps another loader reads it but has
  // not opened it yet, or no loader reads it.
  Open()->Keep({{views_, Message(6, 4)}});
  EXPECT_EQ(OffsetOf(*Open(), clicks_), 70);
  EXPECT_EQ(OffsetOf(*Open(1), clicks_), 70);
  EXPECT_EQ(OffsetOf(*Open(), views_), 6);
}

// If the file were ignored, the loss of a new topic's first messages might not be noticed.
TEST_F(TopicAnchorsTest, ADamagedFileIsNamedWithWhatToDo) {
  Open()->Keep({{clicks_, Message(70, 1)}});
  dir_.Write("topic_anchors/loader-0", "anchors { topic: 'clicks' }\n# crc32c 00000000\n");
  for (const int loader : {0, 1}) {
    const auto anchors = TopicAnchors::Open(dir_.path(), loader, Logger());
    EXPECT_EQ(anchors.status().code(), absl::StatusCode::kDataLoss) << anchors.status();
    const std::string message(anchors.status().message());
    EXPECT_EQ(message.find(dir_.path() + "/topic_anchors/loader-0 is damaged"), 0u) << message;
    EXPECT_NE(message.find("move the file to another folder"), std::string::npos) << message;
  }
}

TEST_F(TopicAnchorsTest, AFileThatWasPutAsideIsLeftOut) {
  Open()->Keep({{clicks_, Message(70, 1)}});
  std::filesystem::rename(dir_.path() + "/topic_anchors/loader-0",
                          dir_.path() + "/topic_anchors/loader-0.aside");
  dir_.Write("topic_anchors/loader-1.partial", "anchors {");
  EXPECT_FALSE(Open()->Of(clicks_).has_value());
}

}  // namespace
}  // namespace satrap

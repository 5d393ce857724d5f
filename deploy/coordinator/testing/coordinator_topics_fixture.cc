#include "deploy/coordinator/testing/coordinator_topics_fixture.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/checkpoint/manifest.h"

namespace satrap {

absl::StatusOr<StreamTopics> CoordinatorTopicsTest::Fix(uint32_t loader) {
  absl::StatusOr<FixSplitsAnswer> answer = absl::UnknownError("");
  Send(kFixSplits, FixOf(loader), &answer);
  RunAll();
  if (!answer.ok()) return answer.status();
  EXPECT_EQ(answer->splits().topics_size(), 1);
  return answer->splits().topics(0);
}

void CoordinatorTopicsTest::StartTopics() {
  ASSERT_TRUE(Fix(0).ok());
  ASSERT_TRUE(Fix(1).ok());
  RegisterAll();
  ASSERT_TRUE(Register(DATA_LOADER, 1).ok());
  BeatFor(0);
  ASSERT_EQ(state(), RUNNING);
  Settle();
}

void CoordinatorTopicsTest::BeatFor(int64_t us) {
  do {
    BeatAll();
    EXPECT_TRUE(Heartbeat(DATA_LOADER, 1).ok());
    const int64_t part_us = std::min<int64_t>(us, 1000 * 1000);
    executor_.AdvanceBy(part_us);
    RunAll();
    us -= part_us;
  } while (us > 0);
}

std::vector<std::string> CoordinatorTopicsTest::DealtTo(int loader, uint32_t known) {
  HeartbeatRequest request = HeartbeatOf(DATA_LOADER, loader);
  request.set_known_partitions(known);
  const auto answer = Call<HeartbeatAnswer>(kHeartbeat, request);
  std::vector<std::string> dealt;
  for (const DealtPartition& each : answer->dealt()) {
    dealt.push_back(absl::StrCat(each.split(), "->", each.loader()));
  }
  return dealt;
}

std::vector<StreamTopics> CoordinatorTopicsTest::TopicsEntries() {
  std::vector<StreamTopics> entries;
  const RunLog log = Log();
  for (const RunLogEntry& entry : log.entries()) {
    if (entry.has_topics()) entries.push_back(entry.topics().topics(0));
  }
  return entries;
}

void CoordinatorTopicsTest::FillDisk() {
  disk_.SetHook([](const std::string& operation) {
    return operation.rfind("append /runs/small/log", 0) == 0
               ? absl::ResourceExhaustedError("no space left on device")
               : absl::OkStatus();
  });
}

void CoordinatorTopicsTest::MakeTopicCut(uint64_t cut, const std::vector<uint64_t>& consumed,
                                         uint64_t order) {
  MakeCut(cut, order);
  auto manifest = ReadManifest(Folder(cut), &disk_);
  ASSERT_TRUE(manifest.ok()) << manifest.status();
  manifest->clear_ledger();
  EpochLedger* epoch = manifest->mutable_ledger()->add_epochs();
  for (size_t j = 0; j < consumed.size(); ++j) {
    SplitLedger* split = epoch->add_splits();
    split->set_split(static_cast<uint32_t>(j));
    if (consumed[j] > 0) {
      split->add_done_blocks(0);
      split->add_done_blocks(consumed[j] - 1);
    }
    split->add_done_blocks(consumed[j] + 5);
    split->add_done_blocks(consumed[j] + 9);
    split->set_last_offset(consumed[j] + 9);
    split->set_rows(consumed[j] + 5);
    epoch->set_rows(epoch->rows() + split->rows());
  }
  ASSERT_TRUE(WriteManifest(Folder(cut), *manifest, &disk_).ok());
}

}  // namespace satrap

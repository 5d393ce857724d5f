#include "deploy/coordinator/ending/lost_work.h"

#include <string>
#include <vector>

#include "common/config/text_format.h"
#include "common/file/testing/memory_file_system.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

constexpr char kRun[] = "/runs/a";

// NothingWasLostBefore for a run whose log has these entries.
bool NothingLost(const std::vector<std::string>& entries) {
  MemoryFileSystem disk;
  EXPECT_TRUE(disk.CreateFolders(kRun).ok());
  auto log = RunLog::Open(kRun, &disk, 1);
  EXPECT_TRUE(log.ok()) << log.status();
  for (const std::string& text : entries) {
    RunLogEntry entry;
    EXPECT_TRUE(ParseText(text, "entry", &entry).ok()) << text;
    EXPECT_TRUE(log->Append(entry).ok());
  }
  return NothingWasLostBefore(*log);
}

std::string Generation(int number, const std::string& job, const std::string& began,
                       const std::string& cut, const std::string& run_dir = "") {
  return "generation { generation: " + std::to_string(number) + " began: " + began + " cut: '" +
         cut + "' job { name: '" + job + "' run_dir: '" + run_dir + "' } }";
}

const char kLast[] = "cut { generation: 1 cut: 'cut_0001_000001' last: true }";
const char kLeft[] = "cut { generation: 1 cut: 'cut_0001_000001' leave: true }";
const char kOther[] = "cut { generation: 1 cut: 'cut_0001_000001' }";
const char kCut[] = "cut_0001_000001";

TEST(NothingWasLostBefore, HoldsForARunThatBeginsAndAfterALastCut) {
  const std::string first = Generation(1, "a", "BEGAN_START", "");
  EXPECT_TRUE(NothingLost({first}));
  EXPECT_TRUE(NothingLost({first, kLast, Generation(2, "a", "BEGAN_RESUME", kCut)}));
  EXPECT_TRUE(NothingLost({first, kLeft, Generation(2, "a", "BEGAN_RESUME", kCut)}));
  EXPECT_TRUE(NothingLost({first, kLeft, Generation(2, "b", "BEGAN_SCALE_ANNOUNCED", kCut),
                           Generation(3, "b", "BEGAN_SCALED", kCut)}));
  EXPECT_FALSE(NothingLost({first, kOther, Generation(2, "a", "BEGAN_RESUME", kCut)}));
  EXPECT_FALSE(NothingLost({first, kLast, Generation(2, "a", "BEGAN_RESUME", "cut_0001_000000")}))
      << "it begins from another one";
  EXPECT_FALSE(NothingLost({first, Generation(2, "a", "BEGAN_RESTART", "")}));
}

TEST(NothingWasLostBefore, ADroppedJobHasTrainedNothing) {
  const std::string first = Generation(1, "a", "BEGAN_START", "");
  const std::string dropped = "dropped { generation: 2 change: 'name' }";
  const std::string again = Generation(5, "a", "BEGAN_RESTART", kCut);
  const std::string resumed = Generation(2, "b", "BEGAN_RESUME", kCut);
  EXPECT_TRUE(NothingLost({first, kLast, resumed, dropped, again}));
  EXPECT_TRUE(NothingLost({first, kLeft, Generation(2, "b", "BEGAN_SCALE_ANNOUNCED", kCut),
                           Generation(3, "b", "BEGAN_SCALED", kCut, "/moved"),
                           Generation(4, "b", "BEGAN_RESTART", kCut), dropped, again}))
      << "at its second attempt, after the run's folder was moved";
  EXPECT_TRUE(NothingLost({first, kLast, resumed, dropped, Generation(3, "c", "BEGAN_RESUME", kCut),
                           "dropped { generation: 3 change: 'name' }", again}))
      << "nor have two";
  const std::string topics = "topics {}";
  EXPECT_TRUE(NothingLost({first, topics, kLast, resumed, topics, dropped, again}))
      << "it has found its topics";
  EXPECT_TRUE(NothingLost({first, kLast, resumed, topics, Generation(3, "b", "BEGAN_RESTART", kCut),
                           topics, "dropped { generation: 3 change: 'name' }", again}));
  EXPECT_FALSE(NothingLost({first, kOther, topics, resumed, dropped, again}))
      << "training went on after the cut";
  EXPECT_FALSE(NothingLost({first, kLast, Generation(2, "a", "BEGAN_RESUME", kCut), topics,
                            Generation(3, "b", "BEGAN_RESUME", kCut),
                            "dropped { generation: 3 change: 'name' }", again}));
  EXPECT_FALSE(NothingLost({first, kOther, resumed, dropped, again}));
  EXPECT_FALSE(NothingLost({first, kLast, Generation(2, "a", "BEGAN_RESUME", kCut),
                            Generation(3, "b", "BEGAN_RESUME", kCut), dropped, again}))
      << "the second generation may have trained";
  EXPECT_FALSE(NothingLost(
      {first, kLast, resumed, dropped, Generation(3, "a", "BEGAN_RESTART", kCut), again}));
  EXPECT_FALSE(NothingLost({dropped, again})) << "a log that is no run's";
  const std::string without_job =
      "generation { generation: 3 began: BEGAN_RESUME cut: '" + std::string(kCut) + "' }";
  EXPECT_FALSE(NothingLost(
      {first, kLast, without_job, without_job, "dropped { generation: 4 change: 'name' }", again}))
      << "a compacted log does not say which of the two had the dropped job";
}

std::string LostText(const TrainedSince& trained) {
  Ending how;
  how.set_text("stopped");
  AddLostWork(trained, &how);
  EXPECT_EQ(how.loss() == Ending::STEPS, how.lost_steps() > 0);
  return how.text();
}

TEST(AddLostWork, CountsFromTheNewestCut) {
  TrainedSince trained;
  EXPECT_EQ(
      LostText(trained),
      "stopped; no cut was committed, so the run starts again from the beginning, and at most the "
      "work since is lost");
  trained.step = 1;
  EXPECT_EQ(
      LostText(trained),
      "stopped; no cut was committed, so the run starts again from the beginning, and about 1 "
      "step since is lost");
  trained.start_cut = "cut_0001_000002";
  trained.start_step = 20;
  EXPECT_EQ(
      LostText(trained),
      "stopped; the run continues from cut_0001_000002 at step 20, and at most the work since "
      "is lost")
      << "rank 0 has told of no step after it";
  trained.step = 27;
  EXPECT_EQ(
      LostText(trained),
      "stopped; the run continues from cut_0001_000002 at step 20, and about 7 steps since are "
      "lost");
  trained.own_cut = CutEntry();
  trained.own_cut->set_cut("cut_0002_000001");
  trained.own_cut->set_step(25);
  EXPECT_EQ(
      LostText(trained),
      "stopped; the run continues from cut_0002_000001 at step 25, and about 2 steps since are "
      "lost");
  Ending how;
  AddLostWork(trained, &how);
  EXPECT_EQ(how.lost_steps(), 2u);
}

}  // namespace
}  // namespace satrap

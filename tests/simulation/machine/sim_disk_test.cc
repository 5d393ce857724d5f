#include "tests/simulation/machine/sim_disk.h"

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/checkpoint/run_log.h"
#include "gtest/gtest.h"
#include "tests/simulation/machine/sim_loop.h"

namespace satrap::simulation {
namespace {

constexpr uint64_t kSeeds = 300;

void Write(FileSystem* disk, const std::string& path, const std::string& bytes, bool sync) {
  auto file = disk->Create(path);
  CHECK_OK(file.status());
  CHECK_OK((*file)->Append(bytes));
  if (sync) CHECK_OK((*file)->Sync());
}

std::string ContentOf(FileSystem* disk, const std::string& path) {
  const auto content = ReadFile(path, disk);
  return content.ok() ? *content : std::string(absl::StatusCodeToString(content.status().code()));
}

// Returns all contents that /run/file has, over many trials, after `write` and a loss of power.
std::set<std::string> LeftAfterLosses(const std::function<void(FileSystem*)>& write) {
  std::set<std::string> left;
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    SimDisk disk(seed);
    const std::unique_ptr<FileSystem> mount = disk.Mount();
    CHECK_OK(mount->CreateFolders("/run"));
    CHECK_OK(mount->SyncFolder("/"));
    write(mount.get());
    disk.LosePower();
    left.insert(ContentOf(mount.get(), "/run/file"));
  }
  return left;
}

TEST(SimDisk, KeepsWhatWasSynced) {
  EXPECT_EQ(LeftAfterLosses([](FileSystem* disk) {
              Write(disk, "/run/file", "content", /*sync=*/true);
              CHECK_OK(disk->SyncFolder("/run"));
            }),
            std::set<std::string>{"content"});
}

TEST(SimDisk, LosesANameThatWasNotSyncedOrKeepsIt) {
  EXPECT_EQ(
      LeftAfterLosses([](FileSystem* disk) { Write(disk, "/run/file", "content", /*sync=*/true); }),
      (std::set<std::string>{"content", "NOT_FOUND"}));
}

TEST(SimDisk, LosesCutsOrTearsBytesThatWereNotSynced) {
  const std::string bytes(100, 'x');
  const std::set<std::string> left = LeftAfterLosses([&](FileSystem* disk) {
    Write(disk, "/run/file", bytes, /*sync=*/false);
    CHECK_OK(disk->SyncFolder("/run"));
  });
  EXPECT_TRUE(left.count("") == 1 && left.count(bytes) == 1);
  EXPECT_EQ(left.count("NOT_FOUND"), 0u);
  bool cut = false, filled = false, torn = false;
  for (const std::string& content : left) {
    cut = cut || (content.size() < 100 && absl::StartsWith(bytes, content) && !content.empty());
    filled = filled || (content.size() == 100 && content[0] == 'x' && content[99] == '\0');
    torn = torn || (content.size() == 100 && content[0] == '\0' && content[99] == 'x');
  }
  EXPECT_TRUE(cut && filled && torn) << cut << filled << torn;
}

TEST(SimDisk, NeverTearsBytesThatWereSyncedBefore) {
  for (const std::string& content : LeftAfterLosses([](FileSystem* disk) {
         auto file = disk->Create("/run/file");
         CHECK_OK((*file)->Append("synced"));
         CHECK_OK((*file)->Sync());
         CHECK_OK((*file)->Append(" and not"));
         CHECK_OK(disk->SyncFolder("/run"));
       })) {
    EXPECT_TRUE(absl::StartsWith(content, "synced")) << content;
  }
}

TEST(SimDisk, MayKeepTheOldContentOfAFileThatWasBegunAnew) {
  const std::set<std::string> left = LeftAfterLosses([](FileSystem* disk) {
    Write(disk, "/run/file", "old", /*sync=*/true);
    CHECK_OK(disk->SyncFolder("/run"));
    Write(disk, "/run/file", "new", /*sync=*/false);
  });
  EXPECT_TRUE(left.count("old") == 1 && left.count("new") == 1 && left.count("") == 1);
}

TEST(SimDisk, RenamesAsAWholeOrNotAtAll) {
  EXPECT_EQ(LeftAfterLosses([](FileSystem* disk) {
              Write(disk, "/run/file", "old", /*sync=*/true);
              Write(disk, "/run/file.partial", "new", /*sync=*/true);
              CHECK_OK(disk->SyncFolder("/run"));
              CHECK_OK(disk->Rename("/run/file.partial", "/run/file"));
            }),
            (std::set<std::string>{"old", "new"}));
}

TEST(SimDisk, KeepsALaterChangeWithoutAnEarlierOne) {
  bool first_alone = false, second_alone = false;
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    SimDisk disk(seed);
    const std::unique_ptr<FileSystem> mount = disk.Mount();
    Write(mount.get(), "/first", "1", /*sync=*/true);
    Write(mount.get(), "/second", "2", /*sync=*/true);
    disk.LosePower();
    const bool first = ContentOf(mount.get(), "/first") == "1";
    const bool second = ContentOf(mount.get(), "/second") == "2";
    first_alone = first_alone || (first && !second);
    second_alone = second_alone || (second && !first);
  }
  EXPECT_TRUE(first_alone && second_alone);
}

TEST(SimDisk, LosesAFolderWithAllThatWasSyncedInIt) {
  std::set<std::string> left;
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    SimDisk disk(seed);
    const std::unique_ptr<FileSystem> mount = disk.Mount();
    ASSERT_TRUE(mount->CreateFolders("/folder").ok());
    Write(mount.get(), "/folder/file", "content", /*sync=*/true);
    ASSERT_TRUE(mount->SyncFolder("/folder").ok());
    disk.LosePower();
    left.insert(ContentOf(mount.get(), "/folder/file"));
  }
  EXPECT_EQ(left, (std::set<std::string>{"content", "NOT_FOUND"}));
}

TEST(SimDisk, BringsBackAnUnsyncedRemove) {
  EXPECT_EQ(LeftAfterLosses([](FileSystem* disk) {
              Write(disk, "/run/file", "content", /*sync=*/true);
              CHECK_OK(disk->SyncFolder("/run"));
              CHECK_OK(disk->Remove("/run"));
            }),
            (std::set<std::string>{"content", "NOT_FOUND"}));
}

TEST(SimDisk, LinksOnceAndFollowsLinks) {
  SimDisk disk(1);
  const std::unique_ptr<FileSystem> mount = disk.Mount();
  ASSERT_TRUE(mount->CreateFolders("/a/b").ok());
  Write(mount.get(), "/a/b/file", "content", /*sync=*/false);
  EXPECT_TRUE(mount->HardLink("/a/b/file", "/a/other").ok());
  EXPECT_TRUE(absl::IsAlreadyExists(mount->HardLink("/a/b/file", "/a/other")));
  EXPECT_TRUE(mount->Remove("/a/b/file").ok());
  EXPECT_EQ(ContentOf(mount.get(), "/a/other"), "content");
  ASSERT_TRUE(mount->CreateLink("b", "/a/latest").ok());
  Write(mount.get(), "/a/latest/file", "new", /*sync=*/false);
  EXPECT_EQ(ContentOf(mount.get(), "/a/b/file"), "new");
  EXPECT_TRUE(mount->Remove("/a/latest").ok()) << "removes the link";
  EXPECT_EQ(ContentOf(mount.get(), "/a/b/file"), "new");
  EXPECT_TRUE(absl::IsNotFound(mount->Open("/a/latest/file").status()));
  const auto names = mount->List("/a");
  ASSERT_TRUE(names.ok());
  EXPECT_EQ(names->size(), 2u);
}

TEST(SimDisk, DoesNothingForADeadProcess) {
  SimLoop loop(1);
  SimProcess process(&loop, 1, "writer");
  SimDisk disk(1);
  const std::unique_ptr<FileSystem> dying = disk.Mount(&process);
  auto file = dying->Create("/file");
  ASSERT_TRUE(file.ok());
  ASSERT_TRUE((*file)->Append("before").ok());
  process.Kill();
  EXPECT_TRUE(absl::IsCancelled((*file)->Append(" after")));
  EXPECT_TRUE(absl::IsCancelled((*file)->Sync()));
  EXPECT_TRUE(absl::IsCancelled(dying->Rename("/file", "/other")));
  EXPECT_TRUE(absl::IsCancelled(dying->Create("/file").status()));
  const std::unique_ptr<FileSystem> living = disk.Mount();
  EXPECT_EQ(ContentOf(living.get(), "/file"), "before") << "a death alone loses nothing";
}

TEST(SimDisk, FailsTheOperationThatItIsToldTo) {
  SimDisk disk(1);
  const std::unique_ptr<FileSystem> mount = disk.Mount();
  auto file = mount->Create("/file");
  disk.FailNthWrite(2, absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE((*file)->Append("a").ok());
  EXPECT_TRUE(absl::IsResourceExhausted((*file)->Append("b")));
  EXPECT_TRUE(mount->CreateFolders("/folder").ok());
  disk.SetFaults({0, /*fail_read=*/1});
  EXPECT_TRUE(absl::IsDataLoss(mount->Open("/file").status()));
  disk.SetFaults({/*fail_write=*/1, 0});
  EXPECT_FALSE(mount->HardLink("/file", "/other").ok());
  disk.SetFaults({});
  EXPECT_TRUE(absl::IsNotFound(mount->Open("/other").status())) << "a failed link changes nothing";
}

TEST(SimDisk, MakesNothingDurableAfterAFailedSync) {
  const std::string bytes(200, 'x');
  int whole = 0;
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    SimDisk disk(seed);
    const std::unique_ptr<FileSystem> mount = disk.Mount();
    auto file = mount->Create("/file");
    ASSERT_TRUE(mount->SyncFolder("/").ok());
    ASSERT_TRUE((*file)->Append(bytes).ok());
    disk.FailNthWrite(1, absl::StatusCode::kDataLoss);
    EXPECT_TRUE(absl::IsDataLoss((*file)->Sync()));
    EXPECT_TRUE((*file)->Sync().ok()) << "the second one lies";
    disk.LosePower();
    whole += ContentOf(mount.get(), "/file") == bytes ? 1 : 0;
  }
  EXPECT_GT(whole, 0);
  EXPECT_LT(whole, static_cast<int>(kSeeds) / 2);
}

// The log of a run on this disk: entries that were acknowledged stay, in order, and neither deaths
// nor losses of power at any operation leave a log that cannot be read.
TEST(SimDisk, KeepsTheAcknowledgedEntriesOfARunLog) {
  for (uint64_t seed = 1; seed <= 5000; ++seed) {
    SimDisk disk(seed);
    SplitMix64 random(seed);
    ASSERT_TRUE(disk.Mount()->CreateFolders("/run").ok());
    ASSERT_TRUE(disk.Mount()->SyncFolder("/").ok());
    std::vector<uint64_t> acknowledged;
    for (uint64_t life = 1; life <= 8; ++life) {
      const std::unique_ptr<FileSystem> mount = disk.Mount();
      auto log = RunLog::Open("/run", mount.get(), life);
      ASSERT_TRUE(log.ok()) << "seed " << seed << ": " << log.status();
      std::vector<uint64_t> entries;
      for (const RunLogEntry& entry : log->entries()) entries.push_back(entry.unix_ms());
      for (size_t i = 0; i < acknowledged.size(); ++i) {
        ASSERT_TRUE(i < entries.size() && entries[i] == acknowledged[i])
            << "seed " << seed << ": entry " << i + 1 << " of " << acknowledged.size();
      }
      // One of the next writes fails, and the coordinator of this life then stops.
      disk.FailNthWrite(1 + static_cast<int64_t>(random.Below(8)), absl::StatusCode::kDataLoss);
      for (uint64_t n = 1; n <= 3; ++n) {
        RunLogEntry entry;
        entry.set_unix_ms(life * 10 + n);
        entry.mutable_generation()->set_generation(life);
        if (!log->Append(entry).ok()) break;
        entries.push_back(entry.unix_ms());
        acknowledged = entries;  // this entry follows from all before it
      }
      if (random.Below(2) == 0) disk.LosePower();
    }
  }
}

TEST(SimDisk, FailsTheOperationThatItIsTold) {
  SimLoop loop(1);
  SimProcess process(&loop, 1, "a process");
  SimDisk disk(1);
  const auto mount = disk.Mount(&process), of_nobody = disk.Mount();
  ASSERT_TRUE(mount->CreateFolders("/run/log").ok());
  disk.FailNthWrite(1, absl::StatusCode::kResourceExhausted, "/log");
  EXPECT_TRUE(mount->SyncFolder("/run").ok());
  EXPECT_TRUE(absl::IsResourceExhausted(mount->SyncFolder("/run/log")));
  EXPECT_TRUE(mount->SyncFolder("/run/log").ok()) << "one alone fails";
  disk.FailNthRead(2);
  EXPECT_TRUE(of_nobody->List("/run").ok());
  EXPECT_TRUE(mount->List("/run").ok());
  EXPECT_TRUE(of_nobody->List("/run").ok());
  EXPECT_TRUE(absl::IsDataLoss(mount->List("/run").status()));
  EXPECT_TRUE(mount->List("/run").ok()) << "one alone fails";
}

}  // namespace
}  // namespace satrap::simulation

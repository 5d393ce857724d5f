#include "embedding_ps/checkpoint/cut_writer.h"

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/base/check.h"
#include "common/checkpoint/manifest.h"
#include "common/file/testing/failing_file_system.h"
#include "common/numeric/hash.h"
#include "common/numeric/random.h"
#include "common/testing/temp_dir.h"
#include "common/thread/thread_pool_executor.h"
#include "embedding_ps/checkpoint/load_tables.h"
#include "embedding_ps/checkpoint/testing/saved_tables_fixture.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

TableConfig Config(uint32_t id, int dim) {
  TableConfig config;
  config.set_name(id == 1 ? "one" : "two");
  config.set_id(id);
  SegmentConfig* segment = config.add_segments();
  segment->set_name("embedding");
  segment->set_dim(dim);
  segment->mutable_initializer()->mutable_uniform()->set_low(-1);
  segment->mutable_initializer()->mutable_uniform()->set_high(1);
  segment->mutable_optimizer()->mutable_adagrad();
  return config;
}

// Two tables of different widths.
struct Tables {
  explicit Tables(const EmbeddingTable::Options& options) {
    one = *EmbeddingTable::Create(Config(1, 1), options);
    two = *EmbeddingTable::Create(Config(2, 3), options);
  }
  std::vector<EmbeddingTable*> all() const { return {one.get(), two.get()}; }
  std::vector<TableContent> Content() const { return {ContentOf(*one), ContentOf(*two)}; }
  void UpdateSome(SplitMix64* random, uint64_t num_ids) const {
    for (EmbeddingTable* table : all()) {
      std::map<uint64_t, float> gradients;
      for (uint64_t i = random->Below(40); i > 0; --i) {
        const uint64_t key = KeyOf(random->Below(num_ids), 3);
        if (table->first_partition() <= PartitionOf(key) &&
            PartitionOf(key) <= table->last_partition()) {
          gradients[key] = static_cast<float>(random->Below(9)) - 4;
        }
      }
      std::vector<uint64_t> keys;
      std::vector<float> values;
      for (const auto& [key, gradient] : gradients) {
        keys.push_back(key);
        values.insert(values.end(), table->layout().num_values(), gradient);
      }
      table->Update(keys, values, {}, StepContext());
    }
  }

  std::unique_ptr<EmbeddingTable> one, two;
};

class CutWriterTest : public testing::Test {
 protected:
  std::string NewFolder() {
    const std::string folder = directory_ + "/" + std::to_string(folders_++);
    CHECK_OK(DiskFileSystem()->CreateFolders(folder));
    return folder;
  }
  // Loads the files of a cut into fresh tables and returns their content.
  static std::vector<TableContent> Load(const Tables& like, const std::vector<SavedFile>& files,
                                        const std::string& folder) {
    CHECK_OK(WriteManifest(folder, ManifestOf(like.all(), files)));
    EmbeddingTable::Options options;
    options.shards = 5;
    const Tables loaded(options);
    CHECK_OK(LoadNow(loaded.all(), folder).status);
    return loaded.Content();
  }

  const TempDir temp_;
  const std::string directory_ = temp_.path();
  int folders_ = 0;
};

// The tables change while the blocks are written, one after another. Some cuts are abandoned, by a
// call or because their budget is exhausted. The files of all others must have the content that the
// tables had at the mark.
TEST_F(CutWriterTest, TheFilesOfACutAreTheTablesAtTheMark) {
  FailingFileSystem unsynced(/*syncs=*/false);
  int written = 0, limited = 0;
  for (uint64_t seed = 0; seed < 40; ++seed) {
    SplitMix64 random(seed);
    const int num_ps = static_cast<int>(1 + random.Below(3));
    const Tables tables(OptionsOfPs(static_cast<int>(random.Below(num_ps)), num_ps,
                                    static_cast<int>(1 + random.Below(20))));
    const uint64_t num_ids = random.Below(2) == 0 ? 100 : 8000;
    for (uint64_t i = random.Below(300); i > 0; --i) tables.UpdateSome(&random, num_ids);
    ManualExecutor executor;
    std::shared_ptr<CutWriter> before;
    for (int cut = 0; cut < 3; ++cut) {
      const std::string folder = NewFolder();
      const std::vector<TableContent> wanted = tables.Content();
      CutWriter::Options options = WriterOf(tables.all(), folder, &executor, &unsynced);
      options.threads = static_cast<int>(1 + random.Below(4));
      if (random.Below(3) == 0) options.copy_bytes = static_cast<int64_t>(random.Below(2000));
      const auto writer = CutWriter::Mark(options);
      bool ended = false, abandoned = false;
      CutWriter::Result saved;
      writer->Start([&, folder](const CutWriter::Result& result) {
        ended = true;
        saved = result;
      });
      const uint64_t leave_after = random.Below(4) == 0 ? random.Below(20) : ~uint64_t{0};
      for (uint64_t steps = 0; !ended && steps < leave_after; ++steps) {
        tables.UpdateSome(&random, num_ids);
        executor.RunOne();
        if (random.Below(200) == 0) {
          writer->Abandon(absl::CancelledError("enough"));
          abandoned = true;
        }
      }
      if (!ended) {
        // The cut is abandoned before its tasks have ended.
        executor.RunOne();
        writer->Abandon(absl::CancelledError("enough"));
        executor.RunReady();
        ASSERT_TRUE(ended);
        abandoned = true;
      }
      if (saved.status.ok()) {
        ++written;
        ASSERT_EQ(Load(tables, saved.files, folder), wanted) << "seed " << seed;
      } else if (saved.copy_limit) {
        ++limited;
        EXPECT_NE(saved.status.message().find("copy_bytes"), absl::string_view::npos);
      } else {
        EXPECT_TRUE(abandoned) << saved.status;
      }
      EXPECT_TRUE(saved.status.ok() || saved.files.empty());
    }
  }
  EXPECT_GT(written, 30);
  EXPECT_GT(limited, 5);
}

TEST_F(CutWriterTest, AnyOperationThatFailsAbandonsTheCutNamingTheFileAndLeavesNoPartialFile) {
  EmbeddingTable::Options options;
  const Tables tables(options);
  SplitMix64 random(1);
  for (int i = 0; i < 5; ++i) tables.UpdateSome(&random, 10);
  FailingFileSystem none(/*syncs=*/false);
  ASSERT_TRUE(SaveNow(tables.all(), NewFolder(), &none).status.ok());
  const int operations = none.done;
  for (int fail = 1; fail <= operations; ++fail) {
    FailingFileSystem files(/*syncs=*/false);
    files.failing = fail;
    const std::string folder = NewFolder();
    const CutWriter::Result saved = SaveNow(tables.all(), folder, &files);
    ASSERT_FALSE(saved.status.ok()) << "operation " << fail;
    EXPECT_FALSE(saved.copy_limit);
    EXPECT_NE(saved.status.message().find(folder), absl::string_view::npos) << saved.status;
    EXPECT_TRUE(saved.files.empty());
    const std::vector<std::string> names = *DiskFileSystem()->List(folder);
    for (const std::string& name : names) {
      EXPECT_EQ(name.find("partial"), std::string::npos) << name;
    }
  }
  EXPECT_GT(operations, 50);
  // A cut after the failed ones is complete.
  const std::string folder = NewFolder();
  const std::vector<TableContent> wanted = tables.Content();
  EXPECT_EQ(Load(tables, SaveNow(tables.all(), folder).files, folder), wanted);
}

// A golden test: a job with few tables must still give the same files as in earlier builds.
TEST_F(CutWriterTest, AFewTablesHaveAFileForEachRange) {
  const Tables tables({});
  SplitMix64 random(1);
  for (int i = 0; i < 300; ++i) tables.UpdateSome(&random, 8000);
  const CutWriter::Result saved = SaveNow(tables.all(), NewFolder());
  CHECK_OK(saved.status);
  ASSERT_EQ(saved.files.size(), 32u);
  EXPECT_EQ(saved.files.front().name(), "table_1_partitions_0000_0255.rows");
  EXPECT_EQ(saved.files.back().name(), "table_2_partitions_3840_4095.rows");
}

TEST_F(CutWriterTest, AnotherMarkAbandonsTheCut) {
  const Tables tables({});
  SplitMix64 random(1);
  tables.UpdateSome(&random, 10);
  ManualExecutor executor;
  CutWriter::Result first, second;
  const std::string folder = NewFolder();
  const auto writer = CutWriter::Mark(WriterOf(tables.all(), NewFolder(), &executor));
  writer->Start([&](const CutWriter::Result& result) { first = result; });
  CutWriter::Mark(WriterOf(tables.all(), folder, &executor))
      ->Start([&](const CutWriter::Result& result) { second = result; });
  executor.RunReady();
  EXPECT_FALSE(first.status.ok());
  ASSERT_TRUE(second.status.ok()) << second.status;
  EXPECT_EQ(Load(tables, second.files, folder), tables.Content());
}

TEST_F(CutWriterTest, KillPointsAreReachedWhileAndAfterWriting) {
  const Tables tables({});
  SplitMix64 random(1);
  tables.UpdateSome(&random, 10);
  for (const KillPoint::Point point : {KillPoint::PS_WHILE_WRITING, KillPoint::PS_AFTER_WRITING}) {
    JobConfig job;
    job.add_kill_points()->set_point(point);
    bool told = false;
    int killed = 0;
    KillPoints kill_points(job, 0, 1, [&] {
      ++killed;
      EXPECT_FALSE(told);
    });
    ManualExecutor executor;
    CutWriter::Options options = WriterOf(tables.all(), NewFolder(), &executor);
    options.kill_points = &kill_points;
    CutWriter::Mark(options)->Start([&](const CutWriter::Result&) { told = true; });
    executor.RunReady();
    EXPECT_GE(killed, 1);
  }
}

// Four threads write a cut while three threads update the tables. Then four threads load it.
TEST_F(CutWriterTest, ThreadsWriteAndLoadSideBySide) {
  EmbeddingTable::Options table_options;
  table_options.shards = 8;
  const Tables tables(table_options);
  SplitMix64 random(1);
  for (int i = 0; i < 300; ++i) tables.UpdateSome(&random, 8000);
  ThreadPoolExecutor disk(4, /*niceness=*/5), serving(3);
  for (int repeat = 0; repeat < 3; ++repeat) {
    const std::vector<TableContent> wanted = tables.Content();
    const std::string folder = NewFolder();
    CutWriter::Options options = WriterOf(tables.all(), folder, &disk);
    options.threads = 4;
    const auto writer = CutWriter::Mark(options);
    Mutex mutex;
    CondVar changed;
    int left = 4;
    CutWriter::Result saved;
    const auto ended = [&] {
      MutexLock lock(&mutex);
      --left;
      changed.NotifyAll();
    };
    writer->Start([&](const CutWriter::Result& result) {
      saved = result;
      ended();
    });
    for (int t = 0; t < 3; ++t) {
      serving.Post([&, t] {
        SplitMix64 own(static_cast<uint64_t>(10 * repeat + t));
        for (int i = 0; i < 150; ++i) tables.UpdateSome(&own, 9000);
        ended();
      });
    }
    {
      MutexLock lock(&mutex);
      while (left > 0) changed.Wait(&mutex);
    }
    ASSERT_TRUE(saved.status.ok()) << saved.status;
    CHECK_OK(WriteManifest(folder, ManifestOf(tables.all(), saved.files)));
    const Tables loaded(table_options);
    LoadResult result;
    left = 1;
    LoadTables({loaded.all(), folder, 4, &disk, DiskFileSystem()}, [&](const LoadResult& got) {
      result = got;
      ended();
    });
    {
      MutexLock lock(&mutex);
      while (left > 0) changed.Wait(&mutex);
    }
    ASSERT_TRUE(result.status.ok()) << result.status;
    EXPECT_EQ(loaded.Content(), wanted);
  }
}

}  // namespace
}  // namespace satrap

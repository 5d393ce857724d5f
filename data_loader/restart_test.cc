// Tests of a loader that continues from a cut: what it sends, together with what was consumed
// before, must be what an undisturbed run sends.

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/checkpoint/ledger/ledger.h"
#include "common/testing/manual_executor.h"
#include "common/testing/temp_dir.h"
#include "data_loader/batch/quarantine_files.h"
#include "data_loader/loader_streams.h"
#include "data_loader/testing/topic_loader_testing.h"

namespace satrap {
namespace {

class RestartTest : public testing::Test {
 protected:
  RestartTest() {
    std::filesystem::create_directory(dir_.path() + "/run");
    std::string first, second;
    for (int i = 0; i < 60; ++i) {
      absl::StrAppend(&first, i % 9 == 4 ? "bad\n" : "", i % 7 == 3 ? "\n" : "", i % 2, ",", i,
                      "\n");
      absl::StrAppend(&second, i % 2, ",", 100 + i, "\n");
    }
    dir_.Write("a", first + "bad at the end\n\n");
    dir_.Write("b", "bad\n\nbad\n");  // splits without a good record
    dir_.Write("c", "");
    dir_.Write("d", second);
  }

  JobConfig FileJob(JobConfig::Mode mode) const {
    JobConfig job;
    job.set_mode(mode);
    job.set_seed(11);
    job.set_lanes(2);
    job.set_epochs(2);
    job.set_global_batch_size(8);
    job.set_run_dir(dir_.path() + "/run");
    job.set_data_root(dir_.path());
    job.mutable_nn_worker()->set_replicas(3);
    DataConfig* data = job.mutable_data();
    for (const char* name : {"a", "b", "c", "d"}) data->add_train_files(name);
    for (const auto& [name, kind] :
         {std::pair("y", ColumnConfig::LABEL), std::pair("x", ColumnConfig::NUMERIC)}) {
      ColumnConfig* column = data->mutable_csv()->add_columns();
      column->set_name(name);
      column->set_kind(kind);
    }
    data->add_numerics()->set_name("x");
    data->set_shuffle_rows(7);
    data->set_split_bytes(90);
    return job;
  }
  static JobConfig SyntheticJob(JobConfig::Mode mode, int cycle_batches) {
    JobConfig job;
    job.set_mode(mode);
    job.set_lanes(3);
    job.set_epochs(2);
    job.set_global_batch_size(8);
    job.mutable_nn_worker()->set_replicas(3);
    SyntheticFormat* synthetic = job.mutable_data()->mutable_synthetic();
    synthetic->set_train_samples(150);
    synthetic->add_vocabulary_sizes(1000);
    synthetic->set_interacting_features(0);
    synthetic->set_cycle_batches(cycle_batches);
    job.mutable_data()->add_features()->set_name("C1");
    job.mutable_data()->set_split_rows(32);
    job.mutable_data()->set_shuffle_rows(10);
    return job;
  }

  // The train streams of a loader that reads all lanes.
  std::unique_ptr<LoaderStreams> Begin(const JobConfig& job, const LoaderStreams::Begin& begin) {
    auto streams = LoaderStreams::Make(job, 0, nullptr, begin);
    EXPECT_TRUE(streams.ok()) << streams.status();
    supplies_.push_back(std::make_unique<StaticSplits>(0, 1, (*streams)->num_train_splits()));
    (*streams)->MakeSources(&executor_, supplies_.back().get());
    return *std::move(streams);
  }
  // Reads the next epoch. Returns the parts of each source.
  std::vector<Parts> ReadEpoch(LoaderStreams* streams) {
    std::vector<Parts> all;
    for (PartSource* source : streams->sources()[0].sources) {
      all.emplace_back();
      for (bool more = true; more;) {
        bool answered = false;
        source->Next([&](absl::StatusOr<absl::optional<Part>> part) {
          answered = true;
          ASSERT_TRUE(part.ok()) << part.status();
          more = part->has_value();
          if (more) all.back().push_back(**std::move(part));
        });
        executor_.RunReady();
        if (!answered || testing::Test::HasFailure()) return all;
      }
    }
    return all;
  }
  // Reads the next epoch of an unordered stream, which has only one source.
  Parts ReadParts(LoaderStreams* streams) { return std::move(ReadEpoch(streams)[0]); }
  static LoaderStreams::Begin At(uint64_t generation, uint32_t epoch, const Ledger& ledger) {
    LoaderStreams::Begin begin;
    begin.generation = generation;
    begin.position.set_epoch(epoch);
    begin.ledger = ledger.ToState();
    return begin;
  }
  static void ExpectAllDone(uint32_t epoch, uint32_t splits, const Ledger& ledger) {
    for (uint32_t split = 0; split < splits; ++split) {
      EXPECT_TRUE(ledger.IsSplitDone(epoch, split)) << "split " << split;
    }
  }

  void CheckEveryPositionOfALane(const JobConfig& job);
  void CheckAnySubset(JobConfig job, uint32_t seed);

  TempDir dir_;
  ManualExecutor executor_;
  std::vector<std::unique_ptr<SplitSupply>> supplies_;
};

// Restarts with every combination of two counts: how many batches of the first lane were consumed,
// and how many of each of the other lanes. What is sent after the restart must equal the
// undisturbed run bit for bit, in this epoch and in the next one.
void RestartTest::CheckEveryPositionOfALane(const JobConfig& job) {
  const size_t ranks = static_cast<size_t>(job.nn_worker().replicas());
  const auto undisturbed = Begin(job, {});
  const std::vector<Parts> whole = ReadEpoch(undisturbed.get());
  const std::vector<Parts> second = ReadEpoch(undisturbed.get());
  Ledger all;
  for (const Parts& lane : whole) {
    for (const Part& part : lane) Consume(part, &all);
  }
  ExpectAllDone(0, undisturbed->num_train_splits(), all);
  for (size_t first = 0; first <= whole[0].size() / ranks; ++first) {
    for (size_t others = 0; others <= whole[1].size() / ranks; ++others) {
      SCOPED_TRACE(absl::StrCat("after ", first, " and ", others, " batches"));
      Ledger ledger;
      RunPosition position;
      for (size_t lane = 0; lane < whole.size(); ++lane) {
        const size_t batches = whole[lane].size() / ranks;
        const size_t consumed = std::min(batches, lane == 0 ? first : others);
        for (size_t i = 0; i < consumed * ranks; ++i) Consume(whole[lane][i], &ledger);
        LanePosition* at = position.add_lanes();
        at->set_next_seq(consumed);
        at->set_left(consumed == batches);
      }
      LoaderStreams::Begin begin = At(2, 0, ledger);
      begin.position = position;
      const auto streams = Begin(job, begin);
      const std::vector<Parts> rest = ReadEpoch(streams.get());
      ASSERT_EQ(rest.size(), whole.size());
      for (size_t lane = 0; lane < whole.size(); ++lane) {
        const size_t consumed = position.lanes(static_cast<int>(lane)).next_seq() * ranks;
        ASSERT_EQ(rest[lane].size(), whole[lane].size() - consumed);
        for (size_t i = 0; i < rest[lane].size(); ++i) {
          EXPECT_EQ(BytesOf(rest[lane][i]), BytesOf(whole[lane][consumed + i]))
              << rest[lane][i].header.ShortDebugString() << "\nin place of\n"
              << whole[lane][consumed + i].header.ShortDebugString();
          Consume(rest[lane][i], &ledger);
        }
      }
      EXPECT_EQ(ledger.ToState().DebugString(), all.ToState().DebugString());
      const std::vector<Parts> next = ReadEpoch(streams.get());
      for (size_t lane = 0; lane < second.size(); ++lane) {
        ASSERT_EQ(next[lane].size(), second[lane].size());
        for (size_t i = 0; i < next[lane].size(); ++i) {
          EXPECT_EQ(BytesOf(next[lane][i]), BytesOf(second[lane][i]));
        }
      }
      if (testing::Test::HasFailure()) return;
    }
  }
}

TEST_F(RestartTest, SyncFilesGoOnFromEveryPositionAsIfNothingHadHappened) {
  CheckEveryPositionOfALane(FileJob(JobConfig::SYNC));
}

TEST_F(RestartTest, SyncFilesOfASeededSplitGoOnFromEveryPosition) {
  JobConfig job = FileJob(JobConfig::SYNC);
  job.mutable_data()->mutable_seeded_split()->set_valid_fraction(0.5);
  job.mutable_data()->set_shuffle_rows(2);  // many blocks without a record of the train stream
  CheckEveryPositionOfALane(job);
}

TEST_F(RestartTest, SyncSyntheticRowsGoOnFromEveryPosition) {
  CheckEveryPositionOfALane(SyntheticJob(JobConfig::SYNC, 0));
}

TEST_F(RestartTest, SyncCycledBatchesGoOnFromEveryPosition) {
  CheckEveryPositionOfALane(SyntheticJob(JobConfig::SYNC, 3));
}

// Restarts until nothing is left. Each generation draws its number of ranks anew, and consumes a
// random subset of what it sends. The ledger refuses records that are sent twice.
void RestartTest::CheckAnySubset(JobConfig job, uint32_t seed) {
  std::filesystem::remove_all(dir_.path() + "/run/quarantine");
  std::mt19937 random(seed);
  Ledger all;
  const auto undisturbed = Begin(job, {});
  const uint32_t splits = undisturbed->num_train_splits();
  for (const Part& part : ReadParts(undisturbed.get())) Consume(part, &all);
  ExpectAllDone(0, splits, all);
  Ledger ledger;
  for (uint64_t generation = 1;; ++generation) {
    ASSERT_LT(generation, 100u);
    job.mutable_nn_worker()->set_replicas(1 + static_cast<int>(random() % 4));
    const auto streams = Begin(job, At(generation, 0, ledger));
    const Parts rest = ReadParts(streams.get());
    for (const Part& part : rest) {
      EXPECT_GT(part.header.part().provenance_size(), 0) << "a part that says nothing";
    }
    // What is consumed and what is sent must together be the whole epoch.
    Ledger filled = ledger;
    for (const Part& part : rest) Consume(part, &filled);
    EXPECT_EQ(filled.ToState().DebugString(), all.ToState().DebugString());
    if (testing::Test::HasFailure()) return;
    if (rest.empty()) break;
    for (const Part& part : rest) {
      if (random() % 3 == 0) Consume(part, &ledger);
    }
  }
  const uint64_t lines = *MergeQuarantine(dir_.path() + "/run", &ledger);
  EXPECT_EQ(lines, ledger.OfAll().bad_records);
}

TEST_F(RestartTest, HybridFilesAreReadOnceWhateverWasConsumed) {
  for (uint32_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE(seed);
    JobConfig job = FileJob(JobConfig::HYBRID);
    job.mutable_data_loader()->set_threads(1 + static_cast<int>(seed % 3));
    if (seed % 4 == 3) job.mutable_data()->mutable_seeded_split()->set_valid_fraction(0.6);
    if (seed % 5 == 4) job.mutable_data()->set_shuffle_rows(0);
    if (seed % 2 == 0) job.mutable_data()->set_split_bytes(1 << 20);
    CheckAnySubset(job, seed);
  }
}

TEST_F(RestartTest, HybridSyntheticRowsAreMadeOnceWhateverWasConsumed) {
  for (uint32_t seed = 0; seed < 10; ++seed) {
    SCOPED_TRACE(seed);
    CheckAnySubset(SyntheticJob(JobConfig::HYBRID, seed % 2 == 0 ? 0 : 3), seed);
  }
}

TEST_F(RestartTest, HybridASplitWithoutAGoodRecordIsToldInAPartOfNoSamples) {
  JobConfig job = FileJob(JobConfig::HYBRID);
  job.mutable_data()->clear_train_files();
  job.mutable_data()->add_train_files("b");
  job.mutable_data()->set_max_bad_fraction(1);
  const auto streams = Begin(job, {});
  const Parts parts = ReadParts(streams.get());
  ASSERT_EQ(parts.size(), 1u);
  EXPECT_EQ(parts[0].header.part().samples(), 0u);
  ASSERT_EQ(parts[0].header.part().provenance_size(), 1);
  const ProvenanceRange& end = parts[0].header.part().provenance(0);
  EXPECT_TRUE(end.ends_split());
  EXPECT_EQ(end.block(), 0u);
  EXPECT_EQ(end.split_rows(), 0u);
  EXPECT_EQ(end.bad_records(), 2u);
  EXPECT_EQ(end.empty_lines(), 1u);
  EXPECT_EQ(ReadParts(streams.get()).size(), 1u) << "in each epoch";
}

TEST_F(RestartTest, BadLinesOfWhatIsConsumedAreNeitherCountedNorKeptAgain) {
  JobConfig job = FileJob(JobConfig::HYBRID);
  job.mutable_data()->set_split_bytes(1 << 20);
  job.mutable_nn_worker()->set_replicas(1);
  const auto first = Begin(job, {});
  const Parts parts = ReadParts(first.get());
  const uint64_t bad = first->Progress().quarantined();
  EXPECT_EQ(bad, 7u + 1u + 2u);
  Ledger ledger;
  for (size_t i = 0; i < 4; ++i) Consume(parts[i], &ledger);  // 32 records: blocks 0 to 4
  const auto second = Begin(job, At(2, 0, ledger));
  ReadEpoch(second.get());
  EXPECT_EQ(second->Progress().quarantined(), bad - ledger.OfAll().bad_records);
  EXPECT_EQ(second->Progress().empty_lines(),
            first->Progress().empty_lines() - ledger.OfAll().empty_lines);
  EXPECT_EQ(second->skipped_records(), 32u);
  EXPECT_EQ(second->Progress().quarantine_file(),
            dir_.path() + "/run/quarantine/g0002-loader-0.txt");
}

TEST_F(RestartTest, SplitsThatAreDoneAreNotOpened) {
  const JobConfig job = FileJob(JobConfig::HYBRID);
  Ledger ledger;
  for (const Part& part : ReadParts(Begin(job, {}).get())) Consume(part, &ledger);
  for (const char* name : {"a", "b", "d"}) {
    // Damage the file but keep its size, so that it could not be parsed if it were opened.
    const std::string text = TempDir::Read(dir_.path() + "/" + name);
    dir_.Write(name, std::string(text.size(), 'x'));
  }
  const auto streams = Begin(job, At(2, 0, ledger));
  EXPECT_TRUE(ReadParts(streams.get()).empty());
  EXPECT_EQ(streams->Progress().bytes(), 0u);
}

TEST_F(RestartTest, ALaterEpochBeginsThereAndCountsNoBadLines) {
  const JobConfig job = FileJob(JobConfig::SYNC);
  const auto undisturbed = Begin(job, {});
  Ledger ledger;
  for (const Parts& lane : ReadEpoch(undisturbed.get())) {
    for (const Part& part : lane) Consume(part, &ledger);
  }
  ledger.CloseEpochsBefore(1);
  const auto streams = Begin(job, At(2, 1, ledger));
  EXPECT_EQ(streams->sources()[0].first_epoch, 1u);
  const std::vector<Parts> expected = ReadEpoch(undisturbed.get());
  const std::vector<Parts> second = ReadEpoch(streams.get());
  for (size_t lane = 0; lane < expected.size(); ++lane) {
    ASSERT_EQ(second[lane].size(), expected[lane].size());
    for (size_t i = 0; i < expected[lane].size(); ++i) {
      EXPECT_EQ(BytesOf(second[lane][i]), BytesOf(expected[lane][i]));
    }
  }
  EXPECT_EQ(streams->Progress().quarantined(), 0u);
}

TEST_F(RestartTest, WhenTrainingIsOverTheTrainStreamIsNotOffered) {
  JobConfig job = FileJob(JobConfig::HYBRID);
  job.mutable_data()->add_test_files("d");
  LoaderStreams::Begin begin;
  begin.position.set_next(RunPosition::FINISH);
  const auto streams = LoaderStreams::Make(job, 0, nullptr, begin);
  ASSERT_TRUE(streams.ok()) << streams.status();
  EXPECT_FALSE((*streams)->needs_lease());
  (*streams)->MakeSources(&executor_, nullptr);
  ASSERT_EQ((*streams)->sources().size(), 2u);
  EXPECT_EQ((*streams)->sources()[0].stream, VALID_STREAM);
  EXPECT_EQ((*streams)->sources()[1].stream, TEST_STREAM);
  EXPECT_EQ((*streams)->sources()[1].first_epoch, 0u);
}

TEST_F(RestartTest, ABlockThatLostRecordsIsAnErrorThatNamesItsFile) {
  JobConfig job = FileJob(JobConfig::HYBRID);
  job.mutable_data()->set_split_bytes(1 << 20);
  Ledger ledger;
  const Parts parts = ReadParts(Begin(job, {}).get());
  Consume(parts[0], &ledger);
  Consume(parts[1], &ledger);
  std::string text = TempDir::Read(dir_.path() + "/a");
  dir_.Write("a", "0,1\n" + std::string(text.size() - 5, 'x') + "\n");
  const auto streams = Begin(job, At(2, 0, ledger));
  absl::Status status;
  streams->sources()[0].sources[0]->Next(
      [&](absl::StatusOr<absl::optional<Part>> part) { status = part.status(); });
  executor_.RunReady();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
  EXPECT_NE(status.message().find(dir_.path() + "/a"), std::string::npos) << status;
}

// The tests change a file without changing its size, so the change shows only in its records.
class ChangedFileTest : public RestartTest {
 protected:
  ChangedFileTest() : job_(FileJob(JobConfig::HYBRID)) {
    job_.mutable_data()->clear_train_files();
    job_.mutable_data()->add_train_files("e");
    job_.mutable_data()->set_split_bytes(1 << 20);
    job_.mutable_nn_worker()->set_replicas(1);
    WriteRecords("1,2\n");
    parts_ = ReadParts(Begin(job_, {}).get());
  }
  // Writes a file of 19 records, with 7 in a block, followed by `rest`.
  void WriteRecords(const std::string& rest) {
    std::string text;
    for (int i = 0; i < 19; ++i) text += "0,1\n";
    dir_.Write("e", text + rest);
  }
  absl::Status ErrorAfter(const Ledger& ledger) {
    const auto streams = Begin(job_, At(2, 0, ledger));
    absl::Status status;
    for (bool more = true; std::exchange(more, false);) {
      streams->sources()[0].sources[0]->Next([&](absl::StatusOr<absl::optional<Part>> part) {
        status = part.status();
        more = part.ok() && part->has_value();
      });
      executor_.RunReady();
    }
    return status;
  }
  void ExpectItIsNamed(const absl::Status& status, const std::string& why) {
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
    for (const std::string& text : {dir_.path() + "/e, from byte 0: ", why,
                                    std::string("the file has changed since the run began")}) {
      EXPECT_NE(status.message().find(text), std::string::npos) << status << "\nhas no " << text;
    }
  }
  JobConfig job_;
  Parts parts_;
};

TEST_F(ChangedFileTest, AnUnchangedFileGoesOn) {
  for (const Part& part : parts_) {
    Ledger ledger;
    Consume(part, &ledger);
    EXPECT_TRUE(ErrorAfter(ledger).ok()) << ErrorAfter(ledger);
  }
}

TEST_F(ChangedFileTest, ABlockWithAnotherNumberOfRecordsThanItsConsumedRangeSays) {
  Ledger ledger;
  ProvenanceRange range;
  range.set_block(2);
  range.set_to(3);
  range.set_block_rows(6);
  ASSERT_TRUE(ledger.Add(0, range).ok());
  EXPECT_TRUE(ErrorAfter(ledger).ok());
  WriteRecords("bad\n");
  ExpectItIsNamed(ErrorAfter(ledger), "5 records, but 6 according to an earlier range");
}

TEST_F(ChangedFileTest, ASplitWithAnotherNumberOfRecordsThanItsConsumedEndSays) {
  Ledger ledger;
  Consume(parts_.back(), &ledger);
  WriteRecords("");
  ExpectItIsNamed(ErrorAfter(ledger), "records");
}

TEST_F(ChangedFileTest, ABlockThatWasConsumedAndIsGone) {
  Ledger ledger;
  Consume(parts_.back(), &ledger);  // in block 2
  LedgerState state = ledger.ToState();
  state.mutable_epochs(0)->mutable_splits(0)->clear_split_rows();
  const auto without_end = Ledger::FromState(state);
  dir_.Write("e", "0,1\n0,1\n0,1\n0,1\n0,1\n0,1\n");
  ExpectItIsNamed(ErrorAfter(*without_end), "split 0 has 6 records, but only 0 of the ");
}

class RunFilesOfLoaderTest : public RestartTest {
 protected:
  // Makes a loader that uses the list of files that the first loader had.
  absl::StatusOr<std::unique_ptr<LoaderStreams>> MakeLoader() {
    LoaderStreams::Begin begin;
    begin.fix_files = [this](const SplitList& listed) -> absl::StatusOr<SplitList> {
      if (!fixed_) fixed_ = listed;
      return *fixed_;
    };
    return LoaderStreams::Make(FileJob(JobConfig::HYBRID), 0, nullptr, begin);
  }
  absl::optional<SplitList> fixed_;
};

TEST_F(RunFilesOfLoaderTest, ALaterGenerationReadsTheFilesOfTheFirstUpToTheirSizes) {
  const auto first = MakeLoader();
  ASSERT_TRUE(first.ok()) << first.status();
  ASSERT_EQ(fixed_->streams(0).files_size(), 4);
  const std::string text = TempDir::Read(dir_.path() + "/d");
  dir_.Write("d", text + "1,7\n" + text);
  const auto second = MakeLoader();
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_EQ((*second)->num_train_splits(), (*first)->num_train_splits());
  fixed_->mutable_streams(0)->mutable_files()->RemoveLast();  // as if "d" had come later
  const auto third = MakeLoader();
  ASSERT_TRUE(third.ok()) << third.status();
  EXPECT_LT((*third)->num_train_splits(), (*first)->num_train_splits());
}

TEST_F(RunFilesOfLoaderTest, AFileThatChangedIsRefusedBeforeAnythingIsSent) {
  ASSERT_TRUE(MakeLoader().ok());
  dir_.Write("d", "0,1\n");
  const absl::Status status = MakeLoader().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
  EXPECT_NE(status.message().find(dir_.path() + "/d has changed"), std::string::npos) << status;
}

TEST_F(RunFilesOfLoaderTest, ALedgerThatContradictsItselfIsRefused) {
  LoaderStreams::Begin begin;
  begin.ledger.add_epochs()->add_done_splits(1);
  EXPECT_EQ(LoaderStreams::Make(FileJob(JobConfig::HYBRID), 0, nullptr, begin).status().code(),
            absl::StatusCode::kDataLoss);
}

}  // namespace
}  // namespace satrap

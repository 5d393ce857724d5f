// Tests cuts and loads, requested as rank 0 does.

#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/base/check.h"
#include "common/checkpoint/manifest.h"
#include "common/file/file_system.h"
#include "common/numeric/hash.h"
#include "common/rpc/control_methods.h"
#include "common/rpc/header.h"
#include "common/rpc/hot_methods.h"
#include "common/testing/temp_dir.h"
#include "embedding_ps/ps_engine.h"
#include "embedding_ps/testing/ps_engine_fixture.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

using Row = std::vector<float>;

// Tasks of the disk executor run only when the test runs them.
class PsEngineCutTest : public testing::Test {
 protected:
  PsEngineCutTest() { Begin(PsTestJob(JobConfig::HYBRID, 1, 1)); }

  void Begin(const JobConfig& job, const PsEngine::Options& options = {}) {
    job_ = job;
    pss_ = std::make_unique<Pss>(job, &disk_, options);
    updates_ = 0;
  }

  // Makes a message of rank 0 with the next call number.
  template <typename Request>
  rpc::Message Numbered(Request request) {
    *request.mutable_envelope() = ThisRun();
    request.mutable_call()->set_sender(0);
    request.mutable_call()->set_number(++number_);
    request.mutable_call()->set_oldest_open(number_);
    return rpc::MessageOf(request);
  }
  BeginCutRequest CutOf(uint64_t cut) {
    BeginCutRequest request;
    request.set_cut(cut);
    request.set_directory(directory_);
    return request;
  }
  absl::Status BeginCut(uint64_t cut, bool hold_updates = false) {
    BeginCutRequest request = CutOf(cut);
    request.set_hold_updates(hold_updates);
    return pss_->CallAndWait(0, rpc::kBeginCut, Numbered(request)).status();
  }
  void SendAwait(uint64_t cut, Answers* answers) {
    AwaitCutRequest request;
    request.set_cut(cut);
    pss_->Call(0, rpc::kAwaitCut, Numbered(request), answers);
  }
  absl::StatusOr<AwaitCutAnswer> Await(uint64_t cut) {
    Answers answers;
    SendAwait(cut, &answers);
    RunAll();
    CHECK(answers.size() == 1);
    if (!answers[0].ok()) return answers[0].status();
    AwaitCutAnswer answer;
    CHECK(answer.ParseFromString(answers[0]->header));
    return answer;
  }
  void SendAbandon(uint64_t cut, Answers* answers) {
    AbandonCutRequest request;
    request.set_cut(cut);
    pss_->Call(0, rpc::kAbandonCut, Numbered(request), answers);
  }
  absl::Status Load() {
    LoadTablesRequest request;
    request.set_directory(directory_);
    Answers answers;
    pss_->Call(0, rpc::kLoadTables, Numbered(request), &answers);
    RunAll();
    CHECK(answers.size() == 1);
    return answers[0].status();
  }
  void RunAll() {
    for (int i = 0; i < 3; ++i) {
      disk_.RunReady();
      pss_->executor().RunReady();
    }
  }
  rpc::Message UpdateOfSeven(const Row& gradient) {
    return UpdateOf(JobConfig::HYBRID, 0, updates_++, {7}, gradient).Message();
  }
  absl::Status Update(const Row& gradient) {
    return pss_->CallAndWait(0, rpc::kUpdate, UpdateOfSeven(gradient)).status();
  }
  Row Seven() { return pss_->Rows({7})[7]; }

  void Commit(const AwaitCutAnswer& answer) {
    CheckpointManifest manifest;
    manifest.set_version(kManifestVersion);
    SavedTable* table = manifest.add_tables();
    table->set_name(job_.tables(0).name());
    table->set_id(kTable);
    table->set_fingerprint(TableFingerprint(job_.tables(0)));
    for (const SavedFile& file : answer.files()) *manifest.add_table_files() = file;
    CHECK_OK(WriteManifest(directory_, manifest));
  }
  // Commits a cut in which row 7 is {0, 0, 0}. If a table does not have row 7, a Lookup returns {1,
  // 1, 1} for it.
  void SaveACut() {
    CHECK_OK(Update({1, 1, 1}));
    CHECK_OK(BeginCut(1));
    Commit(*Await(1));
  }

  const TempDir temp_;
  const std::string directory_ = temp_.path();
  JobConfig job_;
  ManualExecutor disk_;
  std::unique_ptr<Pss> pss_;
  uint64_t number_ = 0;
  uint64_t updates_ = 0;
};

TEST_F(PsEngineCutTest, ACutIsTheRowsAtItsMarkAndAnotherProcessBeginsFromIt) {
  ASSERT_TRUE(Update({1, 2, 3}).ok());
  ASSERT_TRUE(BeginCut(1).ok());
  // These Updates arrive before any row of the cut is written.
  ASSERT_TRUE(Update({5, 5, 5}).ok());
  const UpdateCall other = UpdateOf(JobConfig::HYBRID, 0, updates_++, {9}, {1, 1, 1});
  ASSERT_TRUE(pss_->CallAndWait(0, rpc::kUpdate, other.Message()).ok());
  const auto answer = Await(1);
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_FALSE(answer->has_abandoned());
  ASSERT_EQ(answer->files_size(), 1);
  EXPECT_EQ(answer->files(0).rows(), 1u);
  EXPECT_GT(answer->copied_bytes(), 0u);
  EXPECT_EQ(pss_->engine().counts().cuts.begun, 1u);
  EXPECT_EQ(pss_->engine().counts().cuts.rows_copied, 1u);
  EXPECT_EQ(pss_->engine().counts().cuts.bytes_written, answer->files(0).bytes());
  Commit(*answer);

  Begin(job_);
  absl::Status loaded = absl::UnknownError("");
  pss_->engine().Load(directory_, [&](const absl::Status& status) { loaded = status; });
  RunAll();
  ASSERT_TRUE(loaded.ok()) << loaded;
  EXPECT_EQ(Seven(), (Row{0, -1, -2}));
  EXPECT_EQ(pss_->engine().Stats()[0].rows(), 1u);
  EXPECT_TRUE(BeginCut(1).ok()) << "it trains on";
}

TEST_F(PsEngineCutTest, ACutIsMarkedOnceAndNumbersAscend) {
  ASSERT_TRUE(Update({1, 1, 1}).ok());
  EXPECT_EQ(BeginCut(0).code(), absl::StatusCode::kInvalidArgument);
  ASSERT_TRUE(BeginCut(3).ok());
  ASSERT_TRUE(Update({1, 1, 1}).ok());
  EXPECT_TRUE(BeginCut(3).ok()) << "a repeat marks nothing";
  EXPECT_EQ(BeginCut(2).code(), absl::StatusCode::kFailedPrecondition);
  Commit(*Await(3));
  ASSERT_TRUE(Load().ok());
  EXPECT_EQ(Seven(), (Row{0, 0, 0}));
}

TEST_F(PsEngineCutTest, AHigherNumberAbandonsAnUnfinishedCut) {
  ASSERT_TRUE(Update({1, 1, 1}).ok());
  ASSERT_TRUE(BeginCut(1).ok());
  Answers first;
  SendAwait(1, &first);
  ASSERT_TRUE(Update({1, 1, 1}).ok());
  ASSERT_TRUE(BeginCut(2).ok());
  const auto second = Await(2);
  ASSERT_TRUE(second.ok() && !second->has_abandoned());
  ASSERT_EQ(first.size(), 1u);
  AwaitCutAnswer answer;
  ASSERT_TRUE(answer.ParseFromString(first[0]->header));
  EXPECT_TRUE(answer.has_abandoned());
  EXPECT_EQ(answer.files_size(), 0);
  EXPECT_TRUE(Await(1)->has_abandoned()) << "also when it is asked for later";
  EXPECT_FALSE(Await(2)->has_abandoned());
  EXPECT_EQ(pss_->engine().counts().cuts.abandoned, 1u);
  Commit(*second);
  ASSERT_TRUE(Load().ok());
  EXPECT_EQ(Seven(), (Row{-1, -1, -1}));
}

TEST_F(PsEngineCutTest, AwaitingACutThatWasNotBegunIsRefused) {
  EXPECT_EQ(Await(1).status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(PsEngineCutTest, ACutIsRefusedWhileAnUpdateIsOpen) {
  Answers updated, begun;
  const auto keep = [](Answers* answers) {
    return [answers](absl::StatusOr<rpc::Message> got) { answers->push_back(std::move(got)); };
  };
  // Both calls arrive before either has run.
  pss_->engine().Handle(rpc::kBeginCut, Numbered(CutOf(1)), keep(&begun));
  pss_->engine().Handle(rpc::kUpdate, UpdateOfSeven({1, 1, 1}), keep(&updated));
  pss_->executor().RunReady();
  ASSERT_EQ(begun.size(), 1u);
  EXPECT_EQ(begun[0].status().code(), absl::StatusCode::kFailedPrecondition);
  ASSERT_EQ(updated.size(), 1u);
  EXPECT_TRUE(updated[0].ok());
  EXPECT_TRUE(BeginCut(1).ok());
}

TEST_F(PsEngineCutTest, UpdatesWaitForTheRowsToBeWrittenIfTheCutAsksForIt) {
  job_.mutable_checkpoint()->set_copy_bytes(0);
  Begin(job_);
  ASSERT_TRUE(Update({1, 1, 1}).ok());
  ASSERT_TRUE(BeginCut(1, /*hold_updates=*/true).ok());
  Answers updated;
  pss_->Call(0, rpc::kUpdate, UpdateOfSeven({1, 1, 1}), &updated);
  EXPECT_TRUE(updated.empty());
  EXPECT_EQ(Seven(), (Row{0, 0, 0})) << "Lookups do not wait";
  const auto answer = Await(1);
  ASSERT_TRUE(answer.ok() && !answer->has_abandoned()) << answer->abandoned();
  EXPECT_EQ(answer->copied_bytes(), 0u);
  ASSERT_EQ(updated.size(), 1u);
  EXPECT_TRUE(updated[0].ok());
  EXPECT_EQ(Seven(), (Row{-1, -1, -1}));
}

TEST_F(PsEngineCutTest, UpdatesThatWaitGoOnWhenTheCutIsAbandoned) {
  ASSERT_TRUE(Update({1, 1, 1}).ok());
  ASSERT_TRUE(BeginCut(1, /*hold_updates=*/true).ok());
  Answers updated, abandoned;
  pss_->Call(0, rpc::kUpdate, UpdateOfSeven({1, 1, 1}), &updated);
  SendAbandon(1, &abandoned);
  RunAll();
  EXPECT_EQ(abandoned.size(), 1u);
  EXPECT_EQ(updated.size(), 1u);
}

TEST_F(PsEngineCutTest, ACutWhoseCopiesNeedTooMuchMemoryIsAbandonedAndTheNextOneIsWhole) {
  job_.mutable_checkpoint()->set_copy_bytes(10);
  Begin(job_);
  ASSERT_TRUE(Update({1, 1, 1}).ok());
  ASSERT_TRUE(BeginCut(1).ok());
  ASSERT_TRUE(Update({1, 1, 1}).ok());
  auto answer = Await(1);
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_TRUE(answer->copy_limit());
  EXPECT_NE(answer->abandoned().find("checkpoint.copy_bytes"), std::string::npos);
  ASSERT_TRUE(BeginCut(2).ok());
  answer = Await(2);
  ASSERT_TRUE(answer.ok() && !answer->has_abandoned());
  Commit(*answer);
  ASSERT_TRUE(Load().ok());
  EXPECT_EQ(Seven(), (Row{-1, -1, -1}));
}

TEST_F(PsEngineCutTest, ACutThatCannotBeWrittenTellsFileAndReason) {
  ASSERT_TRUE(Update({1, 1, 1}).ok());
  BeginCutRequest request = CutOf(1);
  request.set_directory(directory_ + "/nowhere");
  ASSERT_TRUE(pss_->CallAndWait(0, rpc::kBeginCut, Numbered(request)).ok());
  const auto answer = Await(1);
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_FALSE(answer->copy_limit());
  EXPECT_NE(answer->abandoned().find("nowhere/table_4_partitions_0000_0255.rows"),
            std::string::npos)
      << answer->abandoned();
}

TEST_F(PsEngineCutTest, AbandonCutIsAnsweredWhenNothingIsWrittenAnyMore) {
  ASSERT_TRUE(Update({1, 1, 1}).ok());
  ASSERT_TRUE(BeginCut(1).ok());
  Answers awaited, abandoned;
  SendAwait(1, &awaited);
  disk_.RunOne();  // the file is begun
  SendAbandon(1, &abandoned);
  EXPECT_TRUE(abandoned.empty());
  RunAll();
  ASSERT_EQ(abandoned.size(), 1u);
  EXPECT_TRUE(abandoned[0].ok());
  ASSERT_EQ(awaited.size(), 1u);
  AwaitCutAnswer answer;
  ASSERT_TRUE(answer.ParseFromString(awaited[0]->header));
  EXPECT_TRUE(answer.has_abandoned());
  const std::vector<std::string> names = *DiskFileSystem()->List(directory_);
  for (const std::string& name : names) {
    EXPECT_EQ(name.find("partial"), std::string::npos) << name;
  }
  // AbandonCut of a cut that has already ended is answered immediately.
  SendAbandon(1, &abandoned);
  EXPECT_EQ(abandoned.size(), 2u);
}

TEST_F(PsEngineCutTest, ABeginCutThatComesAfterItsAbandonCutIsRefused) {
  Answers abandoned;
  SendAbandon(5, &abandoned);
  ASSERT_EQ(abandoned.size(), 1u);
  EXPECT_TRUE(abandoned[0].ok());
  EXPECT_EQ(BeginCut(5).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(Await(5)->has_abandoned());
  EXPECT_TRUE(BeginCut(6).ok());
}

TEST_F(PsEngineCutTest, AfterALoadOfOtherRowsNoCutIsBegun) {
  SaveACut();
  ASSERT_TRUE(Update({1, 1, 1}).ok());
  ASSERT_TRUE(Load().ok());
  EXPECT_EQ(Seven(), (Row{0, 0, 0}));
  EXPECT_EQ(BeginCut(2).code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(PsEngineCutTest, ALoadThatIsTheFirstThingOfATrainingForbidsNoCut) {
  SaveACut();
  Begin(job_);
  ASSERT_TRUE(Load().ok()) << "init_from";
  ASSERT_TRUE(Update({1, 1, 1}).ok());
  EXPECT_TRUE(BeginCut(1).ok());
  Commit(*Await(1));
  ASSERT_TRUE(Load().ok()) << "the best cut, for the test pass";
  EXPECT_EQ(BeginCut(2).code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(PsEngineCutTest, ATrainingTakesOfItsFirstModelWhatItMay) {
  SaveACut();
  JobConfig job = job_;
  job.set_init_from("runs/before");
  job.mutable_warm_start()->add_only("another_table");
  Begin(job);
  ASSERT_TRUE(Load().ok());
  EXPECT_EQ(Seven(), (Row{1, 1, 1}));
  ASSERT_TRUE(Update({.5, .5, .5}).ok());
  // The second load reads the best cut for the test pass. This is a cut of the run itself, so all
  // tables are loaded from it.
  ASSERT_TRUE(Load().ok());
  EXPECT_EQ(Seven(), (Row{0, 0, 0}));
  // Now the job's optimizer differs from that of the saved rows. The first load converts the rows,
  // because it expects a model. A later load expects a cut of the run itself, so it refuses them.
  job.mutable_warm_start()->clear_only();
  job.mutable_tables(0)->mutable_segments(0)->mutable_optimizer()->mutable_adam();
  Begin(job);
  ASSERT_TRUE(Load().ok());
  EXPECT_EQ(Seven(), (Row{0, 0, 0}));
  ASSERT_TRUE(Update({.5, .5, .5}).ok());
  EXPECT_EQ(Load().code(), absl::StatusCode::kFailedPrecondition);
  job.set_action(JobConfig::EVALUATE);
  Begin(job);
  EXPECT_EQ(Load().code(), absl::StatusCode::kFailedPrecondition) << "it scores the model as it is";
}

// A model may vanish after one PS has loaded it and before another has. Rank 0 then makes all PSs
// load a newer model.
TEST_F(PsEngineCutTest, TheModelThatARunBeginsWithMayBeLoadedAgainUntilSomethingIsTrained) {
  SaveACut();
  JobConfig job = job_;
  job.set_init_from("runs/before");
  job.mutable_tables(0)->mutable_segments(0)->mutable_optimizer()->mutable_adam();
  Begin(job);
  ASSERT_TRUE(Load().ok());
  ASSERT_TRUE(Load().ok()) << "as a first load: rows of another optimizer are converted";
  EXPECT_EQ(Seven(), (Row{0, 0, 0}));
  EXPECT_TRUE(BeginCut(1).ok()) << "the tables hold no other cut's rows";
}

TEST_F(PsEngineCutTest, RowsThatAJobBeginsWithAreThereAfterAWarmStart) {
  SaveACut();
  JobConfig job = job_;
  job.set_init_from("runs/before");
  FeatureConfig* feature = job.mutable_data()->add_features();
  feature->set_name("user");
  feature->set_table(job.tables(0).name());
  feature->set_preload_ids(10);
  Begin(job);
  pss_->engine().Preload();
  ASSERT_TRUE(Load().ok());
  EXPECT_EQ(Seven(), (Row{0, 0, 0}));
  EXPECT_EQ(pss_->engine().Stats()[0].rows(), 11u);
}

TEST_F(PsEngineCutTest, ALoadAbandonsACutThatIsBeingWritten) {
  SaveACut();
  ASSERT_TRUE(BeginCut(2).ok());
  Answers awaited;
  SendAwait(2, &awaited);
  ASSERT_TRUE(Load().ok());
  ASSERT_EQ(awaited.size(), 1u);
  AwaitCutAnswer answer;
  ASSERT_TRUE(answer.ParseFromString(awaited[0]->header));
  EXPECT_TRUE(answer.has_abandoned());
}

TEST_F(PsEngineCutTest, ALoadThatLeavesNoRowsForbidsUpdatesAndCutsUntilOneSucceeds) {
  SaveACut();
  const std::string path = directory_ + "/table_4_partitions_0000_0255.rows";
  const std::string content = *ReadFile(path, DiskFileSystem());
  std::string damaged = content;
  damaged.back() ^= 1;
  std::ofstream(path, std::ios::binary) << damaged;
  EXPECT_EQ(Load().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(pss_->engine().Stats()[0].rows(), 0u);
  EXPECT_EQ(Update({1, 1, 1}).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(BeginCut(2).code(), absl::StatusCode::kFailedPrecondition);
  std::ofstream(path, std::ios::binary) << content;
  ASSERT_TRUE(Load().ok());
  EXPECT_TRUE(Update({1, 1, 1}).ok());
  EXPECT_EQ(Seven(), (Row{-1, -1, -1}));
}

TEST_F(PsEngineCutTest, ALoadThatTakesLongIsHeldAndRunsOnce) {
  SaveACut();
  LoadTablesRequest request;
  request.set_directory(directory_);
  const rpc::Message message = Numbered(request);
  Answers first, second;
  pss_->Call(0, rpc::kLoadTables, message, &first);
  pss_->executor().AdvanceBy(5'000'000);
  ASSERT_EQ(first.size(), 1u);
  LoadTablesAnswer answer;
  ASSERT_TRUE(answer.ParseFromString(first[0]->header));
  EXPECT_EQ(answer.outcome(), OUTCOME_WAIT);
  pss_->Call(0, rpc::kLoadTables, message, &second);
  RunAll();
  ASSERT_EQ(second.size(), 1u);
  ASSERT_TRUE(second[0].ok()) << second[0].status();
  ASSERT_TRUE(answer.ParseFromString(second[0]->header));
  EXPECT_EQ(answer.outcome(), OUTCOME_DONE);
}

TEST_F(PsEngineCutTest, TheKillPointAfterTheMarkIsReachedOnceTheRowsAreMarked) {
  JobConfig job;
  job.add_kill_points()->set_point(KillPoint::PS_AFTER_MARK);
  int killed = 0;
  KillPoints kill_points(job, 0, 1, [&] { ++killed; });
  PsEngine::Options options;
  options.kill_points = &kill_points;
  Begin(job_, options);
  EXPECT_TRUE(BeginCut(1).ok());
  EXPECT_EQ(killed, 1);
}

TEST_F(PsEngineCutTest, AnOrderedPsBeginsWithTheStepOfTheCut) {
  PsEngine::Options options;
  options.first_step = 12;
  Begin(PsTestJob(JobConfig::SYNC, 1, 1), options);
  const auto look = [&](uint64_t step) {
    return pss_->CallAndWait(0, rpc::kLookup, Pss::LookupOf({7}, true, step)).status();
  };
  EXPECT_EQ(look(0).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(look(12).ok());
  const UpdateCall stale = UpdateOf(JobConfig::SYNC, 0, 11, {7}, {1, 1, 1});
  EXPECT_FALSE(pss_->CallAndWait(0, rpc::kUpdate, stale.Message()).ok());
  const UpdateCall next = UpdateOf(JobConfig::SYNC, 0, 12, {7}, {1, 1, 1});
  EXPECT_TRUE(pss_->CallAndWait(0, rpc::kUpdate, next.Message()).ok());
  EXPECT_TRUE(look(13).ok());
}

}  // namespace
}  // namespace satrap

#include "deploy/coordinator/ending/generation_end.h"

#include <string>
#include <utility>

#include "absl/types/optional.h"
#include "common/role/ending.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class GenerationEndTest : public ::testing::Test, public GenerationEnd::Host {
 protected:
  bool IsStopWished() const override { return stop_wished_; }
  void AddLostWork(Ending* how) const override {
    how->set_text(how->text() + "; 3 steps are lost");
    how->set_lost_steps(3);
  }
  void AppendDropped(const std::string& change, const Ending& how) override {
    EXPECT_FALSE(dropped_.has_value()) << "twice";
    EXPECT_EQ(change, before_.trial.change);
    dropped_ = how;
  }

  void AppendEnd(RunState state, const Ending&) override {
    EXPECT_FALSE(appended_.has_value()) << "twice";
    appended_ = state;
  }
  void AppendLeft(const Ending&) override {
    EXPECT_FALSE(appended_.has_value()) << "twice";
    appended_ = RESTARTING;
  }
  // Lets the log take the run's end. Nobody is told of the end before that.
  void Link(GenerationEnd* end) {
    ASSERT_TRUE(appended_.has_value());
    EXPECT_FALSE(end->has_ended());
    EXPECT_FALSE(end->OnEndAppended(absl::OkStatus(), /*absent=*/false));
    EXPECT_EQ(end->state(), *appended_);
    appended_.reset();
  }

  // A generation of a run that may restart `max_restarts` times. Everything else is as in before_.
  GenerationEnd Of(int max_restarts = 2) {
    before_.max_restarts = max_restarts;
    return GenerationEnd(before_, this);
  }
  GenerationEnd Running(int max_restarts = 2) {
    GenerationEnd end = Of(max_restarts);
    end.Begin();
    return end;
  }
  static Ending Loss(const std::string& text = "embedding_ps 0 is lost") {
    return EndingOf(Ending::MEMBER_LOST, EMBEDDING_PS, 0, text);
  }
  static Ending Failure(Ending::Kind kind) {
    Ending how = EndingOf(Ending::MEMBER_FAILED, NN_WORKER, 0, "nn_worker 0: it failed");
    how.set_kind(kind);
    return how;
  }
  void PutOnTrial(bool resumed) {
    before_.trial.change = "nn_worker.replicas from 1 to 2";
    before_.trial.resumed = resumed;
  }

  GenerationEnd::Before before_;
  bool stop_wished_ = false;
  absl::optional<Ending> dropped_;
  absl::optional<RunState> appended_;
};

TEST_F(GenerationEndTest, TheFirstCauseIsKept) {
  GenerationEnd end = Running();
  EXPECT_FALSE(end.has_ended());
  end.EndByLoss(Loss("the first"));
  EXPECT_EQ(end.state(), RESTARTING);
  end.EndForGood(Failure(Ending::DAMAGED));
  end.End(STOPPED, Loss());
  end.EndWithoutLastCut(Loss());
  end.OnDiskHang("the disk hangs");
  EXPECT_EQ(end.state(), RESTARTING);
  EXPECT_EQ(end.ending().text(), "the first");
  EXPECT_EQ(end.EndedError().message(), "this generation is over: the first");
}

TEST_F(GenerationEndTest, SaysWhetherAllWereReady) {
  GenerationEnd early = Of();
  EXPECT_TRUE(early.may_begin());
  early.EndByLoss(Loss());
  EXPECT_TRUE(early.ending().before_ready());
  EXPECT_FALSE(early.may_begin());
  GenerationEnd late = Running();
  EXPECT_FALSE(late.may_begin());
  late.EndByLoss(Loss());
  EXPECT_FALSE(late.ending().before_ready());
}

TEST_F(GenerationEndTest, ALossFailsTheRunOnceNoRestartIsLeftAndACutBringsThemBack) {
  before_.restarts_without_cut = 2;
  before_.recent_causes = "generation 1: a; generation 2: b";
  GenerationEnd end = Running();
  end.EndByLoss(Loss());
  Link(&end);
  EXPECT_EQ(end.state(), FAILED);
  EXPECT_EQ(end.ending().text(),
            "embedding_ps 0 is lost\n  and the run has restarted 2 times without a cut in between "
            "(max_restarts): generation 1: a; generation 2: b");
  EXPECT_THAT(std::string(end.EndedError().message()), HasSubstr("the run has failed: "));
  GenerationEnd after_cut = Running();
  after_cut.OnCut();
  after_cut.EndByLoss(Loss());
  EXPECT_EQ(after_cut.state(), RESTARTING);
  before_.restarts_without_cut = 0;
  GenerationEnd without = Running(/*max_restarts=*/0);
  without.EndByLoss(Loss());
  Link(&without);
  EXPECT_EQ(without.state(), FAILED);
  EXPECT_EQ(without.ending().text(), "embedding_ps 0 is lost") << "the cause alone";
}

TEST_F(GenerationEndTest, TheTableOfCausesDecidesWhetherARestartMayCure) {
  GenerationEnd cured = Running();
  cured.EndBy(Failure(Ending::PEER_AWAY));
  EXPECT_EQ(cured.state(), RESTARTING);
  GenerationEnd damaged = Running();
  damaged.EndBy(Failure(Ending::DAMAGED));
  Link(&damaged);
  EXPECT_EQ(damaged.state(), FAILED);
  before_.ended = Failure(Ending::NO_MEMORY);
  before_.ended.set_before_ready(true);
  GenerationEnd again = Of();
  again.EndBy(Failure(Ending::NO_MEMORY));
  Link(&again);
  EXPECT_EQ(again.state(), FAILED);
  EXPECT_THAT(again.ending().text(), HasSubstr("no restart cures it: give it more memory"));
  GenerationEnd ran = Running();
  ran.EndBy(Failure(Ending::NO_MEMORY));
  EXPECT_EQ(ran.state(), RESTARTING) << "all were ready this time";
}

TEST_F(GenerationEndTest, ALossDuringAStopIsAStopThatTellsWhatIsLost) {
  stop_wished_ = true;
  GenerationEnd end = Running(/*max_restarts=*/0);
  end.EndByLoss(Loss());
  Link(&end);
  EXPECT_EQ(end.state(), STOPPED);
  EXPECT_EQ(end.ending().text(), "stopped, but embedding_ps 0 is lost; 3 steps are lost");
  EXPECT_EQ(end.ending().lost_steps(), 3u);
}

TEST_F(GenerationEndTest, AnEndDuringAnAppendFollowsItByWhatIsKnownThen) {
  before_.restarts_without_cut = 2;
  GenerationEnd end = Running();
  ASSERT_TRUE(end.BeginAppend("cut_0001_000001 is committed").ok());
  end.EndByLoss(Loss("the first"));
  end.EndForGood(Failure(Ending::DAMAGED));
  EXPECT_EQ(end.state(), RUNNING);
  EXPECT_EQ(end.Told().state(), RESTARTING) << "the entry may bring the restarts back";
  EXPECT_EQ(end.Told().ending().text(), "the first");
  end.OnCut();
  end.FinishAppend();
  EXPECT_EQ(end.state(), RESTARTING);
  EXPECT_EQ(end.ending().text(), "the first");
  EXPECT_EQ(end.Told().state(), RESTARTING);
  EXPECT_FALSE(end.BeginAppend("x").ok());
  EXPECT_FALSE(end.appends());
}

TEST_F(GenerationEndTest, WithoutACutTheEndThatWasPutOffIsAFailureAndItsMemberHearsSo) {
  before_.restarts_without_cut = 2;
  GenerationEnd end = Running();
  ASSERT_TRUE(end.BeginAppend("").ok());
  end.EndByLoss(Loss());
  end.FinishAppend();
  EXPECT_EQ(end.Told().state(), RESTARTING) << "it is not in the log yet";
  Link(&end);
  EXPECT_EQ(end.state(), FAILED);
  EXPECT_EQ(end.Told().state(), FAILED);
  end.FinishAppend();
  EXPECT_EQ(end.state(), FAILED) << "nothing is appended any more";
}

TEST_F(GenerationEndTest, AnEntryThatIsTheEndPrecedesOneThatWasPutOff) {
  GenerationEnd end = Running();
  ASSERT_TRUE(end.BeginAppend("the run has finished").ok());
  end.EndByLoss(Loss());
  end.SetEnd(FINISHED, Ending());
  end.FinishAppend();
  EXPECT_EQ(end.state(), FINISHED);
  EXPECT_EQ(end.ending().text(), "");
  EXPECT_EQ(end.EndedError().message(), "the run has finished");
}

TEST_F(GenerationEndTest, AnEntryThatIsCertainlyNotThereEndsNothing) {
  GenerationEnd end = Running();
  ASSERT_TRUE(end.BeginAppend("cut_0001_000001 is committed").ok());
  EXPECT_TRUE(end.EndUnlessKnown(absl::ResourceExhaustedError("no space left"), /*absent=*/true));
  end.FinishAppend();
  EXPECT_EQ(end.state(), RUNNING);
}

TEST_F(GenerationEndTest, AnEntryOfWhichNobodyKnowsEndsTheGenerationAndNeverTheRun) {
  GenerationEnd end = Running(/*max_restarts=*/0);
  ASSERT_TRUE(end.BeginAppend("cut_0001_000001 is committed").ok());
  EXPECT_FALSE(end.EndUnlessKnown(absl::DataLossError("no sync"), /*absent=*/false));
  EXPECT_EQ(end.state(), RUNNING) << "not before the append is over";
  end.FinishAppend();
  EXPECT_EQ(end.state(), RESTARTING) << "it may be a cut";
  EXPECT_EQ(end.ending().why(), Ending::LOG_NOT_WRITTEN);
  stop_wished_ = true;
  GenerationEnd stopped = Running();
  ASSERT_TRUE(stopped.BeginAppend("cut_0001_000001 is committed").ok());
  EXPECT_FALSE(stopped.EndUnlessKnown(absl::DataLossError("no sync"), /*absent=*/false));
  stopped.FinishAppend();
  EXPECT_EQ(stopped.state(), STOPPED);
  EXPECT_THAT(stopped.ending().text(),
              AllOf(HasSubstr("it is not known whether cut_0001_000001 is committed"),
                    Not(HasSubstr("3 steps"))));
}

TEST_F(GenerationEndTest, AnotherCoordinatorThatWasFasterIsTheFailureOfNobody) {
  for (const absl::Status& error : {absl::AlreadyExistsError("x"), absl::AbortedError("x")}) {
    GenerationEnd end = Running(/*max_restarts=*/0);
    ASSERT_TRUE(end.BeginAppend("cut_0001_000001 is committed").ok());
    end.EndUnlessKnown(error, /*absent=*/absl::IsAlreadyExists(error));
    end.FinishAppend();
    EXPECT_EQ(end.state(), RESTARTING);
    EXPECT_EQ(end.ending().why(), Ending::SUPERSEDED) << "the first cause";
  }
}

TEST_F(GenerationEndTest, ADiskThatHangsEndsAnAppendWhoseOutcomeNobodyKnows) {
  GenerationEnd end = Running(/*max_restarts=*/0);
  ASSERT_TRUE(end.BeginAppend("cut_0001_000001 is committed").ok());
  end.OnDiskHang("the disk hangs");
  EXPECT_EQ(end.state(), RESTARTING);
  EXPECT_EQ(end.ending().why(), Ending::DISK_HANGS);
  EXPECT_FALSE(end.appends());
  end.FinishAppend();
  EXPECT_EQ(end.ending().text(), "the disk hangs");
  GenerationEnd waiting = Running();
  ASSERT_TRUE(waiting.BeginAppend("").ok());
  waiting.EndByLoss(Loss());
  waiting.OnDiskHang("the disk hangs");
  EXPECT_EQ(waiting.ending().text(), "embedding_ps 0 is lost; the disk hangs")
      << "what came first, and why it took so long";
}

TEST_F(GenerationEndTest, NobodyIsToldOfTheRunsEndBeforeItsLogHasIt) {
  GenerationEnd end = Of();
  end.End(STOPPED, Loss("it was stopped"));
  EXPECT_TRUE(end.is_linking());
  EXPECT_EQ(end.state(), STARTING);
  EXPECT_FALSE(end.may_begin());
  EXPECT_FALSE(end.BeginAppend("cut_0001_000001 is committed").ok());
  EXPECT_EQ(end.Told().state(), RESTARTING);
  end.EndByLoss(Loss());
  end.EndForGood(Failure(Ending::DAMAGED));
  end.End(STOPPED, Loss());
  end.OnDiskHang("the disk hangs");
  EXPECT_EQ(end.state(), STARTING);
  Link(&end);
  EXPECT_EQ(end.ending().text(), "it was stopped") << "the first cause";
}

Ending Moved() { return EndingOf(Ending::MOVED, COORDINATOR, 0, "it leaves its machine"); }

TEST_F(GenerationEndTest, AMoveWithoutACutIsToldOnceTheLogHasItOrHasRefusedIt) {
  for (const auto& [status, absent] :
       {std::make_pair(absl::OkStatus(), false),
        std::make_pair(absl::ResourceExhaustedError("no space left"), true),
        std::make_pair(absl::DataLossError("no sync"), false)}) {
    before_.in_pods = true;
    appended_.reset();
    GenerationEnd end = Of();
    end.EndMoved(Moved());
    EXPECT_TRUE(end.is_linking());
    EXPECT_EQ(end.ending_due(), nullptr) << "the run goes on";
    EXPECT_EQ(end.state(), STARTING);
    EXPECT_FALSE(end.may_begin());
    EXPECT_EQ(end.EndedError().message(), "this generation is over: it leaves its machine");
    end.EndByLoss(Loss());
    EXPECT_FALSE(end.OnEndAppended(status, absent)) << "it is not asked again";
    EXPECT_EQ(end.state(), RESTARTING);
    EXPECT_EQ(end.ending().why(), Ending::MOVED);
  }
}

TEST_F(GenerationEndTest, InPodsTheRunsEndIsLeftToTheNextCoordinatorIfTheDiskHangs) {
  before_.in_pods = true;
  GenerationEnd end = Running();
  end.EndForGood(Failure(Ending::DAMAGED));
  ASSERT_NE(end.ending_due(), nullptr);
  EXPECT_EQ(end.ending_due()->text(), "nn_worker 0: it failed");
  end.OnDiskHang("a disk hangs");
  EXPECT_EQ(end.state(), RESTARTING);
  EXPECT_EQ(end.ending().why(), Ending::LOG_NOT_WRITTEN);
  EXPECT_EQ(end.ending().text(), "a disk hangs; the run was about to end: nn_worker 0: it failed");
  EXPECT_FALSE(end.OnEndAppended(absl::OkStatus(), /*absent=*/false)) << "too late";
  EXPECT_EQ(end.state(), RESTARTING);
}

TEST_F(GenerationEndTest, ALogThatCertainlyHasNoEndIsAskedAgain) {
  for (const bool in_pods : {false, true}) {
    before_.in_pods = in_pods;
    GenerationEnd end = Running();
    end.EndForGood(Failure(Ending::DAMAGED));
    EXPECT_TRUE(end.OnEndAppended(absl::ResourceExhaustedError("no space left"), /*absent=*/true));
    EXPECT_EQ(end.state(), RUNNING);
    Link(&end);
    EXPECT_EQ(end.state(), FAILED);
  }
}

TEST_F(GenerationEndTest, ALauncherIsToldAnEndThatNoLogTakes) {
  GenerationEnd end = Running();
  end.EndForGood(Failure(Ending::DAMAGED));
  end.EndWithoutLog();
  EXPECT_EQ(end.state(), FAILED);
  EXPECT_EQ(end.ending().text(), "nn_worker 0: it failed");
  EXPECT_FALSE(end.OnEndAppended(absl::DataLossError("x"), /*absent=*/true)) << "too late";
  GenerationEnd goes_on = Running();
  goes_on.EndWithoutLog();
  EXPECT_EQ(goes_on.state(), RUNNING);
}

// In pods the next coordinator decides, because it may find the entry in the log.
TEST_F(GenerationEndTest, OnAnEndOfWhichNobodyKnowsALauncherRelies) {
  GenerationEnd local = Running();
  local.EndForGood(Failure(Ending::DAMAGED));
  EXPECT_FALSE(local.OnEndAppended(absl::DataLossError("no sync"), /*absent=*/false));
  EXPECT_EQ(local.state(), FAILED);
  appended_.reset();
  before_.in_pods = true;
  GenerationEnd pods = Running();
  pods.EndForGood(Failure(Ending::DAMAGED));
  EXPECT_FALSE(pods.OnEndAppended(absl::DataLossError("no sync"), /*absent=*/false));
  EXPECT_EQ(pods.state(), RESTARTING);
  EXPECT_EQ(pods.ending().why(), Ending::LOG_NOT_WRITTEN);
  EXPECT_THAT(pods.ending().text(),
              HasSubstr("no sync; the run was about to end: nn_worker 0: it failed"));
}

TEST_F(GenerationEndTest, AfterAnEntryOfWhichNobodyKnowsNoEndIsAppended) {
  stop_wished_ = true;
  before_.in_pods = true;
  GenerationEnd end = Running();
  ASSERT_TRUE(end.BeginAppend("cut_0001_000001 is committed").ok());
  end.EndUnlessKnown(absl::DataLossError("no sync"), /*absent=*/false);
  end.FinishAppend();
  EXPECT_FALSE(appended_.has_value());
  EXPECT_EQ(end.state(), RESTARTING) << "the next process may append";
  EXPECT_EQ(end.ending().why(), Ending::LOG_NOT_WRITTEN);
}

TEST_F(GenerationEndTest, AnotherCoordinatorPrecedesAnEndThatIsNotInTheLog) {
  GenerationEnd end = Running();
  end.EndForGood(Failure(Ending::DAMAGED));
  end.EndSuperseded();
  EXPECT_EQ(end.state(), RESTARTING);
  EXPECT_EQ(end.ending().why(), Ending::SUPERSEDED);
  appended_.reset();
  GenerationEnd faster = Running();
  faster.EndForGood(Failure(Ending::DAMAGED));
  EXPECT_FALSE(faster.OnEndAppended(absl::AlreadyExistsError("x"), /*absent=*/true));
  EXPECT_EQ(faster.state(), RESTARTING);
  EXPECT_EQ(faster.ending().why(), Ending::SUPERSEDED);
}

TEST_F(GenerationEndTest, AMoveWithoutACutTellsWhatIsLostAndTheRunGoesOn) {
  GenerationEnd end = Running(/*max_restarts=*/0);
  end.EndMoveWithoutCut(EndingOf(Ending::MOVED, "it leaves its machine"));
  Link(&end);
  EXPECT_EQ(end.state(), RESTARTING);
  EXPECT_EQ(end.ending().why(), Ending::MOVED);
  EXPECT_EQ(end.ending().text(), "it leaves its machine; 3 steps are lost");
}

TEST_F(GenerationEndTest, AJobOnTrialIsDroppedBeforeTheEndAndTheRunGoesOn) {
  PutOnTrial(/*resumed=*/false);
  GenerationEnd end = Of(/*max_restarts=*/0);
  end.EndBy(Failure(Ending::REFUSED));
  ASSERT_TRUE(dropped_.has_value());
  EXPECT_EQ(dropped_->text(), "nn_worker 0: it failed");
  EXPECT_EQ(end.state(), STARTING);
  EXPECT_FALSE(end.may_begin());
  EXPECT_EQ(end.Told().state(), RESTARTING);
  end.EndByLoss(Loss());
  end.OnDropAppended(absl::OkStatus(), *dropped_);
  EXPECT_EQ(end.state(), RESTARTING);
  EXPECT_EQ(end.ending().text(),
            "nn_worker 0: it failed\n  the change of the job is dropped: nn_worker.replicas from 1 "
            "to 2");
}

TEST_F(GenerationEndTest, AStopWhileAJobIsDroppedStopsTheRun) {
  PutOnTrial(/*resumed=*/false);
  GenerationEnd end = Of();
  end.EndBy(Failure(Ending::REFUSED));
  Ending stopped = EndingOf(Ending::ASKED, "stopped on request; nothing is lost");
  stopped.set_loss(Ending::NOTHING);
  end.End(STOPPED, stopped);
  EXPECT_EQ(end.state(), STARTING) << "not before it is in the log";
  end.EndByLoss(Loss());
  end.OnDropAppended(absl::OkStatus(), *dropped_);
  Link(&end);
  EXPECT_EQ(end.state(), STOPPED);
  EXPECT_EQ(end.ending().why(), Ending::ASKED);
  EXPECT_EQ(end.ending().loss(), Ending::NOTHING);
  EXPECT_EQ(end.ending().text(), "stopped on request; nothing is lost")
      << "the entry DROPPED says the rest";
}

TEST_F(GenerationEndTest, AStopWhileAResumedJobIsDroppedLeavesTheFailure) {
  PutOnTrial(/*resumed=*/true);
  GenerationEnd end = Of();
  end.EndBy(Failure(Ending::REFUSED));
  const FailAnswer told = end.Told();
  end.End(STOPPED, EndingOf(Ending::ASKED, "stopped on request"));
  EXPECT_EQ(end.Told().SerializeAsString(), told.SerializeAsString());
  end.OnDropAppended(absl::OkStatus(), *dropped_);
  Link(&end);
  EXPECT_EQ(end.state(), FAILED) << "somebody waits for it";
  EXPECT_EQ(end.ending().why(), Ending::MEMBER_FAILED);
  EXPECT_EQ(end.ending().text(),
            "nn_worker 0: it failed\n  the change of the job is dropped: nn_worker.replicas from 1 "
            "to 2; the next `satrap resume` uses the earlier job");
}

TEST_F(GenerationEndTest, WhoHasResumedWithAJobThatIsDroppedIsTold) {
  PutOnTrial(/*resumed=*/true);
  GenerationEnd end = Of();
  end.EndBy(Failure(Ending::REFUSED));
  EXPECT_EQ(end.Told().state(), RESTARTING) << "not before it is in the log";
  end.OnDropAppended(absl::OkStatus(), *dropped_);
  Link(&end);
  EXPECT_EQ(end.state(), FAILED);
  EXPECT_THAT(end.ending().text(), HasSubstr("the next `satrap resume` uses the earlier job"));
}

TEST_F(GenerationEndTest, AJobOnTrialIsKeptAfterALossAndWhereItIsNotTheCause) {
  PutOnTrial(/*resumed=*/false);
  GenerationEnd lost = Of();
  lost.EndBy(Failure(Ending::PEER_AWAY));
  EXPECT_EQ(lost.state(), RESTARTING);
  GenerationEnd full = Of();
  full.EndBy(Failure(Ending::NO_ROOM));
  EXPECT_EQ(full.state(), RESTARTING) << "the disk may have room later";
  GenerationEnd runs = Running();
  runs.EndBy(Failure(Ending::REFUSED));
  Link(&runs);
  EXPECT_EQ(runs.state(), FAILED);
  Ending away = EndingOf(Ending::TOPICS, "no broker answers");
  away.set_kind(Ending::PEER_AWAY);
  GenerationEnd waits = Of();
  waits.EndBy(away);
  Link(&waits);
  EXPECT_EQ(waits.state(), FAILED);
  EXPECT_FALSE(dropped_.has_value());
  before_.trial.changes_topics = true;
  GenerationEnd wrong = Of();
  wrong.EndBy(away);
  EXPECT_TRUE(dropped_.has_value()) << "it may name the wrong broker";
}

TEST_F(GenerationEndTest, ADropThatIsNotWrittenOrHangsIsALoss) {
  PutOnTrial(/*resumed=*/false);
  const struct {
    absl::Status status;
    Ending::Why why;
  } cases[] = {{absl::DataLossError("no sync"), Ending::LOG_NOT_WRITTEN},
               {absl::AlreadyExistsError("x"), Ending::SUPERSEDED},
               {absl::AbortedError("x"), Ending::SUPERSEDED}};
  for (const auto& each : cases) {
    dropped_.reset();
    GenerationEnd end = Of();
    end.EndBy(Failure(Ending::REFUSED));
    end.OnDropAppended(each.status, *dropped_);
    EXPECT_EQ(end.state(), RESTARTING);
    EXPECT_EQ(end.ending().why(), each.why);
  }
  dropped_.reset();
  GenerationEnd hangs = Of();
  hangs.EndBy(Failure(Ending::REFUSED));
  hangs.OnDiskHang("the disk hangs");
  EXPECT_EQ(hangs.state(), RESTARTING);
  EXPECT_EQ(hangs.ending().why(), Ending::DISK_HANGS);
  hangs.OnDropAppended(absl::OkStatus(), *dropped_);
  EXPECT_EQ(hangs.ending().why(), Ending::DISK_HANGS) << "the end has been told";
}

}  // namespace
}  // namespace satrap

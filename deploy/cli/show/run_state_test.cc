#include "deploy/cli/show/run_state.h"

#include <filesystem>
#include <fstream>
#include <string>

#include "common/checkpoint/run_log.h"
#include "common/config/text_format.h"
#include "deploy/launcher/testing/logged_run.h"
#include "gmock/gmock.h"

namespace satrap {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class RunStateTest : public LoggedRunTest {
 protected:
  // Writes the log of a run of three generations, and the run's cut.
  void MakeRun() {
    WriteCut(dir_, 1, 1, 800);
    Append("generation { generation: 1 cause: 'start' job { name: 'demo' } }");
    Append(
        "unix_ms: 5000 cut { generation: 1 cut: 'cut_0001_000001' step: 800 bytes: 1500 "
        "seconds: 0.5 }");
    Append(
        "generation { generation: 2 cut: 'cut_0001_000001' cause: 'data_loader 0 died' "
        "job { name: 'demo' } }");
    Append(
        "generation { generation: 3 cut: 'cut_0001_000001' cause: 'resume' "
        "job { name: 'demo' } }");
  }
  std::string Text() const {
    const auto text = EndedRunText(dir_, 15000);
    EXPECT_TRUE(text.ok()) << text.status();
    return text.value_or("");
  }
};

constexpr char kHistory[] =
    "cuts: the last is cut_0001_000001 at step 800, 1.5 KB, 10.0 s ago, written in 0.5 s\n"
    "restarts after failures: 1\n"
    "  generation 2 from step 800: data_loader 0 died\n"
    "resumed, scaled or moved:\n"
    "  generation 3 from step 800: resume\n";

TEST_F(RunStateTest, ARunWithoutProcessesIsToldFromItsLog) {
  MakeRun();
  EXPECT_EQ(
      Text(),
      "run " + dir_ +
          " is not running: it was stopped, interrupted or killed before its end, or it failed and "
          "failure.txt could not be written\n" +
          kHistory + "`satrap resume " + dir_ + "` continues from step 800 (cut_0001_000001)\n" +
          "its logs are in " + dir_ + "/logs\n");
}

TEST_F(RunStateTest, AChangeThatWasDroppedIsTold) {
  MakeRun();
  EXPECT_THAT(Text(), Not(HasSubstr("dropped")));
  Append(
      "dropped { generation: 3 change: 'nn_worker.device from CPU to CUDA' ended { text: "
      "'nn_worker 0: there is no card' } }");
  EXPECT_THAT(Text(),
              HasSubstr("changes of the job that were dropped:\n  generation 3: "
                        "nn_worker.device from CPU to CUDA: nn_worker 0: there is no card\n"));
}

TEST_F(RunStateTest, AFailedRunSaysWhy) {
  MakeRun();
  std::ofstream(dir_ + "/failure.txt") << "out of luck\n";
  EXPECT_THAT(Text(), AllOf(HasSubstr(" has failed: out of luck\n"), HasSubstr(kHistory),
                            HasSubstr("` continues from step 800")));
}

TEST_F(RunStateTest, TheEndInTheLogIsToldIfNoLauncherHasWrittenOne) {
  MakeRun();
  Append("end { state: STOPPED submission: 1 ending { why: ASKED text: 'stopped on request' } }");
  EXPECT_THAT(Text(), AllOf(HasSubstr(" was stopped: stopped on request\n"), HasSubstr(kHistory),
                            HasSubstr("` continues from step 800")));
  Append("generation { generation: 9 began: BEGAN_RESUME submission: 2 cut: 'cut_0001_000001' }");
  EXPECT_THAT(Text(), AllOf(HasSubstr(" is not running: "), Not(HasSubstr(" was stopped: "))))
      << "it was resumed since";
  Append(
      "end { state: FAILED submission: 2 ending { text: 'a.rows is damaged' advice: "
      "RESUME_FROM_ANOTHER_CUT } }");
  EXPECT_THAT(Text(), AllOf(HasSubstr(" has failed: a.rows is damaged\n"),
                            HasSubstr("` lists the cuts to continue from\n"),
                            Not(HasSubstr("` continues from step"))));
}

TEST_F(RunStateTest, TheFailureOfAnEarlierSubmissionIsNotThatOfARunThatWasStopped) {
  MakeRun();
  std::ofstream(dir_ + "/failure.txt") << "a.rows is damaged\n";
  std::ofstream(dir_ + "/ending.textproto") << "advice: RESUME_FROM_ANOTHER_CUT\n";
  Append("end { state: STOPPED submission: 2 ending { text: 'stopped on request' } }");
  EXPECT_THAT(Text(), AllOf(HasSubstr(" was stopped: stopped on request\n"),
                            HasSubstr("` continues from step 800"), Not(HasSubstr("damaged"))));
}

TEST_F(RunStateTest, ARunThatFailedOfItsCutIsNotSentIntoTheSameFailure) {
  MakeRun();
  std::ofstream(dir_ + "/failure.txt") << "a.rows is damaged\n";
  std::ofstream(dir_ + "/ending.textproto") << "advice: RESUME_FROM_ANOTHER_CUT\n";
  EXPECT_THAT(Text(), AllOf(HasSubstr("` lists the cuts to continue from\n"),
                            Not(HasSubstr("` continues from step"))));
}

TEST_F(RunStateTest, WordsOfAFailureAreNoAdvice) {
  MakeRun();
  std::ofstream(dir_ + "/failure.txt")
      << "a log says: continue from another cut with `satrap resume RUN --from CUT`\n";
  std::ofstream(dir_ + "/ending.textproto") << "why: MEMBER_FAILED\n";
  EXPECT_THAT(Text(), HasSubstr("` continues from step 800"));
}

TEST_F(RunStateTest, AnOldRunThatFailedOfItsCutIsKnownByItsText) {
  MakeRun();
  std::ofstream(dir_ + "/failure.txt")
      << "a.rows is damaged; go on from another cut with `satrap resume RUN --from CUT`\n";
  EXPECT_THAT(Text(), AllOf(HasSubstr("` lists the cuts to continue from\n"),
                            Not(HasSubstr("` continues from step"))));
}

TEST_F(RunStateTest, ADamagedNewestCutIsToldAndNoPlaceToGoOnFrom) {
  MakeRun();
  fs::remove_all(FolderOfCut(dir_, "cut_0001_000001"));
  EXPECT_THAT(Text(), AllOf(HasSubstr("the newest cut, cut_0001_000001, is missing: "),
                            HasSubstr("--from CUT"), Not(HasSubstr("continues from step"))));
}

TEST_F(RunStateTest, AFinishedRunShowsItsReportOrElseTheResultOfTheLog) {
  MakeRun();
  Append("end { result { steps: 1234 samples: 5000 test { auc: 0.75 } model_dir: 'M' } }");
  EXPECT_THAT(Text(), AllOf(HasSubstr(" has finished:\ntrained 5,000 samples in 1,234 steps; test "
                                      "AUC 0.75000; the model is M\n"),
                            HasSubstr(kHistory), Not(HasSubstr("satrap resume"))));
  std::ofstream(dir_ + "/report.json") << "{\"job\":\"demo\"}\n";
  EXPECT_THAT(Text(), AllOf(Not(HasSubstr("{")), HasSubstr("trained 5,000 samples")))
      << "what is for programs is not shown, also of a build that wrote nothing else";
  std::ofstream(dir_ + "/report.txt") << "trained      a lot\nwhole run    3.0 s\n";
  EXPECT_THAT(Text(), AllOf(HasSubstr(" has finished:\ntrained      a lot\nwhole run    3.0 s\n"),
                            HasSubstr(kHistory), Not(HasSubstr("5,000"))));
}

TEST_F(RunStateTest, ARunThatNeverBeganIsNotResumed) {
  EXPECT_THAT(Text(), AllOf(HasSubstr("it never began"), Not(HasSubstr("satrap resume"))));
}

TEST_F(RunStateTest, ARunningRunTellsHowFarItIsBehindItsTopics) {
  StatusAnswer status;
  EXPECT_THAT(RunningRunText("RUN", status), Not(HasSubstr("topics")));
  ASSERT_TRUE(ParseText(R"(topics { partitions {} partitions {} late_records: 3 dead_letters: 1200
                                    lag_messages: 1234 lag_seconds: 0.84
                                    watermark_ms: 1777593600000 })",
                        "status", &status)
                  .ok());
  EXPECT_THAT(RunningRunText("RUN", status),
              HasSubstr("topics: 2 partitions, lag 1,234 messages (0.8 s), watermark "
                        "2026-05-01T00:00:00Z; in this generation 3 late records, 1,200 dead "
                        "letters, 0 lost messages\n"));
}

TEST_F(RunStateTest, ARunInProgressShowsItsCutsAndWhyGenerationsBegan) {
  StatusAnswer status;
  ASSERT_TRUE(ParseText(R"(job_name: 'demo' generation: 3 state: RUNNING seconds: 2
      train { epoch: 0 step: 900 phase: 'training' }
      last_cut { cut: 'cut_0001_000001' step: 800 bytes: 1500 age_seconds: 10 seconds: 0.5 }
      restarts { generation: 2 from_step: 800 cause: 'data_loader 0 died' began: BEGAN_RESTART }
      restarts { generation: 3 from_step: 800 cause: 'resume' began: BEGAN_RESUME })",
                        "status", &status)
                  .ok());
  EXPECT_THAT(RunningRunText("RUN", status),
              AllOf(HasSubstr("job 'demo' in RUN, generation 3, for 2.0 s: RUNNING\ntraining"),
                    HasSubstr(kHistory)));
  status.clear_restarts();
  status.clear_last_cut();
  EXPECT_THAT(RunningRunText("RUN", status),
              HasSubstr("cuts: none yet\nrestarts after failures: 0\n"));
}

TEST(RunningRunTextTest, TellsAnEndThatTheLogHasNotTakenYet) {
  StatusAnswer status;
  status.set_state(RUNNING);
  status.set_writes_end(true);
  status.mutable_ending()->set_text("nn_worker 0: it is wrong");
  EXPECT_THAT(RunningRunText("RUN", status),
              HasSubstr("\nthe run is ending, but its end could not be written to its log yet, and "
                        "writing is retried: "
                        "nn_worker 0: it is wrong\n"));
}

TEST(RunningRunTextTest, NamesWhoWaitsForAPlaceAndWhy) {
  StatusAnswer status;
  WaitingProcess* waiting = status.add_waiting();
  waiting->mutable_member()->set_role(EMBEDDING_PS);
  waiting->mutable_member()->set_index(1);
  waiting->set_holder("0f3a");
  waiting->set_seconds(12.4);
  waiting->set_why("embedding_ps 1 was built from other sources");
  EXPECT_THAT(
      RunningRunText("RUN", status),
      HasSubstr("\n  embedding_ps 1       has waited 12 s for a place, pod 0f3a: embedding_ps "
                "1 was built from other sources\n"));
}

TEST(RunningRunTextTest, TellsTheMemoryOfAProcessAndInPodsItsLimit) {
  StatusAnswer status;
  ASSERT_TRUE(ParseText("roles { member { role: EMBEDDING_PS index: 1 pid: 7 } ready: true "
                        "memory_bytes: 123400000 }",
                        "status", &status)
                  .ok());
  JobConfig job;
  job.mutable_kubernetes()->mutable_embedding_ps()->set_memory("256Mi");
  EXPECT_THAT(RunningRunText("RUN", status), HasSubstr(", memory 123.4 MB\n"));
  EXPECT_THAT(RunningRunText("RUN", status, &job), HasSubstr(", memory 123.4 MB of 256Mi\n"));
  job.mutable_kubernetes()->mutable_embedding_ps()->clear_memory();
  EXPECT_THAT(RunningRunText("RUN", status, &job), HasSubstr(", memory 123.4 MB\n"));
}

TEST(RunningRunTextTest, TellsTheWarningsOfARunThatTrains) {
  StatusAnswer status;
  status.set_state(RUNNING);
  EXPECT_THAT(RunningRunText("RUN", status), Not(HasSubstr("warning")));
  status.mutable_train()->mutable_moving_label_rate()->set_highest(.5);
  status.mutable_train()->set_metrics_file_hangs_seconds(9);
  EXPECT_THAT(RunningRunText("RUN", status),
              AllOf(HasSubstr("\nwarning: the label rate drifts"),
                    HasSubstr("\nwarning: no line of metrics.jsonl could be written")));
}

}  // namespace
}  // namespace satrap

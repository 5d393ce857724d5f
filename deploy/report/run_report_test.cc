#include "deploy/report/run_report.h"

#include <cmath>
#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

RunReport TrainedReport() {
  JobConfig job;
  job.set_name("demo");
  job.set_run_dir("runs/demo-1");
  StatusAnswer status;
  RunResult* result = status.mutable_result();
  result->set_samples(1000000);
  result->set_steps(245);
  result->set_train_seconds(20);
  result->mutable_test()->set_samples(100);
  result->mutable_test()->set_auc(0.8125);
  result->mutable_test()->set_logloss(0.5);
  for (const auto& [name, rows] : {std::pair<const char*, int>{"users", 10}, {"items", 20}}) {
    TableStats* table = result->add_tables();
    table->set_name(name);
    table->set_rows(rows);
    table->set_bytes(rows * 100);
  }
  result->set_bad_records(5);
  result->set_empty_lines(1);
  for (const int bad : {3, 4}) {
    LoaderProgress* loader = status.add_roles()->mutable_loader();
    loader->set_quarantined(100);
    loader->set_evaluation_quarantined(static_cast<uint64_t>(bad));
  }
  return MakeRunReport(job, status, 30);
}

TEST(RunReport, CountsBadRecordsByLedgerAndLoadersAndDividesByTrainingTimeOnly) {
  const std::string json = ReportJson(TrainedReport());
  EXPECT_THAT(json, HasSubstr(R"("quarantined":12,"empty_lines":1,"generations":1,"restarts":[],)"
                              R"("resumes":0,"scales":0,)"));
  EXPECT_THAT(json, HasSubstr(R"("samples_per_second":50000,)"));
  EXPECT_THAT(json, HasSubstr(R"("wall_seconds":30,)"));
  EXPECT_THAT(json, HasSubstr(R"("tables":[{"name":"users","rows":10,"bytes":1000},)"));
  EXPECT_THAT(json, HasSubstr(R"("rows":30,"bytes":3000,)"));
}

// A report in which every field is set.
RunReport FullReport() {
  RunReport report = TrainedReport();
  RunResult& result = report.result;
  report.job_name = "a \"job\"\n";
  for (MetricValues* pass : {result.mutable_valid(), result.mutable_test()}) {
    pass->set_samples(3);
    pass->set_auc(.7765432109876543);
    pass->set_logloss(1e-7);
    pass->set_normalised_entropy(std::nan(""));
    pass->set_calibration(1e300);
    pass->set_mae(.1);
    pass->set_mse(std::numeric_limits<double>::infinity());
    pass->set_rmse(1.0 / 3);
    pass->set_gauc_by_samples(.5);
    pass->set_gauc_groups(7);
    pass->set_gauc_groups_left_out(8);
    pass->set_positives(2);
  }
  for (const char* name : {"rating", "ctr"}) {
    TaskMetricValues* const task = result.mutable_test()->add_tasks();
    task->set_name(name);
    task->mutable_values()->set_auc(.75);
    task->mutable_values()->set_positives(1);
  }
  result.set_tail_calibration(1.0625);
  result.set_tail_calibration_samples(100000);
  result.mutable_gradient_norms()->set_steps(12);
  result.mutable_gradient_norms()->set_clipped_steps(3);
  result.mutable_gradient_norms()->set_sum(30);
  result.mutable_gradient_norms()->set_last(12.25);
  result.set_skipped_steps(4);
  result.set_overflowed_steps(2);
  result.set_large_gradient_steps(1);
  result.set_stopped_early(true);
  result.set_best_step(240);
  result.set_model_dir("/m");
  result.set_model_digest(0xabc);
  report.bayes_auc = .83;
  report.batch_scaling = "rates x2";
  report.learning_rate_factor = .01;
  report.reductions = 2;
  report.generations = 18446744073709551615u;
  report.restarts.emplace_back().set_generation(2);
  report.restarts[0].set_cause("killed");
  report.restarts[0].set_from_step(40);
  report.resumes = 1;
  report.scales = 2;
  report.warm_start = WarmStartResult();
  report.warm_start->set_model("/before");
  report.warm_start->add_tables()->set_name("users");
  report.warm_start->mutable_tables(0)->set_rows(9);
  report.warm_start->add_fresh("top");
  report.warnings = {"x is far", "y"};
  report.run_dir = "/r";
  return report;
}

// The expected text is what the earlier, hand-written JSON writer made of the same report.
TEST(RunReport, TheJsonIsByteForByteThatOfTheFormat) {
  const std::string pass =
      R"({"samples":3,"auc":0.7765432109876543,"logloss":1e-07,"normalised_entropy":null,)"
      R"("calibration":1e+300,"mae":0.1,"mse":null,"rmse":0.3333333333333333,)"
      R"("gauc_by_samples":0.5,"gauc_groups":7,"gauc_groups_left_out":8)";
  EXPECT_EQ(
      ReportJson(FullReport()),
      R"({"job":"a \"job\"\u000a","action":"TRAIN","samples":1000000,"steps":245,)"
      R"("train_seconds":20,"wall_seconds":30,"samples_per_second":50000,"valid":)" +
          pass + R"(},"test":)" + pass +
          R"(,"tasks":{"rating":{"samples":0,"auc":0.75},"ctr":{"samples":0,"auc":0.75}}},)"
          R"("tail_calibration":1.0625,"tail_calibration_samples":100000,"bayes_auc":0.83,)"
          R"("quarantined":12,"empty_lines":1,"batch_scaling":"rates x2",)"
          R"("learning_rate_factor":0.01,"reductions":2,)"
          R"("gradient_norm":{"last":12.25,"mean":2.5,"steps":12,"clipped_steps":3},)"
          R"("generations":18446744073709551615,)"
          R"("restarts":[{"generation":2,"cause":"killed","from_step":40}],"resumes":1,"scales":2,)"
          R"("warm_start":{"model":"/before","step":0,"tables":[{"name":"users","rows":9,)"
          R"("features":[],"features_without_rows":[]}],"parameters":[],"optimizer_state":false,)"
          R"("fresh":["top"],"ignored":[],"warnings":[]},"skipped_steps":4,"overflowed_steps":2,)"
          R"("large_gradient_steps":1,"warnings":["x is far","y"],"stopped_early":true,)"
          R"("best_step":240,"tables":[{"name":"users","rows":10,"bytes":1000},)"
          R"({"name":"items","rows":20,"bytes":2000}],"rows":30,"bytes":3000,"model_dir":"/m",)"
          R"("model_digest":"0000000000000abc","run_dir":"/r"})");
}

TEST(RunReport, TellsHowOftenTheRunWasRestartedAndWhy) {
  RunReport report = TrainedReport();
  EXPECT_THAT(ReportText(report), Not(HasSubstr("restarts")));
  StatusAnswer status;
  status.set_generation(7);
  uint64_t generation = 1;
  const std::pair<Began, const char*> causes[] = {{BEGAN_SCALED, "scaled"},
                                                  {BEGAN_RESTART, "nn_worker 0 was killed"},
                                                  {BEGAN_RESUME, "resume"},
                                                  {BEGAN_RESTART, "nn_worker 1 hangs"},
                                                  {BEGAN_MOVED, "its node was drained"},
                                                  {BEGAN_MOVED, "its node was drained"}};
  for (const auto& [began, cause] : causes) {
    Restart* restart = status.add_restarts();
    restart->set_generation(++generation);
    restart->set_began(began);
    restart->set_cause(cause);
    restart->set_from_step(40);
  }
  report = MakeRunReport(JobConfig(), status, 1);
  EXPECT_THAT(ReportJson(report),
              HasSubstr(R"("generations":7,"restarts":[{"generation":3,"cause":"nn_worker 0 was )"
                        R"(killed","from_step":40},{"generation":5,)"));
  EXPECT_THAT(ReportJson(report), HasSubstr(R"(],"resumes":1,"scales":1,)"))
      << "what somebody asked for is no failure, and a move is no scale";
  EXPECT_THAT(ReportText(report), HasSubstr("restarts     2; the last: nn_worker 1 hangs\n"));
}

TEST(RunReport, TellsOfWhichLivesTheTimesOfAResumedRunAre) {
  RunReport report = TrainedReport();
  EXPECT_THAT(ReportText(report), HasSubstr("whole run    30.0 s\n"));
  report.resumes = 2;
  EXPECT_THAT(ReportText(report),
              AllOf(HasSubstr("(245 steps), in all generations\n"),
                    HasSubstr("resumed      2 times; 30.0 s since the last resume\n"),
                    Not(HasSubstr("whole run"))));
  report.resumes = 1;
  EXPECT_THAT(ReportText(report), HasSubstr("resumed      once; 30.0 s since the last resume\n"));
}

TEST(RunReport, SaysOnlyWhatWasMeasured) {
  RunReport report = TrainedReport();
  EXPECT_THAT(ReportJson(report), HasSubstr(R"("test":{"samples":100,"auc":0.8125,)"));
  EXPECT_THAT(ReportJson(report), Not(HasSubstr("valid")));
  EXPECT_THAT(ReportJson(report), Not(HasSubstr("bayes_auc")));
  report.bayes_auc = 0.83;
  EXPECT_THAT(ReportJson(report), HasSubstr(R"("bayes_auc":0.83,)"));
  EXPECT_THAT(ReportText(report), HasSubstr("Bayes        AUC 0.83000"));
}

TEST(RunReport, EachTaskHasItsOwnMetrics) {
  RunReport report = TrainedReport();
  MetricValues* test = report.result.mutable_test();
  for (const char* name : {"ctr", "rating"}) test->add_tasks()->set_name(name);
  test->mutable_tasks(0)->mutable_values()->set_auc(.75);
  MetricValues* rating = test->mutable_tasks(1)->mutable_values();
  rating->set_samples(1234);
  rating->set_rmse(.5);
  rating->set_mae(.25);
  rating->set_gauc_by_samples(.625);
  rating->set_gauc_groups(12);
  EXPECT_THAT(ReportJson(report),
              HasSubstr(R"("tasks":{"ctr":{"samples":0,"auc":0.75},"rating":{"samples":1234,)"
                        R"("mae":0.25,"rmse":0.5,"gauc_by_samples":0.625,"gauc_groups":12}}})"));
  EXPECT_THAT(ReportText(report),
              HasSubstr("test         AUC 0.81250, logloss 0.50000 (100 samples)\n"
                        "  ctr: AUC 0.75000 (0 samples)\n"
                        "  rating: RMSE 0.50000, MAE 0.25000, GAUC by samples "
                        "0.62500 (12 groups) (1,234 samples)\n"));
}

TEST(RunReport, TheCalibrationIsThatBeforeTraining) {
  RunReport report = TrainedReport();
  report.result.mutable_test()->set_calibration(.875);
  EXPECT_THAT(ReportText(report), Not(HasSubstr("calibration")));
  EXPECT_THAT(ReportJson(report), Not(HasSubstr("tail_calibration")));
  report.result.set_tail_calibration(1.0625);
  report.result.set_tail_calibration_samples(100000);
  EXPECT_THAT(ReportText(report),
              HasSubstr("calibration  1.0625, over rank 0's last 100,000 samples, each "
                        "before it was trained on\n"));
  EXPECT_THAT(ReportJson(report),
              HasSubstr(R"("tail_calibration":1.0625,"tail_calibration_samples":100000,)"));
}

TEST(RunReport, SaysHowFarThePlateauHasLoweredTheRates) {
  RunReport report = TrainedReport();
  EXPECT_THAT(ReportJson(report), Not(HasSubstr("learning_rate_factor")));
  EXPECT_THAT(ReportText(report), Not(HasSubstr("rates ")));
  report.learning_rate_factor = .01;
  report.reductions = 2;
  EXPECT_THAT(ReportJson(report), HasSubstr(R"("learning_rate_factor":0.01,"reductions":2,)"));
  EXPECT_THAT(ReportText(report),
              HasSubstr("rates        0.01 times those of the job, after 2 reductions\n"));
  report.reductions = 1;
  EXPECT_THAT(ReportText(report), HasSubstr("after 1 reduction\n"));
}

TEST(RunReport, SaysHowOftenGradientsWereClipped) {
  RunReport report = TrainedReport();
  EXPECT_THAT(ReportJson(report), Not(HasSubstr("gradient_norm")));
  EXPECT_THAT(ReportText(report), Not(HasSubstr("gradients ")));
  GradientNorms* norms = report.result.mutable_gradient_norms();
  norms->set_steps(1200);
  norms->set_clipped_steps(30);
  norms->set_sum(3000);
  norms->set_last(12.25);
  EXPECT_THAT(ReportJson(report),
              HasSubstr(R"("gradient_norm":{"last":12.25,"mean":2.5,"steps":1200,)"
                        R"("clipped_steps":30},)"));
  EXPECT_THAT(ReportText(report),
              HasSubstr("gradients    norm 12.25 in the last step, 2.5 in the mean; "
                        "30 of 1,200 steps clipped\n"));
}

TEST(RunReport, LeavesOutNormsOfAJobThatClipsNoMore) {
  StatusAnswer status;
  status.mutable_result()->mutable_gradient_norms()->set_steps(5);
  JobConfig job;
  EXPECT_THAT(ReportJson(MakeRunReport(job, status, 1)), Not(HasSubstr("gradient_norm")));
  job.set_gradient_clip_norm(10);
  EXPECT_THAT(ReportJson(MakeRunReport(job, status, 1)), HasSubstr("gradient_norm"));
}

TEST(RunReport, ShowsTheDigestOfAReproducibleRun) {
  RunReport report = TrainedReport();
  report.result.set_model_digest(0xabc);
  EXPECT_THAT(ReportJson(report), HasSubstr(R"("model_digest":"0000000000000abc",)"));
  EXPECT_THAT(ReportText(report), Not(HasSubstr("digest")));
  report.reproducible = true;
  EXPECT_THAT(ReportText(report),
              HasSubstr("digest       0000000000000abc, the same on every run"));
}

TEST(RunReport, AnAucOfOneClassIsNull) {
  RunReport report = TrainedReport();
  report.result.mutable_test()->set_auc(std::nan(""));
  EXPECT_THAT(ReportJson(report), HasSubstr(R"("auc":null,)"));
}

TEST(RunReport, WarnsOfATrainingThatDiverged) {
  RunReport report = TrainedReport();
  EXPECT_THAT(ReportText(report), Not(HasSubstr("warning")));
  report.result.set_skipped_steps(1200);
  EXPECT_THAT(ReportText(report), HasSubstr("warning      1,200 steps had gradients that were not "
                                            "finite and were skipped: lower the learning rate\n"));
  EXPECT_THAT(ReportText(report), Not(HasSubstr("AUC is not a number")));
  report.result.mutable_test()->set_auc(std::nan(""));
  EXPECT_THAT(ReportText(report), HasSubstr("warning      the test AUC is not a number"));
}

TEST(RunReport, WarnsOfATrainingInWhichNoStepCounted) {
  RunReport report = TrainedReport();
  report.result.set_steps(0);
  EXPECT_THAT(ReportText(report), HasSubstr("warning      no step counted"));
  report.action = JobConfig::EVALUATE;
  EXPECT_THAT(ReportText(report), Not(HasSubstr("no step counted")));
}

TEST(RunReport, WarnsOfLargeGradientsAndOfData) {
  RunReport report = TrainedReport();
  EXPECT_THAT(ReportJson(report), Not(HasSubstr("large_gradient_steps")));
  report.result.set_large_gradient_steps(2);
  report.warnings = {"numeric x is far", "label y: all equal"};
  EXPECT_THAT(ReportText(report),
              AllOf(HasSubstr("warning      2 steps had gradients beyond 1e15, whose squares"),
                    HasSubstr("warning      numeric x is far\nwarning      label y: all equal\n")));
  EXPECT_THAT(ReportJson(report),
              AllOf(HasSubstr(R"("large_gradient_steps":2,)"),
                    HasSubstr(R"("warnings":["numeric x is far","label y: all equal"],)")));
}

TEST(RunReport, SaysThatFewStepsWereMadeAndWhatMakesMore) {
  RunReport report = TrainedReport();
  EXPECT_THAT(ReportText(report), Not(HasSubstr("few steps")));
  report.result.set_samples(60000);
  report.result.set_steps(15);
  EXPECT_THAT(
      ReportText(report),
      HasSubstr("\nfew steps    only 15 steps for 60,000 samples: smaller batches make more "
                "(--set global_batch_size=256), or more epochs\n"));
  report.result.set_samples(400);
  EXPECT_THAT(ReportText(report), HasSubstr("for 400 samples: more epochs make more steps\n"));
  report.action = JobConfig::EVALUATE;
  EXPECT_THAT(ReportText(report), Not(HasSubstr("few steps")));
}

TEST(RunReport, DoesNotWarnOfStepsThatALossScaleWasHalvedFor) {
  RunReport report = TrainedReport();
  report.result.set_steps(245);
  report.result.set_skipped_steps(16);
  report.result.set_overflowed_steps(16);
  EXPECT_THAT(
      ReportText(report),
      AllOf(HasSubstr("skipped      16 steps overflowed F16, and the loss scale was halved\n"),
            Not(HasSubstr("warning"))));
  report.result.set_skipped_steps(17);
  EXPECT_THAT(ReportText(report),
              AllOf(HasSubstr("skipped      16 steps overflowed F16"),
                    HasSubstr("warning      1 step had gradients that were not finite")));
  EXPECT_THAT(ReportJson(report), HasSubstr(R"("skipped_steps":17,"overflowed_steps":16,)"));
}

TEST(RunReport, WarnsOfWhatIsWrongWithDataOrJob) {
  EXPECT_THAT(ReportJson(TrainedReport()), HasSubstr(R"("warnings":[],)"));
  StatusAnswer status;
  status.mutable_result()->mutable_moving_label_rate()->set_highest(.5);
  MetricValues* const test = status.mutable_result()->mutable_test();
  test->set_samples(1000);
  test->set_positives(400);
  test->set_normalised_entropy(1.5);
  const RunReport report = MakeRunReport(JobConfig(), status, 1);
  EXPECT_THAT(ReportText(report), AllOf(HasSubstr("\nwarning      the label rate drifts"),
                                        HasSubstr("\nwarning      test: NE 1.5 is above 1")));
  EXPECT_THAT(ReportJson(report), HasSubstr(R"("warnings":["the label rate drifts)"));
}

TEST(RunReport, ALossWithoutAMetricSaysSoInPlaceOfAnEmptyLine) {
  RunReport report = TrainedReport();
  MetricValues* const test = report.result.mutable_test();
  test->Clear();
  test->set_samples(100);
  EXPECT_THAT(ReportText(report),
              HasSubstr("test         its loss has no metric here; judge the retrieved items with "
                        "`satrap retrieve` (100 samples)\n"));
  for (const char* name : {"next", "ctr"}) test->add_tasks()->set_name(name);
  test->mutable_tasks(1)->mutable_values()->set_auc(.75);
  EXPECT_THAT(ReportText(report), HasSubstr("\n  next: its loss has no metric here; "));
}

TEST(RunReport, WarnsOfTestDataWithoutRecords) {
  RunReport report = TrainedReport();
  report.result.mutable_test()->set_samples(0);
  report.result.mutable_test()->set_auc(std::nan(""));
  EXPECT_THAT(ReportText(report), HasSubstr("warning      the test data has no records\n"));
  EXPECT_THAT(ReportText(report), Not(HasSubstr("the test AUC is not a number")));
}

// A validation ran, but its AUC is not a number, so the result has no best validation.
TEST(RunReport, TellsAValidationWithoutAnAucFromNone) {
  JobConfig job;
  job.mutable_data()->add_valid_files("valid.csv");
  StatusAnswer status;
  status.mutable_result()->set_steps(10);
  const std::string no_number =
      "validation   AUC is not a number (all labels are equal, or the predictions are not "
      "finite)\n";
  EXPECT_THAT(ReportText(MakeRunReport(job, status, 1)), HasSubstr(no_number));
  job.mutable_evaluation()->set_at_epoch_end(false);
  EXPECT_THAT(ReportText(MakeRunReport(job, status, 1)),
              HasSubstr("validation   none: no validation pass was due\n"));
  job.mutable_evaluation()->set_every_steps(10);
  EXPECT_THAT(ReportText(MakeRunReport(job, status, 1)), HasSubstr(no_number));
  job.mutable_evaluation()->set_every_steps(11);
  EXPECT_THAT(ReportText(MakeRunReport(job, status, 1)), HasSubstr("no validation pass was due"));
}

TEST(RunReport, SaysThatNothingWasValidated) {
  RunReport report = TrainedReport();
  EXPECT_THAT(ReportText(report), HasSubstr("validation   none"));
  report.action = JobConfig::EVALUATE;
  EXPECT_THAT(ReportText(report), Not(HasSubstr("validation")));
  report.action = JobConfig::TRAIN;
  report.result.mutable_valid()->set_samples(10);
  EXPECT_THAT(ReportText(report), Not(HasSubstr("validation   none")));
}

TEST(RunReport, ReadsWellForPeople) {
  EXPECT_THAT(ReportText(TrainedReport()),
              HasSubstr("trained      1,000,000 samples in 20.0 s: 50,000 samples/s (245 steps)"));
  EXPECT_EQ(CountText(0), "0");
  EXPECT_EQ(CountText(999), "999");
  EXPECT_EQ(CountText(1234567), "1,234,567");
  EXPECT_EQ(BytesText(999), "999 B");
  EXPECT_EQ(BytesText(1500000000), "1.5 GB");
  EXPECT_EQ(DurationText(12.34), "12.3 s");
  EXPECT_EQ(DurationText(200), "3 min 20 s");
  EXPECT_EQ(DurationText(3720), "1 h 02 min");
  EXPECT_EQ(UtcText(1777627800999), "2026-05-01T09:30:00Z");
}

TEST(RunReport, TellsTheRatesThatTheBatchWasScaledTo) {
  JobConfig job;
  job.set_global_batch_size(64);
  EXPECT_THAT(ReportText(MakeRunReport(job, StatusAnswer(), 1)), Not(HasSubstr("scaled")));
  job.mutable_batch_scaling()->set_base_batch_size(16);
  const RunReport report = MakeRunReport(job, StatusAnswer(), 1);
  EXPECT_THAT(ReportText(report), HasSubstr("scaled       batch 64 is 4 x 16, rule NO_SCALING:"));
  EXPECT_THAT(ReportJson(report), HasSubstr(R"("batch_scaling":"batch 64 is 4 x 16)"));
}

TEST(RunReport, WordsOfACauseDoNotDecideWhetherItIsAFailure) {
  StatusAnswer status;
  for (const char* cause : {"start", "resume", "scale", "scaled"}) {
    Restart* restart = status.add_restarts();
    restart->set_began(BEGAN_RESTART);
    restart->set_cause(cause);
  }
  Restart* resumed = status.add_restarts();
  resumed->set_began(BEGAN_RESUME);
  resumed->set_cause("embedding_ps 1 was killed");
  const RunReport report = MakeRunReport(JobConfig(), status, 1);
  EXPECT_EQ(report.restarts.size(), 4u);
  EXPECT_EQ(report.resumes, 1u);
  EXPECT_EQ(report.scales, 0u);
}

}  // namespace
}  // namespace satrap

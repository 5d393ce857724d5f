#include "common/config/validate/validate_job.h"

#include <string>

#include "common/config/testing/validation_check.h"
#include "gmock/gmock.h"

namespace satrap {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(ValidateJob, ReportsAllProblemsRangesFirst) {
  EXPECT_EQ(ProblemsOf(SmallJob(), {"epochs=0", "nn_worker.threads=0", "data.split_rows=0",
                                    "tables[0].segments[0].l2=-1", "dense_optimizer.l2=-1",
                                    "reproducible=true"}),
            "epochs: must be in [1, 1000000], got 0\n"
            "data.split_rows: must be in [1, 4294967296], got 0\n"
            "tables[0].segments[0].l2: must be finite and not negative, got -1\n"
            "dense_optimizer.l2: must be finite and not negative, got -1\n"
            "nn_worker.threads: must be in [1, 256], got 0\n"
            "reproducible: needs mode SYNC, got HYBRID");
  EXPECT_EQ(ProblemsOf(SmallJob()), "");
}

TEST(ValidateJob, TakesThePrecisionsThatTheDeviceHas) {
  for (const char* device : {"CPU", "HOST", "CUDA"}) {
    const std::string on_device = absl::StrCat("nn_worker.device=", device);
    for (const char* precision : {"F32", "BF16", "F16"}) {
      EXPECT_EQ(
          ProblemsOf(SmallJob(), {on_device, absl::StrCat("nn_worker.precision=", precision)}), "")
          << device;
    }
    const std::string refusal =
        absl::StrCat("nn_worker.precision: must be F32, BF16 or F16 with nn_worker.device ", device,
                     ", got TF32, which only a GPU supports");
    EXPECT_EQ(ProblemsOf(SmallJob(), {on_device, "nn_worker.precision=TF32"}),
              device == std::string("CUDA") ? "" : refusal);
  }
}

TEST(ValidateJob, OnlyADeviceHasALimitOfDeviceMemory) {
  EXPECT_EQ(ProblemsOf(SmallJob(), {"nn_worker.device_memory_bytes=1"}),
            "nn_worker.device_memory_bytes: is for nn_worker.device CUDA and HOST only, got CPU");
  JobConfig job = SmallJob();
  for (const NnWorkerConfig::Device device : {NnWorkerConfig::CUDA, NnWorkerConfig::HOST}) {
    job.mutable_nn_worker()->set_device(device);
    ExpectRange(job, "nn_worker.device_memory_bytes", 0, int64_t{1} << 50);
  }
}

TEST(ValidateJob, OnlyADeviceCapturesGraphs) {
  EXPECT_EQ(ProblemsOf(SmallJob(), {"nn_worker.graph_capture=false"}),
            "nn_worker.graph_capture: is for nn_worker.device CUDA and HOST only, got CPU");
  EXPECT_EQ(ProblemsOf(SmallJob(), {"nn_worker.graph_capture=false", "nn_worker.device=HOST"}), "");
}

TEST(ValidateJob, NcclAddsUpOnCardsAlone) {
  const std::string refusal =
      "nn_worker.gradient_sums: must be AUTO or GLOO with nn_worker.device ";
  const std::string nccl = "nn_worker.gradient_sums=NCCL";
  EXPECT_EQ(ProblemsOf(SmallJob(), {nccl}), refusal + "CPU, got NCCL, which works on GPUs only");
  EXPECT_EQ(ProblemsOf(SmallJob(), {nccl, "nn_worker.device=HOST"}),
            refusal + "HOST, got NCCL, which works on GPUs only");
  EXPECT_EQ(ProblemsOf(SmallJob(), {nccl, "nn_worker.device=CUDA"}), "");
  EXPECT_EQ(ProblemsOf(SmallJob(), {"nn_worker.gradient_sums=GLOO"}), "");
}

TEST(ValidateJob, ReproducibleRanksDoNotAddUpByNccl) {
  const std::vector<std::string> two = {"mode=SYNC", "nn_worker.device=CUDA",
                                        "nn_worker.replicas=2"};
  const auto problems = [&two](std::vector<std::string> sets) {
    sets.insert(sets.end(), two.begin(), two.end());
    return ProblemsOf(SmallJob(), sets);
  };
  EXPECT_EQ(problems({"nn_worker.gradient_sums=NCCL", "reproducible=true"}),
            "nn_worker.gradient_sums: must be AUTO or GLOO with reproducible and several NN "
            "workers, got NCCL, which may add in another order in each run");
  EXPECT_EQ(problems({"nn_worker.gradient_sums=NCCL"}), "");
  EXPECT_EQ(problems({"reproducible=true"}), "");
  EXPECT_EQ(ProblemsOf(SmallJob(), {"nn_worker.gradient_sums=NCCL", "reproducible=true",
                                    "mode=SYNC", "nn_worker.device=CUDA"}),
            "")
      << "one NN worker adds up nothing";
}

TEST(ValidateJob, CandidatesAreDrawnForTheCpuAlone) {
  JobConfig job = SmallJob();
  job.mutable_model()->mutable_candidates()->set_count(8);
  const std::string refusal = "nn_worker.device: must be CPU with model.candidates.count above 0";
  EXPECT_THAT(ProblemsOf(job, {"nn_worker.device=HOST"}), HasSubstr(refusal + ", got HOST"));
  EXPECT_THAT(ProblemsOf(job, {"nn_worker.device=CUDA"}), HasSubstr(refusal + ", got CUDA"));
  EXPECT_THAT(ProblemsOf(job), Not(HasSubstr(refusal)));
}

TEST(ValidateJob, ALossScaleIsAPowerOfTwoAndForF16) {
  JobConfig job = SmallJob();
  EXPECT_EQ(ProblemsOf(job, {"nn_worker.precision=BF16", "nn_worker.loss_scale.initial=1024"}),
            "nn_worker.loss_scale: is for nn_worker.precision F16 only, got BF16");
  job.mutable_nn_worker()->set_precision(NnWorkerConfig::F16);
  ExpectValues(job, "nn_worker.loss_scale.initial", {"1", "1024", "16777216"}, {"3", "1000.5"},
               "a power of two");
  EXPECT_EQ(ProblemsOf(job, {"nn_worker.loss_scale.dynamic=false"}), "");
}

TEST(ValidateJob, ATallyHasNoLossScale) {
  JobConfig job = SmallJob();
  job.mutable_model()->mutable_layers(0)->mutable_tally();
  EXPECT_EQ(ProblemsOf(job, {"nn_worker.precision=BF16"}), "");
  EXPECT_EQ(ProblemsOf(job, {"nn_worker.precision=F16"}),
            "model.layers[name=logit].tally: its gradient would not survive the loss scale of "
            "nn_worker.precision F16: use F32 or BF16");
}

TEST(ValidateJob, RatesFallOnAPlateauOfAValidationSet) {
  JobConfig job = SmallJob();
  job.mutable_evaluation()->mutable_reduce_on_plateau();
  job.mutable_data()->mutable_synthetic()->set_valid_samples(0);
  EXPECT_EQ(ProblemsOf(job), "evaluation.reduce_on_plateau: needs validation data");
  EXPECT_EQ(ProblemsOf(job, {"action=EVALUATE", "init_from=m"}), "") << "nothing is trained";
  job.mutable_data()->mutable_synthetic()->clear_valid_samples();
  EXPECT_EQ(ProblemsOf(job), "");
}

TEST(ValidateJob, AWarmStartHasAModelToStartFrom) {
  JobConfig job = SmallJob();
  job.mutable_warm_start();
  EXPECT_EQ(ProblemsOf(job), "warm_start: needs init_from");
  job.set_init_from("runs/demo");
  EXPECT_EQ(ProblemsOf(job), "");
  job.mutable_warm_start()->add_only("deep/*");
  job.mutable_warm_start()->add_only("");
  EXPECT_EQ(ProblemsOf(job), "warm_start.only[1]: must not be empty");
}

TEST(ValidateJob, AGlobalBatchHasASampleForEachNnWorkerAndCountsExactlyInF32) {
  const JobConfig job = SmallJob();
  EXPECT_EQ(ProblemsOf(job, {"global_batch_size=1"}), "");
  EXPECT_EQ(ProblemsOf(job, {"global_batch_size=4194304"}), "");
  EXPECT_EQ(ProblemsOf(job, {"global_batch_size=4194305"}),
            "global_batch_size: must be in [1, 4194304], got 4194305");
  EXPECT_EQ(ProblemsOf(job, {"global_batch_size=3", "nn_worker.replicas=3"}), "");
  EXPECT_EQ(ProblemsOf(job, {"global_batch_size=2", "nn_worker.replicas=3"}),
            "global_batch_size: must be at least nn_worker.replicas (3), got 2");
  EXPECT_EQ(ProblemsOf(job, {"global_batch_size=0"}),
            "global_batch_size: must be in [1, 4194304], got 0\n"
            "global_batch_size: must be at least nn_worker.replicas (1), got 0");
}

TEST(ValidateJob, ANameCanBeginThatOfAFolder) {
  EXPECT_EQ(ProblemsOf(SmallJob(), {"name=a/b"}), "name: must not hold a '/', got 'a/b'");
  EXPECT_EQ(ProblemsOf(SmallJob(), {"name="}), "");
}

TEST(ValidateJob, OnlySyncIsReproducible) {
  EXPECT_EQ(ProblemsOf(SmallJob(), {"reproducible=true"}),
            "reproducible: needs mode SYNC, got HYBRID");
  EXPECT_EQ(ProblemsOf(SmallJob(), {"reproducible=true", "mode=SYNC"}), "");
}

TEST(ValidateJob, OnlySyncClipsAllGradientsTogether) {
  EXPECT_EQ(ProblemsOf(SmallJob(), {"gradient_clip_norm=10"}),
            "gradient_clip_norm: needs mode SYNC, got HYBRID");
  EXPECT_EQ(ProblemsOf(SmallJob(), {"gradient_clip_norm=10", "mode=SYNC"}), "");
  EXPECT_EQ(ProblemsOf(SmallJob(), {"gradient_clip_norm=-1", "mode=SYNC"}),
            "gradient_clip_norm: must be finite and not negative, got -1");
}

TEST(ValidateJob, SyncNeedsALaneForEachLoader) {
  const JobConfig job = SmallJob();
  EXPECT_EQ(ProblemsOf(job, {"mode=SYNC", "lanes=2", "data_loader.replicas=2"}), "");
  EXPECT_EQ(ProblemsOf(job, {"mode=SYNC", "lanes=1", "data_loader.replicas=2"}),
            "lanes: must be at least data_loader.replicas (2) in mode SYNC, got 1");
  EXPECT_EQ(ProblemsOf(job, {"mode=HYBRID", "lanes=1", "data_loader.replicas=2"}), "");
}

TEST(ValidateJob, AModelHasLayers) {
  JobConfig job = SmallJob();
  job.mutable_model()->clear_layers();
  EXPECT_EQ(ProblemsOf(job), "model.layers: must not be empty unless model.zoo is set");
}

TEST(ValidateJob, ALayerHasANameOfItsOwnAKindAndInputs) {
  JobConfig job = SmallJob();
  EXPECT_EQ(ProblemsOf(job, {"model.layers[0].name="}), "model.layers[0]: has no name");
  EXPECT_EQ(ProblemsOf(job, {"model.layers[0].inputs="}),
            "model.layers[name=logit]: has no inputs");
  job.mutable_model()->mutable_layers(0)->clear_sum();
  EXPECT_EQ(ProblemsOf(job), "model.layers[name=logit]: has no kind");
  job = SmallJob();
  *job.mutable_model()->add_layers() = job.model().layers(0);
  EXPECT_EQ(ProblemsOf(job), "model.layers[1]: the name 'logit' is taken");
}

TEST(ValidateJob, ADampenedMomentumHasTheRateOutside) {
  EXPECT_EQ(
      ProblemsOf(SmallJob(), {"dense_optimizer.momentum.dampening=0.5"}),
      "dense_optimizer.momentum.dampening: needs form RATE_OUTSIDE, got 0.5 with RATE_INSIDE");
}

TEST(ValidateJob, SettingsOfParametersNeedAPattern) {
  JobConfig job = SmallJob();
  job.mutable_dense_optimizer()->add_parameters();
  EXPECT_EQ(ProblemsOf(job),
            "dense_optimizer.parameters[0].pattern: is needed: it names the parameters, such as "
            "deep/*");
  job.mutable_dense_optimizer()->mutable_parameters(0)->set_pattern("*");
  EXPECT_EQ(ProblemsOf(job), "");
}

TEST(ValidateJob, AReproducibleRunValidatesByStepsNotByTheClock) {
  EXPECT_EQ(ProblemsOf(SmallJob(), {"evaluation.every_seconds=60"}), "");
  JobConfig job = SmallJob();
  job.set_mode(JobConfig::SYNC);
  job.set_reproducible(true);
  EXPECT_EQ(ProblemsOf(job, {"evaluation.every_steps=60"}), "");
  EXPECT_EQ(ProblemsOf(job, {"evaluation.every_seconds=60"}),
            "evaluation.every_seconds: must be 0 with reproducible, because the clock would choose "
            "the steps (use every_steps instead), got 60");
}

TEST(ValidateJob, ScoringNeedsASavedModel) {
  for (const char* action : {"action=EVALUATE", "action=PREDICT"}) {
    EXPECT_EQ(ProblemsOf(SmallJob(), {action}), "init_from: is needed to evaluate or predict");
    EXPECT_EQ(ProblemsOf(SmallJob(), {action, "init_from=runs/demo"}), "");
  }
}

TEST(ValidateJob, OnlyPredictionsHaveOutputs) {
  EXPECT_EQ(ProblemsOf(SmallJob(), {"predict_outputs=logit"}),
            "predict_outputs: may be set only by satrap predict --output LAYER");
  EXPECT_EQ(ProblemsOf(SmallJob(), {"action=PREDICT", "init_from=runs/demo", "predict_outputs=x"}),
            "");
}

// A job with a candidate loss may predict: its prediction is the score of the record's own item.
TEST(ValidateJob, WhatComparesWithCandidatesIsPredicted) {
  JobConfig job = SmallJob();
  job.set_action(JobConfig::PREDICT);
  job.set_init_from("runs/demo");
  TaskConfig* const task = job.mutable_model()->add_tasks();
  task->set_name("next");
  task->set_output("logit");
  task->set_loss(TaskConfig::IN_BATCH_SOFTMAX);
  EXPECT_EQ(ProblemsOf(job, {}).find("predict_outputs"), std::string::npos) << ProblemsOf(job, {});
}

}  // namespace
}  // namespace satrap

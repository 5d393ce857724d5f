#include "common/config/job_change.h"

#include "common/config/job_config.h"
#include "common/config/testing/validation_check.h"
#include "gmock/gmock.h"

namespace satrap {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// The problems of changing a small job by `sets`; "" if the change is allowed.
std::string RefusalOf(const std::vector<std::string>& sets, JobConfig from = SmallJob()) {
  return std::string(ChangedJob(from, sets).status().message());
}

TEST(JobChange, TakesWhatSaysHowManyProcessesThereAreAndHowFarAStepGoes) {
  for (const char* set : {"embedding_ps.replicas=4",
                          "embedding_worker.replicas=3",
                          "nn_worker.replicas=2",
                          "data_loader.replicas=2",
                          "nn_worker.compute_threads=2",
                          "embedding_ps.shards=8",
                          "embedding_ps.wire_dtype=F16",
                          "data_loader.prefetch_parts=2",
                          "nn_worker.idle_step_ms=9",
                          "epochs=7",
                          "max_steps=9",
                          "evaluation.patience=3",
                          "evaluation.metric=LOGLOSS",
                          "checkpoint.every_seconds=2",
                          "checkpoint.keep=5",
                          "max_restarts=1",
                          "stop_seconds=3",
                          "max_staleness=2",
                          "staleness_warmup_steps=1",
                          "max_message_bytes=1000000",
                          "max_skipped_steps_in_a_row=5",
                          "data_root=/elsewhere",
                          "data.max_bad_fraction=0.5",
                          "dense_optimizer.learning_rate=0.5",
                          "dense_optimizer.adam.beta1=0.5",
                          "dense_optimizer.l2=0.1",
                          "tables[0].segments[0].optimizer.learning_rate=0.5",
                          "tables[0].segments[0].optimizer.adagrad.epsilon=0.5",
                          "tables[0].segments[0].weight_bound=1",
                          "tables[0].segments[0].l2=0.1",
                          "tables[0].segments[0].gradient_clip_norm=2",
                          "tables[0].segments[0].cow_clip.floor=0.5",
                          "dense_optimizer.learning_rate_schedule.warmup_steps=5",
                          "tables[0].learning_rate_schedule.step.every_steps=5",
                          "tables[0].reserve_rows=9",
                          "tables[0].learning_rate_schedule.warmup_steps=5",
                          "tables[0].frozen=true"}) {
    EXPECT_EQ(RefusalOf({set}), "") << set;
  }
  JobConfig with_kill_point = SmallJob();
  with_kill_point.add_kill_points()->set_point(KillPoint::PS_AFTER_MARK);
  JobConfig without = SmallJob();
  ResolveJob(&with_kill_point);
  ResolveJob(&without);
  EXPECT_TRUE(CheckJobChange(with_kill_point, without).ok());
}

TEST(JobChange, RefusesWhatTheLedgerOrTheShapeOfACutDependsOn) {
  for (const auto& [set, why] : std::vector<std::pair<std::string, std::string>>{
           {"mode=SYNC", "mode: cannot change from HYBRID to SYNC: it fixes the order of the"},
           {"seed=2", "seed: cannot change from 1 to 2: it fixes the order of the samples and"},
           {"global_batch_size=64", "global_batch_size: cannot change from 4096 to 64: it fixes"},
           {"lanes=9", "lanes: cannot change from 2 to 9: it fixes the order"},
           {"data.shuffle_rows=7", "data.shuffle_rows: cannot change from 65536 to 7: it fixes"},
           {"data.train_files=x", "data.train_files: cannot change from [] to [\"x\"]: the files"},
           {"data.features[1].id_space=x", "data.features[1].id_space: cannot change from absent"},
           {"tables[0].segments[0].dim=2", "tables[0].segments[0].dim: cannot change from 1 to 2"},
           {"tables[0].segments[0].optimizer.adam=", "optimizer.adagrad: cannot change from "},
           {"tables[0].segments[0].l2_mode=TOUCHED", "l2_mode: cannot change from OCCURRENCE to"},
           {"tables[0].semantics=GLOBAL", "tables[0].semantics: cannot change from LAZY to GLOBAL"},
           {"tables[0].segments[0].initializer.constant.value=1", "would begin with other values"},
           {"model.layers[0].inputs=C1.linear",
            "model.layers[name=logit].inputs: cannot change from [\""},
           {"dense_optimizer.sgd=", "dense_optimizer.sgd: cannot change from absent to present: "},
           {"init_from=x", "init_from: cannot change from absent to \"x\": the run continues"},
           {"warm_start.warmup_steps=5", "warm_start: cannot change from absent to "},
           {"name=x", "name: cannot change from \"small\" to \"x\": it belongs to the run"},
       }) {
    EXPECT_THAT(RefusalOf({set}), HasSubstr(why)) << set;
  }
}

TEST(JobChange, RefusesAConstantThatMakesRowsLonger) {
  JobConfig job = SmallJob();
  job.mutable_tables(0)->mutable_segments(0)->mutable_optimizer()->mutable_rmsprop();
  const std::string rmsprop = "tables[0].segments[0].optimizer.rmsprop.";
  EXPECT_TRUE(ChangedJob(job, {rmsprop + "rho=0.5"}).ok());
  for (const char* set : {"momentum=0.5", "centred=true"}) {
    EXPECT_THAT(ChangedJob(job, {rmsprop + set}).status().message(),
                HasSubstr("it fixes the shape of the rows in the cut"));
  }
}

TEST(JobChange, TakesConstantsAndSettingsOfTheDenseOptimizerButNotItsState) {
  JobConfig job = SmallJob();
  DenseOptimizerConfig* const dense = job.mutable_dense_optimizer();
  dense->mutable_rmsprop();
  dense->mutable_averaged_weights();
  dense->add_parameters()->set_pattern("*");
  for (const char* set : {"rmsprop.rho=0.5", "averaged_weights.decay=0.5", "parameters[0].l2=1",
                          "parameters[0].frozen=true"}) {
    EXPECT_EQ(RefusalOf({absl::StrCat("dense_optimizer.", set)}, job), "") << set;
  }
  for (const char* set : {"rmsprop.momentum=0.5", "rmsprop.centred=true", "ftml="}) {
    EXPECT_THAT(RefusalOf({absl::StrCat("dense_optimizer.", set)}, job),
                HasSubstr("the cut holds the state of the optimizer that it was trained with"))
        << set;
  }
  EXPECT_THAT(RefusalOf({"dense_optimizer.averaged_weights="}),
              HasSubstr("averaged_weights: cannot change from absent to decay: 0.999: "));
}

TEST(JobChange, TellsAllProblemsAtOnce) {
  const std::string problems =
      RefusalOf({"seed=2", "epochs=0", "embedding_ps.replicas=4", "tables[0].segments[0].dim=2"});
  EXPECT_THAT(problems, HasSubstr("seed: cannot change"));
  EXPECT_THAT(problems, HasSubstr("tables[0].segments[0].dim: cannot change"));
  EXPECT_THAT(problems, HasSubstr("epochs: must be in [1, 1000000], got 0"));
  EXPECT_THAT(problems, Not(HasSubstr("embedding_ps")));
}

TEST(JobChange, SeesADifferenceAfterWhatAMessageShows) {
  JobConfig job = SmallJob();
  job.mutable_data()->add_train_files(std::string(100, 'x') + "1");
  JobConfig other = job;
  other.mutable_data()->set_train_files(0, std::string(100, 'x') + "2");
  ResolveJob(&job);
  ResolveJob(&other);
  EXPECT_THAT(CheckJobChange(job, other).message(), HasSubstr("data.train_files: cannot change"));
}

TEST(JobChange, AReproducibleRunKeepsWhatItsBitsDependOn) {
  JobConfig job = SmallJob();
  job.set_mode(JobConfig::SYNC);
  job.set_reproducible(true);
  for (const auto& [set, field] : std::vector<std::pair<std::string, std::string>>{
           {"nn_worker.replicas=3", "nn_worker.replicas: cannot change from 1 to 3: the run is"},
           {"nn_worker.compute_threads=2", "nn_worker.compute_threads: cannot change from 1 to 2"},
           {"nn_worker.precision=BF16", "nn_worker.precision: cannot change from F32 to BF16"},
           {"nn_worker.device=HOST", "nn_worker.device: cannot change from CPU to HOST"},
           {"embedding_ps.wire_dtype=F16", "embedding_ps.wire_dtype: cannot change from F32 to F1"},
           {"embedding_worker.wire_dtype=BF16", "embedding_worker.wire_dtype: cannot change"}}) {
    EXPECT_THAT(RefusalOf({set}, job), AllOf(HasSubstr(field), HasSubstr("reproducible"))) << set;
    JobConfig other = job;
    other.set_reproducible(false);
    EXPECT_EQ(RefusalOf({set}, other), "") << set;
  }
  for (const char* set :
       {"embedding_ps.replicas=4", "embedding_ps.shards=8", "embedding_ps.threads=3",
        "embedding_worker.replicas=3", "embedding_worker.threads=2", "data_loader.replicas=2",
        "data_loader.threads=2", "nn_worker.threads=2", "epochs=7", "checkpoint.every_seconds=2",
        "dense_optimizer.learning_rate=0.5", "gradient_clip_norm=10"}) {
    EXPECT_EQ(RefusalOf({set}, job), "") << set;
  }
}

JobConfig TopicJob() {
  return JobWithData(R"(
      libsvm {} features { name: 'features' table: 'ids' }
      kafka { brokers: 'a:1' topics: 'clicks' } test_kafka { topics: 'test' })");
}

TEST(JobChange, TakesAnotherWayToTheTopicsButNotOtherTopics) {
  for (const char* set :
       {"data.kafka.brokers=b:2,c:3", "data.kafka.queue_bytes=5000000", "data.kafka.max_wait_ms=5",
        "data.kafka.allowed_lateness_ms=5", "data.kafka.dead_letter_topic=dead",
        "data.kafka.on_lost_offsets=SKIP", "data.kafka.broker_wait_seconds=9",
        "data.kafka.group_id=g", "data.test_kafka.brokers=b:2", "data.test_kafka.group_id=g"}) {
    EXPECT_EQ(RefusalOf({set}, TopicJob()), "") << set;
  }
  for (const auto& [set, why] : std::vector<std::pair<std::string, std::string>>{
           {"data.kafka.topics=views", "data.kafka.topics: cannot change from [\"clicks\"] to"},
           {"data.kafka.topic_pattern=v*", "the topics of a run are fixed when it begins"},
           {"data.kafka.start.at=LATEST", "data.kafka.start.at: cannot change from EARLIEST to"},
           {"data.kafka.end.at=AT_START", "it was converted to offsets when the run began"},
           {"data.kafka.format=LINES", "it fixes which samples there are or in which order"},
           {"data.test_kafka.topics=views", "the topics of a run are fixed when it begins"}}) {
    EXPECT_THAT(RefusalOf({set}, TopicJob()), HasSubstr(why)) << set;
  }
  JobConfig ordered = TopicJob();
  ordered.set_mode(JobConfig::SYNC);
  EXPECT_THAT(RefusalOf({"data.kafka.max_wait_ms=5"}, ordered),
              HasSubstr("cannot change from 1000 to 5: it fixes the order of the samples in mode"));
}

TEST(JobChange, KeepsADeadLetterTopicThatAPatternWouldRead) {
  JobConfig job = TopicJob();
  KafkaConfig* const train = job.mutable_data()->mutable_kafka();
  train->set_topic_pattern("clicks*");
  train->set_dead_letter_topic("clicks-bad");
  EXPECT_THAT(RefusalOf({"data.kafka.dead_letter_topic=bad"}, job),
              AllOf(HasSubstr("data.kafka.dead_letter_topic: cannot change from 'clicks-bad' to "),
                    HasSubstr("data.kafka.topic_pattern 'clicks*' matches clicks-bad, so dead")));
  EXPECT_THAT(RefusalOf({"data.kafka.dead_letter_topic="}, job), HasSubstr("matches clicks-bad"));
  EXPECT_THAT(RefusalOf({"data.test_kafka.dead_letter_topic=clicks-test"}, job),
              AllOf(HasSubstr("data.test_kafka.dead_letter_topic: cannot change from '' to 'cli"),
                    HasSubstr("matches clicks-test")));
  EXPECT_EQ(RefusalOf({"data.kafka.dead_letter_topic=clicks-bad"}, job), "");
  train->set_dead_letter_topic("bad");
  EXPECT_THAT(RefusalOf({"data.kafka.dead_letter_topic=clicks-bad"}, job),
              HasSubstr("matches clicks-bad"));
  EXPECT_EQ(RefusalOf({"data.kafka.dead_letter_topic=dead"}, job), "");
}

TEST(JobChange, NewBrokersAreThoseOfTheEvaluationTopicsToo) {
  JobConfig from = TopicJob();
  ResolveJob(&from);
  ASSERT_EQ(from.data().test_kafka().brokers(0), "a:1");
  const auto job = ChangedJob(from, {"data.kafka.brokers=b:2"});
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(job->data().test_kafka().brokers(0), "b:2");
  // Streams that set their own brokers keep them.
  from.mutable_data()->mutable_test_kafka()->set_brokers(0, "t:1");
  EXPECT_EQ(ChangedJob(from, {"data.kafka.brokers=b:2"})->data().test_kafka().brokers(0), "t:1");
}

TEST(JobChange, KeepsALaneForEachLoader) {
  JobConfig sync = SmallJob();
  sync.set_mode(JobConfig::SYNC);
  EXPECT_EQ(RefusalOf({"data_loader.replicas=2"}, sync), "");
  EXPECT_THAT(RefusalOf({"data_loader.replicas=3"}, sync),
              HasSubstr("lanes: must be at least data_loader.replicas (3) in mode SYNC, got 2"));
}

// Neither this field nor the message above it has an option about resuming.
TEST(JobChange, KeepsAFieldThatNobodyHasThoughtAbout) {
  EXPECT_THAT(RefusalOf({"batch_scaling.base_batch_size=64"}),
              HasSubstr("batch_scaling: cannot change from absent to"));
  EXPECT_THAT(RefusalOf({"batch_scaling.base_batch_size=64"}),
              HasSubstr("it belongs to the run as a whole"));
}

TEST(JobChange, TakesASectionThatWasAbsentBelowOneThatMayChange) {
  EXPECT_THAT(RefusalOf({"evaluation.reduce_on_plateau.factor=0.5"}),
              Not(HasSubstr("cannot change")));
  EXPECT_THAT(RefusalOf({"nn_worker.precision=F16", "nn_worker.loss_scale.initial=64"}),
              Not(HasSubstr("cannot change")));
  JobConfig reproducible = SmallJob();
  reproducible.set_mode(JobConfig::SYNC);
  reproducible.set_reproducible(true);
  EXPECT_THAT(RefusalOf({"nn_worker.loss_scale.initial=64"}, reproducible),
              HasSubstr("nn_worker.loss_scale: cannot change from absent to dynamic: true"));
}

TEST(JobChange, EvaluationTopicsWaitOtherwiseInHybridAlone) {
  EXPECT_EQ(RefusalOf({"data.test_kafka.max_wait_ms=5"}, TopicJob()), "");
  JobConfig ordered = TopicJob();
  ordered.set_mode(JobConfig::SYNC);
  EXPECT_THAT(RefusalOf({"data.test_kafka.max_wait_ms=5"}, ordered),
              HasSubstr("data.test_kafka.max_wait_ms: cannot change from 1000 to 5"));
}

TEST(JobChange, NamesAFieldThatThereIsNot) {
  EXPECT_THAT(RefusalOf({"epocs=3"}), HasSubstr("did you mean epochs?"));
}

TEST(JobChangeText, NamesEachFieldWithBothValuesWhereverTheRunIs) {
  JobConfig from = SmallJob();
  from.set_run_dir("/runs/a");
  from.clear_data_root();
  from.mutable_embedding_ps()->set_replicas(1);
  JobConfig to = from;
  to.set_run_dir("/moved");
  EXPECT_EQ(JobChangeText(from, to), "");
  to.mutable_nn_worker()->set_device(NnWorkerConfig::CUDA);
  to.mutable_embedding_ps()->set_replicas(2);
  to.set_data_root("/data");
  EXPECT_EQ(JobChangeText(from, to),
            "data_root from absent to \"/data\", embedding_ps.replicas from 1 to 2, "
            "nn_worker.device from CPU to CUDA");
}

TEST(JobChange, ARunOfAnEarlierBuildGoesOnWithWhatIsRefusedToday) {
  JobConfig from = JobWithData(R"(
      csv { columns { name: 'y' kind: LABEL } columns { name: 'user' kind: ID } }
      train_files: 'train.csv'
      features { name: 'user' table: 'ids' preload_ids: 30 })");
  ResolveJob(&from);
  ASSERT_THAT(ProblemsOf(from), HasSubstr("data.features[0].preload_ids: must be 0"));
  EXPECT_EQ(RefusalOf({"embedding_ps.replicas=4"}, from), "");
  EXPECT_THAT(RefusalOf({"embedding_ps.replicas=0"}, from),
              AllOf(HasSubstr("embedding_ps.replicas"), Not(HasSubstr("preload_ids"))));
}

}  // namespace
}  // namespace satrap

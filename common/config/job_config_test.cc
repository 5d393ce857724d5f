#include "common/config/job_config.h"

#include <cstdlib>

#include "common/config/field_path.h"
#include "common/config/text_format.h"
#include "common/config/validate/validate_job.h"
#include "common/testing/temp_dir.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

using testing::HasSubstr;

constexpr char kJob[] = R"(
  name: 'small'
  data {
    synthetic { vocabulary_sizes: [ 30, 40 ] interacting_features: 2 }
    features { name: 'C1' table: 'ids' }
    features { name: 'C2' table: 'ids' }
    numerics { name: 'I1' }
  }
  tables { name: 'ids' id: 0 segments { name: 'embedding' dim: 4 } segments { name: 'linear' dim: 1 } }
  model { layers { name: 'logit' inputs: '*.linear' sum {} } }
)";

class JobConfigTest : public testing::Test {
 protected:
  std::string WriteFile(const std::string& name, const std::string& text) {
    return temp_.Write(name, text);
  }
  absl::StatusOr<JobConfig> Load(const std::string& text,
                                 const std::vector<std::string>& sets = {}) {
    return LoadJob(WriteFile("job.textproto", text), sets, folder_);
  }
  const TempDir temp_;
  const std::string folder_ = temp_.path();
};

TEST_F(JobConfigTest, FillsInDefaultsAndOptimizers) {
  const auto job = Load(kJob);
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_TRUE(job->tables(0).segments(0).optimizer().has_adagrad());
  EXPECT_TRUE(job->tables(0).segments(0).initializer().has_uniform());
  EXPECT_TRUE(job->dense_optimizer().has_adam());
  EXPECT_EQ(job->embedding_ps().replicas(), 1);
}

TEST_F(JobConfigTest, TheOnlyTableNeedsNoId) {
  JobConfig job;
  job.add_tables()->set_name("ids");
  ResolveJob(&job);
  EXPECT_TRUE(job.tables(0).has_id());
  EXPECT_EQ(job.tables(0).id(), 0u);
  JobConfig two;
  for (const char* name : {"ids", "more"}) two.add_tables()->set_name(name);
  ResolveJob(&two);
  EXPECT_FALSE(two.tables(0).has_id()) << "which of them is which is part of cuts";
}

TEST_F(JobConfigTest, ReportsAllProblemsAtOnceEachWithItsPath) {
  const auto job = Load(
      kJob, {"seed=3", "embedding_ps.replicas=0", "global_batch_size=-5",
             "data.features[0].table=nowhere", "tables[0].segments[0].dim=0", "reproducible=true"});
  ASSERT_FALSE(job.ok());
  const std::string message(job.status().message());
  EXPECT_THAT(message, HasSubstr("embedding_ps.replicas: must be in [1, 1024], got 0"));
  EXPECT_THAT(message, HasSubstr("global_batch_size: must be in"));
  EXPECT_THAT(message, HasSubstr("no table 'nowhere'"));
  EXPECT_THAT(message, HasSubstr("tables[0].segments[0].dim: must be in [1, 4096], got 0"));
  EXPECT_THAT(message, HasSubstr("reproducible: needs mode SYNC"));
}

TEST_F(JobConfigTest, TakesAnEmptyModelFromTheZooBeforeOverridingItsLayers) {
  ASSERT_EQ(std::system(("mkdir -p " + folder_ + "/nn_worker/zoo").c_str()), 0);
  WriteFile("nn_worker/zoo/tiny.textproto",
            "layers { name: 'deep' inputs: '*.embedding' mlp { units: [8, 8] output_units: 1 } } "
            "output: 'deep'");
  std::string text = kJob;
  const size_t model = text.find("model {");
  text = text.substr(0, model) + "model { zoo: 'tiny' }";
  const auto job = Load(text, {"model.layers[name=deep].mlp.units=64,32"});
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(job->model().output(), "deep");
  EXPECT_EQ(job->model().layers(0).mlp().units(0), 64);
  EXPECT_THAT(
      std::string(Load(text, {"model.zoo=tyni"}).status().message()),
      ::testing::AllOf(HasSubstr("there is no model 'tyni'"), HasSubstr("did you mean tiny?")));
}

TEST_F(JobConfigTest, TheResolvedTextLoadsToTheSameJob) {
  const auto job = Load(kJob);
  ASSERT_TRUE(job.ok()) << job.status();
  const auto again = ReadResolvedJob(WriteFile("resolved.textproto", ResolvedJobText(*job)));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(ResolvedJobText(*again), ResolvedJobText(*job));
  EXPECT_EQ(JobFingerprint(*again), JobFingerprint(*job));
}

TEST_F(JobConfigTest, TheFingerprintIgnoresPathsAndNoticesAllElse) {
  const auto job = Load(kJob);
  ASSERT_TRUE(job.ok()) << job.status();
  JobConfig moved = *job;
  moved.set_run_dir("/somewhere");
  moved.set_data_root("/else");
  EXPECT_EQ(JobFingerprint(moved), JobFingerprint(*job));
  JobConfig other = *job;
  other.mutable_tables(0)->mutable_segments(0)->set_l2(0.5f);
  EXPECT_NE(JobFingerprint(other), JobFingerprint(*job));
  JobConfig without_default = *job;
  without_default.clear_seed();
  EXPECT_EQ(JobFingerprint(without_default), JobFingerprint(*job));
}

constexpr char kTopicJob[] = R"(
  data { libsvm {} features { name: 'features' table: 'ids' }
         kafka { brokers: 'a:1' topics: 'clicks' } test_kafka { topics: 'test' } }
  tables { name: 'ids' id: 0 segments { name: 'linear' dim: 1 } }
  model { layers { name: 'logit' inputs: '*.linear' sum {} } }
)";

constexpr char kCsvJob[] = R"(
  data {
    csv { trim: true columns { name: 'y' kind: LABEL } columns { name: 'tags' kind: MULTI_ID } }
    train_files: '/a'
    features { name: 'tags' table: 'ids' }
  }
  tables { name: 'ids' id: 0 segments { name: 'linear' dim: 1 } }
  model { layers { name: 'logit' inputs: '*.linear' sum {} } }
)";

TEST_F(JobConfigTest, ANewRunReadsTextByTheNewestRules) {
  const auto job = Load(kCsvJob);
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_TRUE(job->data().csv().trim_lists()) << "as csv.trim";
  EXPECT_EQ(job->data().record_rules(), 2);
  EXPECT_FALSE(Load(kCsvJob, {"data.csv.trim_lists=false"})->data().csv().trim_lists());
  EXPECT_EQ(Load(kCsvJob, {"data.record_rules=0"})->data().record_rules(), 0);
  EXPECT_FALSE(Load(kCsvJob, {"data.csv.trim=false"})->data().csv().has_trim_lists());
  EXPECT_FALSE(Load(kJob)->data().has_record_rules()) << "a synthetic log has no text";
}

// The resolved job of an older build does not set these rules, and its cuts have the order
// fingerprint of a data section without them. Resolving the job must change neither.
TEST_F(JobConfigTest, ARunThatBeganBeforeKeepsItsRulesForText) {
  for (const char* format : {"csv { trim: true columns { name: 'y' kind: LABEL } "
                             "columns { name: 'features' kind: MULTI_ID } }",
                             "libsvm {}", "libffm { num_fields: 1 }"}) {
    const bool is_libffm = absl::string_view(format).substr(0, 6) == "libffm";
    const std::string text = absl::StrCat(
        "data { ", format, " train_files: '/a' features { name: '", is_libffm ? "0" : "features",
        "' table: 'ids' } } tables { name: 'ids' id: 0 segments { name: 'linear' dim: 1 } } "
        "model { layers { name: 'logit' inputs: '*.linear' sum {} } }");
    const auto job = ReadResolvedJob(WriteFile("resolved.textproto", text));
    ASSERT_TRUE(job.ok()) << job.status();
    EXPECT_TRUE(ValidateJob(*job).ok()) << ValidateJob(*job);
    EXPECT_FALSE(job->data().has_record_rules());
    EXPECT_FALSE(job->data().csv().has_trim_lists());
    EXPECT_FALSE(job->data().libsvm().has_numeric_label() || job->data().libsvm().has_qid());
    EXPECT_FALSE(job->data().libffm().has_numeric_label());
  }
}

TEST_F(JobConfigTest, FilesOfAnOverrideTakeThePlaceOfTopics) {
  const auto job = Load(kTopicJob, {"action=PREDICT", "init_from=m", "data.test_files=f"});
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_FALSE(job->data().has_test_kafka());
  EXPECT_TRUE(job->data().has_kafka());
}

TEST_F(JobConfigTest, TopicsOfAnOverrideTakeThePlaceOfFiles) {
  const auto job =
      Load(kTopicJob, {"data.train_files=f", "data.valid_files=f", "data.kafka.brokers=b:2",
                       "data.kafka.topics=views", "data.valid_kafka.topics=held_out",
                       "evaluation.every_steps=9"});
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(job->data().train_files_size(), 0);
  EXPECT_EQ(job->data().valid_files_size(), 0);
  EXPECT_EQ(job->data().kafka().topics(0), "views");
  EXPECT_EQ(job->data().valid_kafka().topics(0), "held_out");
}

TEST_F(JobConfigTest, ATopicPatternOfAnOverrideTakesThePlaceOfFiles) {
  for (const std::string stream : {"train", "valid", "test"}) {
    const std::string section = stream == "train" ? "kafka" : stream + "_kafka";
    const auto job =
        Load(kTopicJob, {"data." + stream + "_files=f", "data.kafka.brokers=b:2",
                         "data." + section + ".topic_pattern=view*", "evaluation.every_steps=9"});
    ASSERT_TRUE(job.ok()) << job.status();
    EXPECT_EQ(job->data().train_files_size() + job->data().valid_files_size() +
                  job->data().test_files_size(),
              0)
        << stream;
  }
}

TEST_F(JobConfigTest, NewBrokersReachTheEvaluationTopicsOfAResolvedJob) {
  const auto job = Load(kTopicJob);
  ASSERT_TRUE(job.ok()) << job.status();
  const auto moved = Load(ResolvedJobText(*job), {"data.kafka.brokers=b:2"});
  ASSERT_TRUE(moved.ok()) << moved.status();
  EXPECT_EQ(moved->data().test_kafka().brokers(0), "b:2");
}

TEST_F(JobConfigTest, TheFingerprintIgnoresHowAClusterIsReached) {
  JobConfig job = *Load(kJob);
  job.mutable_data()->mutable_kafka()->add_brokers("b:1");
  job.mutable_data()->mutable_kafka()->add_topics("clicks");
  job.mutable_data()->mutable_valid_kafka()->add_topics("valid");
  ResolveJob(&job);
  for (const char* set :
       {"data.kafka.brokers=c:2,d:3", "data.valid_kafka.brokers=c:2", "data.kafka.group_id=g",
        "data.kafka.queue_bytes=5000000", "data.kafka.broker_wait_seconds=9"}) {
    JobConfig moved = job;
    ASSERT_TRUE(SetField(set, &moved).ok());
    EXPECT_EQ(JobFingerprint(moved), JobFingerprint(job)) << set;
  }
  JobConfig secured = job;
  secured.mutable_data()->mutable_kafka()->add_settings()->set_name("security.protocol");
  EXPECT_EQ(JobFingerprint(secured), JobFingerprint(job));
  for (const char* set : {"data.kafka.topics=views", "data.kafka.start.at=LATEST",
                          "data.kafka.max_wait_ms=9", "data.valid_kafka.topics=other"}) {
    JobConfig other = job;
    ASSERT_TRUE(SetField(set, &other).ok());
    EXPECT_NE(JobFingerprint(other), JobFingerprint(job)) << set;
  }
}

}  // namespace
}  // namespace satrap

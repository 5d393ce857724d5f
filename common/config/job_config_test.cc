#include "common/config/job_config.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "common/config/text_format.h"
#include "common/config/validate_job.h"
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
  JobConfigTest() {
    const std::string base = testing::TempDir() + "job_config_test_XXXXXX";
    std::string pattern = base;
    folder_ = mkdtemp(pattern.data());
  }
  std::string WriteFile(const std::string& name, const std::string& text) {
    const std::string path = folder_ + "/" + name;
    std::ofstream(path) << text;
    return path;
  }
  absl::StatusOr<JobConfig> Load(const std::string& text,
                                 const std::vector<std::string>& sets = {}) {
    return LoadJob(WriteFile("job.textproto", text), sets, folder_);
  }
  std::string folder_;
};

TEST_F(JobConfigTest, FillsInDefaultsAndOptimizers) {
  const auto job = Load(kJob);
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_TRUE(job->tables(0).segments(0).optimizer().has_adagrad());
  EXPECT_TRUE(job->tables(0).segments(0).initializer().has_uniform());
  EXPECT_TRUE(job->dense_optimizer().has_adam());
  EXPECT_EQ(job->embedding_ps().replicas(), 1);
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
  ASSERT_EQ(std::system(("mkdir -p " + folder_ + "/nn_worker/models").c_str()), 0);
  WriteFile("nn_worker/models/tiny.textproto",
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
  const auto again = LoadResolvedJob(WriteFile("resolved.textproto", ResolvedJobText(*job)));
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
  other.mutable_tables(0)->set_l2(0.5f);
  EXPECT_NE(JobFingerprint(other), JobFingerprint(*job));
  JobConfig without_default = *job;
  without_default.clear_seed();
  EXPECT_EQ(JobFingerprint(without_default), JobFingerprint(*job));
}

}  // namespace
}  // namespace satrap

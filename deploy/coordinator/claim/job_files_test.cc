#include "deploy/coordinator/claim/job_files.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "common/checkpoint/manifest.h"
#include "common/config/text_format.h"
#include "common/testing/temp_dir.h"
#include "gmock/gmock.h"

namespace satrap {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class JobFilesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::ofstream(dir_ + "/a.csv") << "1,x\n";
    job_.set_data_root(dir_);
    job_.mutable_data()->mutable_csv();
    job_.mutable_data()->add_train_files("a.csv");
  }

  const TempDir temp_;
  const std::string dir_ = temp_.path();
  JobConfig job_;
};

TEST_F(JobFilesTest, AJobWhoseFilesAreThereMayBegin) {
  EXPECT_EQ(CheckFilesOfPods(job_), absl::OkStatus());
}

TEST_F(JobFilesTest, FilesThatAreMissingAreNamedInOneLine) {
  job_.mutable_data()->add_train_files("b_*.csv");
  job_.mutable_data()->add_test_files("c.csv");
  const absl::Status status = CheckFilesOfPods(job_);
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(
      std::string(status.message()),
      AllOf(HasSubstr("data.train_files: no file matches " + dir_ + "/b_*.csv; "),
            HasSubstr("data.test_files: no file matches " + dir_ + "/c.csv: "),
            HasSubstr("check that the volumes and secrets of `kubernetes` have these files"),
            Not(HasSubstr("\n"))));
}

TEST_F(JobFilesTest, AFolderInPlaceOfAFileIsRefused) {
  fs::create_directory(dir_ + "/b.csv");
  job_.mutable_data()->add_valid_files("b.csv");
  EXPECT_THAT(std::string(CheckFilesOfPods(job_).message()),
              HasSubstr("/b.csv is not a regular file"));
}

TEST_F(JobFilesTest, AFileThatMayNotBeReadIsRefused) {
  if (geteuid() == 0) GTEST_SKIP() << "root may read every file";
  fs::permissions(dir_ + "/a.csv", fs::perms::none);
  EXPECT_THAT(std::string(CheckFilesOfPods(job_).message()), HasSubstr(dir_ + "/a.csv"));
}

TEST_F(JobFilesTest, TheModelToBeginFromMustBeThere) {
  job_.set_init_from(dir_ + "/model");
  EXPECT_THAT(std::string(CheckFilesOfPods(job_).message()),
              HasSubstr("init_from: no saved model in " + dir_ + "/model"));
  fs::create_directory(dir_ + "/model");
  CheckpointManifest manifest;
  manifest.set_version(kManifestVersion);
  ASSERT_TRUE(WriteManifest(dir_ + "/model", manifest).ok());
  EXPECT_EQ(CheckFilesOfPods(job_), absl::OkStatus());
  std::ofstream(dir_ + "/model/manifest") << "version: 4\n";
  const absl::Status damaged = CheckFilesOfPods(job_);
  EXPECT_EQ(damaged.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(damaged.message()), StartsWith("init_from: "));
}

TEST_F(JobFilesTest, FilesOfSecretsMustBeThere) {
  job_.mutable_data()->Clear();
  ASSERT_TRUE(ParseText("brokers: 'b:9092' topics: 'clicks' settings { name: 'sasl.password' "
                        "value: 'file:" +
                            dir_ + "/password' }",
                        "kafka", job_.mutable_data()->mutable_kafka())
                  .ok());
  EXPECT_THAT(std::string(CheckFilesOfPods(job_).message()),
              AllOf(HasSubstr("setting sasl.password of Kafka: "), HasSubstr(dir_ + "/password")));
  std::ofstream(dir_ + "/password") << "secret\n";
  EXPECT_EQ(CheckFilesOfPods(job_), absl::OkStatus());
}

}  // namespace
}  // namespace satrap

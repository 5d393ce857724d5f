#include "deploy/cli/job_preparation.h"

#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/testing/temp_dir.h"
#include "deploy/cli/device_need.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class CheckOutputsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : {"job.textproto", "train.csv", "test.csv"}) {
      std::ofstream(dir_ + "/" + name) << "1,a\n";
    }
    job_.set_data_root(dir_);
    job_.mutable_data()->mutable_csv();
    job_.mutable_data()->add_train_files("tr*.csv");
    job_.mutable_data()->add_valid_files("gone.csv");
    job_.mutable_data()->add_test_files("test.csv");
  }
  absl::Status Check(const std::string& output) const {
    return CheckOutputs(job_, dir_ + "/job.textproto", {"", output});
  }
  JobConfig job_;
  const TempDir temp_;
  const std::string dir_ = temp_.path();
};

TEST(RowsAsInTest, AModelIsScoredOnTheIdsThatItWasTrainedOn) {
  JobConfig trained;
  EXPECT_TRUE(RowsAsIn(trained).empty());
  trained.mutable_data()->mutable_csv()->set_trim(true);
  EXPECT_THAT(RowsAsIn(trained),
              testing::ElementsAre("data.csv.trim_lists=false", "data.record_rules=0"))
      << "a run of an older build";
  trained.mutable_data()->mutable_csv()->set_trim_lists(true);
  trained.mutable_data()->set_record_rules(1);
  EXPECT_TRUE(RowsAsIn(trained).empty()) << "its job says it";
}

TEST_F(CheckOutputsTest, WhatTheJobReadsIsNeverWrittenOver) {
  EXPECT_THAT(Check(dir_ + "/job.textproto").message(), HasSubstr("it is the job's file"));
  EXPECT_THAT(Check(dir_ + "/train.csv").message(),
              HasSubstr("cannot write " + dir_ + "/train.csv: it is a data file of the job"));
  EXPECT_THAT(Check(dir_ + "/test.csv").message(), HasSubstr("it is a data file of the job"));
}

TEST_F(CheckOutputsTest, AFileIsKnownByAnyName) {
  fs::create_symlink("test.csv", dir_ + "/link");
  fs::create_hard_link(dir_ + "/train.csv", dir_ + "/other");
  for (const char* name : {"/link", "/other", "/./test.csv"}) {
    EXPECT_EQ(Check(dir_ + name).code(), absl::StatusCode::kInvalidArgument) << name;
  }
}

TEST_F(CheckOutputsTest, OtherFilesMayBeWritten) {
  std::ofstream(dir_ + "/old") << "x";
  for (const std::string& output : {dir_ + "/old", dir_ + "/new", std::string("/dev/null")}) {
    EXPECT_TRUE(Check(output).ok()) << output;
  }
}

TEST_F(CheckOutputsTest, TheFilesOfAJobThatDoesNotSayWhereTheyAreLieBesideIt) {
  std::ofstream(dir_ + "/job.textproto") << R"(
      data {
        csv { columns { name: "y" kind: LABEL } columns { name: "user" kind: ID } }
        train_files: "train.csv"
        features { name: "user" table: "ids" }
      }
      tables { name: "ids" segments { name: "linear" dim: 1 } }
      model { layers { name: "logit" inputs: "*.linear" sum {} } })";
  const auto job = PrepareJob(dir_ + "/job.textproto", {}, ".");
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(job->data_root(), dir_);
  EXPECT_EQ(PrepareJob(dir_ + "/job.textproto", {"data_root=/tmp"}, ".").status().code(),
            absl::StatusCode::kNotFound);
  fs::remove(dir_ + "/train.csv");
  EXPECT_THAT(PrepareJob(dir_ + "/job.textproto", {}, ".").status().message(),
              testing::AllOf(HasSubstr(dir_ + "/train.csv"), HasSubstr("--set data_root=DIR")));
}

TEST_F(CheckOutputsTest, ForPodsTheDataLieInTheClusterAndAreNotLookedForHere) {
  std::ofstream(dir_ + "/job.textproto") << R"(
      data {
        csv { columns { name: "y" kind: LABEL } columns { name: "user" kind: ID } }
        train_files: "nowhere.csv"
        features { name: "user" table: "ids" }
      }
      kubernetes {
        volumes { claim: "runs" mount_path: "/runs" }
        volumes { claim: "data" mount_path: "/data" read_only: true }
        secrets { name: "login" mount_path: "/secrets/login" }
      }
      tables { name: "ids" segments { name: "linear" dim: 1 } }
      model { layers { name: "logit" inputs: "*.linear" sum {} } })";
  const auto prepare = [this](const std::vector<std::string>& sets) {
    return PrepareJobOfPods(dir_ + "/job.textproto", sets, ".");
  };
  const auto job = prepare({"data_root=/data/clicks", "init_from=/runs/old"});
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(job->data_root(), "/data/clicks");
  EXPECT_EQ(job->init_from(), "/runs/old");
  EXPECT_TRUE(prepare({"data.train_files=/data/*.csv"}).ok());
  EXPECT_THAT(prepare({}).status().message(),
              HasSubstr("data_root: must be the path at which the pods find the data"));
  EXPECT_THAT(prepare({"data_root=clicks"}).status().message(), HasSubstr("got 'clicks'"));
  EXPECT_THAT(prepare({"data_root=/data", "init_from=runs/latest"}).status().message(),
              HasSubstr("init_from: must be the path at which the pods find the model, below the "
                        "mount_path of a volume or secret of `kubernetes`, got 'runs/latest'"));
  for (const char* path : {"/elsewhere", "/database", "/data/../etc", "/"}) {
    EXPECT_THAT(prepare({absl::StrCat("data_root=", path)}).status().message(),
                HasSubstr(absl::StrCat("data_root: must be the path at which the pods find the "
                                       "data, below the mount_path of a volume or secret of "
                                       "`kubernetes`, got '",
                                       path, "'")));
  }
  EXPECT_THAT(prepare({"data.train_files=/elsewhere/*.csv"}).status().message(),
              HasSubstr("got '/elsewhere/*.csv'"));
}

TEST_F(CheckOutputsTest, WhatPodsCannotDoIsRefusedBeforeAnythingIsSent) {
  const auto refusal = [this](const std::string& more, const std::vector<std::string>& sets = {}) {
    std::ofstream(dir_ + "/pods.textproto") << R"(
      kubernetes {
        volumes { claim: "runs" mount_path: "/runs" }
        secrets { name: "login" mount_path: "/secrets/login" }
      }
      tables { name: "ids" segments { name: "linear" dim: 1 } }
      model { layers { name: "logit" inputs: "*.linear" sum {} } }
      data { features { name: "user" table: "ids" } )"
                                            << more << " }";
    return std::string(PrepareJobOfPods(dir_ + "/pods.textproto", sets, ".").status().message());
  };
  const std::string file = R"(csv { columns { name: "y" kind: LABEL }
      columns { name: "user" kind: ID } } train_files: "/runs/train.csv" )";
  EXPECT_EQ(refusal(file), "");
  EXPECT_THAT(refusal(file, {"nn_worker.device=HOST"}),
              HasSubstr("nn_worker.device: images do not contain the program for HOST"));
  EXPECT_THAT(
      refusal(file + R"(test_files: "/runs/t.csv")", {"action=EVALUATE", "init_from=/runs/a"}),
      HasSubstr("action: pods only train, got EVALUATE"));
  const auto topics = [](const std::string& value) {
    return absl::StrCat(R"(csv { columns { name: "y" kind: LABEL }
                                 columns { name: "user" kind: ID } }
        kafka { brokers: "b:9092" topics: "t"
                settings { name: "sasl.password" value: ")",
                        value, R"(" } })");
  };
  EXPECT_EQ(refusal(topics("file:/secrets/login/password")), "");
  EXPECT_THAT(refusal(topics("env:PASSWORD")),
              HasSubstr("setting sasl.password of topics: pods have no variables, got "
                        "'env:PASSWORD': put the value into a Secret"));
  EXPECT_THAT(refusal(topics("file:/etc/password")),
              HasSubstr("setting sasl.password of topics: must be the path at which the pods find "
                        "the file, below"));
}

// PrepareJob also returns, as text, the device memory that the job needs, so that `validate` can
// print it without a second rehearsal.
TEST(PrepareJobTest, SaysWhatTheDeviceMustHold) {
  const std::string path = ::testing::TempDir() + "device_need_job.textproto";
  std::ofstream(path) << R"(
      data { synthetic { vocabulary_sizes: [ 30, 40 ] interacting_features: 2 }
             features { name: 'C1' table: 'ids' } features { name: 'C2' table: 'ids' } }
      tables { name: 'ids' id: 0 segments { name: 'linear' dim: 1 } }
      model { layers { name: 'logit' inputs: '*.linear' sum {} } })";
  std::string need = "of another job";
  const auto on_cpu = PrepareJob(path, {}, ".", &need);
  ASSERT_TRUE(on_cpu.ok()) << on_cpu.status();
  EXPECT_EQ(need, "");
  const auto job = PrepareJob(path, {"nn_worker.device=HOST"}, ".", &need);
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(need, DeviceNeedOf(*job).value());
  EXPECT_THAT(need, HasSubstr(" bytes of device memory (network "));
  const auto refused =
      PrepareJob(path, {"nn_worker.device=HOST", "nn_worker.device_memory_bytes=1"}, ".");
  EXPECT_THAT(refused.status().message(), HasSubstr("nn_worker.device_memory_bytes is 1, but"));
  fs::remove(path);
}

// Prepares a job that reads a CSV file with a label of three classes and trains `model`.
absl::Status PrepareClasses(const std::string& model) {
  const std::string dir = ::testing::TempDir();
  std::ofstream(dir + "classes.csv") << "y,n,user,item\n0,1,a,b\n";
  std::ofstream(dir + "classes_job.textproto") << R"(
      data { csv { columns { name: 'y' kind: LABEL numeric_label: true }
                   columns { name: 'n' kind: NUMERIC }
                   columns { name: 'user' kind: ID } columns { name: 'item' kind: ID } }
             train_files: 'classes.csv'
             numerics { name: 'n' }
             features { name: 'user' table: 'ids' } features { name: 'item' table: 'ids' } }
      tables { name: 'ids' id: 0 segments { name: 'vector' dim: 3 } }
      evaluation { metric: LOGLOSS }
      model { tasks { name: 'k' label: 'y' output: 'out' loss: SOFTMAX_CROSS_ENTROPY })"
                                               << model << " }";
  return PrepareJob(dir + "classes_job.textproto", {"data_root=" + dir}, ".").status();
}

// PrepareJob accepts a job only if the loaders' number of classes equals that of the network's
// output. So if it accepts these jobs, the two numbers are equal.
TEST(PrepareJobTest, TheNumberOfClassesIsKnownToLoadersWhateverTheLayers) {
  const std::string fields =
      "layers { name: 'vectors' inputs: 'numeric' numeric_embedding { dim: 3 } } "
      "layers { name: 'of_n' inputs: 'vectors' flatten {} } "
      "layers { name: 'fields' inputs: '*.vector' inputs: 'of_n' stack {} } ";
  for (const std::string& layers : {
           std::string("layers { name: 'out' inputs: 'user.vector' linear { units: 3 } }"),
           std::string("layers { name: 'out' inputs: '*.vector' inputs: 'numeric' concat {} }"),
           std::string("layers { name: 'out' inputs: '*.vector' inputs: 'numeric' cross {} }"),
           fields + "layers { name: 'out' inputs: 'fields' flatten {} }",
           fields + "layers { name: 'out' inputs: 'fields' dot_interaction {} }",
           fields + "layers { name: 'out' inputs: 'fields' inner_product {} }",
           fields + "layers { name: 'out' inputs: 'fields' bi_interaction {} }",
           fields + "layers { name: 'out' inputs: 'fields' cin { units: 4 units: 2 } }",
           fields + "layers { name: 'seen' inputs: 'fields' attention { units: 4 } }"
                    "layers { name: 'out' inputs: 'seen' flatten {} }",
       }) {
    EXPECT_TRUE(PrepareClasses(layers).ok()) << layers << "\n" << PrepareClasses(layers);
  }
}

TEST(CheckClasses, RefusesOutputsWhoseClassesLoadersDoNotKnowOrCountDifferently) {
  EXPECT_TRUE(CheckClasses("out", 3, 3).ok());
  const absl::Status unknown = CheckClasses("out", absl::nullopt, 3);
  EXPECT_EQ(unknown.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(unknown.message(),
            "model: loaders cannot derive the number of classes of output \"out\" from the job: "
            "make it a layer `linear` with as many units as there are classes");
  EXPECT_THAT(
      CheckClasses("out", 2, 3).message(),
      HasSubstr("output \"out\" has 3 classes, but loaders derive 2 from the job, and would "
                "decide by that number which records to leave out: make it a layer `linear`"))
      << "records of the third class would be left out";
  EXPECT_FALSE(CheckClasses("out", 4, 3).ok()) << "a record of the fourth would end the run";
}

// Both tasks restrict which labels are good, but the number of classes is that of the softmax
// task's output.
TEST(PrepareJobTest, ATaskThatSharesItsLabelWithAnotherMayHaveMoreClasses) {
  EXPECT_TRUE(PrepareClasses("tasks { name: 'is_one' label: 'y' output: 'logit' } "
                             "layers { name: 'out' inputs: 'user.vector' linear { units: 3 } } "
                             "layers { name: 'logit' inputs: 'user.vector' linear { units: 1 } }")
                  .ok());
}

TEST(CannotChange, SpeaksOfWhatWasTypedInOneLineOrOneForEachProblem) {
  EXPECT_EQ(CannotChange("run R cannot be scaled",
                         absl::InvalidArgumentError("--set epocs=3: no field 'epocs'"))
                .message(),
            "run R cannot be scaled: epocs=3: no field 'epocs'");
  EXPECT_EQ(CannotChange("run R cannot be scaled",
                         absl::InvalidArgumentError("seed: cannot change\n  lanes: a\n  b: c"))
                .message(),
            "run R cannot be scaled:\n  seed: cannot change\n  lanes: a\n  b: c");
}

}  // namespace
}  // namespace satrap

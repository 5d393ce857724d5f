#include "deploy/submit/command/run_place.h"

#include <filesystem>
#include <fstream>
#include <string>

#include "common/testing/temp_dir.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

namespace fs = std::filesystem;

class RunPlaceTest : public ::testing::Test {
 protected:
  void Note(const std::string& run, const std::string& space) {
    EXPECT_EQ(NoteNamespace(runs_, run, space), absl::OkStatus());
  }
  std::string Of(const std::string& run, const std::string& given = "") {
    const absl::StatusOr<std::string> space = NamespaceOf(run, given, runs_);
    return space.ok() ? *space : std::string(space.status().message());
  }
  void MakeFolder(const std::string& run) {
    fs::create_directories(runs_ + "/" + run);
    std::ofstream(runs_ + "/" + run + "/job.textproto") << "name: 'x'\n";
  }

  const TempDir temp_;
  const std::string runs_ = temp_.At("runs");
};

TEST_F(RunPlaceTest, ARunIsWhereSubmitHasNotedItUntilThatIsTakenBack) {
  EXPECT_EQ(Of("demo"), "") << "a folder";
  Note("demo", "ml");
  Note("demo", "ml");
  EXPECT_EQ(Of("demo"), "ml");
  EXPECT_EQ(Of("demo-2"), "");
  ForgetNamespace(runs_, "demo", "other");
  EXPECT_EQ(Of("demo"), "ml");
  ForgetNamespace(runs_, "demo", "ml");
  EXPECT_EQ(Of("demo"), "");
  ForgetNamespace(runs_, "demo", "ml");
}

TEST_F(RunPlaceTest, ANamespaceThatIsGivenCounts) {
  Note("demo", "ml");
  MakeFolder("demo");
  EXPECT_EQ(Of("demo", "other"), "other");
}

TEST_F(RunPlaceTest, ANameOfARunInTheClusterAndOfAFolderIsAskedAbout) {
  Note("demo", "ml");
  MakeFolder("demo");
  EXPECT_EQ(NamespaceOf("demo", "", runs_).status(),
            absl::InvalidArgumentError("there are several runs demo, in the cluster (--namespace "
                                       "ml) and in the folder " +
                                       runs_ + "/demo: which one is meant?"));
  EXPECT_EQ(Of(runs_ + "/demo"), "") << "a path is a folder";
}

TEST_F(RunPlaceTest, ANameInSeveralNamespacesIsAskedAbout) {
  Note("demo", "ml");
  Note("demo", "dev");
  EXPECT_EQ(Of("demo"),
            "there are several runs demo, in the cluster (--namespace ml or --namespace dev): "
            "which one is meant?");
  ForgetNamespace(runs_, "demo", "ml");
  EXPECT_EQ(Of("demo"), "dev");
}

TEST_F(RunPlaceTest, WhatCannotBeTheNameOfARunInAClusterIsAFolder) {
  for (const char* name : {"", "a/b", "Demo", "demo_1", ".."}) EXPECT_EQ(Of(name), "") << name;
}

TEST_F(RunPlaceTest, WithoutAFolderForItNothingIsNoted) {
  std::ofstream(runs_) << "a file\n";
  EXPECT_FALSE(NoteNamespace(runs_, "demo", "ml").ok());
}

}  // namespace
}  // namespace satrap

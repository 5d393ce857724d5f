#include "common/config/job_file.h"

#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class FindJobFileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    install_dir_ = ::testing::TempDir() + "/install";
    fs::create_directories(install_dir_ + "/deploy/jobs");
    for (const char* name : {"demo", "criteo"}) std::ofstream(Installed(name)) << "x";
  }
  void TearDown() override { fs::remove_all(install_dir_); }
  std::string Installed(const std::string& name) const {
    return absl::StrCat(install_dir_, "/deploy/jobs/", name, ".textproto");
  }
  std::string install_dir_;
};

TEST_F(FindJobFileTest, APathIsTakenAsItIs) {
  EXPECT_EQ(*FindJobFile(Installed("demo"), "/nowhere"), Installed("demo"));
}

TEST_F(FindJobFileTest, ANameIsThatOfAnInstalledJob) {
  EXPECT_EQ(*FindJobFile("demo", install_dir_), Installed("demo"));
  EXPECT_EQ(*FindJobFile("demo.textproto", install_dir_), Installed("demo"));
}

TEST_F(FindJobFileTest, AnUnknownNameIsToldWhichThereAreAndWhichWasMeant) {
  const absl::Status status = FindJobFile("critoe", install_dir_).status();
  EXPECT_TRUE(absl::IsNotFound(status));
  EXPECT_THAT(status.message(), HasSubstr("no job 'critoe'"));
  EXPECT_THAT(status.message(), HasSubstr("(criteo, demo)"));
  EXPECT_THAT(status.message(), HasSubstr("did you mean criteo?"));
}

}  // namespace
}  // namespace satrap

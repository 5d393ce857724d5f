#include "deploy/pod/build_id.h"

#include <filesystem>
#include <fstream>

#include "gtest/gtest.h"

namespace satrap {
namespace {

class BuildIdTest : public ::testing::Test {
 protected:
  void SetUp() override { std::filesystem::remove_all(Folder()); }
  static std::string Folder() { return ::testing::TempDir() + "build_id_test"; }
  // Writes the programs of all roles. The embedding PS's has the bytes `ps`.
  static std::string BuildWith(const std::string& ps) {
    for (const char* program : {"deploy/coordinator/coordinator", "data_loader/data_loader",
                                "embedding_worker/embedding_worker", "embedding_ps/embedding_ps",
                                "nn_worker/nn_worker"}) {
      const std::filesystem::path path = Folder() + "/" + program;
      std::filesystem::create_directories(path.parent_path());
      const bool is_ps = path.filename() == "embedding_ps";
      std::ofstream(path) << (is_ps ? ps : std::string("the same"));
    }
    return BuildOf(Folder());
  }
};

TEST_F(BuildIdTest, TheSameProgramsAreTheSameBuildAndOthersAreNot) {
  const std::string large(3000000, 'x');
  const std::string build = BuildWith(large);
  EXPECT_EQ(build.size(), 16u);
  EXPECT_EQ(BuildWith(large), build);
  std::string other = large;
  other.back() = 'y';
  EXPECT_NE(BuildWith(other), build);
  EXPECT_NE(BuildWith(large + "x"), build);
}

TEST_F(BuildIdTest, TheProgramForCardsIsAPartOfABuildThatHasIt) {
  const std::string build = BuildWith("x");
  const std::string program = Folder() + "/nn_worker/nn_worker_cuda";
  std::ofstream(program) << "for cards";
  const std::string with_cards = BuildOf(Folder());
  EXPECT_NE(with_cards, build);
  std::ofstream(program) << "for other cards";
  EXPECT_NE(BuildOf(Folder()), with_cards);
  EXPECT_NE(BuildOf(Folder()), build);
}

TEST_F(BuildIdTest, ABuildWithoutAProgramIsNotKnown) {
  BuildWith("x");
  std::filesystem::remove(Folder() + "/embedding_ps/embedding_ps");
  EXPECT_EQ(BuildOf(Folder()), "");
}

}  // namespace
}  // namespace satrap

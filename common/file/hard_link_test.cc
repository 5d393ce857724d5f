#include "common/file/hard_link.h"

#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <string>

#include "common/testing/temp_dir.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

class HardLinkByCountTest : public testing::Test {
 protected:
  HardLinkByCountTest() { Write("draft", "mine"); }
  std::string At(const std::string& name) const { return temp_.At(name); }
  void Write(const std::string& name, const std::string& text) { temp_.Write(name, text); }
  std::string Read(const std::string& name) const {
    std::ifstream file(At(name));
    std::string text;
    file >> text;
    return text;
  }

  const TempDir temp_;
};

int RefusedAsTaken(const char*, const char*) {
  errno = EEXIST;
  return -1;
}

TEST_F(HardLinkByCountTest, ALinkWhoseFirstAnswerWasLostIsThere) {
  const auto repeated = [](const char* from, const char* to) {
    EXPECT_EQ(link(from, to), 0);
    return link(from, to);
  };
  EXPECT_EQ(HardLinkByCount(At("draft"), At("entry"), repeated), 0);
  EXPECT_EQ(Read("entry"), "mine");
}

TEST_F(HardLinkByCountTest, ANameThatAnotherFileHasIsTaken) {
  Write("entry", "theirs");
  EXPECT_EQ(HardLinkByCount(At("draft"), At("entry"), link), EEXIST);
  EXPECT_EQ(Read("entry"), "theirs");
}

TEST_F(HardLinkByCountTest, AFileThatHadAnotherNameBeforeIsNotTakenForLinked) {
  ASSERT_EQ(link(At("draft").c_str(), At("older").c_str()), 0);
  EXPECT_EQ(HardLinkByCount(At("draft"), At("entry"), RefusedAsTaken), EEXIST);
}

TEST_F(HardLinkByCountTest, EveryOtherErrorIsPassedOn) {
  const auto refused_after_linking = [](const char* from, const char* to) {
    EXPECT_EQ(link(from, to), 0);
    errno = EIO;
    return -1;
  };
  EXPECT_EQ(HardLinkByCount(At("draft"), At("entry"), refused_after_linking), EIO);
  EXPECT_EQ(HardLinkByCount(At("none"), At("other"), link), ENOENT);
  EXPECT_EQ(HardLinkByCount(At("none"), At("other"), RefusedAsTaken), EEXIST);
}

}  // namespace
}  // namespace satrap

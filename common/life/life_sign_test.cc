#include "common/life/life_sign.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

using ::testing::HasSubstr;

constexpr int kPatienceMs = 60000;

class LifeSignTest : public testing::Test {
 protected:
  LifeSignTest() { EXPECT_EQ(pipe2(ends_, O_CLOEXEC), 0); }
  ~LifeSignTest() override {
    for (const int end : ends_) {
      if (end >= 0) close(end);
    }
  }
  int reader() const { return ends_[0]; }
  int writer() const { return ends_[1]; }
  void CloseReader() {
    close(ends_[0]);
    ends_[0] = -1;
  }
  // Reads `count` bytes, and waits for them if necessary.
  bool Take(int count) const {
    for (int i = 0; i < count; ++i) {
      pollfd waited = {reader(), POLLIN, 0};
      char byte;
      if (poll(&waited, 1, kPatienceMs) != 1 || read(reader(), &byte, 1) != 1) return false;
    }
    return true;
  }
  bool IsEmpty() const {
    pollfd waited = {reader(), POLLIN, 0};
    return poll(&waited, 1, 0) == 0;
  }
  static std::string Message(const std::string& argument) {
    int descriptor = -1;
    return std::string(ParseOnlyFlags({argument}, {AliveFlag(&descriptor)}).message());
  }

 private:
  int ends_[2] = {-1, -1};
};

TEST_F(LifeSignTest, EachSignIsAByteInThePipe) {
  const LifeSign sign(writer());
  EXPECT_TRUE(IsEmpty());
  sign.Give();
  sign.Give();
  EXPECT_TRUE(Take(2));
  EXPECT_TRUE(IsEmpty());
}

TEST_F(LifeSignTest, ASignThatNobodyTakesDoesNotBlock) {
  const LifeSign sign(writer());
  // Gives more signs than any pipe holds.
  for (int i = 0; i < (1 << 20) + 1; ++i) sign.Give();
  EXPECT_TRUE(Take(1));
}

TEST_F(LifeSignTest, WithoutADescriptorNoneIsGiven) {
  const LifeSign sign(-1);
  EXPECT_FALSE(sign.is_asked_for());
  sign.Give();
  const LifeSignThread thread(&sign);
}

TEST_F(LifeSignTest, AProgramThatIsStartedDoesNotInheritThePipe) {
  ASSERT_EQ(fcntl(writer(), F_SETFD, 0), 0);
  const LifeSign sign(writer());
  EXPECT_EQ(fcntl(writer(), F_GETFD), FD_CLOEXEC);
}

TEST_F(LifeSignTest, AThreadGivesSignsUntilItIsDestroyed) {
  const LifeSign sign(writer());
  {
    const LifeSignThread thread(&sign);
    EXPECT_TRUE(Take(2));
  }
  while (!IsEmpty()) ASSERT_TRUE(Take(1));
  EXPECT_TRUE(IsEmpty()) << "it has ended";
}

TEST_F(LifeSignTest, TheFlagTakesAPipeThatCanBeWritten) {
  int descriptor = -1;
  const std::vector<std::string> args = {"--alive=" + std::to_string(writer())};
  ASSERT_TRUE(ParseOnlyFlags(args, {AliveFlag(&descriptor)}).ok());
  EXPECT_EQ(descriptor, writer());
}

TEST_F(LifeSignTest, TheFlagRefusesWhatIsNoPipe) {
  const int file = open("/dev/null", O_WRONLY | O_CLOEXEC);
  ASSERT_GE(file, 0);
  const std::string expected = "must be the descriptor of an open, writable pipe";
  EXPECT_THAT(Message("--alive=" + std::to_string(file)), HasSubstr(expected));
  EXPECT_THAT(Message("--alive=" + std::to_string(reader())), HasSubstr(expected));
  close(file);
  EXPECT_THAT(Message("--alive=" + std::to_string(file)), HasSubstr(expected)) << "it is closed";
  EXPECT_THAT(Message("--alive=none"), HasSubstr("a whole number"));
}

}  // namespace
}  // namespace satrap

#include "common/base/shortage.h"

#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <string>

#include "common/base/status_macros.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

TEST(Shortage, IsWhatTheSystemSays) {
  EXPECT_EQ(ShortageOfErrno(ENOMEM), Shortage::kMemory);
  EXPECT_EQ(ShortageOfErrno(EAGAIN), Shortage::kProcesses);
  EXPECT_EQ(ShortageOfErrno(EMFILE), Shortage::kDescriptors);
  EXPECT_EQ(ShortageOfErrno(ENFILE), Shortage::kDescriptors);
  EXPECT_EQ(ShortageOfErrno(EADDRNOTAVAIL), Shortage::kAddress);
  EXPECT_EQ(ShortageOfErrno(EIO), Shortage::kNone);
}

absl::Status Passes(const absl::Status& status) {
  RETURN_IF_ERROR(status);
  return absl::OkStatus();
}

TEST(Shortage, IsMarkedAndNotReadFromTheMessage) {
  const absl::Status error = absl::ResourceExhaustedError("Too many open files");
  EXPECT_EQ(ShortageOf(error), Shortage::kNone);
  EXPECT_EQ(ShortageOf(absl::OkStatus()), Shortage::kNone);
  const absl::Status marked = MarkShortage(error, Shortage::kDescriptors);
  EXPECT_EQ(ShortageOf(Passes(marked)), Shortage::kDescriptors);
  EXPECT_EQ(marked.message(), "Too many open files");
  EXPECT_EQ(ShortageOf(MarkShortage(error, Shortage::kNone)), Shortage::kNone);
}

TEST(ShortageDeathTest, WithoutAHandlerTheProcessSaysWhatItLacksAndAborts) {
  EXPECT_EXIT(EndForWantOf(Shortage::kMemory, "no memory for 7 bytes"),
              testing::KilledBySignal(SIGABRT), "error: no memory for 7 bytes");
}

TEST(ShortageDeathTest, TheHandlerEndsTheProcess) {
  EXPECT_EXIT(
      {
        SetShortageHandler([](Shortage shortage, const std::string& what) {
          fprintf(stderr, "handled %s\n", what.c_str());
          _exit(shortage == Shortage::kMemory ? 7 : 8);
        });
        EndForWantOf(Shortage::kMemory, "no memory");
      },
      testing::ExitedWithCode(7), "handled no memory");
}

}  // namespace
}  // namespace satrap

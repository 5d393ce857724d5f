#include "common/role/process_end.h"

#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <exception>
#include <new>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>

#include "common/base/shortage.h"
#include "common/role/ending.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

template <typename Error>
Ending EndingOfThrown(const Error& error) {
  return EndingOfException(EMBEDDING_PS, 1, "loads the rows of the cut",
                           std::make_exception_ptr(error));
}

TEST(ProcessEnd, AnExceptionIsToldByWhatTheProcessWasDoing) {
  const Ending memory = EndingOfThrown(std::bad_alloc());
  EXPECT_EQ(memory.kind(), Ending::NO_MEMORY);
  EXPECT_EQ(memory.why(), Ending::MEMBER_FAILED);
  EXPECT_TRUE(IsOf(memory, EMBEDDING_PS, 1));
  EXPECT_EQ(memory.text(),
            "embedding_ps 1, while it loads the rows of the cut: no memory is left "
            "(std::bad_alloc)");
  const Ending thread = EndingOfThrown(std::system_error(EAGAIN, std::generic_category()));
  EXPECT_EQ(thread.kind(), Ending::NO_PROCESSES);
  EXPECT_EQ(thread.text(),
            "embedding_ps 1, while it loads the rows of the cut: no thread or process can be "
            "started (Resource temporarily unavailable)");
  EXPECT_EQ(EndingOfThrown(std::system_error(EMFILE, std::system_category())).kind(),
            Ending::NO_DESCRIPTORS);
}

TEST(ProcessEnd, AnyOtherExceptionIsOfNoKind) {
  const Ending other = EndingOfThrown(std::runtime_error("no memory is left, says a text"));
  EXPECT_EQ(other.kind(), Ending::UNCLASSIFIED);
  EXPECT_EQ(other.why(), Ending::MEMBER_FAILED);
  EXPECT_EQ(other.text(),
            "embedding_ps 1, while it loads the rows of the cut: an exception was not "
            "caught: no memory is left, says a text");
  EXPECT_EQ(EndingOfThrown(7).kind(), Ending::UNCLASSIFIED);
}

// noexcept makes the exception end the process; otherwise gtest would catch it.
template <typename Error>
void Throw(const Error& error) noexcept {
  std::rethrow_exception(std::make_exception_ptr(error));
}

class ProcessEndDeathTest : public testing::Test {
 protected:
  ProcessEndDeathTest() { ::testing::FLAGS_gtest_death_test_style = "threadsafe"; }
  ~ProcessEndDeathTest() override { std::remove(Path().c_str()); }
  static std::string Path() {
    return testing::TempDir() + testing::UnitTest::GetInstance()->current_test_info()->name();
  }
};

TEST_F(ProcessEndDeathTest, AThreadsExceptionLeavesAnEndingAndExits75IfAShortageIsTheCause) {
  EXPECT_EXIT(
      {
        ReportUnexpectedEnd(NN_WORKER, 3, Path());
        NowDoing("makes its network");
        std::thread([] { Throw(std::bad_alloc()); }).join();
      },
      testing::ExitedWithCode(kExitStartAgain),
      "error: nn_worker 3, while it makes its network: no memory is left");
  ASSERT_TRUE(ReadEnding(Path()).has_value());
  EXPECT_EQ(ReadEnding(Path())->kind(), Ending::NO_MEMORY);
}

TEST_F(ProcessEndDeathTest, AWantOfMemoryForATableIsToldLikewise) {
  EXPECT_EXIT(
      {
        ReportUnexpectedEnd(EMBEDDING_PS, 0, Path());
        NowDoing("makes its tables");
        EndForWantOf(Shortage::kMemory, "no memory for 4096 more bytes of a table");
      },
      testing::ExitedWithCode(kExitStartAgain),
      "error: embedding_ps 0, while it makes its tables: no memory for 4096 more bytes");
  EXPECT_EQ(ReadEnding(Path())->kind(), Ending::NO_MEMORY);
}

TEST_F(ProcessEndDeathTest, AnyOtherExceptionLeavesAnEndingAndAborts) {
  EXPECT_EXIT(
      {
        ReportUnexpectedEnd(COORDINATOR, 0, Path());
        Throw(std::runtime_error("of a library"));
      },
      testing::KilledBySignal(SIGABRT),
      "error: coordinator, while it starts: an exception was not caught: of a library");
  ASSERT_TRUE(ReadEnding(Path()).has_value());
  EXPECT_EQ(ReadEnding(Path())->kind(), Ending::UNCLASSIFIED);
}

}  // namespace
}  // namespace satrap

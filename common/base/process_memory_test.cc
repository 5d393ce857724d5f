#include "common/base/process_memory.h"

#include <sys/resource.h>
#include <unistd.h>

#include <cstring>
#include <thread>

#include "common/base/buffer.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

int64_t PageFaults() {
  rusage usage;
  ::getrusage(RUSAGE_THREAD, &usage);
  return usage.ru_minflt;
}

// Fills several buffers at a time, so that more is freed than malloc keeps by default.
void FillBuffers(int count) {
  for (int i = 0; i < count; ++i) {
    Buffer buffers[8];
    for (Buffer& buffer : buffers) {
      buffer = Buffer(1 << 20);
      std::memset(buffer.mutable_data(), i, buffer.size());
    }
  }
}

// Counts the page faults while buffers are filled a second time. The first time has obtained their
// memory from the kernel.
int64_t FaultsOfFillingBuffers() {
  FillBuffers(20);
  const int64_t start = PageFaults();
  FillBuffers(20);
  return PageFaults() - start;
}

TEST(ProcessMemoryTest, FilledAgainWithoutPageFaults) {
  KeepFreedMemory();
  EXPECT_LT(FaultsOfFillingBuffers(), 100);
  int64_t in_a_thread = 0;  // another arena of malloc
  std::thread([&] { in_a_thread = FaultsOfFillingBuffers(); }).join();
  EXPECT_LT(in_a_thread, 100);
}

TEST(ResidentBytes, AreThoseOfAProcessThatRuns) {
  ASSERT_TRUE(ResidentBytes(getpid()).has_value());
  EXPECT_GT(*ResidentBytes(getpid()), 1u << 20);
  EXPECT_FALSE(ResidentBytes(1 << 30).has_value());
}

}  // namespace
}  // namespace satrap

#include "nn_worker/device/host/fiber.h"

#include <sys/wait.h>

#include <csignal>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace satrap::host {
namespace {

struct Counter {
  std::unique_ptr<Fiber> fiber;
  std::vector<std::string> log;
};

// Counts in variables on its own stack, which must keep their values while other fibers run.
void Count(void* argument) {
  auto* const counter = static_cast<Counter*>(argument);
  double half = 0;
  for (int i = 0;; ++i) {
    half += 0.5;
    counter->log.push_back(std::to_string(i) + " " + std::to_string(half));
    counter->fiber->Suspend();
  }
}

TEST(FiberTest, AFiberGoesOnWhereItWasSuspended) {
  Counter a, b;
  a.fiber = std::make_unique<Fiber>(&Count, &a);
  b.fiber = std::make_unique<Fiber>(&Count, &b);
  a.fiber->Resume();
  b.fiber->Resume();
  a.fiber->Resume();
  EXPECT_EQ(a.log, (std::vector<std::string>{"0 0.500000", "1 1.000000"}));
  EXPECT_EQ(b.log, (std::vector<std::string>{"0 0.500000"}));
}

TEST(FiberTest, AnotherThreadMayResumeAFiber) {
  Counter counter;
  counter.fiber = std::make_unique<Fiber>(&Count, &counter);
  counter.fiber->Resume();
  std::thread([&counter] { counter.fiber->Resume(); }).join();
  counter.fiber->Resume();
  EXPECT_EQ(counter.log.size(), 3u);
}

TEST(FiberTest, ManyFibersComeAndGo) {
  for (int round = 0; round < 5; ++round) {
    std::vector<std::unique_ptr<Counter>> counters;
    for (int i = 0; i < 300; ++i) {
      counters.push_back(std::make_unique<Counter>());
      counters.back()->fiber = std::make_unique<Fiber>(&Count, counters.back().get());
      counters.back()->fiber->Resume();
    }
    for (const auto& counter : counters) counter->fiber->Resume();
    for (const auto& counter : counters) EXPECT_EQ(counter->log.size(), 2u);
  }
}

// Each frame touches only its lowest byte, so four frames reach 32 KiB beyond a stack. The function
// is not inlined, because a joint frame of several calls would reach beyond the guard.
[[gnu::noinline]] int Deep(int depth) {
  volatile char frame[40 * 1024];
  frame[0] = static_cast<char>(depth);
  const int below = depth == 0 ? 0 : Deep(depth - 1);
  return below + frame[0];  // read after the call, so that each call needs a frame of its own
}

struct Diver {
  int depth;
  std::unique_ptr<Fiber> fiber;
};
void Dive(void* argument) {
  auto* const diver = static_cast<Diver*>(argument);
  Deep(diver->depth);
  for (;;) diver->fiber->Suspend();
}

TEST(FiberDeathTest, AnOverflowOfTheStackIsAFault) {
  Diver diver{1, nullptr}, below{1, nullptr};
  diver.fiber = std::make_unique<Fiber>(&Dive, &diver);
  // If the guard were too small, the first fiber would write into the stack of this fiber.
  below.fiber = std::make_unique<Fiber>(&Dive, &below);
  const auto died_of_the_fault = [](int status) {
    return (WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV) ||
           (WIFEXITED(status) && WEXITSTATUS(status) != 0);  // AddressSanitizer's report
  };
  EXPECT_EXIT((diver.fiber->Resume(), std::_Exit(0)), testing::ExitedWithCode(0), "");
  diver.depth = 3;
  EXPECT_EXIT((diver.fiber->Resume(), std::_Exit(0)), died_of_the_fault, "");
}

}  // namespace
}  // namespace satrap::host

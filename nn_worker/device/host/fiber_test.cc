#include "nn_worker/device/host/fiber.h"

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

// Counts on its own stack, which keeps its values while others run.
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

int Deep(int depth) {
  volatile char frame[1024];
  frame[0] = static_cast<char>(depth);
  return depth == 0 ? frame[0] : Deep(depth - 1) + frame[0];
}

TEST(FiberDeathTest, AnOverflowOfTheStackIsAFault) {
  EXPECT_DEATH(
      {
        int result = 0;
        Fiber fiber([](void* argument) { *static_cast<int*>(argument) = Deep(1 << 20); }, &result);
        fiber.Resume();
      },
      "");
}

}  // namespace
}  // namespace satrap::host

#include "common/thread/bounded_queue.h"

#include <atomic>
#include <memory>
#include <thread>

#include "gtest/gtest.h"

namespace satrap {
namespace {

TEST(BoundedQueueTest, GivesValuesInOrder) {
  BoundedQueue<std::unique_ptr<int>> queue(3);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(queue.Push(std::make_unique<int>(i)));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(**queue.Pop(), i);
}

TEST(BoundedQueueTest, HoldsAtMostItsCapacity) {
  BoundedQueue<int> queue(2);
  std::atomic<int> pushed = 0;
  std::thread producer([&] {
    for (int i = 0; i < 1000; ++i) {
      queue.Push(i);
      ++pushed;
    }
    queue.Close();
  });
  int popped = 0;
  while (const auto value = queue.Pop()) {
    EXPECT_EQ(*value, popped++);
    // Every pushed value was popped, or is one of at most two in the queue.
    EXPECT_LE(pushed, popped + 2);
  }
  producer.join();
  EXPECT_EQ(popped, 1000);
}

TEST(BoundedQueueTest, GivesUpAtTheDeadline) {
  BoundedQueue<int> queue(1);
  EXPECT_FALSE(queue.PopWithin(5).has_value());
  queue.Push(7);
  EXPECT_EQ(queue.PopWithin(5), 7);
}

TEST(BoundedQueueTest, CloseLetsTheRestOutAndWakesWaiters) {
  BoundedQueue<int> queue(1);
  queue.Push(1);
  std::thread producer([&] { EXPECT_FALSE(queue.Push(2)); });
  queue.Close();
  producer.join();
  EXPECT_EQ(queue.Pop(), 1);
  EXPECT_FALSE(queue.Pop().has_value());
  EXPECT_FALSE(queue.Push(3));
}

}  // namespace
}  // namespace satrap

#include "common/base/buffer.h"

#include <cstring>
#include <memory>
#include <new>

#include "gtest/gtest.h"

namespace satrap {
namespace {

TEST(BufferTest, IsEmptyByDefault) {
  EXPECT_TRUE(Buffer().empty());
  EXPECT_TRUE(Buffer(0).empty());
  EXPECT_EQ(Buffer().View<float>(0, 0).size(), 0u);
}

TEST(BufferTest, IsAlignedAtEverySize) {
  for (size_t size = 1; size < 5000; size += 37) {
    Buffer buffer(size);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer.data()) % kBufferAlignment, 0u);
    std::memset(buffer.mutable_data(), 0xab, size);
    EXPECT_EQ(buffer.size(), size);
  }
}

TEST(BufferTest, CopiesShareTheBytes) {
  Buffer buffer(8);
  buffer.MutableView<uint64_t>(0, 1)[0] = 42;
  Buffer copy = buffer;
  EXPECT_EQ(copy.data(), buffer.data());
  buffer = Buffer();
  EXPECT_EQ(copy.View<uint64_t>(0, 1)[0], 42u);
}

// Counts the bytes that are in use.
class CountingAllocator final : public BufferAllocator {
 public:
  explicit CountingAllocator(size_t* in_use) : in_use_(in_use) {}
  ~CountingAllocator() override { EXPECT_EQ(*in_use_, 0u) << "gone before its buffers"; }
  uint8_t* Allocate(size_t size_bytes) override {
    *in_use_ += size_bytes;
    return static_cast<uint8_t*>(::operator new(size_bytes, std::align_val_t(kBufferAlignment)));
  }
  void Free(uint8_t* data, size_t size_bytes) override {
    *in_use_ -= size_bytes;
    ::operator delete(data, std::align_val_t(kBufferAlignment));
  }

 private:
  size_t* const in_use_;
};

TEST(BufferTest, KeepsItsAllocatorUntilTheLastCopyIsGone) {
  size_t in_use = 0;
  auto allocator = std::make_shared<CountingAllocator>(&in_use);
  EXPECT_TRUE(Buffer(0, allocator).empty());
  Buffer buffer(100, allocator);
  EXPECT_EQ(in_use, 100u);
  allocator.reset();
  Buffer copy = buffer;
  buffer = Buffer();
  EXPECT_EQ(in_use, 100u);
  copy.MutableView<uint8_t>(99, 1)[0] = 7;
  copy = Buffer();
  EXPECT_EQ(in_use, 0u);
}

TEST(BufferTest, ViewsTheLastValue) {
  Buffer buffer(64);
  EXPECT_EQ(buffer.View<double>(56, 1).size(), 1u);
  EXPECT_EQ(buffer.View<double>(64, 0).size(), 0u);
}

TEST(BufferDeathTest, RefusesViewsOutsideOrUnaligned) {
  const Buffer buffer(64);
  EXPECT_DEATH(buffer.View<double>(56, 2), "2 values of 8 bytes at 56 of 64");
  EXPECT_DEATH(buffer.View<double>(65, 0), "CHECK failed");
  EXPECT_DEATH(buffer.View<double>(72, 0), "CHECK failed");
  EXPECT_DEATH(buffer.View<double>(4, 1), "not aligned");
  // The product of count and size overflows to 0.
  EXPECT_DEATH(buffer.View<double>(0, size_t{1} << 61), "CHECK failed");
}

}  // namespace
}  // namespace satrap

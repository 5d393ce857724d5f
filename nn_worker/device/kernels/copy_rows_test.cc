#include "nn_worker/device/kernels/copy_rows.h"

#include <vector>

#include "gtest/gtest.h"
#include "nn_worker/device/testing/device_testing.h"

namespace satrap {
namespace {

// Copies rows whose addresses, strides and widths allow accesses from 16 bytes down to one.
TEST_P(KernelTest, RowsOfBytesAreCopiedAndNothingElse) {
  for (const int64_t unit : {1, 2, 4, 8, 16}) {
    for (const int64_t gap : {0, 3}) {
      const int64_t rows = 70, bytes = 5 * unit, stride = bytes + gap * unit, begin = unit;
      const int64_t count = begin + rows * stride;
      std::vector<uint8_t> from(count), to(count, 200);
      for (int64_t i = 0; i < count; ++i) from[i] = static_cast<uint8_t>(i % 199);
      uint8_t* const x = device_.Put(from);
      uint8_t* const y = device_.Put(to);
      CopyRows(device_.stream(), {x + begin, stride}, {y + begin, stride}, rows, bytes);
      const auto got = device_.Get(y, count);
      for (int64_t i = 0; i < count; ++i) {
        const bool copied = i >= begin && (i - begin) % stride < bytes;
        ASSERT_EQ(got[i], copied ? from[i] : 200) << unit << " " << gap << " " << i;
      }
    }
  }
}

}  // namespace
}  // namespace satrap

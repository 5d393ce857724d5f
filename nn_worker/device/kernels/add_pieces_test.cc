#include "nn_worker/device/kernels/add_pieces.h"

#include <cstdint>
#include <vector>

#include "gtest/gtest.h"
#include "nn_worker/device/kernel.h"
#include "nn_worker/device/kernels/matrix.h"
#include "nn_worker/device/testing/device_testing.h"

namespace satrap {
namespace {

// A row of 8 values is read four values at a time, unless its pieces begin at an odd offset.
TEST_P(KernelTest, PiecesAreAddedInTheirOrder) {
  for (const int64_t num_pieces : {1, 2, 8, 9, 17, 33}) {
    for (const int64_t cols : {1, 5, 8}) {
      for (const int64_t gap : {0, 4}) {
        for (const int64_t begin : {0, 1}) {
          constexpr int64_t kRows = 3;
          const int64_t count = kRows * cols, stride = cols + gap;
          const auto pieces = RandomValues(begin + num_pieces * count, 5);
          float* const sum = device_.Put(std::vector<float>(kRows * stride, -7));
          AddPieces(device_.stream(), device_.Put(pieces) + begin, num_pieces,
                    {sum, kRows, cols, stride});
          const auto got = device_.Get(sum, kRows * stride);
          for (int64_t i = 0; i < kRows * stride; ++i) {
            const int64_t r = i / stride, c = i % stride;
            float want = c < cols ? pieces[begin + r * cols + c] : -7;
            for (int64_t p = 1; c < cols && p < num_pieces; ++p) {
              want += pieces[begin + p * count + r * cols + c];
            }
            ASSERT_EQ(got[i], want) << num_pieces << " " << cols << " " << gap << " " << i;
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace satrap

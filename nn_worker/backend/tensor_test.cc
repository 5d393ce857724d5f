#include "nn_worker/backend/tensor.h"

#include <cstdint>

#include "gtest/gtest.h"

namespace satrap {
namespace {

TEST(TensorTest, RowsKeepTheirPaddingAndRangesOfColumnsHaveNone) {
  float values[6 * 16] = {};
  const Tensor padded = TensorF32(values, 6, 16).Padded(5, 13);
  EXPECT_EQ(padded.rows, 5);
  EXPECT_EQ(padded.cols, 13);
  EXPECT_EQ(padded.padded_rows(), 6);
  EXPECT_EQ(padded.padded_cols(), 16);
  EXPECT_TRUE(padded.has_gaps());
  const Tensor rows = padded.Rows(1, 2);
  EXPECT_EQ(rows.padded_cols(), 16);
  EXPECT_EQ(rows.padded_rows(), 2) << "another row of the tensor follows";
  const Tensor columns = padded.Columns(1, 4);
  EXPECT_EQ(columns.padded_cols(), 4) << "another column of the tensor follows";
  EXPECT_EQ(columns.padded_rows(), 5);
  const Tensor all = padded.WithPadding();
  EXPECT_EQ(all.size(), 6 * 16);
  EXPECT_FALSE(all.has_gaps());
}

TEST(TensorDeathTest, PaddingLiesWithinTheMemoryOfATensor) {
  float values[16] = {};
  EXPECT_DEATH(TensorF32(values, 1, 16).Padded(1, 17), "");
}

}  // namespace
}  // namespace satrap

#include "common/rpc/squares.h"

#include "gtest/gtest.h"
#include "proto/hot.pb.h"

namespace satrap::rpc {
namespace {

TEST(SquaresTest, TravelWithoutRounding) {
  ExactSum squares;
  for (const double value : {0x1p60, 1.0, 0x1p-60}) squares.Add(value);
  ExactSum total;
  total.Add(-0x1p60);
  total.Add(-1);
  ASSERT_TRUE(AddSquares(AnswerOfSquares(squares), &total).ok());
  EXPECT_EQ(total.Rounded(), 0x1p-60);
  ASSERT_TRUE(AddSquares(AnswerOfSquares(ExactSum()), &total).ok());
  EXPECT_EQ(total.Rounded(), 0x1p-60);
}

TEST(SquaresTest, AnAnswerWithoutThemIsRefused) {
  UpdateAnswerHeader header;
  header.set_outcome(OUTCOME_DONE);
  ExactSum total;
  EXPECT_EQ(AddSquares({header.SerializeAsString(), Buffer()}, &total).code(),
            absl::StatusCode::kInvalidArgument);
  header.set_squares(1);
  EXPECT_FALSE(AddSquares({header.SerializeAsString(), Buffer(4)}, &total).ok());
}

}  // namespace
}  // namespace satrap::rpc

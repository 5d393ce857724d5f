#include "nn_worker/device/first_accepted.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace satrap {
namespace {

TEST(FirstAcceptedTest, ARefusalLeadsToTheNext) {
  std::vector<int> asked;
  const auto taken = FirstAccepted(4, [&](int i) {
    asked.push_back(i);
    return i < 2 ? absl::NotFoundError("fewer samples") : absl::OkStatus();
  });
  EXPECT_EQ(taken.value(), 2);
  EXPECT_EQ(asked, (std::vector<int>{0, 1, 2})) << "the rest is not asked for";
}

TEST(FirstAcceptedTest, WhereAllAreRefusedTheLastOneSaysWhy) {
  const absl::Status status =
      FirstAccepted(3, [](int i) {
        return absl::NotFoundError(std::string(1, static_cast<char>('a' + i)));
      }).status();
  EXPECT_EQ(status, absl::NotFoundError("c"));
}

TEST(FirstAcceptedTest, AFailureEndsTheSearch) {
  int asked = 0;
  const absl::Status status = FirstAccepted(3, [&](int) {
                                ++asked;
                                return absl::InternalError("the card is gone");
                              }).status();
  EXPECT_EQ(status, absl::InternalError("the card is gone"));
  EXPECT_EQ(asked, 1);
}

}  // namespace
}  // namespace satrap

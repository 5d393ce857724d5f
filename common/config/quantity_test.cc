#include "common/config/quantity.h"

#include "gtest/gtest.h"

namespace satrap {
namespace {

TEST(QuantityTest, ANumberMayHaveASuffixOfKubernetes) {
  EXPECT_EQ(ParseQuantity("2"), 2);
  EXPECT_EQ(ParseQuantity("0.5"), 0.5);
  EXPECT_EQ(ParseQuantity(".5"), 0.5);
  EXPECT_EQ(ParseQuantity("500m"), 0.5);
  EXPECT_EQ(ParseQuantity("4Gi"), 4294967296.0);
  EXPECT_EQ(ParseQuantity("1.5Ki"), 1536);
  EXPECT_EQ(ParseQuantity("512M"), 512e6);
  EXPECT_EQ(ParseQuantity("3k"), 3000);
  EXPECT_EQ(ParseQuantity("2E"), 2e18);
}

TEST(QuantityTest, AnExponentMayStandForASuffix) {
  EXPECT_EQ(ParseQuantity("1e9"), 1e9);
  EXPECT_EQ(ParseQuantity("1E3"), 1000);
  EXPECT_EQ(ParseQuantity("5e-1"), 0.5);
  EXPECT_EQ(ParseQuantity("5e-1m"), absl::nullopt) << "not both";
}

TEST(QuantityTest, OtherTextsAreNoQuantities) {
  for (const char* text :
       {"",   "m", "Gi",   "4 Gi", " 4",  "4gi",   "4GB",   "4K",    "four", "-1",
        "+1", "0", "0x10", "inf",  "nan", "1e400", "1e9e9", "1.2.3", "e9",   "4Gi "}) {
    EXPECT_EQ(ParseQuantity(text), absl::nullopt) << text;
  }
}

}  // namespace
}  // namespace satrap

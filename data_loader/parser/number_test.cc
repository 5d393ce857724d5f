#include "data_loader/parser/number.h"

#include <gtest/gtest.h>

namespace satrap {
namespace {

TEST(NumberTest, ReadsDecimalNumbers) {
  const std::pair<const char*, float> cases[] = {
      {"0", 0.0f},
      {"-1", -1.0f},
      {"+7", 7.0f},
      {"1234567", 1234567.0f},
      {"16777217", 16777216.0f},
      {"0.5", 0.5f},
      {".25", 0.25f},
      {"3.", 3.0f},
      {"-0.1", -0.1f},
      {"1e3", 1000.0f},
      {"2.5E-1", 0.25f},
      {"1e-60", 0.0f},
      {"1e-400", 0.0f},  // less than a double holds
      {"1e-99999999999", 0.0f},
      {"340282346638528859811704183484516925440", 3.40282347e38f}};
  for (const auto& [text, expected] : cases) {
    float value = 99;
    EXPECT_TRUE(ParseNumber(text, true, &value)) << text;
    EXPECT_EQ(value, expected) << text;
  }
}

TEST(NumberTest, RefusesWhatIsNoNumber) {
  for (const char* text :
       {"",    "-",   "+",    ".",  "a",   "1a", "1 ",  " 1",   "--1",   "+-1",      "1.2.3",
        "nan", "inf", "0x1f", "1e", "1e+", "e5", "1,5", "1e60", "1e400", "12345678a"}) {
    float value;
    EXPECT_FALSE(ParseNumber(text, true, &value)) << text;
  }
}

TEST(NumberTest, AnExponentIsALetterWhereNoneIsAllowed) {
  float value;
  EXPECT_FALSE(ParseNumber("1e3", false, &value));
  EXPECT_TRUE(ParseNumber("1.5", false, &value));
}

TEST(NumberTest, ATimeMayBeWrittenAsAFloat) {
  const std::pair<const char*, int64_t> cases[] = {{"1700000000123", 1700000000123},
                                                   {"1700000000123.0", 1700000000123},
                                                   {"1.7e12", 1700000000000},
                                                   {"1700000000123.9", 1700000000124},
                                                   {"-0.5", -1},
                                                   {"+5", 5},
                                                   {"0", 0},
                                                   {"9223372036854775807", 9223372036854775807}};
  for (const auto& [text, expected] : cases) {
    int64_t time = 99;
    EXPECT_TRUE(ParseTime(text, 1, &time)) << text;
    EXPECT_EQ(time, expected) << text;
  }
  int64_t time;
  ASSERT_TRUE(ParseTime("1700000000.123", 1000, &time)) << "seconds";
  EXPECT_EQ(time, 1700000000123);
  for (const char* text : {"", "nan", "inf", "1e400", "9223372036854775808", "1e19", "-1e19", "x",
                           "2026-11-26", "1 "}) {
    EXPECT_FALSE(ParseTime(text, 1, &time)) << text;
  }
  EXPECT_FALSE(ParseTime("9223372036854775807", 1000, &time)) << "does not fit";
}

TEST(NumberTest, IntegersFillSixtyFourBits) {
  int64_t value;
  EXPECT_TRUE(ParseInteger("-9223372036854775808", &value));
  EXPECT_EQ(value, std::numeric_limits<int64_t>::min());
  EXPECT_TRUE(ParseInteger("+5", &value));
  EXPECT_FALSE(ParseInteger("9223372036854775808", &value));
  EXPECT_FALSE(ParseInteger("+-5", &value));
  EXPECT_FALSE(ParseInteger("5.0", &value));
  uint64_t id;
  EXPECT_TRUE(ParseUnsigned("18446744073709551615", &id));
  EXPECT_EQ(id, std::numeric_limits<uint64_t>::max());
  EXPECT_FALSE(ParseUnsigned("-1", &id));
  EXPECT_FALSE(ParseUnsigned("", &id));
}

}  // namespace
}  // namespace satrap

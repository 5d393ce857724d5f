#include "deploy/retrieve/text_lines.h"

#include <fstream>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;

class TextLinesTest : public ::testing::Test {
 protected:
  TextLines Open(const std::string& text) {
    const std::string path = ::testing::TempDir() + "text_lines_test.txt";
    std::ofstream(path, std::ios::binary) << text;
    return *TextLines::Open(path);
  }
  // The error when all of `text` is read as vectors.
  std::string VectorError(const std::string& text) {
    TextLines lines = Open(text);
    int64_t dim = 0;
    std::vector<float> values;
    while (true) {
      const absl::StatusOr<bool> more = NextVector(&lines, &dim, &values);
      if (!more.ok()) return std::string(more.status().message());
      if (!*more) return "";
    }
  }
};

TEST_F(TextLinesTest, LinesMayEndInEitherWayAndTheLastInNone) {
  TextLines lines = Open("a\r\nb\n\nc");
  std::string line;
  std::vector<std::string> all;
  while (*lines.Next(&line)) all.push_back(line);
  EXPECT_THAT(all, ElementsAre("a", "b", "", "c"));
}

TEST_F(TextLinesTest, WhatCannotBeReadIsNamed) {
  EXPECT_THAT(TextLines::Open("/no/such/file").status().message(),
              HasSubstr("cannot read /no/such/file"));
  EXPECT_THAT(TextLines::Open(::testing::TempDir()).status().message(),
              HasSubstr("it is a folder"));
}

TEST_F(TextLinesTest, FieldsAreSeparatedByTabsOrElseByBlanks) {
  EXPECT_THAT(FieldsOf("New York\ta\t\tb"), ElementsAre("New York", "a", "", "b"));
  EXPECT_THAT(FieldsOf(" 7  12 "), ElementsAre("7", "12"));
}

TEST_F(TextLinesTest, PairsAreTheFirstTwoFieldsOfLinesThatAreNotEmpty) {
  TextLines lines = Open("u\ti\t5\n\nv i\nalone\n");
  NamePair pair;
  ASSERT_TRUE(*NextPair(&lines, &pair));
  EXPECT_EQ(pair.user + "," + pair.item, "u,i");
  ASSERT_TRUE(*NextPair(&lines, &pair));
  EXPECT_EQ(pair.user + "," + pair.item, "v,i");
  EXPECT_THAT(std::string(NextPair(&lines, &pair).status().message()),
              EndsWith("test.txt:4: must have a user and an item, separated by a tab or a blank"));
}

TEST_F(TextLinesTest, AVectorIsALineAndThatOfABadRecordIsEmpty) {
  TextLines lines = Open("nan\tnan\n1\t-2e-3\n1 2\n");
  int64_t dim = 0;
  std::vector<float> values = {7};
  ASSERT_TRUE(*NextVector(&lines, &dim, &values));
  EXPECT_TRUE(values.empty());
  EXPECT_EQ(dim, 2);
  ASSERT_TRUE(*NextVector(&lines, &dim, &values));
  EXPECT_THAT(values, ElementsAre(1, -2e-3f));
  ASSERT_TRUE(*NextVector(&lines, &dim, &values));
  EXPECT_THAT(values, ElementsAre(1, 2));
  EXPECT_FALSE(*NextVector(&lines, &dim, &values));
}

TEST_F(TextLinesTest, SaysWhatIsNoVector) {
  EXPECT_THAT(VectorError("1 2\n1 x\n"), EndsWith(":2: 'x' is not a finite number"));
  EXPECT_THAT(VectorError("\x1f\x8b" + std::string(50, 'x') + "\n"),
              EndsWith(":1: '\\x1f\\x8b" + std::string(38, 'x') + "...' is not a finite number"));
  EXPECT_THAT(VectorError("inf 2\n"), EndsWith(":1: 'inf' is not a finite number"));
  EXPECT_THAT(VectorError("1 2\n1\n"), EndsWith(":2: has 1 value, expected 2"));
  EXPECT_THAT(VectorError("1 2\nnan\n"), EndsWith(":2: has 1 value, expected 2"));
  EXPECT_THAT(VectorError("1 nan\n"), EndsWith(":1: some values are nan, and others are not"));
  EXPECT_THAT(VectorError("1\n\n"), EndsWith(":2: is empty, expected a vector"));
}

}  // namespace
}  // namespace satrap

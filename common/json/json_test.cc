#include "common/json/json.h"

#include <cmath>
#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/benchmark.pb.h"
#include "proto/report.pb.h"

namespace satrap {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string ErrorOf(const std::string& text) {
  ReportFile file;
  return std::string(ParseJson(text, &file).message());
}

TEST(JsonOf, HasTheFieldsThatAreSetInTheirOrder) {
  CutLine line;
  line.set_copied_bytes(uint64_t{18446744073709551615u});
  line.set_committed(false);
  line.set_event("cut");
  line.set_seconds(1.5);
  EXPECT_EQ(
      JsonOf(line),
      R"({"event":"cut","committed":false,"seconds":1.5,"copied_bytes":18446744073709551615})");
  EXPECT_EQ(JsonOf(CutLine()), "{}");
}

TEST(JsonOf, AnArrayIsThereAlsoWhenItIsEmpty) {
  CutsLine::Pair pair;
  pair.set_without(2);
  pair.add_copied_bytes(1);
  pair.add_copied_bytes(2.5);
  EXPECT_EQ(JsonOf(pair), R"({"without":2,"writing_seconds":[],"copied_bytes":[1,2.5]})");
}

TEST(JsonOf, WhatHasNamesIsAnObjectAndAbsentWithoutAny) {
  ShownValues values;
  values.set_samples(5);
  EXPECT_EQ(JsonOf(values), R"({"samples":5})");
  for (const char* name : {"rating", "ctr"}) {
    ShownTask* const task = values.add_tasks();
    task->set_name(name);
    task->mutable_values()->set_auc(0.75);
  }
  EXPECT_EQ(JsonOf(values), R"({"samples":5,"tasks":{"rating":{"auc":0.75},"ctr":{"auc":0.75}}})");
  RecoveryLine line;
  NamedNumber* const phase = line.add_median_phase_ms();
  phase->set_name("load");
  phase->set_value(12);
  EXPECT_EQ(JsonOf(line), R"({"median_phase_ms":{"load":12},"each":[]})");
}

TEST(JsonOf, EscapesStrings) {
  CutLine line;
  line.set_cut("a\"b\\c\n\x01:{[");
  EXPECT_EQ(JsonOf(line), R"({"cut":"a\"b\\c\u000a\u0001:{["})");
  CutLine read;
  ASSERT_TRUE(ParseJson(JsonOf(line), &read).ok());
  EXPECT_EQ(read.cut(), line.cut());
}

TEST(JsonOf, WritesTheFewestDigitsThatReadBackOrAsManyAsTheFormatSays) {
  for (const double value : {0.1, 1e300, 1.0 / 3, -2.5e-7, 12345678.0, .7765432109876543}) {
    PauseLine line;
    line.set_seconds(value);
    PauseLine read;
    ASSERT_TRUE(ParseJson(JsonOf(line), &read).ok());
    EXPECT_EQ(read.seconds(), value) << JsonOf(line);
  }
  PauseLine line;
  line.set_seconds(.7765432109876543);
  EXPECT_EQ(JsonOf(line), R"({"seconds":0.7765432109876543})");
  EXPECT_EQ(JsonOf(line, "%.9g"), R"({"seconds":0.776543211})");
  EXPECT_EQ(JsonOf(line, "%.2f"), R"({"seconds":0.78})");
  line.set_seconds(-std::numeric_limits<double>::max());
  EXPECT_EQ(JsonOf(line, "%.2f").size(), std::string(R"({"seconds":-.00})").size() + 309);
}

TEST(JsonOf, WhatIsNotFiniteIsNullAndReadAsNotANumber) {
  for (const double value : {std::nan(""), std::numeric_limits<double>::infinity()}) {
    PauseLine line;
    line.set_seconds(value);
    for (const NumberFormat format : {kShortestNumbers, NumberFormat{"%.6f"}}) {
      EXPECT_EQ(JsonOf(line, format), R"({"seconds":null})");
    }
    PauseLine read;
    ASSERT_TRUE(ParseJson(R"({"seconds":null})", &read).ok());
    EXPECT_TRUE(std::isnan(read.seconds()));
  }
}

TEST(ParseJson, ReadsWhatIsWritten) {
  const std::string text =
      R"({"job":"j","samples":900000,"train_seconds":0.25,"test":{"samples":7,"auc":null,)"
      R"("tasks":{"ctr":{"samples":3},"cvr":{"samples":4}}},"restarts":[{"generation":2,)"
      R"("cause":"a \"b\"","from_step":9}],"warnings":["x","y"],"stopped_early":true,"tables":[]})";
  ReportFile file;
  ASSERT_EQ(ParseJson(text, &file), absl::OkStatus());
  EXPECT_EQ(file.samples(), 900000u);
  EXPECT_EQ(file.test().tasks(1).name(), "cvr");
  EXPECT_EQ(file.test().tasks(1).values().samples(), 4u);
  EXPECT_EQ(file.restarts(0).cause(), "a \"b\"");
  EXPECT_THAT(file.warnings(), ElementsAre("x", "y"));
  EXPECT_EQ(JsonOf(file), text);
}

TEST(ParseJson, PassesKeysThatTheMessageHasNot) {
  CutLine line;
  ASSERT_EQ(ParseJson(R"( { "a" : {"b":[1,{"c":null}],"d":"}"} , "bytes" : 7, "e":-1.5e3 } )"
                      "\n",
                      &line),
            absl::OkStatus());
  EXPECT_EQ(JsonOf(line), R"({"bytes":7})");
}

TEST(ParseJson, ReadsEveryEscapeOfOtherPrograms) {
  CutLine line;
  ASSERT_EQ(ParseJson(R"({"cut":"\u003ca\u00e9\u2028\ud83d\ude00\/\t"})", &line), absl::OkStatus());
  EXPECT_EQ(line.cut(), "<a\xC3\xA9\xE2\x80\xA8\xF0\x9F\x98\x80/\t");
  ASSERT_EQ(ParseJson(R"({"cut":"\ud83dx\ud83d\u0041\udc00"})", &line), absl::OkStatus());
  EXPECT_EQ(line.cut(),
            "\xEF\xBF\xBDx\xEF\xBF\xBD"
            "A\xEF\xBF\xBD")
      << "halves of pairs";
  EXPECT_EQ(ErrorOf(R"({"job":"\u12"})"), "JSON: column 11: expected four hexadecimal digits");
  EXPECT_EQ(ErrorOf(R"({"job":"\u12-4"})"), "JSON: column 11: expected four hexadecimal digits");
  EXPECT_EQ(ErrorOf(R"({"job":"\x"})"), "JSON: column 11: expected an escape of JSON");
}

TEST(ParseJson, NamesThePlaceAndWhatIsExpectedThere) {
  EXPECT_EQ(ErrorOf(""), "JSON: column 1: expected an object");
  EXPECT_EQ(ErrorOf(R"({"samples":-1})"),
            "JSON: column 12: expected a whole number of 64 bits that is not negative");
  EXPECT_EQ(ErrorOf(R"({"samples":"9"})"),
            "JSON: column 12: expected a whole number of 64 bits that is not negative");
  EXPECT_EQ(ErrorOf(R"({"train_seconds":nan})"), "JSON: column 18: expected a number or null");
  EXPECT_EQ(ErrorOf(R"({"stopped_early":1})"), "JSON: column 18: expected true or false");
  EXPECT_EQ(ErrorOf(R"({"job":7})"), "JSON: column 8: expected a string");
  EXPECT_EQ(ErrorOf(R"({"job":"a)"), "JSON: column 10: expected the end of a string");
  EXPECT_EQ(ErrorOf(R"({"warnings":{}})"), "JSON: column 13: expected an array");
  EXPECT_EQ(ErrorOf(R"({"samples":1)"), "JSON: column 13: expected a comma or }");
  EXPECT_EQ(ErrorOf(R"({"samples":1} x)"), "JSON: column 15: expected the end");
}

TEST(ParseJson, RefusesWhatWouldFillTheStack) {
  EXPECT_THAT(ErrorOf("{\"a\":" + std::string(100000, '[')), HasSubstr("expected fewer objects"));
  EXPECT_THAT(ErrorOf("{\"a\":" + std::string(100000, '{')), HasSubstr("expected"));
}

}  // namespace
}  // namespace satrap

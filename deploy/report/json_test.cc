#include "deploy/report/json.h"

#include <cmath>
#include <limits>

#include "gtest/gtest.h"

namespace satrap {
namespace {

TEST(JsonWriter, WritesNestedValues) {
  JsonWriter json;
  json.BeginObject();
  json.Field("samples", uint64_t{7});
  json.Key("test");
  json.BeginObject();
  json.Field("auc", 0.75);
  json.EndObject();
  json.Key("tables");
  json.BeginArray();
  for (int64_t rows : {1, -2}) {
    json.BeginObject();
    json.Field("rows", rows);
    json.EndObject();
  }
  json.EndArray();
  json.BoolField("stopped_early", false);
  json.EndObject();
  EXPECT_EQ(json.text(), R"({"samples":7,"test":{"auc":0.75},"tables":[{"rows":1},{"rows":-2}],)"
                         R"("stopped_early":false})");
}

TEST(JsonWriter, EscapesStrings) {
  JsonWriter json;
  json.String("a\"b\\c\n\x01:");
  EXPECT_EQ(json.text(), R"("a\"b\\c\u000a\u0001:")");
}

TEST(JsonWriter, AStringThatEndsLikeABracketIsStillFollowedByAComma) {
  JsonWriter json;
  json.BeginArray();
  json.String("{");
  json.String("[");
  json.EndArray();
  EXPECT_EQ(json.text(), R"(["{","["])");
}

TEST(JsonWriter, NumbersReadBackAsTheSameDouble) {
  for (const double value : {0.1, 1e300, 1.0 / 3, -2.5e-7, 12345678.0}) {
    JsonWriter json;
    json.Number(value);
    EXPECT_EQ(std::stod(json.text()), value) << json.text();
  }
}

TEST(JsonWriter, WhatIsNoNumberIsNull) {
  for (const double value : {std::nan(""), std::numeric_limits<double>::infinity()}) {
    JsonWriter json;
    json.Number(value);
    EXPECT_EQ(json.text(), "null");
  }
}

}  // namespace
}  // namespace satrap

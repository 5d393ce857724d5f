#include "nn_worker/backend/benchmark/report.h"

#include "common/json/json.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

using testing::HasSubstr;

BenchmarkRow Row(const char* operation, double seconds, int64_t bytes, double ceiling) {
  BenchmarkRow row;
  row.operation = operation;
  row.what = "n x 400";
  row.precision = "F32";
  row.timing = {seconds, seconds / 10};
  row.bytes = bytes;
  row.ceiling = ceiling;
  return row;
}

TEST(BenchmarkReportTest, ARowIsAJsonLine) {
  const BenchmarkPlace place = {"card 1 (a card)", "a CPU", 65536};
  const KernelLine line = LineOf(place, Row("Activate", 1e-4, 200'000'000, 4e12));
  EXPECT_EQ(JsonOf(line, "%.9g"),
            "{\"benchmark\":\"kernel\",\"device\":\"card 1 (a card)\",\"cpu\":\"a CPU\","
            "\"operation\":\"Activate\",\"what\":\"n x 400\",\"precision\":\"F32\","
            "\"batch\":65536,\"us\":100,\"host_us\":10,\"bytes\":200000000,\"gb_per_s\":2000,"
            "\"ceiling\":\"copy\",\"share\":0.5,\"note\":\"\"}");
  BenchmarkRow product = Row("Product", 2e-3, 0, 100e12);
  product.flops = 100e9;
  product.made_by = "library";
  EXPECT_THAT(JsonOf(LineOf(place, product), "%.9g"),
              HasSubstr("\"flop\":1e+11,\"tflop_per_s\":50,\"ceiling\":\"product\","
                        "\"share\":0.5,\"note\":\"library\"}"));
}

TEST(BenchmarkReportTest, AShareOfSectorsStandsBesideThatOfBytes) {
  BenchmarkRow row = Row("GatherRows", 1e-4, 100'000'000, 4e12);
  row.sector_bytes = 240'000'000;
  EXPECT_THAT(JsonOf(LineOf({}, row), "%.9g"),
              HasSubstr("\"sector_bytes\":240000000,\"sector_share\":0.6}"));
  EXPECT_THAT(TableOf({row}), HasSubstr("  25.0%   60.0% copy"));
}

TEST(BenchmarkReportTest, NotesWhatARateDoesNotSay) {
  BenchmarkRow row = Row("Fill", 1e-5, kL2Bytes, 3e12);
  EXPECT_EQ(row.note(), "fits L2");
  row.timing.host_seconds = 0.9e-5;
  EXPECT_EQ(row.note(), "fits L2, host-bound");
  row.bytes = kL2Bytes + 1;
  EXPECT_EQ(row.note(), "host-bound");
}

TEST(BenchmarkReportTest, TheTableBeginsWithCeilingsAndTheLeastShares) {
  const std::string table =
      TableOf({Row("Good", 1e-3, 2'000'000'000, 2e12), Row("Poor", 1e-3, 200'000'000, 2e12),
               Row("Copy ceiling", 1e-3, 2'000'000'000, 0)});
  const size_t ceiling = table.find("Copy ceiling"), poor = table.find("Poor"),
               good = table.find("Good");
  EXPECT_LT(ceiling, poor);
  EXPECT_LT(poor, good);
  ASSERT_NE(good, std::string::npos);
  EXPECT_NE(table.find("  10.0%         copy"), std::string::npos) << table;
  EXPECT_NE(table.find(" 100.0%         copy"), std::string::npos) << table;
}

}  // namespace
}  // namespace satrap

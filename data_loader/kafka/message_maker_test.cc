#include "data_loader/kafka/message_maker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "data_loader/parser/record_parser.h"
#include "google/protobuf/text_format.h"

namespace satrap {
namespace {

using testing::HasSubstr;

DataConfig Csv() {
  DataConfig data;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
      "csv { comment_prefix: '#' columns { name: 'label' kind: LABEL } "
      "columns { name: 'user' kind: ID } columns { name: 'tags' kind: MULTI_ID } "
      "columns { name: 'age' kind: NUMERIC } columns { name: 'at' kind: TIME } }",
      &data));
  return data;
}

std::unique_ptr<MessageMaker> Make(const MessageOptions& options, const DataConfig* data) {
  auto maker = MessageMaker::Create(options, data);
  EXPECT_TRUE(maker.ok()) << maker.status();
  return *std::move(maker);
}

TEST(MessageMakerTest, ALineIsAMessage) {
  const auto maker = Make({}, nullptr);
  MessageMaker::Message message;
  EXPECT_TRUE(*maker->Add("a\tb", &message));
  EXPECT_EQ(message.value, "a\tb");
  EXPECT_EQ(message.key, absl::nullopt);
  EXPECT_EQ(message.time_ms, 0);
  EXPECT_FALSE(*maker->Add("", &message));
  EXPECT_FALSE(maker->Finish(&message));
}

TEST(MessageMakerTest, SeveralLinesAreOneMessageWithTheKeyOfTheFirst) {
  MessageOptions options;
  options.lines_per_message = 3;
  options.key_column = "2";
  options.time_column = "1";
  const auto maker = Make(options, nullptr);
  MessageMaker::Message message;
  EXPECT_FALSE(*maker->Add("1\tx", &message));
  EXPECT_FALSE(*maker->Add("2\ty", &message));
  EXPECT_TRUE(*maker->Add("3\tz", &message));
  EXPECT_EQ(message.value, "1\tx\n2\ty\n3\tz");
  EXPECT_EQ(message.key, "x");
  EXPECT_EQ(message.time_ms, 1000);
  EXPECT_EQ(message.lines, 3u);
  EXPECT_FALSE(*maker->Add("4\tw", &message));
  EXPECT_TRUE(maker->Finish(&message));
  EXPECT_EQ(message.value, "4\tw");
  EXPECT_EQ(message.key, "w");
}

TEST(MessageMakerTest, ColumnsOfTheJobAreFoundByNameAndWithinQuotes) {
  const DataConfig data = Csv();
  MessageOptions options;
  options.key_column = "tags";
  options.time_column = "at";
  options.time_unit_ms = 1;
  const auto maker = Make(options, &data);
  MessageMaker::Message message;
  EXPECT_TRUE(*maker->Add("1,u,\"a,b\",3,1700000000123", &message));
  EXPECT_EQ(message.key, "a,b");
  EXPECT_EQ(message.time_ms, 1700000000123);
}

TEST(MessageMakerTest, ATimeMayBeWrittenAsAFloat) {
  MessageOptions options;
  options.time_column = "2";
  const auto maker = Make(options, nullptr);  // counts seconds
  MessageMaker::Message message;
  EXPECT_TRUE(*maker->Add("a\t1700000000.25", &message));
  EXPECT_EQ(message.time_ms, 1700000000250);
  EXPECT_TRUE(*maker->Add("a\t 1700000000 ", &message));
  EXPECT_EQ(message.time_ms, 1700000000000);
  EXPECT_FALSE(maker->Add("a\t9223372036854775807", &message).ok());
}

TEST(MessageMakerTest, ARecordIsParsedBackToTheSameRow) {
  const DataConfig data = Csv();
  MessageOptions options;
  options.format = MessageOptions::kRecord;
  const auto maker = Make(options, &data);
  const RecordSchema schema = TextSchemaOf(data);
  RecordBlock from_lines(schema);
  RecordBlock from_records(schema);
  const auto line_parser = NewParser(data, TRAIN_STREAM);
  const auto record_parser = NewRecordParser(schema);
  for (const char* line : {"1,u,a|b,3.5,77", "0,,,,-1"}) {
    MessageMaker::Message message;
    ASSERT_TRUE(*maker->Add(line, &message));
    ASSERT_EQ(line_parser->Parse(line, &from_lines).kind, ParseResult::kRecord);
    ASSERT_EQ(record_parser->Parse(message.value, &from_records).kind, ParseResult::kRecord);
  }
  for (size_t row = 0; row < 2; ++row) {
    EXPECT_EQ(from_lines.ids(row)[0], from_records.ids(row)[0]);
    EXPECT_EQ(from_lines.IsMissing(row, 0), from_records.IsMissing(row, 0));
    EXPECT_EQ(from_lines.list_ids(row, 0), from_records.list_ids(row, 0));
    EXPECT_EQ(from_lines.label(row), from_records.label(row));
    EXPECT_EQ(from_lines.time(row), from_records.time(row));
  }
  EXPECT_EQ(from_records.numerics(0)[0], 3.5f);
  MessageMaker::Message message;
  EXPECT_FALSE(*maker->Add("# a comment", &message));
  EXPECT_THAT(std::string(maker->Add("7,u,a,1,1", &message).status().message()),
              HasSubstr("in the line: '7,u,a,1,1'"));
}

TEST(MessageMakerTest, WhatCannotBeMadeIsRefusedByName) {
  const DataConfig data = Csv();
  MessageOptions record;
  record.format = MessageOptions::kRecord;
  EXPECT_THAT(std::string(MessageMaker::Create(record, nullptr).status().message()),
              HasSubstr("needs --job"));
  MessageOptions column;
  column.key_column = "usr";
  EXPECT_THAT(std::string(MessageMaker::Create(column, &data).status().message()),
              HasSubstr("there is no column usr; did you mean user?"));
  MessageOptions time;
  time.time_column = "2";
  const auto maker = Make(time, nullptr);
  MessageMaker::Message message;
  EXPECT_THAT(std::string(maker->Add("a\tnoon", &message).status().message()),
              HasSubstr("column 2 holds 'noon', but a time (a number above 0) is expected"));
  EXPECT_THAT(std::string(maker->Add("a", &message).status().message()),
              HasSubstr("no column 2 in the line: 'a'"));
}

}  // namespace
}  // namespace satrap

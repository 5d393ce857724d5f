#include "data_loader/kafka/message_parser.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "data_loader/parser/string_id.h"
#include "proto/record.pb.h"

namespace satrap {
namespace {

// Data of lines "label,user"; the columns `key`, `device` (a header) and `sent` (the time) come
// from the message.
DataConfig Data(KafkaConfig::MessageFormat format) {
  DataConfig data;
  for (const auto& [name, kind] :
       {std::pair("y", ColumnConfig::LABEL), std::pair("user", ColumnConfig::ID)}) {
    ColumnConfig* const column = data.mutable_csv()->add_columns();
    column->set_name(name);
    column->set_kind(kind);
  }
  data.mutable_kafka()->set_format(format);
  for (const auto& [name, from] :
       {std::pair("key", KafkaColumn::KEY), std::pair("device", KafkaColumn::HEADER),
        std::pair("sent", KafkaColumn::TIMESTAMP)}) {
    KafkaColumn* const column = data.mutable_kafka()->add_columns();
    column->set_name(name);
    column->set_from(from);
    if (from == KafkaColumn::HEADER) column->set_header("dev");
  }
  return data;
}

class MessageParserTest : public testing::Test {
 protected:
  // Parses one message into block_ and found_.
  void Parse(const DataConfig& data, MessageBatch::Message message) {
    block_ = std::make_unique<RecordBlock>(SchemaOf(data));
    batch_.Clear();
    batch_.Add(std::move(message));
    MessageParser parser(data, data.kafka(), TRAIN_STREAM);
    parser.Parse(batch_, 0, block_.get(), &found_);
  }
  void Parse(KafkaConfig::MessageFormat format, const std::string& value) {
    MessageBatch::Message message;
    message.value = value;
    Parse(Data(format), std::move(message));
  }
  using Lines = std::vector<uint32_t>;
  MessageBatch batch_;  // holds the text of bad records
  std::unique_ptr<RecordBlock> block_;
  MessageParser::Found found_;
};

TEST_F(MessageParserTest, OneLineWithOrWithoutItsEnd) {
  for (const char* value : {"1,u", "1,u\n", "1,u\r\n"}) {
    Parse(KafkaConfig::LINE, value);
    ASSERT_EQ(block_->rows(), 1u);
    EXPECT_EQ(block_->ids(0)[0], StringId("u")) << value;
    EXPECT_EQ(found_.lines, Lines({0}));
  }
}

TEST_F(MessageParserTest, SeveralLinesWhereOneIsExpectedAreABadRecord) {
  Parse(KafkaConfig::LINE, "1,u\n0,v\n");
  EXPECT_EQ(block_->rows(), 0u);
  ASSERT_EQ(found_.bad.size(), 1u);
  EXPECT_EQ(found_.bad[0].text, "1,u\n0,v");
}

TEST_F(MessageParserTest, LinesAreNumberedWithTheBadAndTheEmptyOnes) {
  Parse(KafkaConfig::LINES, "1,a\n\nbad\r\n0,b\n1,c");
  ASSERT_EQ(block_->rows(), 3u);
  EXPECT_EQ(block_->ids(2)[0], StringId("c"));
  EXPECT_EQ(found_.lines, Lines({0, 3, 4}));
  EXPECT_EQ(found_.empty_lines, 1u);
  ASSERT_EQ(found_.bad.size(), 1u);
  EXPECT_EQ(found_.bad[0].line, 2u);
  EXPECT_EQ(found_.bad[0].text, "bad");
  EXPECT_THAT(found_.bad[0].reason, testing::StartsWith("column 'y' holds 'bad', but a label"));
}

TEST_F(MessageParserTest, ALineThatTheLossDoesNotTakeIsBadAndTheOthersKeepTheirPlaces) {
  JobConfig job;
  *job.mutable_data() = Data(KafkaConfig::LINES);
  job.mutable_data()->mutable_csv()->mutable_columns(0)->set_numeric_label(true);
  const RecordCheck check(job);
  MessageParser parser(job.data(), job.data().kafka(), TRAIN_STREAM, &check);
  block_ = std::make_unique<RecordBlock>(SchemaOf(job.data()));
  MessageBatch::Message message;
  message.value = "1,a\n-1,b\n5,c\n0,d";
  batch_.Add(std::move(message));
  parser.Parse(batch_, 0, block_.get(), &found_);
  ASSERT_EQ(block_->rows(), 2u);
  EXPECT_EQ(block_->ids(1)[0], StringId("d"));
  EXPECT_EQ(found_.lines, Lines({0, 3}));
  ASSERT_EQ(found_.bad.size(), 2u);
  EXPECT_EQ(found_.bad[0].reason, "label y: -1 is not a number in [0, 1], which BCE takes");
  EXPECT_EQ(found_.bad[1].reason, "label y: 5 is not a number in [0, 1], which BCE takes");
  EXPECT_EQ(found_.bad[1].line, 2u);
  EXPECT_EQ(found_.bad[1].text, "5,c");
  EXPECT_EQ(found_.bad[1].fault, RecordCheck::Fault::kLabel);
}

TEST_F(MessageParserTest, AQuotedFieldMaySpanLinesOfAMessage) {
  DataConfig data = Data(KafkaConfig::LINES);
  data.mutable_csv()->set_multiline(true);
  MessageBatch::Message message;
  message.value = "1,\"a\nb\"\n0,c\n1,\"open\n0,d";
  Parse(data, message);
  ASSERT_EQ(block_->rows(), 3u);
  EXPECT_EQ(block_->ids(0)[0], StringId("a\nb"));
  EXPECT_EQ(found_.lines, Lines({0, 2, 4}));
  ASSERT_EQ(found_.bad.size(), 1u) << "quotes that the message does not close";
  EXPECT_EQ(found_.bad[0].line, 3u);
}

TEST_F(MessageParserTest, ATombstoneAndAnEmptyMessageAreEmpty) {
  for (const bool tombstone : {true, false}) {
    MessageBatch::Message message;
    message.is_tombstone = tombstone;
    Parse(Data(KafkaConfig::LINE), message);
    EXPECT_EQ(block_->rows(), 0u);
    EXPECT_EQ(found_.empty_lines, 1u);
  }
}

TEST_F(MessageParserTest, KeyHeaderAndTimeOfTheMessageAreColumnsOfAllItsRows) {
  MessageBatch::Message message;
  message.value = "1,a\n0,b";
  message.key = "k";
  message.headers = {{"dev", "phone"}};
  message.time_ms = 1'700'000'000'000;
  Parse(Data(KafkaConfig::LINES), message);
  ASSERT_EQ(block_->rows(), 2u);
  for (const size_t row : {0, 1}) {
    EXPECT_EQ(block_->ids(row)[1], StringId("k"));
    EXPECT_EQ(block_->ids(row)[2], StringId("phone"));
    EXPECT_EQ(block_->numerics(row)[0], 1.7e12f);
    EXPECT_EQ(block_->time(row), 1'700'000'000'000);
  }
}

TEST_F(MessageParserTest, WhatTheMessageDoesNotHaveIsMissing) {
  MessageBatch::Message message;
  message.value = "1,a";
  message.key = "";
  Parse(Data(KafkaConfig::LINE), message);
  ASSERT_EQ(block_->rows(), 1u);
  EXPECT_TRUE(block_->IsMissing(0, 1));
  EXPECT_TRUE(block_->IsMissing(0, 2));
  EXPECT_TRUE(std::isnan(block_->numerics(0)[0]));
  EXPECT_EQ(block_->time(0), 0);
}

TEST_F(MessageParserTest, ARecordHasTheTextColumnsAndItsOwnTimeIfItHasOne) {
  DataConfig data = Data(KafkaConfig::RECORD);
  ColumnConfig* const time = data.mutable_csv()->add_columns();
  time->set_name("at");
  time->set_kind(ColumnConfig::TIME);
  Record record;
  record.add_ids(7);
  record.add_labels(1);
  MessageBatch::Message message;
  message.value = record.SerializeAsString();
  message.key = "k";
  message.time_ms = 5;
  Parse(data, message);
  ASSERT_EQ(block_->rows(), 1u);
  EXPECT_EQ(block_->ids(0)[0], 7u);
  EXPECT_EQ(block_->ids(0)[1], StringId("k"));
  EXPECT_EQ(block_->time(0), 5);
  record.set_time(3);
  message.value = record.SerializeAsString();
  Parse(data, message);
  EXPECT_EQ(block_->time(0), 3);
  message.value = "\xff";
  Parse(data, message);
  ASSERT_EQ(found_.bad.size(), 1u);
  EXPECT_EQ(found_.bad[0].text, "\xff");
}

}  // namespace
}  // namespace satrap

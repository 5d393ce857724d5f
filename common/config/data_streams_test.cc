#include "common/config/data_streams.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

TEST(DataStreams, FilesASplitAndSyntheticSamplesCount) {
  DataConfig files;
  EXPECT_FALSE(HasValidData(files));
  EXPECT_FALSE(HasTestData(files));
  files.add_valid_files("valid");
  EXPECT_TRUE(HasValidData(files));
  EXPECT_FALSE(HasTestData(files));
  files.add_test_files("test");
  EXPECT_TRUE(HasTestData(files));

  DataConfig split;
  split.mutable_seeded_split()->set_valid_fraction(0.1);
  EXPECT_TRUE(HasValidData(split));
  EXPECT_FALSE(HasTestData(split));
  split.mutable_seeded_split()->set_test_fraction(0.1);
  EXPECT_TRUE(HasTestData(split));
}

TEST(DataStreams, ASyntheticLogOfNoSamplesDoesNotCount) {
  DataConfig log;
  log.mutable_synthetic()->set_valid_samples(0);
  log.mutable_synthetic()->set_test_samples(0);
  EXPECT_FALSE(HasValidData(log));
  EXPECT_FALSE(HasTestData(log));
  log.mutable_synthetic()->set_valid_samples(1);
  log.mutable_synthetic()->set_test_samples(1);
  EXPECT_TRUE(HasValidData(log));
  EXPECT_TRUE(HasTestData(log));
}

TEST(DataStreams, TopicsCountForTheirOwnStream) {
  DataConfig data;
  for (const Stream stream : {TRAIN_STREAM, VALID_STREAM, TEST_STREAM}) {
    EXPECT_EQ(TopicsOf(data, stream), nullptr);
  }
  data.mutable_kafka()->add_topics("train");
  EXPECT_FALSE(HasValidData(data));
  data.mutable_valid_kafka()->add_topics("valid");
  EXPECT_TRUE(HasValidData(data));
  EXPECT_FALSE(HasTestData(data));
  data.mutable_test_kafka()->add_topics("test");
  EXPECT_TRUE(HasTestData(data));
  EXPECT_EQ(TopicsOf(data, TRAIN_STREAM)->topics(0), "train");
  EXPECT_EQ(TopicsOf(data, VALID_STREAM)->topics(0), "valid");
  EXPECT_EQ(TopicsOf(data, TEST_STREAM)->topics(0), "test");
}

TEST(DataStreams, FilesAndTopicsHaveTheirPathsInTheJob) {
  DataConfig data;
  data.add_train_files("a");
  data.add_valid_files("b");
  data.add_test_files("c");
  EXPECT_EQ(FilesOf(data, TRAIN_STREAM)[0], "a");
  EXPECT_EQ(FilesOf(data, VALID_STREAM)[0], "b");
  EXPECT_EQ(FilesOf(data, TEST_STREAM)[0], "c");
  EXPECT_STREQ(FilesPath(TRAIN_STREAM), "data.train_files");
  EXPECT_STREQ(FilesPath(VALID_STREAM), "data.valid_files");
  EXPECT_STREQ(FilesPath(TEST_STREAM), "data.test_files");
  EXPECT_STREQ(TopicsPath(TRAIN_STREAM), "data.kafka");
  EXPECT_STREQ(TopicsPath(VALID_STREAM), "data.valid_kafka");
  EXPECT_STREQ(TopicsPath(TEST_STREAM), "data.test_kafka");
}

TEST(DataStreams, EachFormatOfTextAndNoOtherHasRulesForItsRecords) {
  const google::protobuf::OneofDescriptor& formats =
      *DataConfig::descriptor()->FindOneofByName("format");
  std::vector<std::string> of_text;
  for (int i = 0; i < formats.field_count(); ++i) {
    DataConfig data;
    data.GetReflection()->MutableMessage(&data, formats.field(i));
    for (const TextRule& rule : TextRules()) {
      if (!rule.is_open(data)) continue;
      EXPECT_STREQ(rule.field, "data.record_rules");
      of_text.push_back(formats.field(i)->name());
      rule.take_newest(&data);
      EXPECT_EQ(data.record_rules(), 2);
      EXPECT_FALSE(rule.is_open(data)) << "it is set";
    }
  }
  EXPECT_THAT(of_text, testing::ElementsAre("criteo_tsv", "csv", "libsvm", "libffm"));
}

TEST(DataStreams, ListsAreTrimmedWhereTheColumnsAre) {
  DataConfig data;
  data.mutable_csv()->set_trim(true);
  const TextRule& rule = TextRules()[0];
  EXPECT_STREQ(rule.field, "data.csv.trim_lists");
  EXPECT_TRUE(rule.is_open(data));
  rule.take_newest(&data);
  EXPECT_TRUE(data.csv().trim_lists());
  EXPECT_FALSE(rule.is_open(data));
}

}  // namespace
}  // namespace satrap

#include "common/config/data_streams.h"

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

}  // namespace
}  // namespace satrap

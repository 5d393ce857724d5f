#include "common/batch/transfer.h"

#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

JobConfig Job() {
  JobConfig job;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
      R"pb(
        global_batch_size: 1000
        tables {
          name: "t"
          segments { dim: 16 }
          segments { dim: 1 }
        }
        data {
          csv {
            columns { name: "user" kind: ID }
            columns { name: "genres" kind: MULTI_ID vocabulary: "a" vocabulary: "b" }
            columns { name: "words" kind: MULTI_ID }
          }
        }
      )pb",
      &job));
  return job;
}

FeatureConfig Feature(const char* name) {
  FeatureConfig feature;
  feature.set_name(name);
  feature.set_table("t");
  return feature;
}

TEST(TransferOf, SingleValuedFeaturesGoAsRows) {
  EXPECT_EQ(TransferOf(Feature("user"), Job()), FeatureConfig::ROWS);
  JobConfig criteo = Job();
  criteo.mutable_data()->mutable_criteo_tsv();
  EXPECT_EQ(TransferOf(Feature("C1"), criteo), FeatureConfig::ROWS);
}

TEST(TransferOf, ManyIdsOfALargeVocabularyGoPooled) {
  EXPECT_EQ(TransferOf(Feature("words"), Job()), FeatureConfig::POOLED);
}

TEST(TransferOf, ManyIdsOfASmallVocabularyGoAsRows) {
  EXPECT_EQ(TransferOf(Feature("genres"), Job()), FeatureConfig::ROWS);
}

TEST(TransferOf, AColumnMayHaveAnotherNameThanItsFeature) {
  FeatureConfig feature = Feature("tokens");
  feature.set_column("words");
  EXPECT_EQ(TransferOf(feature, Job()), FeatureConfig::POOLED);
}

TEST(TransferOf, WhatTheJobSaysIsKept) {
  FeatureConfig feature = Feature("user");
  feature.set_transfer(FeatureConfig::POOLED);
  EXPECT_EQ(TransferOf(feature, Job()), FeatureConfig::POOLED);
}

TEST(TransferOf, SequencesAlwaysGoAsRows) {
  FeatureConfig feature = Feature("words");
  feature.set_pooling(FeatureConfig::NONE);
  feature.set_transfer(FeatureConfig::POOLED);
  EXPECT_EQ(TransferOf(feature, Job()), FeatureConfig::ROWS);
}

TEST(TransferOf, ACrossIsSingleValuedWhateverItsName) {
  FeatureConfig cross = Feature("words");
  cross.add_cross_columns("user");
  cross.add_cross_columns("user");
  EXPECT_FALSE(IsMultiValued(cross, Job().data()));
  EXPECT_EQ(TransferOf(cross, Job()), FeatureConfig::ROWS);
}

TEST(TransferOf, BucketizedNumericsAreSingleValued) {
  FeatureConfig feature = Feature("words");
  feature.mutable_bucketize()->add_boundaries(1);
  EXPECT_FALSE(IsMultiValued(feature, Job().data()));
}

}  // namespace
}  // namespace satrap

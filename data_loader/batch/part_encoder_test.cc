#include "data_loader/batch/part_encoder.h"

#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "common/rpc/payload.h"
#include "data_loader/transform/feature_cross.h"

namespace satrap {
namespace {

// The columns are an id "a", a list "l" with values, a numeric "n", a label, a weight, a group and
// a time.
constexpr char kData[] = R"(
  csv {
    columns { name: "a" kind: ID }
    columns { name: "l" kind: MULTI_ID value_separator: ":" }
    columns { name: "n" kind: NUMERIC }
    columns { name: "y" kind: LABEL }
    columns { name: "w" kind: WEIGHT }
    columns { name: "g" kind: GROUP }
    columns { name: "t" kind: TIME }
  }
  numerics { name: "n" transform: MIN_MAX min: 0 max: 10 missing_value: -1 }
  features { name: "a" }
  features { name: "a_if_there" column: "a" missing: SKIP }
  features { name: "l" }
  features { name: "n_bucket" column: "n" bucketize { boundaries: 5 } }
  features { name: "n_if_there" column: "n" missing: SKIP criteo_x4 {} })";

DataConfig Data() {
  DataConfig data;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(kData, &data));
  return data;
}

// Record i has the id 100 + i (missing if i % 3 == 2), i list ids, and the numeric i (missing if i
// is 4).
std::shared_ptr<Block> MakeBlock(int rows) {
  auto block = std::make_shared<Block>(SchemaOf(Data()));
  block->split = 7;
  block->index = 3;
  for (int i = 0; i < rows; ++i) {
    RecordBlock& records = block->records;
    records.BeginRow();
    records.row_ids()[0] = 100 + static_cast<uint64_t>(i);
    if (i % 3 == 2) records.SetMissing(0);
    for (int j = 0; j < i; ++j) records.AppendToList(0, static_cast<uint64_t>(j), 0.5f * i);
    records.row_numerics()[0] = i == 4 ? kMissingNumeric : static_cast<float>(i);
    records.set_label(i % 2 == 0 ? 0.0f : 1.0f);
    records.set_weight(static_cast<float>(i));
    records.set_group(static_cast<uint64_t>(i) * 11);
    records.set_time(-i);
    records.CommitRow();
  }
  KeepOrder(block.get());
  return block;
}

template <typename T>
std::vector<T> Values(const Part& part, const Section& section, size_t count) {
  const auto view = rpc::SectionView<T>(part.payload, section, count, "section");
  EXPECT_TRUE(view.ok()) << view.status();
  return {view->begin(), view->end()};
}

TEST(PartEncoderTest, WritesEveryKindOfFeature) {
  const PartEncoder encoder(Data());
  std::shared_ptr<Block> block = MakeBlock(6);
  block->order = {4, 2, 0, 1, 3, 5};
  const std::vector<BlockRange> ranges = {{block, 0, 2}, {block, 3, 4}};  // records 4, 2, 1
  const Part part = encoder.Encode(ranges, 40);
  const PutBatchHeader& header = part.header;
  ASSERT_EQ(header.features_size(), 5);

  EXPECT_EQ(Values<uint64_t>(part, header.features(0).ids(), 3),
            (std::vector<uint64_t>{104, kMissingId, 101}));
  EXPECT_FALSE(header.features(0).has_offsets()) << "exactly one id a sample";

  EXPECT_EQ(header.features(1).num_ids(), 2u);
  EXPECT_EQ(Values<uint64_t>(part, header.features(1).ids(), 2), (std::vector<uint64_t>{104, 101}));
  EXPECT_EQ(Values<uint32_t>(part, header.features(1).offsets(), 4),
            (std::vector<uint32_t>{0, 1, 1, 2}));

  EXPECT_EQ(Values<uint64_t>(part, header.features(2).ids(), 7),
            (std::vector<uint64_t>{0, 1, 2, 3, 0, 1, 0}));
  EXPECT_EQ(Values<uint32_t>(part, header.features(2).offsets(), 4),
            (std::vector<uint32_t>{0, 4, 6, 7}));
  EXPECT_EQ(Values<float>(part, header.features(2).weights(), 7),
            (std::vector<float>{2, 2, 2, 2, 1, 1, 0.5f}));

  EXPECT_EQ(Values<uint64_t>(part, header.features(3).ids(), 3),
            (std::vector<uint64_t>{kMissingId, 0, 0}));
  EXPECT_EQ(Values<uint64_t>(part, header.features(4).ids(), 2), (std::vector<uint64_t>{2, 1}));

  const PartDescription& description = header.part();
  EXPECT_EQ(Values<float>(part, description.numeric_values(), 3),
            (std::vector<float>{-1, 0.2f, 0.1f}));
  EXPECT_EQ(Values<float>(part, description.labels(), 3), (std::vector<float>{0, 0, 1}));
  EXPECT_EQ(Values<float>(part, description.weights(), 3), (std::vector<float>{4, 2, 1}));
  EXPECT_EQ(Values<uint64_t>(part, description.groups(), 3), (std::vector<uint64_t>{44, 22, 11}));
  EXPECT_EQ(Values<int64_t>(part, description.times(), 3), (std::vector<int64_t>{-4, -2, -1}));
}

TEST(PartEncoderTest, ACrossIsOneIdForACombination) {
  DataConfig data = Data();
  data.clear_features();
  data.mutable_csv()->mutable_columns(2)->set_kind(ColumnConfig::ID);  // "n": a second id
  data.clear_numerics();
  for (const auto missing : {FeatureConfig::AS_ID, FeatureConfig::SKIP}) {
    FeatureConfig* feature = data.add_features();
    feature->add_cross_columns("n");
    feature->add_cross_columns("a");
    feature->set_missing(missing);
  }
  auto block = std::make_shared<Block>(SchemaOf(data));
  for (uint64_t i = 0; i < 3; ++i) {
    block->records.BeginRow();
    block->records.row_ids()[0] = 100 + i;
    block->records.row_ids()[1] = 7;
    if (i == 1) block->records.SetMissing(1);
    block->records.CommitRow();
  }
  KeepOrder(block.get());
  const std::vector<BlockRange> ranges = {{block, 0, 3}};
  const Part part = PartEncoder(data).Encode(ranges, 0);
  const uint64_t first = CrossId({7, 100}), second = CrossId({kMissingId, 101});
  const uint64_t third = CrossId({7, 102});
  EXPECT_FALSE(part.header.features(0).has_offsets()) << "exactly one id a sample";
  EXPECT_EQ(Values<uint64_t>(part, part.header.features(0).ids(), 3),
            (std::vector<uint64_t>{first, second, third}));
  EXPECT_EQ(Values<uint64_t>(part, part.header.features(1).ids(), 2),
            (std::vector<uint64_t>{first, third}));
  EXPECT_EQ(Values<uint32_t>(part, part.header.features(1).offsets(), 4),
            (std::vector<uint32_t>{0, 1, 1, 2}));
}

TEST(PartEncoderTest, SaysWhereItsRecordsComeFrom) {
  const PartEncoder encoder(Data());
  const std::shared_ptr<Block> block = MakeBlock(6);
  const std::vector<BlockRange> ranges = {{block, 0, 2}, {block, 2, 2}, {block, 3, 6}};
  const PartDescription description = encoder.Encode(ranges, 40).header.part();
  EXPECT_EQ(description.samples(), 5u);
  EXPECT_EQ(description.first_sample(), 40u);
  EXPECT_EQ(description.tasks(), 1u);
  EXPECT_EQ(description.numerics(), 1u);
  ASSERT_EQ(description.provenance_size(), 2);
  EXPECT_EQ(description.provenance(1).split(), 7u);
  EXPECT_EQ(description.provenance(1).block(), 3u);
  EXPECT_EQ(description.provenance(1).from(), 3u);
  EXPECT_EQ(description.provenance(1).to(), 6u);
}

TEST(PartEncoderTest, APartMayHaveNoSamples) {
  const Part part = PartEncoder(Data()).Encode({}, 0);
  EXPECT_EQ(part.header.part().samples(), 0u);
  EXPECT_EQ(Values<uint32_t>(part, part.header.features(2).offsets(), 1),
            (std::vector<uint32_t>{0}));
  EXPECT_EQ(Values<float>(part, part.header.part().labels(), 0), std::vector<float>{});
}

TEST(PartEncoderTest, TilesDoNotShowInLongParts) {
  const PartEncoder encoder(Data());
  const std::shared_ptr<Block> block = MakeBlock(150);
  const std::vector<BlockRange> ranges = {{block, 0, 150}};
  const Part part = encoder.Encode(ranges, 0);
  const auto ids = Values<uint64_t>(part, part.header.features(0).ids(), 150);
  for (uint64_t i = 0; i < 150; ++i) EXPECT_EQ(ids[i], i % 3 == 2 ? kMissingId : 100 + i);
}

// Encodes records with two labels. If `missing`, every third record lacks its second label.
Part EncodeTwoLabels(bool missing) {
  DataConfig data;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
      R"(csv { columns { name: "n" kind: NUMERIC } columns { name: "a" kind: LABEL }
               columns { name: "b" kind: LABEL numeric_label: true } }
         numerics { name: "n" })",
      &data));
  auto block = std::make_shared<Block>(SchemaOf(data));
  for (int i = 0; i < 7; ++i) {
    block->records.BeginRow();
    block->records.row_numerics()[0] = 0;
    block->records.row_labels()[0] = static_cast<float>(i % 2);
    block->records.row_labels()[1] = missing && i % 3 == 0 ? kMissingLabel : 10.0f + i;
    block->records.CommitRow();
  }
  KeepOrder(block.get());
  return PartEncoder(data).Encode({{block, 1, 5}}, 0);
}

TEST(PartEncoderTest, WritesTheLabelsOfAllTasksAndAMaskOfThoseThatAreMissing) {
  const Part part = EncodeTwoLabels(/*missing=*/true);
  const PartDescription& description = part.header.part();
  EXPECT_EQ(description.tasks(), 2u);
  EXPECT_EQ(Values<float>(part, description.labels(), 8),
            (std::vector<float>{1, 11, 0, 12, 1, 0, 0, 14}));
  EXPECT_EQ(Values<uint8_t>(part, description.label_mask(), 8),
            (std::vector<uint8_t>{1, 1, 1, 1, 1, 0, 1, 1}));
}

TEST(PartEncoderTest, WritesNoMaskIfAllLabelsAreKnown) {
  EXPECT_FALSE(EncodeTwoLabels(/*missing=*/false).header.part().has_label_mask());
}

}  // namespace
}  // namespace satrap

#include "data_loader/batch/synthetic_block_reader.h"

#include <gtest/gtest.h>

#include <vector>

#include "proto/job.pb.h"

namespace satrap {
namespace {

class SyntheticBlockReaderTest : public testing::Test {
 protected:
  SyntheticBlockReaderTest() : data_(Data()), log_(data_.synthetic()), block_(SchemaOf(data_)) {}
  static DataConfig Data() {
    DataConfig data;
    data.mutable_synthetic()->set_numeric_features(1);
    data.mutable_synthetic()->add_vocabulary_sizes(100);
    data.mutable_synthetic()->set_interacting_features(0);
    return data;
  }
  std::unique_ptr<BlockReader> Open(uint64_t from, uint64_t to, Stream stream = TRAIN_STREAM) {
    return NewSyntheticBlockReader({"", Compression::kNone, from, to}, stream, 10, &log_,
                                   &progress_);
  }

  const DataConfig data_;
  const ClickLog log_;
  ReadProgress progress_{ReadProgress::Options()};
  Block block_;
};

TEST_F(SyntheticBlockReaderTest, MakesTheRowsOfItsSplit) {
  const auto reader = Open(100, 125);
  std::vector<size_t> rows;
  while (*reader->Next(&block_)) {
    EXPECT_EQ(block_.index, rows.size());
    rows.push_back(block_.records.rows());
  }
  EXPECT_EQ(rows, (std::vector<size_t>{10, 10, 5}));
  EXPECT_EQ(progress_.Snapshot().records(), 25u);
  EXPECT_FALSE(*reader->Next(&block_)) << "the end stays the end";
}

TEST_F(SyntheticBlockReaderTest, ARecordIsTheSameInWhicheverSplitItLies) {
  ASSERT_TRUE(*Open(103, 105)->Next(&block_));
  RecordBlock expected(SchemaOf(data_));
  log_.Append(TRAIN_STREAM, 104, &expected);
  EXPECT_EQ(block_.records.ids(1)[0], expected.ids(0)[0]);
  EXPECT_EQ(block_.records.numerics(1)[0], expected.numerics(0)[0]);
  ASSERT_TRUE(*Open(103, 105, TEST_STREAM)->Next(&block_));
  EXPECT_NE(block_.records.numerics(1)[0], expected.numerics(0)[0]) << "another stream";
}

}  // namespace
}  // namespace satrap

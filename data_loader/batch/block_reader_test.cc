#include "data_loader/batch/block_reader.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "data_loader/testing/temp_dir.h"
#include "proto/job.pb.h"

namespace satrap {
namespace {

// A job of lines "label,number".
JobConfig Job() {
  JobConfig job;
  CsvFormat* csv = job.mutable_data()->mutable_csv();
  ColumnConfig* column = csv->add_columns();
  column->set_name("y");
  column->set_kind(ColumnConfig::LABEL);
  column = csv->add_columns();
  column->set_name("x");
  column->set_kind(ColumnConfig::NUMERIC);
  return job;
}

std::string Lines(int from, int to) {
  std::string text;
  for (int i = from; i < to; ++i) absl::StrAppend(&text, "0,", i, "\n");
  return text;
}

class BlockReaderTest : public testing::Test {
 protected:
  explicit BlockReaderTest(JobConfig job = Job())
      : job_(std::move(job)), block_(SchemaOf(job_.data())), progress_(Options(dir_)) {}

  static ReadProgress::Options Options(const TempDir& dir) {
    ReadProgress::Options options;
    options.quarantine_dir = dir.path() + "/quarantine";
    return options;
  }
  absl::Status Open(const std::string& text, uint64_t block_rows, bool report_bad = true) {
    path_ = dir_.Write("data", text);
    filter_ = std::make_unique<RecordFilter>(job_, TRAIN_STREAM);
    parser_ = NewParser(job_.data(), TRAIN_STREAM);
    FileBlockOptions options;
    options.block_rows = block_rows;
    options.filter = filter_.get();
    options.parser = parser_.get();
    options.progress = &progress_;
    options.report_bad = report_bad;
    auto reader = NewFileBlockReader({path_, Compression::kNone, 0, text.size()}, 0, options);
    if (!reader.ok()) return reader.status();
    reader_ = *std::move(reader);
    return absl::OkStatus();
  }
  // "block: x x x" of the next block, or "end".
  std::string Next() {
    const auto more = reader_->Next(&block_);
    if (!more.ok()) return std::string(more.status().message());
    if (!*more) return "end";
    std::string text = absl::StrCat(block_.index, ":");
    for (size_t i = 0; i < block_.records.rows(); ++i) {
      absl::StrAppend(&text, " ", block_.records.numerics(i)[0]);
    }
    return text;
  }

  TempDir dir_;
  JobConfig job_;
  Block block_;
  ReadProgress progress_;
  std::string path_;
  std::unique_ptr<RecordFilter> filter_;
  std::unique_ptr<Parser> parser_;
  std::unique_ptr<BlockReader> reader_;
};

TEST_F(BlockReaderTest, CutsASplitIntoBlocksOfGoodRecords) {
  ASSERT_TRUE(Open("0,1\nbad\n0,2\n\n0,3\n0,4\n0,x\n0,5", 2).ok());
  EXPECT_EQ(Next(), "0: 1 2");
  EXPECT_EQ(Next(), "1: 3 4");
  EXPECT_EQ(Next(), "2: 5");
  EXPECT_EQ(Next(), "end");
  const LoaderProgress progress = progress_.Snapshot();
  EXPECT_EQ(progress.records(), 5u);
  EXPECT_EQ(progress.quarantined(), 2u);
  EXPECT_EQ(progress.empty_lines(), 1u);
  EXPECT_EQ(TempDir::Read(progress.quarantine_file()), "bad\n0,x\n");
  EXPECT_EQ(TempDir::Read(dir_.path() + "/quarantine/loader-0.tsv"),
            absl::StrCat(path_, "\t4\t2\ttrain\tan unknown label\n", path_,
                         "\t21\t7\ttrain\ta numeric column holds no number\n"));
}

TEST_F(BlockReaderTest, BadRecordsAreReportedTheFirstTimeOnly) {
  ASSERT_TRUE(Open("bad\n0,1\n", 2, false).ok());
  EXPECT_EQ(Next(), "0: 1");
  EXPECT_EQ(progress_.quarantined(), 0u);
}

TEST_F(BlockReaderTest, ALineOverTheLimitIsBad) {
  ASSERT_TRUE(Open("0,1\n0," + std::string(2 << 20, '1') + "\n0,2\n", 10).ok());
  EXPECT_EQ(Next(), "0: 1 2");
  EXPECT_EQ(progress_.quarantined(), 1u);
  EXPECT_EQ(TempDir::Read(progress_.Snapshot().quarantine_file()).size(), (1u << 20) + 1);
}

TEST_F(BlockReaderTest, ASeededStreamKeepsPositionsInItsBlocks) {
  job_.mutable_data()->mutable_seeded_split()->set_valid_fraction(0.5);
  ASSERT_TRUE(Open(Lines(0, 100), 10).ok());
  uint64_t kept = 0, last_block = 0;
  for (std::string text = Next(); text != "end"; text = Next()) {
    ASSERT_TRUE(block_.records.rows() <= 10);
    last_block = block_.index;
    for (size_t i = 0; i < block_.records.rows(); ++i) {
      const uint64_t position = static_cast<uint64_t>(block_.records.numerics(i)[0]);
      EXPECT_EQ(position / 10, block_.index);
      EXPECT_TRUE(filter_->Keeps(0, position));
      ++kept;
    }
  }
  EXPECT_EQ(last_block, 9u);
  EXPECT_NEAR(kept, 50, 20);
  EXPECT_EQ(progress_.Snapshot().records(), kept);
}

TEST_F(BlockReaderTest, TheHeaderIsSkippedAndChecked) {
  job_.mutable_data()->mutable_csv()->set_header(true);
  ASSERT_TRUE(Open("y,x\n0,1\n", 10).ok());
  EXPECT_EQ(Next(), "0: 1");
  const absl::Status status = Open("y,z\n0,1\n", 10);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(status.message().find(path_), std::string::npos);
}

TEST_F(BlockReaderTest, TooManyBadRecordsEndTheReading) {
  std::string text;
  for (int i = 0; i < 10001; ++i) text += "bad\n";
  ReadProgress::Options options;
  options.max_bad_fraction = 0.2;
  ReadProgress strict(options);
  path_ = dir_.Write("data", text);
  filter_ = std::make_unique<RecordFilter>(job_, TRAIN_STREAM);
  parser_ = NewParser(job_.data(), TRAIN_STREAM);
  FileBlockOptions block_options;
  block_options.filter = filter_.get();
  block_options.parser = parser_.get();
  block_options.progress = &strict;
  reader_ = *NewFileBlockReader({path_, Compression::kNone, 0, text.size()}, 0, block_options);
  EXPECT_NE(Next().find("max_bad_fraction"), std::string::npos);
}

TEST(SyntheticBlockReaderTest, MakesTheRowsOfItsSplit) {
  SyntheticFormat format;
  format.set_numeric_features(1);
  format.add_vocabulary_sizes(100);
  format.set_interacting_features(0);
  DataConfig data;
  *data.mutable_synthetic() = format;
  const ClickLog log(format);
  ReadProgress progress{ReadProgress::Options()};
  auto reader = NewSyntheticBlockReader({"", Compression::kNone, 100, 125}, TRAIN_STREAM, 10, &log,
                                        &progress);
  Block block(SchemaOf(data));
  std::vector<size_t> rows;
  while (*reader->Next(&block)) {
    EXPECT_EQ(block.index, rows.size());
    rows.push_back(block.records.rows());
  }
  EXPECT_EQ(rows, (std::vector<size_t>{10, 10, 5}));
  EXPECT_EQ(progress.Snapshot().records(), 25u);
}

}  // namespace
}  // namespace satrap

#include "data_loader/batch/file_block_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/testing/temp_dir.h"
#include "proto/job.pb.h"

namespace satrap {
namespace {

// A job whose data consists of lines "label,number".
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

class FileBlockReaderTest : public testing::Test {
 protected:
  explicit FileBlockReaderTest(JobConfig job = Job())
      : job_(std::move(job)), block_(SchemaOf(job_.data())), progress_(Options(dir_)) {}

  static ReadProgress::Options Options(const TempDir& dir) {
    ReadProgress::Options options;
    options.quarantine_dir = dir.path() + "/quarantine";
    return options;
  }
  absl::Status Open(const std::string& text, uint64_t block_rows, bool report_bad = true,
                    uint64_t from = 0, Compression compression = Compression::kNone) {
    path_ = dir_.Write("data", text);
    filter_ = std::make_unique<RecordFilter>(job_, TRAIN_STREAM);
    parser_ = NewParser(job_.data(), TRAIN_STREAM);
    FileBlockOptions options;
    options.block_rows = block_rows;
    options.filter = filter_.get();
    options.parser = parser_.get();
    options.progress = &progress_;
    options.report_bad = report_bad;
    options.check = check_.get();
    options.watch = watch_.get();
    auto reader =
        NewFileBlockReader({path_, compression, from, text.size()}, split_index_, options);
    if (!reader.ok()) return reader.status();
    reader_ = *std::move(reader);
    return absl::OkStatus();
  }
  // Reads the next block. Returns "BLOCK: NUMBER NUMBER ...", or "end".
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

  // The place of each bad record in the quarantine file, as "SPLIT BLOCK INDEX".
  std::vector<std::string> BadPositions() const {
    std::vector<std::string> positions;
    const std::string places = TempDir::Read(dir_.path() + "/quarantine/g0001-loader-0.tsv");
    for (const absl::string_view place : absl::StrSplit(places, '\n', absl::SkipEmpty())) {
      const std::vector<std::string> fields = absl::StrSplit(place, '\t');
      EXPECT_EQ(fields.size(), 8u) << place;
      positions.push_back(absl::StrJoin(fields.begin() + 5, fields.end(), " "));
    }
    return positions;
  }

  TempDir dir_;
  uint32_t split_index_ = 0;
  JobConfig job_;
  Block block_;
  ReadProgress progress_;
  std::string path_;
  std::unique_ptr<RecordFilter> filter_;
  std::unique_ptr<Parser> parser_;
  std::unique_ptr<RecordCheck> check_;  // none: nothing is refused
  std::unique_ptr<ValueWatch> watch_;
  std::unique_ptr<BlockReader> reader_;
};

TEST_F(FileBlockReaderTest, CutsASplitIntoBlocksOfGoodRecords) {
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
  EXPECT_EQ(
      TempDir::Read(dir_.path() + "/quarantine/g0001-loader-0.tsv"),
      absl::StrCat(path_,
                   "\t4\t2\ttrain\tcolumn 'y' holds 'bad', but a label is expected: '1' for 1 "
                   "(positive_values), '0' for 0 (negative_values), or any number with "
                   "numeric_label; if it stands for a missing value, add it to the column's "
                   "missing_values\t0\t0\t1\n",
                   path_,
                   "\t21\t7\ttrain\tcolumn 'x' holds 'x', but a number is expected, such as 12, "
                   "-0.5 or 1e3, at most 3.4e38; if it stands for a missing value, add it to the "
                   "column's missing_values\t0\t2\t0\n"));
}

TEST_F(FileBlockReaderTest, ARecordThatTheNetworkCannotTakeIsBadAsOneThatDoesNotParse) {
  job_.mutable_data()->mutable_csv()->mutable_columns(0)->set_numeric_label(true);
  job_.mutable_data()->add_numerics()->set_name("x");
  job_.mutable_data()->set_record_rules(1);
  check_ = std::make_unique<RecordCheck>(job_);
  watch_ = std::make_unique<ValueWatch>(job_, TRAIN_STREAM);
  ASSERT_TRUE(Open("0,1\n-1,2\n1,3\n0,1e22\n0.5,4\n5,5\n", 2).ok());
  EXPECT_EQ(Next(), "0: 1 3");
  EXPECT_EQ(Next(), "1: 4");
  EXPECT_EQ(Next(), "end");
  LoaderProgress progress = progress_.Snapshot();
  EXPECT_EQ(progress.records(), 3u);
  EXPECT_EQ(TempDir::Read(progress.quarantine_file()), "-1,2\n0,1e22\n5,5\n");
  const std::string places = TempDir::Read(dir_.path() + "/quarantine/g0001-loader-0.tsv");
  EXPECT_NE(
      places.find("\ttrain\tlabel y: -1 is not a number in [0, 1], which BCE takes\t0\t0\t1\n"),
      std::string::npos)
      << places;
  EXPECT_EQ(BadPositions(), (std::vector<std::string>{"0 0 1", "0 1 0", "0 1 1"}));
  watch_->Report(&progress);
  EXPECT_EQ(progress.warnings_size(), 2) << "one of labels, one of numbers";
}

TEST_F(FileBlockReaderTest, WhatIsRefusedInAFileThatWasReadBeforeIsSkippedSilently) {
  job_.mutable_data()->mutable_csv()->mutable_columns(0)->set_numeric_label(true);
  job_.mutable_data()->set_record_rules(1);
  check_ = std::make_unique<RecordCheck>(job_);
  watch_ = std::make_unique<ValueWatch>(job_, TRAIN_STREAM);
  ASSERT_TRUE(Open("0,1\n-1,2\n1,3\n", 2, /*report_bad=*/false).ok());
  EXPECT_EQ(Next(), "0: 1 3");
  LoaderProgress progress = progress_.Snapshot();
  watch_->Report(&progress);
  EXPECT_EQ(progress.quarantined(), 0u);
  EXPECT_EQ(progress.warnings_size(), 0);
}

TEST_F(FileBlockReaderTest, ABadRecordHasThePositionOfTheGoodOneAfterIt) {
  split_index_ = 3;
  ASSERT_TRUE(Open("bad\n0,1\nbad\n\n0,2\nbad\nbad\n0,3\n0,4\nbad\n", 2).ok());
  EXPECT_EQ(Next(), "0: 1 2");
  EXPECT_EQ(Next(), "1: 3 4");
  EXPECT_EQ(Next(), "end");
  EXPECT_EQ(BadPositions(),
            (std::vector<std::string>{"3 0 0", "3 0 1", "3 1 0", "3 1 0", "3 2 0"}));
}

TEST_F(FileBlockReaderTest, OfASeededStreamThePositionCountsTheRecordsOfTheStream) {
  job_.mutable_data()->mutable_seeded_split()->set_valid_fraction(0.5);
  std::string text;
  for (int i = 0; i < 100; ++i) absl::StrAppend(&text, "bad\n0,", i, "\n");
  ASSERT_TRUE(Open(text, 10).ok());
  while (Next() != "end") continue;
  std::vector<std::string> expected;
  int kept = 0;  // records of the block that the filter keeps
  for (int i = 0; i < 100; ++i) {
    if (i % 10 == 0) kept = 0;
    expected.push_back(absl::StrCat("0 ", i / 10, " ", kept));
    if (filter_->Keeps(0, static_cast<uint64_t>(i))) ++kept;
  }
  EXPECT_EQ(BadPositions(), expected);
}

TEST_F(FileBlockReaderTest, BadRecordsAreReportedTheFirstTimeOnly) {
  ASSERT_TRUE(Open("bad\n0,1\n", 2, false).ok());
  EXPECT_EQ(Next(), "0: 1");
  EXPECT_EQ(progress_.quarantined(), 0u);
}

TEST_F(FileBlockReaderTest, ALineOverTheLimitIsBad) {
  ASSERT_TRUE(Open("0,1\n0," + std::string(2 << 20, '1') + "\n0,2\n", 10).ok());
  EXPECT_EQ(Next(), "0: 1 2");
  EXPECT_EQ(progress_.quarantined(), 1u);
  EXPECT_EQ(TempDir::Read(progress_.Snapshot().quarantine_file()).size(), (1u << 20) + 1);
}

TEST_F(FileBlockReaderTest, ASeededStreamKeepsPositionsInItsBlocks) {
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

TEST_F(FileBlockReaderTest, TheHeaderIsSkippedAndChecked) {
  job_.mutable_data()->mutable_csv()->set_header(true);
  ASSERT_TRUE(Open("y,x\n0,1\n", 10).ok());
  EXPECT_EQ(Next(), "0: 1");
  const absl::Status status = Open("y,z\n0,1\n", 10);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(status.message().find(path_), std::string::npos);
}

TEST_F(FileBlockReaderTest, TheHeaderIsTheFirstLineThatIsNeitherEmptyNorAComment) {
  job_.mutable_data()->mutable_csv()->set_header(true);
  job_.mutable_data()->mutable_csv()->set_comment_prefix("#");
  ASSERT_TRUE(Open("# made today\n\n# y,x\ny,x\n# more\n0,1\n", 10).ok());
  EXPECT_EQ(Next(), "0: 1");
  EXPECT_EQ(block_.empty_lines, 1u);
  EXPECT_EQ(Next(), "end");
  EXPECT_EQ(progress_.Snapshot().empty_lines(), 1u);
  EXPECT_EQ(progress_.quarantined(), 0u);
  EXPECT_EQ(Open("# made today\ny,z\n0,1\n", 10).code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(FileBlockReaderTest, AFileWithoutRecordsHasNoHeader) {
  job_.mutable_data()->mutable_csv()->set_header(true);
  job_.mutable_data()->mutable_csv()->set_comment_prefix("#");
  for (const char* text : {"", "\n", "# only a comment\n\n"}) {
    ASSERT_TRUE(Open(text, 10).ok()) << text;
    EXPECT_EQ(Next(), "end") << text;
  }
  // A gzip member without content, such as writers make for an empty partition.
  const std::string member("\x1f\x8b\x08\0\0\0\0\0\0\x03\x03\0\0\0\0\0\0\0\0\0", 20);
  ASSERT_TRUE(Open(member, 10, true, 0, Compression::kGzip).ok());
  EXPECT_EQ(Next(), "end");
  EXPECT_EQ(progress_.quarantined(), 0u);
}

TEST_F(FileBlockReaderTest, WhereverAFileIsCutItsHeaderIsFoundOnce) {
  job_.mutable_data()->mutable_csv()->set_header(true);
  job_.mutable_data()->mutable_csv()->set_comment_prefix("#");
  const std::string text = "# one\n\n# two\ny,x\n0,1\n0,2\n";
  for (uint64_t cut = 1; cut < text.size(); ++cut) {
    std::vector<std::string> read;
    for (const bool first : {true, false}) {
      const Split split = {dir_.Write("data", text), Compression::kNone, first ? 0 : cut,
                           first ? cut : text.size(), text.size()};
      filter_ = std::make_unique<RecordFilter>(job_, TRAIN_STREAM);
      parser_ = NewParser(job_.data(), TRAIN_STREAM);
      FileBlockOptions options;
      options.block_rows = 10;
      options.filter = filter_.get();
      options.parser = parser_.get();
      options.progress = &progress_;
      auto reader = NewFileBlockReader(split, 0, options);
      ASSERT_TRUE(reader.ok()) << reader.status();
      reader_ = *std::move(reader);
      for (std::string block = Next(); block != "end"; block = Next()) read.push_back(block);
    }
    EXPECT_EQ(progress_.quarantined(), 0u) << cut;
    EXPECT_THAT(absl::StrJoin(read, " "), testing::AnyOf("0: 1 2", "0: 1 0: 2")) << cut;
  }
}

TEST_F(FileBlockReaderTest, TooManyBadRecordsEndTheReading) {
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

// The job's parser; at each line it also records how many records the loader has counted so far.
class WatchfulParser final : public Parser {
 public:
  explicit WatchfulParser(const ReadProgress* progress) : progress_(progress) {}
  std::vector<uint64_t> counted;

 private:
  const char* ParseRow(absl::string_view, RecordBlock*) override {
    counted.push_back(progress_->Snapshot().records());
    return nullptr;
  }
  const ReadProgress* const progress_;
};

TEST_F(FileBlockReaderTest, RecordsAreCountedWhileTheirBlockIsBeingRead) {
  const std::string text = Lines(0, 1000);
  path_ = dir_.Write("data", text);
  filter_ = std::make_unique<RecordFilter>(job_, TRAIN_STREAM);
  WatchfulParser parser(&progress_);
  FileBlockOptions options;
  options.block_rows = 1 << 20;
  options.filter = filter_.get();
  options.parser = &parser;
  options.progress = &progress_;
  reader_ = *NewFileBlockReader({path_, Compression::kNone, 0, text.size()}, 0, options);
  ASSERT_TRUE(*reader_->Next(&block_));
  ASSERT_EQ(parser.counted.size(), 1000u);
  for (size_t i = 0; i < parser.counted.size(); ++i) {
    EXPECT_LE(parser.counted[i], i);
    EXPECT_GT(parser.counted[i] + 300, i) << "others judge by what is counted";
  }
  EXPECT_EQ(progress_.Snapshot().records(), 1000u);
  EXPECT_EQ(progress_.Snapshot().bytes(), text.size());
}

TEST_F(FileBlockReaderTest, OnlyTheSplitThatBeginsTheFileHasAHeader) {
  job_.mutable_data()->mutable_csv()->set_header(true);
  ASSERT_TRUE(Open("y,x\n0,1\n0,2\n", 10, true, 6).ok());
  EXPECT_EQ(Next(), "0: 2");
  ASSERT_TRUE(Open("y,x", 10).ok()) << "a header without records";
  EXPECT_EQ(Next(), "end");
  EXPECT_EQ(progress_.quarantined(), 0u);
}

TEST_F(FileBlockReaderTest, AFileThatEndsEarlyIsAnErrorAndItsRecordsAreCounted) {
  // A frame that is cut off: its raw block "0,1\n0,2\n" is not marked as the last, but nothing
  // follows.
  const std::string frame(
      "\x28\xb5\x2f\xfd\x00\x58\x40\x00\x00"
      "0,1\n0,2\n",
      17);
  ASSERT_TRUE(Open(frame, 10, true, 0, Compression::kZstd).ok());
  EXPECT_NE(Next().find("data: the zstd file ends early"), std::string::npos);
  EXPECT_EQ(progress_.Snapshot().records(), 2u);
}

}  // namespace
}  // namespace satrap

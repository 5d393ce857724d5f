#include "data_loader/source/line_reader.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "data_loader/testing/temp_dir.h"

namespace satrap {
namespace {

std::vector<std::string> LinesOf(const Split& split) {
  auto reader = LineReader::Open(split);
  EXPECT_TRUE(reader.ok()) << reader.status();
  std::vector<std::string> lines;
  LineReader::Line line;
  while (true) {
    const auto more = (*reader)->Next(&line);
    EXPECT_TRUE(more.ok()) << more.status();
    if (!more.ok() || !*more) return lines;
    lines.push_back(line.too_long ? "(long)" : std::string(line.text));
  }
}

std::vector<std::string> LinesOf(const std::string& path, uint64_t from, uint64_t to) {
  return LinesOf(Split{path, Compression::kNone, from, to});
}

using Lines = std::vector<std::string>;

TEST(LineReaderTest, LinesEndWithNewlineOrCarriageReturnNewlineOrTheFile) {
  TempDir dir;
  const std::string path = dir.Write("a", "one\ntwo\r\n\nthr\ree\n\r\nlast\r");
  EXPECT_EQ(LinesOf(path, 0, 100), (Lines{"one", "two", "", "thr\ree", "", "last\r"}));
  EXPECT_EQ(LinesOf(dir.Write("b", "x\ny"), 0, 3), (Lines{"x", "y"}));
  EXPECT_EQ(LinesOf(dir.Write("c", "\n"), 0, 1), (Lines{""}));
  EXPECT_EQ(LinesOf(dir.Write("d", ""), 0, 0), Lines{});
}

TEST(LineReaderTest, EveryLineIsInTheOneSplitThatItBeginsIn) {
  TempDir dir;
  const std::string text = "a\nbb\n\nccc\ndddd\ne";
  const std::string path = dir.Write("a", text);
  const Lines all = LinesOf(path, 0, text.size());
  ASSERT_EQ(all.size(), 6u);
  for (uint64_t cut = 1; cut < text.size(); ++cut) {
    Lines joined = LinesOf(path, 0, cut);
    const Lines second = LinesOf(path, cut, text.size());
    joined.insert(joined.end(), second.begin(), second.end());
    EXPECT_EQ(joined, all) << "cut at " << cut;
  }
}

TEST(LineReaderTest, SaysWhereALineBegins) {
  TempDir dir;
  const std::string path = dir.Write("a", "one\ntwo\nthree\n");
  auto reader = LineReader::Open(Split{path, Compression::kNone, 0, 14});
  LineReader::Line line;
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(*(*reader)->Next(&line));
  EXPECT_EQ(line.offset, 8u);
  EXPECT_EQ(line.number, 3u);
  reader = LineReader::Open(Split{path, Compression::kNone, 2, 14});
  ASSERT_TRUE(*(*reader)->Next(&line));
  EXPECT_EQ(line.offset, 4u);
  EXPECT_EQ(line.number, 0u) << "not known in the middle of a file";
}

TEST(LineReaderTest, TheSplitsOfAFileTogetherTakeItsBytes) {
  TempDir dir;
  const std::string text = "a\nbb\r\n\nccc\ndddd\ne";
  const std::string path = dir.Write("a", text);
  uint64_t bytes = 0;
  for (uint64_t from = 0; from < text.size(); from += 3) {
    const auto reader = LineReader::Open(Split{path, Compression::kNone, from, from + 3});
    EXPECT_EQ((*reader)->disk_bytes(), 0u) << "no line was given yet";
    LineReader::Line line;
    while (*(*reader)->Next(&line)) continue;
    bytes += (*reader)->disk_bytes();
  }
  EXPECT_EQ(bytes, text.size());
}

TEST(LineReaderTest, ALineThatTheFileHasLostIsAnErrorAndNotAShorterLine) {
  TempDir dir;
  const std::string text(1 << 20, 'x');  // more than is read at once
  const std::string path = dir.Write("a", text);
  const auto reader = LineReader::Open(Split{path, Compression::kNone, 0, 10, text.size()});
  ASSERT_TRUE(reader.ok()) << reader.status();
  std::filesystem::resize_file(path, text.size() - 1);
  LineReader::Line line;
  EXPECT_EQ((*reader)->Next(&line).status().code(), absl::StatusCode::kDataLoss);
  // Whichever split of the file it is.
  EXPECT_EQ(LineReader::Open(Split{path, Compression::kNone, 0, 10, text.size()}).status().code(),
            absl::StatusCode::kDataLoss);
}

TEST(LineReaderTest, TheLastLineEndsWhereTheFileEndedWhenItWasListed) {
  TempDir dir;
  EXPECT_EQ(LinesOf(Split{dir.Write("a", "one\ntwo and more\n"), Compression::kNone, 0, 7, 7}),
            (Lines{"one", "two"}));
}

TEST(LineReaderTest, ALineOverTheLimitIsMarkedAndTheNextOneIsRead) {
  TempDir dir;
  const std::string at_limit(kMaxLineBytes, 'x');
  const std::string text = "a\n" + at_limit + "\r\n" + at_limit + "y\n" +
                           std::string(5 << 20, 'z') + "\nb\n" + at_limit + "z";
  EXPECT_EQ(LinesOf(dir.Write("a", text), 0, text.size()),
            (Lines{"a", at_limit, "(long)", "(long)", "b", "(long)"}));
}

}  // namespace
}  // namespace satrap

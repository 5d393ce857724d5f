#include "data_loader/source/line_reader.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "common/numeric/random.h"
#include "common/testing/temp_dir.h"

namespace satrap {
namespace {

std::vector<std::string> LinesOf(const Split& split,
                                 absl::optional<QuoteRules> multiline = absl::nullopt) {
  auto reader = LineReader::Open(split, std::move(multiline));
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
  // Opening any split of the file fails in this way.
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

TEST(LineReaderTest, AByteOrderMarkBeforeTheFirstLineIsSkipped) {
  TempDir dir;
  const std::string text = "\xef\xbb\xbfone\n\xef\xbb\xbftwo\n";
  const std::string path = dir.Write("a", text);
  const Lines all = {"one", "\xef\xbb\xbftwo"};
  for (uint64_t cut = 1; cut < text.size(); ++cut) {
    Lines joined = LinesOf(path, 0, cut);
    const Lines second = LinesOf(path, cut, text.size());
    joined.insert(joined.end(), second.begin(), second.end());
    EXPECT_EQ(joined, all) << "cut at " << cut;
  }
  EXPECT_EQ(LinesOf(dir.Write("b", "\xef\xbb\xbf\"a\nb\"\nc"), 0, 100), (Lines{"\"a", "b\"", "c"}));
  EXPECT_EQ(LinesOf(dir.Write("c", "\xef\xbb"), 0, 100), (Lines{"\xef\xbb"})) << "not a whole mark";
}

// The records of a file whose quoted fields may span lines.
Lines RecordsOf(const std::string& path, const QuoteRules& rules = QuoteRules(),
                Compression compression = Compression::kNone) {
  return LinesOf(Split{path, compression, 0, std::filesystem::file_size(path)}, rules);
}

std::string Gzip(const std::string& text) {
  z_stream stream = {};
  EXPECT_EQ(deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string out(deflateBound(&stream, text.size()) + 64, 0);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(out.size() - stream.avail_out);
  deflateEnd(&stream);
  return out;
}

TEST(MultilineTest, ALineEndWithinQuotesDoesNotEndARecord) {
  TempDir dir;
  EXPECT_EQ(RecordsOf(dir.Write("a", "1,\"a\r\nb\n\n\",x\r\n2,\"c\"\n\n3,5\" pipe\n4,\"d\ne\"")),
            (Lines{"1,\"a\r\nb\n\n\",x", "2,\"c\"", "", "3,5\" pipe", "4,\"d\ne\""}));
  EXPECT_EQ(RecordsOf(dir.Write("b", "\xef\xbb\xbf\"a\nb\"\nc")), (Lines{"\"a\nb\"", "c"}));
  EXPECT_EQ(RecordsOf(dir.Write("c", "\"a\"b\"\nc\"\n")), (Lines{"\"a\"b\"", "c\""}))
      << "after a closing quote, another quote is an ordinary byte";
}

TEST(MultilineTest, ACommentIsOneLineWhateverQuotesItHolds) {
  TempDir dir;
  QuoteRules rules;
  rules.comment_prefix = "#";
  EXPECT_EQ(RecordsOf(dir.Write("a", "#,\"x\n1,\"a\n#b\"\n"), rules),
            (Lines{"#,\"x", "1,\"a\n#b\""}));
}

TEST(MultilineTest, RecordsLieAcrossTheBordersOfTheBuffer) {
  TempDir dir;
  SplitMix64 random(1);
  Lines expected;
  std::string text;
  for (int i = 0; i < 300; ++i) {
    std::string record = absl::StrCat(i, ",\"");
    const uint64_t lines = random.Below(40);
    for (uint64_t j = 0; j < lines; ++j) {
      record += std::string(random.Below(300), 'x') + (j % 3 == 0 ? "\r\n" : "\n");
      if (j % 5 == 0) record += "\"\"";
    }
    record += "\"";
    expected.push_back(record);
    text += record + (i % 2 == 0 ? "\r\n" : "\n");
  }
  ASSERT_GT(text.size(), size_t{3} << 18) << "several buffers";
  EXPECT_EQ(RecordsOf(dir.Write("a", text)), expected);
  EXPECT_EQ(RecordsOf(dir.Write("a.gz", Gzip(text)), QuoteRules(), Compression::kGzip), expected);
}

TEST(LineReaderTest, WhatACompressedFileHoldsMustBeText) {
  TempDir dir;
  const std::string archive = "a.csv" + std::string(252, '\0') + "ustar" + std::string(300, '\0');
  const std::string path = dir.Write("a.tar.gz", Gzip(archive));
  const auto tar = LineReader::Open(Split{path, Compression::kGzip, 0, 1});
  EXPECT_EQ(tar.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(tar.status().message(), path +
                                        ", decompressed, is a tar archive, which cannot be read: "
                                        "unpack it and name the files that it holds");
  const auto twice =
      LineReader::Open(Split{dir.Write("b.gz", Gzip(Gzip("0,1\n"))), Compression::kGzip, 0, 1});
  EXPECT_EQ(twice.status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(MultilineTest, QuotesThatAreNeverClosedTakeOneLineOnly) {
  TempDir dir;
  EXPECT_EQ(RecordsOf(dir.Write("a", "1,\"a\r\n2,b\n3,c")), (Lines{"1,\"a", "2,b", "3,c"}));
  EXPECT_EQ(RecordsOf(dir.Write("b", "1,b\n2,\"a\n")), (Lines{"1,b", "2,\"a"}));
  EXPECT_EQ(RecordsOf(dir.Write("c", "1,b\n2,\"")), (Lines{"1,b", "2,\""}));
  // A record that is not closed consists only of its first line, however long the file continues.
  Lines expected = {"1,\"a"};
  for (int i = 0; i < 200000; ++i) expected.push_back("0,12345678");
  std::string text;
  for (const std::string& line : expected) absl::StrAppend(&text, line, "\n");
  EXPECT_EQ(RecordsOf(dir.Write("d", text)), expected);
}

TEST(MultilineTest, ARecordMayHaveAsManyBytesAsALine) {
  TempDir dir;
  const std::string half(kMaxLineBytes / 2, 'x');
  std::string at_limit = "\"" + half + "\n" + half;
  at_limit.resize(kMaxLineBytes - 1);
  at_limit += '"';
  std::string over = at_limit;
  over.insert(5, "y");
  const std::string first_of_over = over.substr(0, over.find('\n'));
  const std::string rest_of_over = over.substr(over.find('\n') + 1);
  const std::string long_line(2 * kMaxLineBytes, 'z');
  EXPECT_EQ(RecordsOf(dir.Write("a", at_limit + "\r\n" + over + "\r\n" + at_limit)),
            (Lines{at_limit, first_of_over, rest_of_over, at_limit}));
  EXPECT_EQ(RecordsOf(dir.Write("b", "a\n\"" + long_line + "\"\nb\n")),
            (Lines{"a", "(long)", "b"}));
  EXPECT_EQ(RecordsOf(dir.Write("c", "\"a\n" + long_line + "\"\nb\n")),
            (Lines{"\"a", "(long)", "b"}));
}

TEST(MultilineTest, OffsetAndNumberAreThoseOfTheFirstLineOfARecord) {
  TempDir dir;
  const std::string text = "a\n\"b\nb\nb\"\nc\n\"d\ne\n";
  const std::string path = dir.Write("a", text);
  auto reader = LineReader::Open(Split{path, Compression::kNone, 0, text.size()}, QuoteRules());
  ASSERT_TRUE(reader.ok()) << reader.status();
  LineReader::Line line;
  std::string places;
  while (*(*reader)->Next(&line)) absl::StrAppend(&places, line.offset, ":", line.number, " ");
  EXPECT_EQ(places, "0:1 2:2 10:5 12:6 15:7 ");
  EXPECT_EQ((*reader)->disk_bytes(), text.size());
}

// A reference implementation: finds the records of `text` byte by byte, with all of it in memory.
Lines ReferenceRecords(const std::string& text) {
  Lines records;
  for (size_t from = 0; from < text.size();) {
    const size_t first_end = std::min(text.find('\n', from), text.size());
    bool quoted = false;
    bool field_start = true;
    size_t end = from;
    for (; end < text.size() && (quoted || text[end] != '\n'); ++end) {
      if (quoted) {
        if (text[end] != '"') continue;
        if (end + 1 < text.size() && text[end + 1] == '"') {
          ++end;
        } else {
          quoted = false;
        }
      } else {
        quoted = field_start && text[end] == '"';
        field_start = text[end] == ',';
      }
    }
    if (quoted) end = first_end;
    records.push_back(text.substr(from, end - from));
    if (end < text.size() && !records.back().empty() && records.back().back() == '\r') {
      records.back().pop_back();
    }
    from = end + 1;
  }
  return records;
}

TEST(MultilineTest, AnyTextHasTheRecordsOfASimpleReading) {
  TempDir dir;
  SplitMix64 random(7);
  const std::string alphabet = "\"\"\",,\n\ra";
  for (int i = 0; i < 3000; ++i) {
    std::string text;
    const uint64_t size = random.Below(40);
    for (uint64_t j = 0; j < size; ++j) text += alphabet[random.Below(alphabet.size())];
    ASSERT_EQ(RecordsOf(dir.Write("a", text)), ReferenceRecords(text))
        << "text " << i << ": " << testing::PrintToString(text);
  }
}

}  // namespace
}  // namespace satrap

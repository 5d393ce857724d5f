#include "data_loader/source/byte_source.h"

#include <gtest/gtest.h>
#include <zlib.h>
#include <zstd.h>

#include "data_loader/testing/temp_dir.h"

namespace satrap {
namespace {

std::string Gzip(const std::string& text) {
  z_stream stream = {};
  EXPECT_EQ(deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string out(deflateBound(&stream, text.size()) + 64, 0);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

// With a checksum, as the command line tool writes it: without one damage may go unseen.
std::string Zstd(const std::string& text) {
  ZSTD_CCtx* context = ZSTD_createCCtx();
  ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1);
  std::string out(ZSTD_compressBound(text.size()), 0);
  out.resize(ZSTD_compress2(context, out.data(), out.size(), text.data(), text.size()));
  ZSTD_freeCCtx(context);
  return out;
}

std::string SomeText() {
  std::string text;
  for (int i = 0; i < 200000; ++i) text += absl::StrCat(i * 7919 % 104729, "\n");
  return text;
}

absl::StatusOr<std::string> ReadToEnd(ByteSource* source, size_t step) {
  std::string all;
  std::string chunk(step, 0);
  while (true) {
    const auto got = source->Read(chunk.data(), chunk.size());
    if (!got.ok()) return got.status();
    if (*got == 0) return all;
    all.append(chunk, 0, *got);
  }
}

absl::StatusOr<std::string> ReadAll(const std::string& path, Compression compression, size_t step) {
  auto source = OpenByteSource(path, compression, 0);
  if (!source.ok()) return source.status();
  return ReadToEnd(source->get(), step);
}

TEST(ByteSourceTest, GivesTheBytesOfPlainAndCompressedFiles) {
  TempDir dir;
  const std::string text = SomeText();
  for (const size_t step : {size_t{1000}, size_t{1} << 20}) {
    EXPECT_EQ(*ReadAll(dir.Write("a", text), Compression::kNone, step), text);
    EXPECT_EQ(*ReadAll(dir.Write("b", Gzip(text)), Compression::kGzip, step), text);
    EXPECT_EQ(*ReadAll(dir.Write("c", Zstd(text)), Compression::kZstd, step), text);
  }
}

TEST(ByteSourceTest, ReadsMembersAndFramesOneAfterAnother) {
  TempDir dir;
  const std::string padding(37, 0);
  EXPECT_EQ(*ReadAll(dir.Write("a", Gzip("one\n") + Gzip("") + Gzip("two\n") + padding),
                     Compression::kGzip, 100),
            "one\ntwo\n");
  EXPECT_EQ(*ReadAll(dir.Write("b", Zstd("one\n") + Zstd("two\n")), Compression::kZstd, 100),
            "one\ntwo\n");
}

TEST(ByteSourceTest, AFileThatEndsEarlyIsDataLossThatNamesIt) {
  TempDir dir;
  const std::string text = SomeText();
  for (const bool gzip : {true, false}) {
    std::string bytes = gzip ? Gzip(text) : Zstd(text);
    bytes.resize(bytes.size() - 5);
    const std::string path = dir.Write("cut", bytes);
    const auto got = ReadAll(path, gzip ? Compression::kGzip : Compression::kZstd, 1 << 20);
    EXPECT_EQ(got.status().code(), absl::StatusCode::kDataLoss) << gzip;
    EXPECT_NE(got.status().message().find(path), std::string::npos);
    EXPECT_NE(got.status().message().find("ends early"), std::string::npos) << got.status();
  }
}

TEST(ByteSourceTest, ADamagedFileIsDataLoss) {
  TempDir dir;
  const std::string text = SomeText();
  for (const bool gzip : {true, false}) {
    std::string bytes = gzip ? Gzip(text) : Zstd(text);
    for (size_t i = 1000; i < 1100; ++i) bytes[i] ^= 0x55;
    const auto got =
        ReadAll(dir.Write("bad", bytes), gzip ? Compression::kGzip : Compression::kZstd, 1 << 20);
    EXPECT_EQ(got.status().code(), absl::StatusCode::kDataLoss) << gzip;
  }
}

// Frames of one raw byte: magic, descriptor, what it says, and the last block.
TEST(ByteSourceTest, AZstdFrameThatCannotBeReadIsNotCalledDamaged) {
  using namespace std::string_literals;
  TempDir dir;
  const auto error_of = [&](const std::string& frame) {
    const auto got = ReadAll(dir.Write("frame", frame), Compression::kZstd, 1 << 20);
    return std::string(got.status().message());
  };
  const std::string magic = "\x28\xb5\x2f\xfd", block = "\x09\x00\x00x"s;
  EXPECT_EQ(error_of(magic + "\x00\x00"s + block), "") << "a window of 1 KiB";
  EXPECT_NE(error_of(magic + "\x00\x90"s + block).find("--long=27 or less"), std::string::npos)
      << "one of 256 MiB";
  EXPECT_NE(error_of(magic + "\x01\x00\x05"s + block).find("a dictionary"), std::string::npos);
}

// The status and the bytes of a file that had `listed_bytes`.
absl::StatusOr<std::string> ReadListed(const std::string& path, Compression compression,
                                       uint64_t listed_bytes) {
  const auto source = OpenByteSource(path, compression, 0, listed_bytes);
  if (!source.ok()) return source.status();
  return ReadToEnd(source->get(), 4);
}

TEST(ByteSourceTest, AFileThatIsSmallerThanItWasIsDataLossThatNamesBothSizes) {
  TempDir dir;
  const std::string path = dir.Write("a", "01234567");
  EXPECT_EQ(*ReadListed(path, Compression::kNone, 8), "01234567");
  const auto got = ReadListed(path, Compression::kNone, 9);
  EXPECT_EQ(got.status().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(got.status().message(),
            path + " has 8 bytes but had 9 when the run began: files must not shrink during a run");
  EXPECT_EQ(OpenByteSource(path, Compression::kNone, 2, 9).status().code(),
            absl::StatusCode::kDataLoss)
      << "whichever bytes are to be read";
  const std::string member = Gzip("one\n");
  EXPECT_NE(ReadListed(dir.Write("b", member), Compression::kGzip, 2 * member.size())
                .status()
                .message()
                .find("when the run began"),
            std::string::npos)
      << "whole members may be missing";
}

TEST(ByteSourceTest, AFileThatShrinksWhileItIsReadIsDataLoss) {
  TempDir dir;
  const std::string path = dir.Write("a", "01234567");
  const auto source = OpenByteSource(path, Compression::kNone, 0, 8);
  char bytes[4];
  ASSERT_EQ(*(*source)->Read(bytes, 4), 4u);
  dir.Write("a", "01234");
  ASSERT_EQ(*(*source)->Read(bytes, 4), 1u);
  const auto got = (*source)->Read(bytes, 4);
  EXPECT_EQ(got.status().code(), absl::StatusCode::kDataLoss) << got.status();
  EXPECT_NE(got.status().message().find(path + " has 5 bytes but had 8"), std::string::npos);
}

TEST(ByteSourceTest, WhatAFileHasGainedIsNotRead) {
  TempDir dir;
  EXPECT_EQ(*ReadListed(dir.Write("a", "0123456789"), Compression::kNone, 7), "0123456");
  const std::string member = Gzip("one\n");
  EXPECT_EQ(*ReadListed(dir.Write("b", member + Gzip("two\n")), Compression::kGzip, member.size()),
            "one\n");
}

TEST(ByteSourceTest, AMissingFileIsNotFound) {
  EXPECT_EQ(OpenByteSource("no/such/file", Compression::kNone, 0).status().code(),
            absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace satrap

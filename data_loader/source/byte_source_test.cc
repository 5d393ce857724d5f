#include "data_loader/source/byte_source.h"

#include <bzlib.h>
#include <gtest/gtest.h>
#include <lzma.h>
#include <zlib.h>
#include <zstd.h>

#include "common/testing/temp_dir.h"

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

// Compresses with a checksum, as the command-line tool does. Without one, damage may not be
// detected.
std::string Zstd(const std::string& text) {
  ZSTD_CCtx* context = ZSTD_createCCtx();
  ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1);
  std::string out(ZSTD_compressBound(text.size()), 0);
  out.resize(ZSTD_compress2(context, out.data(), out.size(), text.data(), text.size()));
  ZSTD_freeCCtx(context);
  return out;
}

std::string Bzip2(const std::string& text) {
  std::string out(text.size() + text.size() / 100 + 600, 0);
  unsigned size = static_cast<unsigned>(out.size());
  EXPECT_EQ(BZ2_bzBuffToBuffCompress(out.data(), &size, const_cast<char*>(text.data()),
                                     static_cast<unsigned>(text.size()), 1, 0, 0),
            BZ_OK);
  out.resize(size);
  return out;
}

// `dictionary_bytes` is how far back a copy may reach, which determines the memory for
// decompressing.
std::string Xz(const std::string& text, uint32_t dictionary_bytes = 1 << 20) {
  lzma_options_lzma options;
  EXPECT_FALSE(lzma_lzma_preset(&options, 0));
  options.dict_size = dictionary_bytes;
  const lzma_filter filters[] = {{LZMA_FILTER_LZMA2, &options}, {LZMA_VLI_UNKNOWN, nullptr}};
  std::string out(lzma_stream_buffer_bound(text.size()), 0);
  size_t size = 0;
  EXPECT_EQ(lzma_stream_buffer_encode(const_cast<lzma_filter*>(filters), LZMA_CHECK_CRC64, nullptr,
                                      reinterpret_cast<const uint8_t*>(text.data()), text.size(),
                                      reinterpret_cast<uint8_t*>(out.data()), &size, out.size()),
            LZMA_OK);
  out.resize(size);
  return out;
}

struct Format {
  const char* name;
  Compression compression;
  std::string (*compress)(const std::string& text);
};
const Format kFormats[] = {
    {"gzip", Compression::kGzip, Gzip},
    {"zstd", Compression::kZstd, Zstd},
    {"bzip2", Compression::kBzip2, Bzip2},
    {"xz", Compression::kXz, [](const std::string& text) { return Xz(text); }},
};

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
    for (const Format& format : kFormats) {
      const std::string path = dir.Write("b", format.compress(text));
      EXPECT_EQ(*SniffFile(path), format.compression) << format.name;
      EXPECT_EQ(*ReadAll(path, format.compression, step), text) << format.name;
    }
  }
}

TEST(ByteSourceTest, AnEmptyMemberHoldsNothing) {
  TempDir dir;
  for (const Format& format : kFormats) {
    const std::string path = dir.Write("a", format.compress(""));
    EXPECT_EQ(*SniffFile(path), format.compression) << format.name;
    EXPECT_EQ(*ReadAll(path, format.compression, 100), "") << format.name;
  }
}

TEST(ByteSourceTest, ReadsMembersAndFramesOneAfterAnother) {
  TempDir dir;
  const std::string padding(37, 0);
  EXPECT_EQ(*ReadAll(dir.Write("a", Gzip("one\n") + Gzip("") + Gzip("two\n") + padding),
                     Compression::kGzip, 100),
            "one\ntwo\n");
  for (const Format& format : kFormats) {
    const auto compress = format.compress;
    EXPECT_EQ(*ReadAll(dir.Write("b", compress("one\n") + compress("") + compress("two\n")),
                       format.compression, 100),
              "one\ntwo\n")
        << format.name;
  }
  EXPECT_EQ(*ReadAll(dir.Write("c", Xz("one\n") + std::string(8, 0) + Xz("two\n")),
                     Compression::kXz, 100),
            "one\ntwo\n")
      << "padding";
}

TEST(ByteSourceTest, AFileThatEndsEarlyIsDataLossThatNamesIt) {
  TempDir dir;
  const std::string text = SomeText();
  for (const Format& format : kFormats) {
    const std::string whole = format.compress(text);
    for (const size_t missing : {size_t{1}, size_t{5}, whole.size() / 2, whole.size() - 12}) {
      const std::string path = dir.Write("cut", whole.substr(0, whole.size() - missing));
      const auto got = ReadAll(path, format.compression, 1 << 20);
      EXPECT_EQ(got.status().code(), absl::StatusCode::kDataLoss) << format.name << " " << missing;
      EXPECT_NE(got.status().message().find(path), std::string::npos);
      EXPECT_NE(got.status().message().find("ends early"), std::string::npos) << got.status();
    }
  }
}

TEST(ByteSourceTest, ADamagedFileIsDataLoss) {
  TempDir dir;
  const std::string text = SomeText();
  for (const Format& format : kFormats) {
    std::string bytes = format.compress(text);
    for (size_t i = 1000; i < 1100; ++i) bytes[i] ^= 0x55;
    const auto got = ReadAll(dir.Write("bad", bytes), format.compression, 1 << 20);
    EXPECT_EQ(got.status().code(), absl::StatusCode::kDataLoss) << format.name;
  }
}

TEST(ByteSourceTest, WhateverBytesFollowTheFirstOnesReadingEnds) {
  TempDir dir;
  for (const Format& format : kFormats) {
    const std::string whole = format.compress("a,1\n");
    // A complete member, followed by bytes that are not a member.
    const auto got = ReadAll(dir.Write("tail", whole + "garbage"), format.compression, 100);
    EXPECT_EQ(got.status().code(), absl::StatusCode::kDataLoss) << format.name;
    for (size_t i = 0; i < whole.size(); ++i) {
      std::string bytes = whole;
      bytes[i] = static_cast<char>(bytes[i] ^ 0xff);
      const auto flipped = ReadAll(dir.Write("flip", bytes), format.compression, 100);
      EXPECT_TRUE(!flipped.ok() || flipped->size() <= 4) << format.name << " " << i;
    }
  }
}

TEST(ByteSourceTest, AFileThatTakesTooMuchMemoryToDecompressIsRefusedWithTheCure) {
  TempDir dir;
  const auto xz = ReadAll(dir.Write("a", Xz("one\n", 1 << 30)), Compression::kXz, 100);
  EXPECT_EQ(xz.status().code(), absl::StatusCode::kInvalidArgument) << xz.status();
  EXPECT_NE(xz.status().message().find("more than the 256 MiB"), std::string::npos) << xz.status();
  EXPECT_NE(xz.status().message().find("as of xz -9"), std::string::npos);
  // The header of a frame with a window of 256 MiB.
  const std::string frame("\x28\xb5\x2f\xfd\x00\x90\x01\x00\x00", 9);
  const auto zstd = ReadAll(dir.Write("b", frame), Compression::kZstd, 100);
  EXPECT_EQ(zstd.status().code(), absl::StatusCode::kInvalidArgument) << zstd.status();
  EXPECT_NE(zstd.status().message().find("--long=27 or less"), std::string::npos);
}

TEST(ByteSourceTest, AZstdFileWithADictionaryIsNotCalledDamaged) {
  using namespace std::string_literals;
  TempDir dir;
  const auto got = ReadAll(dir.Write("frame", "\x28\xb5\x2f\xfd\x01\x00\x05\x09\x00\x00x"s),
                           Compression::kZstd, 100);
  EXPECT_EQ(got.status().code(), absl::StatusCode::kInvalidArgument) << got.status();
  EXPECT_NE(got.status().message().find("a dictionary"), std::string::npos);
}

// Reads a file that had `listed_bytes` bytes when it was listed. Returns its bytes, or the error.
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

#include "data_loader/source/file_kind.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/testing/temp_dir.h"

namespace satrap {
namespace {

using testing::HasSubstr;
using namespace std::string_literals;

TEST(FileKindTest, TellsCompressionsByTheirFirstBytes) {
  TempDir dir;
  const std::pair<std::string, Compression> cases[] = {
      {"\x1f\x8b\x08", Compression::kGzip},
      {"\x28\xb5\x2f\xfd", Compression::kZstd},
      {"\x50\x2a\x4d\x18", Compression::kZstd},
      {"\x5f\x2a\x4d\x18", Compression::kZstd},
      {"\xfd"s + "7zXZ\0"s, Compression::kXz},
      {"BZh9\x31\x41\x59\x26\x53\x59", Compression::kBzip2},
      {"BZh1\x17\x72\x45\x38\x50\x90", Compression::kBzip2},
      {"", Compression::kNone},
      {"0,1\n", Compression::kNone},
  };
  for (const auto& [bytes, expected] : cases) {
    const auto kind = SniffFile(dir.Write("a", bytes));
    ASSERT_TRUE(kind.ok()) << kind.status();
    EXPECT_EQ(*kind, expected) << bytes;
  }
}

TEST(FileKindTest, AFormatThatCannotBeReadIsNamedWithWhatToDo) {
  TempDir dir;
  const std::pair<std::string, const char*> cases[] = {
      {"PK\x03\x04\x14\0\0\0"s,
       "is a zip archive or an Excel workbook, which cannot be read: unpack"},
      {"7z\xbc\xaf\x27\x1c", "is a 7z archive"},
      {"Rar!\x1a\x07\x01", "is a rar archive"},
      {"a.csv"s + std::string(252, '\0') + "ustar\0"s, "is a tar archive"},
      {"\x04\x22\x4d\x18", "is compressed with lz4, which cannot be read: decompress it, or"},
      {"\xff\x06\0\0sNaPpY"s, "is compressed with snappy"},
      {"LZIP\x01", "is compressed with lzip"},
      {"PAR1 columns PAR1", "is a Parquet file, which cannot be read: write it as CSV"},
      {"ARROW1\0\0"s, "is an Arrow or Feather file"},
      {"Obj\x01", "is an Avro file"},
      {"\x89HDF\r\n\x1a\n", "is an HDF5 file"},
      {"\x93NUMPY\x01", "is a NumPy array"},
      {"\x80\x04\x95\x10\0\0\0\0\0\0\0"s, "is a Python pickle"},
      {"SQLite format 3\0"s, "is an SQLite database"},
      {"CDF\x01\0\0"s, "is a NetCDF file"},
      {"CDF\x02\0\0"s, "is a NetCDF file"},
      {"CDF\x05\0\0"s, "is a NetCDF file"},
      {"\x0e\x03\x13\x01", "is an HDF4 file"},
      {"$FL2@(#) SPSS DATA FILE", "is an SPSS file, which cannot be read: write it as CSV"},
      {"$FL3@(#) SPSS DATA FILE", "is an SPSS file"},
      {std::string(12, '\0') + "\xc2\xea\x81\x60\xb3\x14\x11\xcf", "is a SAS file"},
      {"<?xml version=\"1.0\"?>", "is an XML document"},
      {"{\\rtf1\\ansi", "is an RTF document"},
      {"]\0\0\x80\0\xff\xff"s, "is compressed with lzma"},
      {"MSCF\0\0\0\0"s, "is a cabinet archive"},
      {"!<arch>\ndebian-binary",
       "is an ar archive or a Debian package, which cannot be read: unpack"},
      {"\xed\xab\xee\xdb", "is an RPM package"},
      {"\x7f"
       "ELF\x02",
       "is a program, which cannot be read: this is not data"},
      {"\x89PNG\r\n\x1a\n", "is an image"},
      {"\xff\xd8\xff\xe0", "is an image"},
      {"\xff\xd8\xff\xe1", "is an image"},
      {"version https://git-lfs/spec/v1\noid sha256:1", "fetch it with `git lfs pull`"},
      {"<!DOCTYPE html><html>", "is a web page, which cannot be read: this is not data"},
      {"\xff\xfey\0,\0"s, "is UTF-16, which cannot be read: convert it: iconv -t UTF-8 -f UTF-16"},
      {"\xfe\xff\0y\0,"s, "is UTF-16"},
      {"\xff\xfe\0\0y\0\0\0"s,
       "is UTF-32, which cannot be read: convert it: iconv -t UTF-8 -f UTF-32"},
  };
  for (const auto& [bytes, expected] : cases) {
    const std::string path = dir.Write("a", bytes);
    const absl::Status status = SniffFile(path).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << expected;
    EXPECT_THAT(std::string(status.message()), testing::StartsWith(path + " is "));
    EXPECT_THAT(std::string(status.message()), HasSubstr(expected));
  }
}

TEST(FileKindTest, TextThatBeginsLikeAFormatIsText) {
  TempDir dir;
  for (const std::string& text :
       {"ORC,PK\n1,2\n"s, "PK,ORC\n1,2\n"s, "BZh9,a\n1,2\n"s, "PAR1,a\n1,2\n"s, "PAR1"s,
        "FEA1,b\nFEA2,c\n"s, "LZIP,a\n"s, "Obj,a\n"s, "\xef\xbb\xbfy,x\n"s, "7z\n"s, "Rar!\n"s,
        "\xff\xfe,latin\n"s, "CDF,a\n"s, "$FL2,b\n"s, "]\n"s, "MSCF,a\n"s, "P"s}) {
    const auto kind = SniffFile(dir.Write("a", text));
    ASSERT_TRUE(kind.ok()) << kind.status();
    EXPECT_EQ(*kind, Compression::kNone) << text;
  }
}

TEST(FileKindTest, WhatACompressedFileHoldsMustBeText) {
  EXPECT_TRUE(CheckIsText("0,1\n", "a").ok());
  EXPECT_TRUE(CheckIsText("", "a").ok());
  EXPECT_TRUE(CheckIsText("PAR1,a\n1,2\n", "a").ok());
  EXPECT_EQ(CheckIsText("\x1f\x8b\x08", "a.gz").message(),
            "a.gz holds compressed bytes, but only text can be read here: decompress it");
  EXPECT_THAT(
      std::string(CheckIsText("a.csv" + std::string(252, '\0') + "ustar", "a.tgz").message()),
      HasSubstr("a.tgz is a tar archive"));
}

TEST(FileKindTest, AFileThatCannotBeOpenedIsNamed) {
  const absl::Status status = SniffFile("no/such/file").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()), HasSubstr("no/such/file"));
}

}  // namespace
}  // namespace satrap

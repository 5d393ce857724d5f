#include "data_loader/source/file_kind.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "common/file/file_error.h"

namespace satrap {
namespace {

using Bytes = absl::string_view;

// A byte sequence at a certain offset of a file.
struct Mark {
  size_t at = 0;
  Bytes bytes;
};

// A format that cannot be read, and how it is recognised: by at least four bytes, or by three of
// which one never occurs in text. A CSV file may begin with `ORC` or `PK`, so these alone prove
// nothing. The list has the formats that are common for tables and logs, and the formats of files
// that users download or name by mistake. Formats that begin with plain words or digits, such as
// cpio or GIF, are not in it.
struct Foreign {
  Mark first;
  Mark second;              // may have no bytes
  bool ends_alike = false;  // text may begin like this, so the file must end with `first`, too
  const char* name;
  const char* cure;
};

constexpr char kUnpack[] = "unpack it and name the files that it holds";
constexpr char kCompressAnew[] = "decompress it, or compress it with gzip, zstd, bzip2 or xz";
constexpr char kWriteCsv[] = "write it as CSV (in pandas: to_csv)";
constexpr char kFetch[] = "this is not data: fetch the file again";
constexpr char kUtf8[] = "convert it: iconv -t UTF-8 -f ";

// A string literal that may contain NUL bytes.
template <size_t size>
constexpr Bytes Literal(const char (&text)[size]) {
  return Bytes(text, size - 1);
}

const Foreign kForeign[] = {
    {{0, Literal("PK\x03\x04")}, {}, false, "a zip archive or an Excel workbook", kUnpack},
    {{0, Literal("PK\x05\x06")}, {}, false, "an empty zip archive", kUnpack},
    {{0, Literal("PK\x07\x08")}, {}, false, "a part of a zip archive", kUnpack},
    {{0, Literal("7z\xbc\xaf\x27\x1c")}, {}, false, "a 7z archive", kUnpack},
    {{0, Literal("Rar!\x1a\x07")}, {}, false, "a rar archive", kUnpack},
    {{257, Literal("ustar")}, {}, false, "a tar archive", kUnpack},
    {{0, Literal("\x04\x22\x4d\x18")}, {}, false, "compressed with lz4", kCompressAnew},
    {{0, Literal("\x02\x21\x4c\x18")}, {}, false, "compressed with lz4", kCompressAnew},
    {{0, Literal("\xff\x06\x00\x00sNaPpY")}, {}, false, "compressed with snappy", kCompressAnew},
    {{0, Literal("\x89LZO\x00\r\n\x1a\n")}, {}, false, "compressed with lzop", kCompressAnew},
    {{0, Literal("LZIP\x00")}, {}, false, "compressed with lzip", kCompressAnew},
    {{0, Literal("LZIP\x01")}, {}, false, "compressed with lzip", kCompressAnew},
    {{0, Literal("PAR1")}, {}, true, "a Parquet file", kWriteCsv},
    {{0, Literal("PARE")}, {}, true, "an encrypted Parquet file", kWriteCsv},
    {{0, Literal("FEA1")}, {}, true, "a Feather file", kWriteCsv},
    {{0, Literal("ARROW1\x00\x00")}, {}, false, "an Arrow or Feather file", kWriteCsv},
    {{0, Literal("\xff\xff\xff\xff")}, {}, false, "an Arrow stream", kWriteCsv},
    {{0, Literal("Obj\x01")}, {}, false, "an Avro file", kWriteCsv},
    {{0, Literal("\x89HDF\r\n\x1a\n")}, {}, false, "an HDF5 file", kWriteCsv},
    {{0, Literal("\x93NUMPY")}, {}, false, "a NumPy array", kWriteCsv},
    {{0, Literal("\x80\x04\x95")}, {9, Literal("\x00\x00")}, false, "a Python pickle", kWriteCsv},
    {{0, Literal("\x80\x05\x95")}, {9, Literal("\x00\x00")}, false, "a Python pickle", kWriteCsv},
    {{0, Literal("RDX2\n")}, {}, false, "an R workspace", kWriteCsv},
    {{0, Literal("RDX3\n")}, {}, false, "an R workspace", kWriteCsv},
    {{0, Literal("SQLite format 3\x00")}, {}, false, "an SQLite database", kWriteCsv},
    {{0, Literal("\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1")}, {}, false, "an Excel workbook", kWriteCsv},
    {{0, Literal("MATLAB 5.0 MAT-file")}, {}, false, "a MATLAB file", kWriteCsv},
    {{0, Literal("<stata_dta>")}, {}, false, "a Stata file", kWriteCsv},
    {{0, Literal("CDF\x01")}, {}, false, "a NetCDF file", kWriteCsv},
    {{0, Literal("CDF\x02")}, {}, false, "a NetCDF file", kWriteCsv},
    {{0, Literal("CDF\x05")}, {}, false, "a NetCDF file", kWriteCsv},
    {{0, Literal("\x0e\x03\x13\x01")}, {}, false, "an HDF4 file", kWriteCsv},
    {{0, Literal("$FL2@(#)")}, {}, false, "an SPSS file", kWriteCsv},
    {{0, Literal("$FL3@(#)")}, {}, false, "an SPSS file", kWriteCsv},
    {{12, Literal("\xc2\xea\x81\x60\xb3\x14\x11\xcf")}, {}, false, "a SAS file", kWriteCsv},
    {{0, Literal("<?xml ")}, {}, false, "an XML document", kWriteCsv},
    {{0, Literal("{\\rtf1")}, {}, false, "an RTF document", kWriteCsv},
    {{0, Literal("]\x00\x00\x80\x00")}, {}, false, "compressed with lzma", kCompressAnew},
    {{0, Literal("MSCF\x00\x00\x00\x00")}, {}, false, "a cabinet archive", kUnpack},
    {{0, Literal("!<arch>\n")}, {}, false, "an ar archive or a Debian package", kUnpack},
    {{0, Literal("\xed\xab\xee\xdb")}, {}, false, "an RPM package", kUnpack},
    {{0, Literal("\x7f"
                 "ELF")},
     {},
     false,
     "a program",
     kFetch},
    {{0, Literal("\x89PNG\r\n\x1a\n")}, {}, false, "an image", kFetch},
    {{0, Literal("\xff\xd8\xff\xe0")}, {}, false, "an image", kFetch},
    {{0, Literal("\xff\xd8\xff\xe1")}, {}, false, "an image", kFetch},
    {{0, Literal("%PDF-")}, {}, false, "a PDF document", kFetch},
    {{0, Literal("<!DOCTYPE html")}, {}, false, "a web page", kFetch},
    {{0, Literal("<!doctype html")}, {}, false, "a web page", kFetch},
    {{0, Literal("<html")}, {}, false, "a web page", kFetch},
    {{0, Literal("version https://git-lfs")},
     {},
     false,
     "a pointer of Git LFS",
     "this is not data: fetch it with `git lfs pull`"},
    // The byte order mark. For UTF-16 also the zero byte that the first character has if it is an
    // ASCII character. UTF-32 comes first, because its mark begins with that of UTF-16.
    {{0, Literal("\xff\xfe\x00\x00")}, {}, false, "UTF-32", kUtf8},
    {{0, Literal("\x00\x00\xfe\xff")}, {}, false, "UTF-32", kUtf8},
    {{0, Literal("\xff\xfe")}, {3, Literal("\x00")}, false, "UTF-16", kUtf8},
    {{0, Literal("\xfe\xff\x00")}, {}, false, "UTF-16", kUtf8},
};

bool Holds(Bytes head, const Mark& mark) {
  return head.size() >= mark.at && absl::StartsWith(head.substr(mark.at), mark.bytes);
}

// `tail` is the end of the file, absent if it is not known.
absl::Status CheckIsReadable(Bytes head, absl::optional<Bytes> tail, const std::string& path) {
  for (const Foreign& foreign : kForeign) {
    if (!Holds(head, foreign.first) || !Holds(head, foreign.second)) continue;
    if (foreign.ends_alike && (head.size() <= foreign.first.bytes.size() || !tail.has_value() ||
                               *tail != foreign.first.bytes)) {
      continue;
    }
    const char* const encoding = foreign.cure == kUtf8 ? foreign.name : "";
    return absl::InvalidArgumentError(absl::StrCat(
        path, " is ", foreign.name, ", which cannot be read: ", foreign.cure, encoding));
  }
  return absl::OkStatus();
}

Compression CompressionOf(Bytes head) {
  if (absl::StartsWith(head, "\x1f\x8b")) return Compression::kGzip;
  if (absl::StartsWith(head, "\x28\xb5\x2f\xfd")) return Compression::kZstd;
  // A skippable frame, which has one of 16 magic numbers. pzstd writes such a frame before the
  // first frame of text.
  if (head.size() >= 4 && (head[0] & 0xf0) == 0x50 && head.substr(1, 3) == "\x2a\x4d\x18") {
    return Compression::kZstd;
  }
  if (absl::StartsWith(head, Literal("\xfd"
                                     "7zXZ\x00")))
    return Compression::kXz;
  // Text may also begin with BZh1. In bzip2, the mark of a block or of the end of a stream follows.
  if (absl::StartsWith(head, "BZh") && head.size() >= 10 && head[3] >= '1' && head[3] <= '9') {
    const Bytes mark = head.substr(4, 6);
    if (mark == "\x31\x41\x59\x26\x53\x59" || mark == "\x17\x72\x45\x38\x50\x90") {
      return Compression::kBzip2;
    }
  }
  return Compression::kNone;
}

}  // namespace

absl::StatusOr<Compression> SniffFile(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return FileError("read", path);
  char head[kHeadBytes];
  char tail[4];
  const ssize_t head_bytes = pread(fd, head, sizeof(head), 0);
  const int error = errno;
  const off_t end = lseek(fd, 0, SEEK_END);
  const ssize_t tail_bytes =
      pread(fd, tail, sizeof(tail), std::max<off_t>(0, end - static_cast<off_t>(sizeof(tail))));
  close(fd);
  if (head_bytes < 0) return FileError("read", path, error);
  const Bytes first(head, static_cast<size_t>(head_bytes));
  const Compression compression = CompressionOf(first);
  if (compression != Compression::kNone) return compression;
  const absl::Status readable = CheckIsReadable(
      first, Bytes(tail, static_cast<size_t>(std::max<ssize_t>(0, tail_bytes))), path);
  if (!readable.ok()) return readable;
  return compression;
}

absl::Status CheckIsText(absl::string_view head, const std::string& path) {
  if (CompressionOf(head) != Compression::kNone) {
    return absl::InvalidArgumentError(absl::StrCat(
        path, " holds compressed bytes, but only text can be read here: decompress it"));
  }
  return CheckIsReadable(head, absl::nullopt, path);
}

}  // namespace satrap

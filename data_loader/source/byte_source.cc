#include "data_loader/source/byte_source.h"

#include <bzlib.h>
#include <fcntl.h>
#include <lzma.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "common/file/file_error.h"

namespace satrap {
namespace {

constexpr size_t kCompressedChunkBytes = 256 << 10;
// A file may ask for 4 GiB, and each parsing thread reads a file; but even `xz -9` needs only 65
// MiB.
constexpr uint64_t kMaxXzMemoryMib = 256;
// The largest window that the library accepts by default: 128 MiB, as with --long=27.
constexpr int kMaxZstdWindowLog = 27;

// The bytes of a file as they are on disk, up to the size that the file had when it was listed.
class PlainFile final : public ByteSource {
 public:
  PlainFile(std::string path, int fd, uint64_t from, uint64_t file_bytes)
      : path_(std::move(path)),
        fd_(fd),
        from_(from),
        file_bytes_(file_bytes > 0 ? file_bytes : std::numeric_limits<uint64_t>::max()),
        has_size_(file_bytes > 0),
        at_(from) {}
  ~PlainFile() override { close(fd_); }

  absl::StatusOr<size_t> Read(char* to, size_t size) override {
    const size_t wanted = static_cast<size_t>(std::min<uint64_t>(size, file_bytes_ - at_));
    if (wanted == 0) return size_t{0};
    ssize_t got;
    do {
      got = pread(fd_, to, wanted, static_cast<off_t>(at_));
    } while (got < 0 && errno == EINTR);
    if (got < 0) return FileError("read", path_);
    // The file ended before the size that it had when it was listed. That is an error even if
    // CheckSize passes, because the file may have grown again since.
    if (got == 0 && has_size_) {
      RETURN_IF_ERROR(CheckSize());
      return absl::DataLossError(absl::StrCat(path_, " changed while byte ", at_, " was read"));
    }
    at_ += static_cast<uint64_t>(got);
    return static_cast<size_t>(got);
  }
  // DATA_LOSS if the file is smaller than when it was listed.
  absl::Status CheckSize() const {
    if (!has_size_) return absl::OkStatus();
    struct stat status;
    if (fstat(fd_, &status) != 0) return FileError("read", path_);
    if (static_cast<uint64_t>(status.st_size) >= file_bytes_) return absl::OkStatus();
    return absl::DataLossError(
        absl::StrCat(path_, " has ", status.st_size, " bytes but had ", file_bytes_,
                     " when the run began: files must not shrink during a run"));
  }
  uint64_t disk_bytes() const override { return at_ - from_; }

 private:
  const std::string path_;
  const int fd_;
  const uint64_t from_;
  const uint64_t file_bytes_;
  const bool has_size_;  // file_bytes_ is known
  uint64_t at_;
};

// Reads the compressed bytes of a file, chunk by chunk.
class CompressedInput {
 public:
  explicit CompressedInput(std::unique_ptr<ByteSource> file)
      : file_(std::move(file)), chunk_(kCompressedChunkBytes) {}

  // Reads the next chunk if the current one is used up. False at the end of the file.
  absl::StatusOr<bool> Fill() {
    if (used_ < size_) return true;
    ASSIGN_OR_RETURN(size_, file_->Read(chunk_.data(), chunk_.size()));
    used_ = 0;
    return size_ > 0;
  }
  const char* data() const { return chunk_.data() + used_; }
  size_t size() const { return size_ - used_; }
  void Use(size_t count) { used_ += count; }
  uint64_t offset() const { return file_->disk_bytes() - size(); }

 private:
  const std::unique_ptr<ByteSource> file_;
  std::vector<char> chunk_;
  size_t used_ = 0;
  size_t size_ = 0;
};

absl::Status Damaged(const std::string& path, uint64_t offset, absl::string_view what) {
  return absl::DataLossError(absl::StrCat(path, ": ", what, " at byte ", offset));
}

absl::Status NoMemory(const std::string& path) {
  return absl::ResourceExhaustedError(absl::StrCat(path, ": no memory to decompress it"));
}

// Reads gzip members one after another, as the gzip tool does. Zero bytes after a member are
// padding.
class GzipFile final : public ByteSource {
 public:
  GzipFile(std::string path, std::unique_ptr<ByteSource> file)
      : path_(std::move(path)), input_(std::move(file)) {
    std::memset(&inflater_, 0, sizeof(inflater_));
    CHECK(inflateInit2(&inflater_, 15 + 16) == Z_OK);  // 16: gzip's header and checksum
  }
  ~GzipFile() override { inflateEnd(&inflater_); }

  absl::StatusOr<size_t> Read(char* to, size_t size) override {
    while (true) {
      ASSIGN_OR_RETURN(const bool more, input_.Fill());
      if (!more) {
        if (inside_member_) return Damaged(path_, input_.offset(), "the gzip file ends early");
        return size_t{0};
      }
      if (!inside_member_ && between_members_ && *input_.data() == 0) {
        input_.Use(1);
        continue;
      }
      inside_member_ = true;
      ASSIGN_OR_RETURN(const size_t got, Inflate(to, size));
      if (got > 0) return got;
    }
  }
  uint64_t disk_bytes() const override { return input_.offset(); }

 private:
  // Returns the number of bytes written to `to`; 0 if all input was used up and gave no output.
  absl::StatusOr<size_t> Inflate(char* to, size_t size) {
    inflater_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(input_.data()));
    inflater_.avail_in = static_cast<uInt>(input_.size());
    inflater_.next_out = reinterpret_cast<Bytef*>(to);
    inflater_.avail_out = static_cast<uInt>(std::min<size_t>(size, 1 << 30));
    const uInt room = inflater_.avail_out;
    const int result = inflate(&inflater_, Z_NO_FLUSH);
    input_.Use(input_.size() - inflater_.avail_in);
    if (result == Z_STREAM_END) {
      CHECK(inflateReset(&inflater_) == Z_OK);
      inside_member_ = false;
      between_members_ = true;
    } else if (result == Z_MEM_ERROR) {
      return NoMemory(path_);
    } else if (result != Z_OK && result != Z_BUF_ERROR) {
      return Damaged(path_, input_.offset(), "the gzip file is damaged");
    }
    return static_cast<size_t>(room - inflater_.avail_out);
  }

  const std::string path_;
  CompressedInput input_;
  z_stream inflater_;
  bool inside_member_ = false;
  bool between_members_ = false;
};

class ZstdFile final : public ByteSource {
 public:
  ZstdFile(std::string path, std::unique_ptr<ByteSource> file)
      : path_(std::move(path)), input_(std::move(file)), decompressor_(ZSTD_createDStream()) {
    CHECK(decompressor_ != nullptr);
  }
  ~ZstdFile() override { ZSTD_freeDStream(decompressor_); }

  absl::StatusOr<size_t> Read(char* to, size_t size) override {
    while (true) {
      ASSIGN_OR_RETURN(const bool more, input_.Fill());
      if (!more && !inside_frame_) return size_t{0};
      ZSTD_inBuffer in = {input_.data(), input_.size(), 0};
      ZSTD_outBuffer out = {to, size, 0};
      const size_t result = ZSTD_decompressStream(decompressor_, &out, &in);
      input_.Use(in.pos);
      if (ZSTD_isError(result)) return Failed(ZSTD_getErrorCode(result));
      inside_frame_ = result != 0;
      if (out.pos > 0) return out.pos;
      // The input has ended, and the decompressor has no output left from earlier input.
      if (!more) return Damaged(path_, input_.offset(), "the zstd file ends early");
    }
  }
  uint64_t disk_bytes() const override { return input_.offset(); }

 private:
  absl::Status Failed(ZSTD_ErrorCode error) const {
    if (error == ZSTD_error_memory_allocation) return NoMemory(path_);
    if (error == ZSTD_error_dictionary_wrong) {
      return absl::InvalidArgumentError(absl::StrCat(
          path_, ": the zstd file was compressed with a dictionary; compress it without one"));
    }
    if (error == ZSTD_error_frameParameter_windowTooLarge) {
      return absl::InvalidArgumentError(
          absl::StrCat(path_, ": the zstd file needs a window of more than ",
                       (1 << kMaxZstdWindowLog) >> 20, " MiB, more than a loader gives to a file: ",
                       "compress it again with --long=", kMaxZstdWindowLog, " or less"));
    }
    return Damaged(path_, input_.offset(), "the zstd file is damaged");
  }

  const std::string path_;
  CompressedInput input_;
  ZSTD_DStream* const decompressor_;
  bool inside_frame_ = false;
};

// Reads bzip2 streams one after another, as pbzip2 writes them.
class Bzip2File final : public ByteSource {
 public:
  Bzip2File(std::string path, std::unique_ptr<ByteSource> file)
      : path_(std::move(path)), input_(std::move(file)) {}
  ~Bzip2File() override { EndStream(); }

  absl::StatusOr<size_t> Read(char* to, size_t size) override {
    while (true) {
      ASSIGN_OR_RETURN(const bool more, input_.Fill());
      if (!inside_stream_) {
        if (!more) return size_t{0};
        RETURN_IF_ERROR(BeginStream());
      }
      stream_.next_in = const_cast<char*>(input_.data());
      stream_.avail_in = static_cast<unsigned>(input_.size());
      stream_.next_out = to;
      stream_.avail_out = static_cast<unsigned>(std::min<size_t>(size, 1 << 30));
      const unsigned room = stream_.avail_out;
      const int result = BZ2_bzDecompress(&stream_);
      input_.Use(input_.size() - stream_.avail_in);
      const size_t got = room - stream_.avail_out;
      if (result == BZ_STREAM_END) {
        EndStream();
      } else if (result == BZ_MEM_ERROR) {
        return NoMemory(path_);
      } else if (result != BZ_OK) {
        return Damaged(path_, input_.offset(), "the bzip2 file is damaged");
      }
      if (got > 0) return got;
      // The input has ended, and the decompressor has no output left from earlier input.
      if (!more && inside_stream_) {
        return Damaged(path_, input_.offset(), "the bzip2 file ends early");
      }
    }
  }
  uint64_t disk_bytes() const override { return input_.offset(); }

 private:
  absl::Status BeginStream() {
    std::memset(&stream_, 0, sizeof(stream_));
    const int result = BZ2_bzDecompressInit(&stream_, 0, 0);
    if (result == BZ_MEM_ERROR) return NoMemory(path_);
    CHECK(result == BZ_OK) << result;
    inside_stream_ = true;
    return absl::OkStatus();
  }
  void EndStream() {
    if (inside_stream_) BZ2_bzDecompressEnd(&stream_);
    inside_stream_ = false;
  }

  const std::string path_;
  CompressedInput input_;
  bz_stream stream_;
  bool inside_stream_ = false;  // stream_ holds memory
};

// Reads xz streams one after another, and the padding between them.
class XzFile final : public ByteSource {
 public:
  XzFile(std::string path, std::unique_ptr<ByteSource> file)
      : path_(std::move(path)), input_(std::move(file)) {}
  ~XzFile() override { lzma_end(&stream_); }

  absl::StatusOr<size_t> Read(char* to, size_t size) override {
    if (!begun_) {
      const lzma_ret result =
          lzma_stream_decoder(&stream_, kMaxXzMemoryMib << 20, LZMA_CONCATENATED);
      if (result == LZMA_MEM_ERROR) return NoMemory(path_);
      CHECK(result == LZMA_OK) << result;
      begun_ = true;
    }
    while (!ended_) {
      ASSIGN_OR_RETURN(const bool more, input_.Fill());
      stream_.next_in = reinterpret_cast<const uint8_t*>(input_.data());
      stream_.avail_in = input_.size();
      stream_.next_out = reinterpret_cast<uint8_t*>(to);
      stream_.avail_out = size;
      const lzma_ret result = lzma_code(&stream_, more ? LZMA_RUN : LZMA_FINISH);
      input_.Use(input_.size() - stream_.avail_in);
      if (result == LZMA_STREAM_END) {
        ended_ = true;
      } else if (result != LZMA_OK) {
        return Failed(result);
      }
      if (stream_.avail_out < size) return size - stream_.avail_out;
    }
    return size_t{0};
  }
  uint64_t disk_bytes() const override { return input_.offset(); }

 private:
  absl::Status Failed(lzma_ret result) const {
    if (result == LZMA_MEM_ERROR) return NoMemory(path_);
    if (result == LZMA_MEMLIMIT_ERROR) {
      return absl::InvalidArgumentError(absl::StrCat(
          path_, ": the xz file takes ", (lzma_memusage(&stream_) + (1 << 20) - 1) >> 20,
          " MiB to decompress, more than the ", kMaxXzMemoryMib, " MiB that a loader gives to a ",
          "file: compress it again with a smaller dictionary, as of xz -9"));
    }
    const bool early = result == LZMA_BUF_ERROR;
    return Damaged(path_, input_.offset(),
                   early ? "the xz file ends early" : "the xz file is damaged");
  }

  const std::string path_;
  CompressedInput input_;
  lzma_stream stream_ = LZMA_STREAM_INIT;
  bool begun_ = false;
  bool ended_ = false;
};

}  // namespace

absl::StatusOr<std::unique_ptr<ByteSource>> OpenByteSource(const std::string& path,
                                                           Compression compression, uint64_t from,
                                                           uint64_t file_bytes) {
  CHECK(file_bytes == 0 || from <= file_bytes) << path;
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return FileError("read", path);
  auto file = std::make_unique<PlainFile>(path, fd, from, file_bytes);
  // Check the size here, because reading may not notice: a split can end before its file does, and
  // a compressed file that was cut off between two members looks complete.
  RETURN_IF_ERROR(file->CheckSize());
  switch (compression) {
    case Compression::kNone:
      break;
    case Compression::kGzip:
      CHECK(from == 0) << path;
      return std::make_unique<GzipFile>(path, std::move(file));
    case Compression::kZstd:
      CHECK(from == 0) << path;
      return std::make_unique<ZstdFile>(path, std::move(file));
    case Compression::kBzip2:
      CHECK(from == 0) << path;
      return std::make_unique<Bzip2File>(path, std::move(file));
    case Compression::kXz:
      CHECK(from == 0) << path;
      return std::make_unique<XzFile>(path, std::move(file));
  }
  return file;
}

}  // namespace satrap

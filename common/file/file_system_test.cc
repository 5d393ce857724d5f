#include "common/file/file_system.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/config/text_format.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

class DiskFileSystemTest : public testing::Test {
 protected:
  DiskFileSystemTest() { EXPECT_TRUE(MakeRoot(testing::TempDir())); }
  ~DiskFileSystemTest() override { EXPECT_TRUE(disk_->Remove(root_).ok()); }
  // Makes a new folder in `parent` and uses it as the test's root. Returns false if it cannot be
  // made.
  bool MakeRoot(const std::string& parent) {
    std::string pattern = parent + "/file_system_test_XXXXXX";
    if (mkdtemp(pattern.data()) == nullptr) return false;
    if (!root_.empty()) {
      EXPECT_TRUE(disk_->Remove(root_).ok());
    }
    root_ = pattern;
    return true;
  }
  std::string At(const std::string& name) const { return root_ + "/" + name; }
  void Write(const std::string& name, absl::string_view bytes) {
    auto file = disk_->Create(At(name));
    ASSERT_TRUE(file.ok()) << file.status();
    ASSERT_TRUE((*file)->Append(bytes).ok());
    ASSERT_TRUE((*file)->Sync().ok());
  }

  FileSystem* const disk_ = DiskFileSystem();
  std::string root_;
};

// The size of one write with which the disk file system bypasses the page cache, and the size of a
// page of that cache.
constexpr size_t kBufferBytes = size_t{1} << 20;
constexpr size_t kPageBytes = 4096;

std::string BytesOf(size_t size) {
  std::string bytes(size, '\0');
  uint32_t state = 1;
  for (char& byte : bytes) byte = static_cast<char>((state = state * 1664525 + 1013904223) >> 24);
  return bytes;
}

// For each page of a file, whether the page cache holds it.
std::vector<unsigned char> CachedPages(const std::string& path, size_t size) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  void* const map = mmap(nullptr, size, PROT_READ, MAP_SHARED, fd, 0);
  close(fd);
  EXPECT_NE(map, MAP_FAILED);
  std::vector<unsigned char> pages((size + kPageBytes - 1) / kPageBytes);
  EXPECT_EQ(mincore(map, size, pages.data()), 0);
  munmap(map, size);
  for (unsigned char& page : pages) page &= 1;
  return pages;
}

// Whether the file system of a folder accepts direct writes and keeps their bytes out of the page
// cache. tmpfs may accept them, but its files are always in that cache.
bool WritesPastTheCache(const std::string& folder) {
  const std::string path = folder + "/probe";
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_DIRECT, 0600);
  if (fd < 0) return false;
  alignas(kPageBytes) static const char page[kPageBytes] = {};
  const bool written = write(fd, page, kPageBytes) == static_cast<ssize_t>(kPageBytes);
  close(fd);
  const bool past = written && CachedPages(path, kPageBytes)[0] == 0;
  unlink(path.c_str());
  return past;
}

// Limits the size of the files that this process writes, until the end of the scope.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    EXPECT_EQ(getrlimit(RLIMIT_FSIZE, &before_), 0);
    handler_ = signal(SIGXFSZ, SIG_IGN);
    const rlimit limit = {bytes, before_.rlim_max};
    EXPECT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  }
  ~FileSizeLimit() {
    EXPECT_EQ(setrlimit(RLIMIT_FSIZE, &before_), 0);
    signal(SIGXFSZ, handler_);
  }

 private:
  rlimit before_ = {};
  sighandler_t handler_ = nullptr;
};

TEST_F(DiskFileSystemTest, ARenamedLinkReplacesTheOneBefore) {
  ASSERT_TRUE(disk_->CreateFolders(At("a/b")).ok());
  Write("a/file", "first");
  Write("a/b/file", "second");
  ASSERT_TRUE(disk_->CreateLink("a", At("link")).ok());
  EXPECT_EQ(*ReadWholeFile(At("link/file")), "first");
  ASSERT_TRUE(disk_->CreateLink("a/b", At("link.new")).ok());
  ASSERT_TRUE(disk_->Rename(At("link.new"), At("link")).ok());
  EXPECT_EQ(*ReadWholeFile(At("link/file")), "second");
  EXPECT_TRUE(disk_->SyncFolder(root_).ok());
}

TEST_F(DiskFileSystemTest, RemovesAFolderWithAllItHoldsAndALinkWithoutItsTarget) {
  ASSERT_TRUE(disk_->CreateFolders(At("a/b")).ok());
  Write("a/b/file", "bytes");
  ASSERT_TRUE(disk_->CreateLink("a", At("link")).ok());
  EXPECT_EQ(disk_->List(root_)->size(), 2u);
  ASSERT_TRUE(disk_->Remove(At("link")).ok());
  EXPECT_EQ(*ReadWholeFile(At("a/b/file")), "bytes");
  ASSERT_TRUE(disk_->Remove(At("a")).ok());
  EXPECT_TRUE(disk_->List(root_)->empty());
  EXPECT_TRUE(disk_->Remove(At("a")).ok()) << "of what is not there";
}

TEST_F(DiskFileSystemTest, ErrorsNameThePath) {
  for (const absl::Status& status :
       {disk_->SyncFolder(At("none")), disk_->List(At("none")).status(),
        disk_->Create(At("none/file")).status(), disk_->Rename(At("none"), At("other"))}) {
    EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
    EXPECT_NE(status.message().find(root_), absl::string_view::npos) << status;
  }
  ASSERT_TRUE(disk_->CreateFolders(At("a")).ok());
  EXPECT_EQ(disk_->CreateLink("b", At("a")).code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(DiskFileSystemTest, AFileOfAnySizeHoldsWhatWasAppendedInPiecesOfAnySize) {
  for (const size_t size : {size_t{0}, size_t{1}, kPageBytes, kBufferBytes - 1, kBufferBytes,
                            kBufferBytes + 1, 2 * kBufferBytes + 512, 3 * kBufferBytes + 777}) {
    const std::string bytes = BytesOf(size);
    for (const size_t piece : {size_t{1001}, size_t{300000}, 5 * kBufferBytes}) {
      auto file = disk_->Create(At("file"));
      ASSERT_TRUE(file.ok()) << file.status();
      for (size_t from = 0; from < size; from += piece) {
        ASSERT_TRUE((*file)->Append(absl::string_view(bytes).substr(from, piece)).ok());
      }
      ASSERT_TRUE((*file)->Sync().ok());
      EXPECT_TRUE(*ReadWholeFile(At("file")) == bytes) << size << " in pieces of " << piece;
    }
  }
}

TEST_F(DiskFileSystemTest, BytesMayFollowASync) {
  const std::string bytes = BytesOf(5 * kBufferBytes);
  for (const size_t synced : {size_t{100}, kBufferBytes, kBufferBytes + 100}) {
    auto file = disk_->Create(At("file"));
    ASSERT_TRUE((*file)->Append(absl::string_view(bytes).substr(0, synced)).ok());
    ASSERT_TRUE((*file)->Sync().ok());
    EXPECT_TRUE(*ReadWholeFile(At("file")) == bytes.substr(0, synced)) << synced;
    ASSERT_TRUE((*file)->Append(absl::string_view(bytes).substr(synced)).ok());
    ASSERT_TRUE((*file)->Sync().ok());
    EXPECT_TRUE(*ReadWholeFile(At("file")) == bytes) << synced;
  }
}

TEST_F(DiskFileSystemTest, AFileThatIsClosedWithoutASyncHoldsAllBytes) {
  const std::string bytes = BytesOf(kBufferBytes + 777);
  ASSERT_TRUE((*disk_->Create(At("file")))->Append(bytes).ok());
  EXPECT_TRUE(*ReadWholeFile(At("file")) == bytes);
}

TEST_F(DiskFileSystemTest, ALargeFileGoesPastThePageCacheButForItsEnd) {
  // Tries other folders, too, because the folder of temporary files may be in memory.
  bool found = WritesPastTheCache(root_);
  for (const char* const parent : {".", "/var/tmp"}) {
    if (!found) found = MakeRoot(parent) && WritesPastTheCache(root_);
  }
  if (!found) {
    printf(
        "skipped: neither %s nor the working folder nor /var/tmp is on a disk that takes direct "
        "writes\n",
        testing::TempDir().c_str());
    GTEST_SKIP();
  }
  const size_t size = 3 * kBufferBytes + 777;
  Write("file", BytesOf(size));
  const std::vector<unsigned char> pages = CachedPages(At("file"), size);
  EXPECT_EQ(std::count(pages.begin(), pages.end(), 1), 1);
  EXPECT_EQ(pages.back(), 1);
}

TEST_F(DiskFileSystemTest, WhatKnowsNoDirectWritesGetsOrdinaryOnes) {
  const std::string bytes = BytesOf(3 * kBufferBytes);
  EXPECT_TRUE((*disk_->Create("/dev/null"))->Append(bytes).ok());
  const absl::Status full = (*disk_->Create("/dev/full"))->Append(bytes);
  EXPECT_EQ(full.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(full.message(), "cannot write /dev/full: No space left on device");
}

TEST_F(DiskFileSystemTest, ALimitOfFileSizesIsAFullDisk) {
  const std::string bytes = BytesOf(3 * kBufferBytes + 777);
  // The limits lie in the last bytes of the file, between two direct writes, within a direct write,
  // within a block of the disk, and below the size of one buffer.
  for (const size_t limit : {3 * kBufferBytes + 100, 2 * kBufferBytes, kBufferBytes + kPageBytes,
                             kBufferBytes + 100, size_t{100}}) {
    auto file = disk_->Create(At("file"));
    const FileSizeLimit limited(limit);
    absl::Status status = (*file)->Append(bytes);
    if (status.ok()) status = (*file)->Sync();
    EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << limit;
    EXPECT_EQ(status.message(), "cannot write " + At("file") + ": File too large");
    file->reset();
    EXPECT_TRUE(*ReadWholeFile(At("file")) == bytes.substr(0, limit)) << limit;
  }
}

TEST_F(DiskFileSystemTest, AReaderSkipsWhatItIsToldAndNothingIsLeftAfterTheEnd) {
  const std::string content = BytesOf(200000);
  Write("file", content);
  // Passes on Read but not Skip, so that the default implementation of Skip, which reads, is
  // tested, too.
  struct Plain final : ReadableFile {
    explicit Plain(std::unique_ptr<ReadableFile> file) : file(std::move(file)) {}
    uint64_t size_bytes() const override { return file->size_bytes(); }
    absl::StatusOr<size_t> Read(absl::Span<char> bytes) override { return file->Read(bytes); }
    const std::unique_ptr<ReadableFile> file;
  };
  for (const bool plain : {false, true}) {
    std::unique_ptr<ReadableFile> file = *disk_->Open(At("file"));
    if (plain) file = std::make_unique<Plain>(std::move(file));
    std::string bytes(10, '\0');
    ASSERT_TRUE(file->Skip(150000).ok());
    EXPECT_EQ(*file->Read(absl::MakeSpan(bytes)), 10u);
    EXPECT_EQ(bytes, content.substr(150000, 10));
    ASSERT_TRUE(file->Skip(5).ok());
    EXPECT_EQ(*file->Read(absl::MakeSpan(bytes)), 10u);
    EXPECT_EQ(bytes, content.substr(150015, 10));
    ASSERT_TRUE(file->Skip(1000000).ok());
    EXPECT_EQ(*file->Read(absl::MakeSpan(bytes)), 0u);
  }
}

}  // namespace
}  // namespace satrap

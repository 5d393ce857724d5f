#include "data_loader/source/run_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "absl/cleanup/cleanup.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/config/candidates.h"
#include "common/file/file_error.h"
#include "common/numeric/hash.h"
#include "data_loader/source/split_list.h"

namespace satrap {
namespace {

constexpr uint64_t kHashedBytes = 64 << 10;
constexpr uint64_t kItemBlockBytes = 1 << 20;

// Reads the bytes [from, to) of a file and appends them.
absl::Status ReadRange(const std::string& path, int fd, uint64_t from, uint64_t to,
                       std::string* bytes) {
  size_t at = bytes->size();
  bytes->resize(at + (to - from));
  while (from < to) {
    const ssize_t got = pread(fd, &(*bytes)[at], to - from, static_cast<off_t>(from));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return FileError("read", path);
    if (got == 0) return absl::OutOfRangeError(absl::StrCat(path, " ends at byte ", from));
    from += static_cast<uint64_t>(got);
    at += static_cast<size_t>(got);
  }
  return absl::OkStatus();
}

// Hashes of the content of files. The key is KeyOf, which is equal for the same file in two lists.
using HashByPath = absl::flat_hash_map<std::string, uint64_t>;

std::string KeyOf(const FileIdentity& file) { return absl::StrCat(file.bytes(), " ", file.path()); }

absl::Status Changed(const std::string& path, const FileIdentity& was, absl::string_view is) {
  return absl::FailedPreconditionError(
      absl::StrCat(path, " has changed since the run began: it had ", was.bytes(),
                   " bytes and hash ", absl::Hex(was.content(), absl::kZeroPad16), ", and now ", is,
                   ". Put the file back as it was to continue, or begin a new run"));
}

absl::Status CheckFile(const std::string& path, const FileIdentity& was) {
  struct stat status;
  if (stat(path.c_str(), &status) != 0) {
    if (errno == ENOENT || errno == ENOTDIR) return Changed(path, was, "it is not there");
    return FileError("read", path);
  }
  if (static_cast<uint64_t>(status.st_size) < was.bytes()) {
    return Changed(path, was, absl::StrCat("it has ", status.st_size, " bytes"));
  }
  const absl::StatusOr<uint64_t> content = ContentHash(path, was.bytes());
  if (absl::IsOutOfRange(content.status())) return Changed(path, was, "it is being shortened");
  RETURN_IF_ERROR(content.status());
  if (*content == was.content()) return absl::OkStatus();
  return Changed(path, was,
                 absl::StrCat("it has ", status.st_size, " bytes and, up to the old size, hash ",
                              absl::Hex(*content, absl::kZeroPad16)));
}

// The identity of the file of items. Its hash is the XXH64 of the hashes of its MiBs, in order, so
// the hash also changes if an item in the middle is replaced.
absl::StatusOr<FileIdentity> IdentityOfItems(const JobConfig& job) {
  FileIdentity identity;
  identity.set_path(job.model().candidates().list());
  const std::string path = PathOf(job, identity);
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return FileError("read", path);
  const absl::Cleanup close_file = [fd] { close(fd); };
  struct stat status;
  if (fstat(fd, &status) != 0) return FileError("read", path);
  const uint64_t size = static_cast<uint64_t>(status.st_size);
  std::string hashes;
  for (uint64_t from = 0; from < size; from += kItemBlockBytes) {
    std::string block;
    RETURN_IF_ERROR(ReadRange(path, fd, from, std::min(size, from + kItemBlockBytes), &block));
    absl::StrAppend(&hashes, absl::Hex(Xxh64(block), absl::kZeroPad16));
  }
  identity.set_bytes(size);
  identity.set_content(Xxh64(hashes));
  return identity;
}

}  // namespace

absl::StatusOr<uint64_t> ContentHash(const std::string& path, uint64_t bytes) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return FileError("read", path);
  const uint64_t head_end = std::min(bytes, kHashedBytes);
  const uint64_t tail_begin = std::max(head_end, bytes - std::min(bytes, kHashedBytes));
  std::string hashed;
  absl::Status status = ReadRange(path, fd, 0, head_end, &hashed);
  if (status.ok()) status = ReadRange(path, fd, tail_begin, bytes, &hashed);
  close(fd);
  if (!status.ok()) return status;
  return Xxh64(hashed);
}

absl::StatusOr<SplitList> ListRunFiles(const JobConfig& job) {
  SplitList list;
  HashByPath hashes;
  for (const Stream stream : {TRAIN_STREAM, VALID_STREAM, TEST_STREAM}) {
    if (job.action() != JobConfig::TRAIN && stream != TEST_STREAM) continue;
    ASSIGN_OR_RETURN(StreamFiles files, ListFiles(job, stream));
    for (FileIdentity& file : *files.mutable_files()) {
      const auto [hash, is_new] = hashes.try_emplace(KeyOf(file), 0);
      if (is_new) {
        ASSIGN_OR_RETURN(hash->second, ContentHash(PathOf(job, file), file.bytes()));
      }
      file.set_content(hash->second);
    }
    *list.add_streams() = std::move(files);
  }
  if (NeedsCandidateList(job) && !job.model().candidates().list().empty()) {
    absl::StatusOr<FileIdentity> items = IdentityOfItems(job);
    if (items.ok()) *list.mutable_candidates() = *std::move(items);
  }
  return list;
}

absl::Status CheckItemFile(const JobConfig& job, const FileIdentity& was) {
  const absl::StatusOr<FileIdentity> is = IdentityOfItems(job);
  const std::string path = PathOf(job, was);
  if (absl::IsNotFound(is.status())) return Changed(path, was, "it is not there");
  RETURN_IF_ERROR(is.status());
  if (is->bytes() == was.bytes() && is->content() == was.content()) return absl::OkStatus();
  return Changed(path, was,
                 absl::StrCat("it has ", is->bytes(), " bytes and hash ",
                              absl::Hex(is->content(), absl::kZeroPad16)));
}

absl::Status CheckRunFiles(const JobConfig& job, const SplitList& fixed, const SplitList& listed) {
  HashByPath known;
  for (const StreamFiles& stream : listed.streams()) {
    for (const FileIdentity& file : stream.files()) known[KeyOf(file)] = file.content();
  }
  for (const StreamFiles& stream : fixed.streams()) {
    for (const FileIdentity& file : stream.files()) {
      const auto found = known.find(KeyOf(file));
      if (found != known.end() && found->second == file.content()) continue;
      RETURN_IF_ERROR(CheckFile(PathOf(job, file), file));
    }
  }
  return absl::OkStatus();
}

}  // namespace satrap

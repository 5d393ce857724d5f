#include "data_loader/source/split_list.h"

#include <glob.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"
#include "common/file/file_error.h"

namespace satrap {
namespace {

// The prefix with which a path or pattern of the job is opened: nothing, or data_root and a slash.
std::string FolderOf(const JobConfig& job, const std::string& path) {
  const bool absolute = !path.empty() && path[0] == '/';
  return absolute || job.data_root().empty() ? "" : job.data_root() + "/";
}

// The paths that match `pattern`, sorted by name. `field` is the job's field with the pattern, for
// error messages.
absl::StatusOr<std::vector<std::string>> Match(const std::string& pattern,
                                               const std::string& folder, const char* field) {
  glob_t found;
  std::memset(&found, 0, sizeof(found));
  const int error = glob((GlobOf(folder) + pattern).c_str(), GLOB_NOSORT, nullptr, &found);
  std::vector<std::string> paths(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  globfree(&found);
  if (error == GLOB_NOSPACE) return absl::ResourceExhaustedError("no memory to list files");
  if (paths.empty()) {
    return absl::NotFoundError(absl::StrCat(field, ": no file matches ", folder, pattern));
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

// Appends the file, with its size, to `*files`.
absl::Status AppendFile(const std::string& opened_path, std::string path, StreamFiles* files) {
  struct stat status;
  if (stat(opened_path.c_str(), &status) != 0) return FileError("read", opened_path);
  if (!S_ISREG(status.st_mode)) {
    return absl::InvalidArgumentError(absl::StrCat(opened_path, " is not a regular file"));
  }
  if (access(opened_path.c_str(), R_OK) != 0) return FileError("read", opened_path);
  FileIdentity* file = files->add_files();
  file->set_path(std::move(path));
  file->set_bytes(static_cast<uint64_t>(status.st_size));
  return absl::OkStatus();
}

std::vector<Split> SyntheticSplits(const JobConfig& job, Stream stream) {
  const DataConfig& data = job.data();
  const uint64_t rows = SyntheticRows(data.synthetic(), stream);
  uint64_t step = static_cast<uint64_t>(data.split_rows());
  if (data.synthetic().cycle_batches() > 0) {
    // The batches that are kept in memory begin at multiples of the batch size, so splits must,
    // too.
    const uint64_t batch = static_cast<uint64_t>(job.global_batch_size());
    step = std::max<uint64_t>(1, step / batch) * batch;
  }
  std::vector<Split> splits;
  for (uint64_t from = 0; from < rows; from += step) {
    splits.push_back(Split{"", Compression::kNone, from, std::min(rows, from + step)});
  }
  return splits;
}

}  // namespace

std::string GlobOf(const std::string& name) {
  std::string glob;
  for (const char c : name) {
    if (std::strchr("*?[]\\", c) != nullptr) glob += '\\';
    glob += c;
  }
  return glob;
}

bool IsSeededStream(const DataConfig& data, Stream stream) {
  if (data.has_synthetic()) return false;
  switch (stream) {
    case TRAIN_STREAM:
      return false;
    case VALID_STREAM:
      return data.valid_files_size() == 0 && data.seeded_split().valid_fraction() > 0;
    case TEST_STREAM:
      return data.test_files_size() == 0 && data.seeded_split().test_fraction() > 0;
  }
  return false;
}

absl::StatusOr<StreamFiles> ListFiles(const JobConfig& job, Stream stream) {
  const DataConfig& data = job.data();
  StreamFiles files;
  files.set_stream(stream);
  if (data.has_synthetic()) return files;
  const auto* patterns = &data.train_files();
  const char* field = "data.train_files";
  if (!IsSeededStream(data, stream) && stream == VALID_STREAM) {
    patterns = &data.valid_files();
    field = "data.valid_files";
  } else if (!IsSeededStream(data, stream) && stream == TEST_STREAM) {
    patterns = &data.test_files();
    field = "data.test_files";
  }
  absl::flat_hash_set<std::string> seen;
  for (const std::string& pattern : *patterns) {
    const std::string folder = FolderOf(job, pattern);
    ASSIGN_OR_RETURN(const std::vector<std::string> paths, Match(pattern, folder, field));
    for (const std::string& path : paths) {
      if (!seen.insert(path).second) continue;
      RETURN_IF_ERROR(AppendFile(path, path.substr(folder.size()), &files));
    }
  }
  return files;
}

std::string PathOf(const JobConfig& job, const FileIdentity& file) {
  return absl::StrCat(FolderOf(job, file.path()), file.path());
}

absl::StatusOr<std::vector<Split>> SplitsOf(const JobConfig& job, Stream stream,
                                            const StreamFiles& files) {
  const DataConfig& data = job.data();
  if (data.has_synthetic()) return SyntheticSplits(job, stream);
  // Do not split files with csv.multiline: whether a line end is within quotes is known only to a
  // reader that has read the file from its beginning.
  const uint64_t split_bytes =
      data.csv().multiline() ? 0 : static_cast<uint64_t>(data.split_bytes());
  std::vector<Split> splits;
  for (const FileIdentity& file : files.files()) {
    const std::string path = PathOf(job, file);
    ASSIGN_OR_RETURN(const Compression compression, SniffFile(path));
    const bool whole = split_bytes == 0 || compression != Compression::kNone;
    const uint64_t size = file.bytes();
    const uint64_t step = whole ? size : split_bytes;
    for (uint64_t from = 0; from < size; from += step) {
      splits.push_back(Split{path, compression, from, std::min(size, from + step), size});
    }
  }
  return splits;
}

absl::StatusOr<std::vector<Split>> ListSplits(const JobConfig& job, Stream stream) {
  ASSIGN_OR_RETURN(const StreamFiles files, ListFiles(job, stream));
  return SplitsOf(job, stream, files);
}

absl::Status CheckFilesOfJob(const JobConfig& job) {
  // A synthetic log has no files, and may have too many splits to list them only for this check.
  if (job.data().has_synthetic()) return absl::OkStatus();
  std::vector<Stream> streams = {TEST_STREAM};
  if (job.action() == JobConfig::TRAIN) streams = {TRAIN_STREAM, VALID_STREAM, TEST_STREAM};
  std::vector<std::string> problems;
  for (const Stream stream : streams) {
    const absl::Status status = ListSplits(job, stream).status();
    if (status.ok()) continue;
    if (!absl::IsNotFound(status) && !absl::IsInvalidArgument(status) &&
        !absl::IsPermissionDenied(status)) {
      return status;
    }
    // Streams that share files have the same problem; report it once.
    std::string problem(status.message());
    if (std::find(problems.begin(), problems.end(), problem) == problems.end()) {
      problems.push_back(std::move(problem));
    }
  }
  if (problems.empty()) return absl::OkStatus();
  return absl::NotFoundError(absl::StrJoin(problems, "\n"));
}

uint64_t SyntheticRows(const SyntheticFormat& synthetic, Stream stream) {
  switch (stream) {
    case TRAIN_STREAM:
      return static_cast<uint64_t>(synthetic.train_samples());
    case VALID_STREAM:
      return static_cast<uint64_t>(synthetic.valid_samples());
    case TEST_STREAM:
      return static_cast<uint64_t>(synthetic.test_samples());
  }
  return 0;
}

}  // namespace satrap

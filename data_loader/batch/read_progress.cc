#include "data_loader/batch/read_progress.h"

#include <sys/stat.h>

#include <cerrno>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "common/status_macros.h"

namespace satrap {
namespace {

constexpr uint64_t kMinRecordsForFraction = 10000;
constexpr uint64_t kLoggedAtFirst = 10;

absl::string_view StreamName(Stream stream) {
  if (stream == TRAIN_STREAM) return "train";
  return stream == VALID_STREAM ? "valid" : "test";
}

std::string PathIn(const ReadProgress::Options& options, absl::string_view suffix) {
  return absl::StrCat(options.quarantine_dir, "/loader-", options.loader_index, suffix);
}

// The first ten, then those whose count is a power of two.
bool IsLogged(uint64_t count) { return count <= kLoggedAtFirst || (count & (count - 1)) == 0; }

absl::Status Write(FILE* file, absl::string_view text, const std::string& path) {
  // Flushed at once: bad records are rare, and a process that is killed must not lose them.
  if (std::fwrite(text.data(), 1, text.size(), file) != text.size() || std::fflush(file) != 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot write ", path));
  }
  return absl::OkStatus();
}

}  // namespace

ReadProgress::ReadProgress(Options options) : options_(std::move(options)) {}

ReadProgress::~ReadProgress() {
  if (lines_ != nullptr) std::fclose(lines_);
  if (places_ != nullptr) std::fclose(places_);
}

void ReadProgress::Add(Stream stream, const ReadCounts& counts) {
  MutexLock lock(&mutex_);
  ReadCounts& sum = counts_[stream].read;
  sum.records += counts.records;
  sum.scanned += counts.scanned;
  sum.empty_lines += counts.empty_lines;
  sum.comments += counts.comments;
  sum.disk_bytes += counts.disk_bytes;
}

absl::Status ReadProgress::AddBad(const BadLine& bad) {
  MutexLock lock(&mutex_);
  ++bad_;
  Counts& counts = counts_[bad.stream];
  ++counts.bad;
  if (options_.log && IsLogged(bad_)) {
    options_.log(absl::StrCat("bad record: ", bad.path, " byte ", bad.offset, " line ", bad.line,
                              ": ", bad.reason, " (", bad_, " so far)"));
  }
  RETURN_IF_ERROR(Keep(bad));
  if (counts.read.scanned + counts.bad < kMinRecordsForFraction) return absl::OkStatus();
  return CheckFraction(bad.stream);
}

absl::Status ReadProgress::Keep(const BadLine& bad) {
  if (options_.quarantine_dir.empty()) return absl::OkStatus();
  const std::string lines_path = PathIn(options_, ".txt");
  const std::string places_path = PathIn(options_, ".tsv");
  if (lines_ == nullptr) {
    if (mkdir(options_.quarantine_dir.c_str(), 0755) != 0 && errno != EEXIST) {
      return absl::ErrnoToStatus(errno, absl::StrCat("cannot make ", options_.quarantine_dir));
    }
    lines_ = std::fopen(lines_path.c_str(), "we");
    if (lines_ != nullptr) places_ = std::fopen(places_path.c_str(), "we");
    if (places_ == nullptr) {
      return absl::ErrnoToStatus(errno, absl::StrCat("cannot write ", lines_path));
    }
  }
  RETURN_IF_ERROR(Write(lines_, absl::StrCat(bad.text, "\n"), lines_path));
  return Write(places_,
               absl::StrCat(bad.path, "\t", bad.offset, "\t", bad.line, "\t",
                            StreamName(bad.stream), "\t", bad.reason, "\n"),
               places_path);
}

absl::Status ReadProgress::CheckBadFraction(Stream stream) const {
  MutexLock lock(&mutex_);
  return CheckFraction(stream);
}

absl::Status ReadProgress::CheckFraction(Stream stream) const {
  const Counts& counts = counts_[stream];
  const uint64_t all = counts.read.scanned + counts.bad;
  if (static_cast<double>(counts.bad) <= options_.max_bad_fraction * static_cast<double>(all)) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(absl::StrCat(
      counts.bad, " of ", all, " records of the ", StreamName(stream),
      " stream are bad, more than data.max_bad_fraction (", options_.max_bad_fraction, ")",
      options_.quarantine_dir.empty() ? "" : absl::StrCat("; see ", PathIn(options_, ".tsv"))));
}

LoaderProgress ReadProgress::Snapshot() const {
  MutexLock lock(&mutex_);
  LoaderProgress progress;
  uint64_t records = 0, empty = 0, bytes = 0;
  for (const Counts& counts : counts_) {
    records += counts.read.records;
    empty += counts.read.empty_lines;
    bytes += counts.read.disk_bytes;
  }
  progress.set_records(records);
  progress.set_quarantined(bad_);
  progress.set_empty_lines(empty);
  progress.set_bytes(bytes);
  if (lines_ != nullptr) progress.set_quarantine_file(PathIn(options_, ".txt"));
  const ReadCounts& train = counts_[TRAIN_STREAM].read;
  uint64_t expected = options_.train_rows;
  if (expected == 0 && train.disk_bytes > 0) {
    expected = static_cast<uint64_t>(static_cast<double>(options_.train_disk_bytes) *
                                     static_cast<double>(train.records) /
                                     static_cast<double>(train.disk_bytes));
  }
  progress.set_expected_train_samples(expected);
  return progress;
}

uint64_t ReadProgress::quarantined() const {
  MutexLock lock(&mutex_);
  return bad_;
}

}  // namespace satrap

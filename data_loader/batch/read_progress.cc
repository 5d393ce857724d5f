#include "data_loader/batch/read_progress.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "common/file/file_error.h"
#include "common/file/quarantine_name.h"

namespace satrap {
namespace {

constexpr uint64_t kMinRecordsForFraction = 10000;
constexpr uint64_t kLoggedAtFirst = 10;

absl::string_view StreamName(Stream stream) {
  if (stream == TRAIN_STREAM) return "train";
  return stream == VALID_STREAM ? "valid" : "test";
}

std::string PathIn(const ReadProgress::Options& options, absl::string_view suffix) {
  return absl::StrCat(options.quarantine_dir, "/",
                      QuarantineName(options.generation, options.loader_index), suffix);
}

// Escapes tabs and newlines in a path, so that it is one field of one line.
std::string OneField(absl::string_view path) {
  return absl::StrReplaceAll(path, {{"\t", "\\t"}, {"\n", "\\n"}});
}

// Turns a record that may span lines into one line, from which the record can be restored.
std::string OneLine(absl::string_view record) {
  return absl::StrReplaceAll(record, {{"\\", "\\\\"}, {"\n", "\\n"}, {"\r", "\\r"}});
}

const char* Unit(const BadLine& bad) { return bad.is_message ? "offset" : "byte"; }

// Whether to log bad record number `count`: the first ten are logged, then each power of two.
bool IsLogged(uint64_t count) { return count <= kLoggedAtFirst || (count & (count - 1)) == 0; }

absl::StatusOr<FILE*> Create(const std::string& path) {
  FILE* file = std::fopen(path.c_str(), "we");
  if (file == nullptr) return FileError("write", path);
  return file;
}

absl::Status Write(FILE* file, absl::string_view text, const std::string& path) {
  // Flush after each record. Bad records are rare, and none must be lost if this process is killed.
  if (std::fwrite(text.data(), 1, text.size(), file) != text.size() || std::fflush(file) != 0) {
    return FileError("write", path);
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
  sum.skipped += counts.skipped;
}

absl::Status ReadProgress::AddBad(const BadLine& bad) {
  uint64_t count;
  absl::Status too_many;
  {
    MutexLock lock(&mutex_);
    count = ++bad_;
    Counts& counts = counts_[bad.stream];
    if (++counts.bad == 1) {
      counts.first_bad =
          absl::StrCat(OneField(bad.path), ", ", Unit(bad), " ", bad.offset, ": ", bad.reason);
      counts.dead_letter_topic = std::string(bad.dead_letter_topic);
    }
    if (GoodOf(bad.stream) + BadOf(bad.stream) >= kMinRecordsForFraction) {
      too_many = CheckFraction(bad.stream);
    }
  }
  if (options_.log && IsLogged(count)) {
    options_.log(absl::StrCat("bad record: ", bad.path, " ", Unit(bad), " ", bad.offset, " line ",
                              bad.line, ": ", bad.reason, " (", count, " so far)"));
  }
  // Also keep the record that exceeds the limit, because the error message names the quarantine
  // file.
  RETURN_IF_ERROR(Keep(bad));
  return too_many;
}

void ReadProgress::AddReader(Stream stream) {
  MutexLock lock(&mutex_);
  ++counts_[stream].readers;
}

absl::Status ReadProgress::EndReader(Stream stream) {
  MutexLock lock(&mutex_);
  CHECK(counts_[stream].readers > 0);
  if (--counts_[stream].readers > 0) return absl::OkStatus();
  return CheckFraction(stream);
}

absl::Status ReadProgress::Keep(const BadLine& bad) {
  if (options_.quarantine_dir.empty() || !bad.dead_letter_topic.empty()) return absl::OkStatus();
  const std::string lines_path = PathIn(options_, ".txt");
  const std::string places_path = PathIn(options_, ".tsv");
  MutexLock files_lock(&files_mutex_);
  if (lines_ == nullptr) {
    if (mkdir(options_.quarantine_dir.c_str(), 0755) != 0 && errno != EEXIST) {
      return FileError("make", options_.quarantine_dir);
    }
    // If an earlier call failed at the second Create, the first file is already open: keep it.
    if (places_ == nullptr) {
      ASSIGN_OR_RETURN(places_, Create(places_path));
    }
    ASSIGN_OR_RETURN(lines_, Create(lines_path));
    MutexLock lock(&mutex_);
    keeps_lines_ = true;
  }
  const std::string line = bad.multiline ? OneLine(bad.text) : std::string(bad.text);
  RETURN_IF_ERROR(Write(lines_, absl::StrCat(line, "\n"), lines_path));
  return Write(places_,
               absl::StrCat(OneField(bad.path), "\t", bad.offset, "\t", bad.line, "\t",
                            StreamName(bad.stream), "\t", bad.reason, "\t", bad.split, "\t",
                            bad.block, "\t", bad.index, "\n"),
               places_path);
}

absl::Status ReadProgress::CheckFraction(Stream stream) const {
  const Counts& counts = counts_[stream];
  const uint64_t bad = BadOf(stream);
  const uint64_t all = GoodOf(stream) + bad;
  if (static_cast<double>(bad) <= options_.max_bad_fraction * static_cast<double>(all)) {
    return absl::OkStatus();
  }
  std::string where;
  if (!counts.dead_letter_topic.empty()) {
    where = absl::StrCat("; see the topic ", counts.dead_letter_topic);
  } else if (!options_.quarantine_dir.empty()) {
    where = absl::StrCat("; see ", PathIn(options_, ".tsv"));
  }
  return absl::FailedPreconditionError(
      absl::StrCat(bad, " of ", all, " records of the ", StreamName(stream),
                   " stream are bad, more than data.max_bad_fraction (", options_.max_bad_fraction,
                   ")", where, "; the first: ", counts.first_bad));
}

// Records that were read again and left out are subtracted, because consumed_records counts them.
uint64_t ReadProgress::GoodOf(Stream stream) const {
  const ReadCounts& read = counts_[stream].read;
  if (stream != TRAIN_STREAM) return read.scanned;
  return read.scanned + options_.consumed_records - std::min(read.scanned, read.skipped);
}

uint64_t ReadProgress::BadOf(Stream stream) const {
  return counts_[stream].bad + (stream == TRAIN_STREAM ? options_.consumed_bad_records : 0);
}

LoaderProgress ReadProgress::Snapshot() const {
  MutexLock lock(&mutex_);
  LoaderProgress progress;
  uint64_t records = 0, empty = 0, bytes = 0;
  const Counts& valid = counts_[VALID_STREAM];
  const Counts& test = counts_[TEST_STREAM];
  for (const Counts& counts : counts_) {
    records += counts.read.records;
    empty += counts.read.empty_lines;
    bytes += counts.read.disk_bytes;
  }
  progress.set_records(records);
  progress.set_quarantined(bad_);
  progress.set_empty_lines(empty);
  progress.set_evaluation_quarantined(valid.bad + test.bad);
  progress.set_evaluation_empty_lines(valid.read.empty_lines + test.read.empty_lines);
  progress.set_bytes(bytes);
  if (keeps_lines_) progress.set_quarantine_file(PathIn(options_, ".txt"));
  const ReadCounts& train = counts_[TRAIN_STREAM].read;
  uint64_t expected = options_.train_rows;
  // Estimate: the records per byte read so far, times the bytes of all files.
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

uint64_t ReadProgress::skipped() const {
  MutexLock lock(&mutex_);
  uint64_t skipped = 0;
  for (const Counts& counts : counts_) skipped += counts.read.skipped;
  return skipped;
}

}  // namespace satrap

#include "embedding_ps/checkpoint/cut_writer.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"

namespace satrap {
namespace {

// Small enough that a block of short rows stays in a core's cache while it is gathered, checksummed
// and written.
constexpr size_t kRowsPerBlock = 2048;

// The number is limited, because a process cannot open many files at once, and because the last
// megabyte of each unsynced file may stay in memory.
constexpr size_t kMaxUnsyncedFiles = 64;

// The approximate minimum size of a file that several ranges share. It avoids many small files,
// because each file costs a sync.
constexpr uint64_t kSharedFileBytes = uint64_t{4} << 20;

// Joins the parts of all files into one list. Files are ordered by their first parts.
std::vector<SavedFile> InOrder(std::vector<std::vector<SavedFile>> files) {
  const auto place = [](const std::vector<SavedFile>& parts) {
    return std::make_tuple(parts[0].table(), parts[0].first_partition(), parts[0].name());
  };
  std::sort(files.begin(), files.end(),
            [&](const auto& a, const auto& b) { return place(a) < place(b); });
  std::vector<SavedFile> all;
  for (std::vector<SavedFile>& parts : files) {
    for (SavedFile& part : parts) all.push_back(std::move(part));
  }
  return all;
}

}  // namespace

struct CutWriter::Work {
  const File* plan = nullptr;           // null: no file is being written
  size_t nth_range = 0;                 // in plan->ranges
  int partition = 0;                    // where the next block begins
  bool part_begun = false;              // for the range
  std::unique_ptr<RowFileWriter> file;  // null until a range has rows
  std::vector<uint64_t> keys;           // room for a block; num_rows of them are gathered
  std::vector<float> rows;
  size_t num_rows = 0;
  std::unique_ptr<RowFileWriter> unsynced;  // complete, still to be made durable

  const Range& range() const { return plan->ranges[nth_range]; }
};

std::shared_ptr<CutWriter> CutWriter::Mark(const Options& options) {
  return std::shared_ptr<CutWriter>(new CutWriter(options));
}

CutWriter::CutWriter(const Options& options)
    : options_(options),
      budget_(std::make_shared<CopyBudget>(options.copy_bytes)),
      begun_us_(options.executor->NowUs()) {
  for (EmbeddingTable* table : options_.tables) {
    cuts_.push_back(table->BeginCut(budget_));
    // One more than the rows of the cut, because only a block with room left reaches the end of its
    // range.
    block_rows_.push_back(std::min(kRowsPerBlock, static_cast<size_t>(table->rows()) + 1));
  }
  PlanFiles();
}

// Ranges end at multiples of kPartitionsPerFile and where the table ends, so that no file holds
// rows of two PSs. If `few` is set, a table whose ranges would hold less than one block of rows on
// average becomes a single range.
std::vector<CutWriter::Range> CutWriter::RangesOf(size_t table, bool few) const {
  const EmbeddingTable& rows = *options_.tables[table];
  std::vector<Range> ranges;
  for (int first = rows.first_partition(); first <= rows.last_partition();) {
    const int last =
        std::min(rows.last_partition(),
                 first / kPartitionsPerFile * kPartitionsPerFile + kPartitionsPerFile - 1);
    ranges.push_back({table, first, last, 0});
    first = last + 1;
  }
  const auto count = static_cast<uint64_t>(rows.rows());
  if (few && count < kRowsPerBlock * ranges.size()) {
    ranges = {{table, rows.first_partition(), rows.last_partition(), 0}};
  }
  const uint64_t row_bytes =
      sizeof(uint64_t) + static_cast<uint64_t>(rows.layout().num_floats()) * sizeof(float);
  for (Range& range : ranges) range.bytes = count * row_bytes / ranges.size();
  return ranges;
}

// The plan depends only on the numbers of rows, so that equal tables give equal files.
void CutWriter::PlanFiles() {
  for (size_t i = 0; i < options_.tables.size(); ++i) {
    for (const Range& range : RangesOf(i, /*few=*/false)) {
      files_.push_back({RowFileName(options_.tables[i]->config().id(), range.first_partition,
                                    range.last_partition),
                        {range}});
    }
  }
  if (files_.size() > kMostFilesOfPs) PlanSharedFiles();
}

void CutWriter::PlanSharedFiles() {
  files_.clear();
  std::vector<Range> ranges;
  uint64_t bytes = 0;
  for (size_t i = 0; i < options_.tables.size(); ++i) {
    for (const Range& range : RangesOf(i, /*few=*/true)) {
      ranges.push_back(range);
      bytes += range.bytes;
    }
  }
  // Sorted by partitions, because if another number of PSs loads the cut, each PS reads only the
  // files that overlap its partitions.
  std::stable_sort(ranges.begin(), ranges.end(), [](const Range& a, const Range& b) {
    return std::make_tuple(a.last_partition, a.first_partition) <
           std::make_tuple(b.last_partition, b.first_partition);
  });
  // Every file but the last becomes larger than its share. Dividing by half of the limit keeps the
  // number of files below the limit.
  const uint64_t share = std::max(kSharedFileBytes, bytes / (kMostFilesOfPs / 2));
  uint64_t in_file = share;  // the first range begins a file
  for (const Range& range : ranges) {
    if (in_file >= share) {
      files_.push_back({absl::StrFormat("tables_partitions_%04d_%04d_%02d.rows",
                                        options_.tables[0]->first_partition(),
                                        options_.tables[0]->last_partition(), files_.size()),
                        {}});
      in_file = 0;
    }
    files_.back().ranges.push_back(range);
    in_file += range.bytes;
  }
}

void CutWriter::Start(Done done) {
  const int works = std::max(1, std::min(options_.threads, static_cast<int>(files_.size())));
  {
    MutexLock lock(&mutex_);
    done_ = std::move(done);
    works_ = works;
  }
  for (int i = 0; i < works; ++i) Post(std::make_shared<Work>());
}

void CutWriter::Abandon(absl::Status why) {
  MutexLock lock(&mutex_);
  if (status_.ok()) status_ = std::move(why);
}

void CutWriter::Post(std::shared_ptr<Work> work) {
  options_.executor->Post([self = shared_from_this(), work = std::move(work)]() mutable {
    self->RunTask(std::move(work));
  });
}

// Writes one block, or makes one file durable. The rest of the work is then posted at the end of
// the executor's queue, so that other tasks get their turn.
void CutWriter::RunTask(std::shared_ptr<Work> work) {
  const Next next = TakeNext(work.get());
  if (next == Next::kNone) {
    work.reset();  // removes an unfinished file, before the end is reported
    EndWork();
    return;
  }
  const absl::Status status =
      next == Next::kBlock ? WriteBlock(work.get()) : CommitFile(work.get());
  if (!status.ok()) Abandon(status);
  Post(std::move(work));
}

CutWriter::Next CutWriter::TakeNext(Work* work) {
  MutexLock lock(&mutex_);
  if (!status_.ok()) return Next::kNone;
  if (work->plan != nullptr) return Next::kBlock;
  const bool all_taken = next_file_ == files_.size();
  if (!unsynced_.empty() && (all_taken || unsynced_.size() >= kMaxUnsyncedFiles)) {
    work->unsynced = std::move(unsynced_.front());
    unsynced_.pop_front();
    return Next::kCommit;
  }
  if (all_taken) return Next::kNone;
  work->plan = &files_[next_file_++];
  work->nth_range = 0;
  work->partition = work->range().first_partition;
  return Next::kBlock;
}

absl::Status CutWriter::WriteBlock(Work* work) {
  const Range& range = work->range();
  const EmbeddingTable& table = *options_.tables[range.table];
  const size_t floats = table.layout().num_floats();
  work->keys.resize(block_rows_[range.table]);
  work->rows.resize(block_rows_[range.table] * floats);
  RETURN_IF_ERROR(GatherBlock(work));
  if (work->num_rows > 0) {
    if (work->file == nullptr) {
      ASSIGN_OR_RETURN(work->file, RowFileWriter::Create(work->plan->name, options_.directory,
                                                         options_.file_system));
    }
    if (!work->part_begun) {
      RETURN_IF_ERROR(work->file->BeginPart(table, range.first_partition, range.last_partition));
      work->part_begun = true;
    }
    RETURN_IF_ERROR(
        work->file->Append(absl::MakeConstSpan(work->keys).first(work->num_rows),
                           absl::MakeConstSpan(work->rows).first(work->num_rows * floats)));
    if (options_.kill_points != nullptr) options_.kill_points->Reach(KillPoint::PS_WHILE_WRITING);
  }
  if (work->partition > range.last_partition) EndRange(work);
  return absl::OkStatus();
}

void CutWriter::EndRange(Work* work) {
  work->part_begun = false;
  if (++work->nth_range == work->plan->ranges.size()) return EndFile(work);
  work->partition = work->range().first_partition;
}

void CutWriter::EndFile(Work* work) {
  work->plan = nullptr;
  {
    MutexLock lock(&mutex_);
    if (work->file != nullptr) unsynced_.push_back(std::move(work->file));
    if (++files_read_ < files_.size()) return;
  }
  // All rows have been read, so from now on they can change without being copied out first.
  EndCuts();
}

absl::Status CutWriter::CommitFile(Work* work) {
  const std::unique_ptr<RowFileWriter> file = std::move(work->unsynced);
  ASSIGN_OR_RETURN(std::vector<SavedFile> parts, file->Commit());
  MutexLock lock(&mutex_);
  for (const SavedFile& part : parts) {
    result_.bytes_written += static_cast<int64_t>(part.bytes());
  }
  written_.push_back(std::move(parts));
  return absl::OkStatus();
}

// Fills the block with the next rows of the range, or with fewer if the range ends.
absl::Status CutWriter::GatherBlock(Work* work) {
  const Range& range = work->range();
  EmbeddingTable& table = *options_.tables[range.table];
  const size_t floats = table.layout().num_floats();
  const size_t block_rows = block_rows_[range.table];
  work->num_rows = 0;
  while (work->num_rows < block_rows && work->partition <= range.last_partition) {
    size_t n = 0;
    const CutRead read = table.ReadCut(
        cuts_[range.table], work->partition, block_rows - work->num_rows,
        work->keys.data() + work->num_rows, work->rows.data() + work->num_rows * floats, &n);
    work->num_rows += n;
    if (read == CutRead::kEnded) ++work->partition;
    if (read != CutRead::kGone) continue;
    if (budget_->exhausted()) {
      return absl::ResourceExhaustedError(
          absl::StrCat("rows that changed while the cut was written needed more than ",
                       options_.copy_bytes, " bytes (checkpoint.copy_bytes)"));
    }
    return absl::AbortedError("a later cut or a load has ended this cut");
  }
  return absl::OkStatus();
}

void CutWriter::EndWork() {
  Done done;
  Result result;
  std::deque<std::unique_ptr<RowFileWriter>> unsynced;  // of an abandoned cut
  std::vector<std::vector<SavedFile>> written;
  {
    MutexLock lock(&mutex_);
    if (--works_ > 0) return;
    unsynced.swap(unsynced_);
    result_.status = status_;
    written.swap(written_);
    result = std::move(result_);
    done = std::move(done_);
  }
  unsynced.clear();  // removes the files
  EndCuts();
  result.copied_rows = budget_->rows();
  result.copied_bytes = budget_->bytes();
  result.seconds = static_cast<double>(options_.executor->NowUs() - begun_us_) * 1e-6;
  if (result.status.ok()) result.files = InOrder(std::move(written));
  result.copy_limit = !result.status.ok() && budget_->exhausted();
  if (result.status.ok() && options_.kill_points != nullptr) {
    options_.kill_points->Reach(KillPoint::PS_AFTER_WRITING);
  }
  done(result);
}

void CutWriter::EndCuts() {
  for (size_t i = 0; i < cuts_.size(); ++i) options_.tables[i]->EndCut(cuts_[i]);
}

}  // namespace satrap

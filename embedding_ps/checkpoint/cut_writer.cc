#include "embedding_ps/checkpoint/cut_writer.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"

namespace satrap {
namespace {

// Small enough that a block of short rows stays in a core's cache between gathering, checksums and
// writing.
constexpr size_t kRowsPerBlock = 2048;

// A process may not open many files at once, and each of them may keep its last megabyte in memory.
constexpr size_t kMaxUnsyncedFiles = 64;

}  // namespace

struct CutWriter::Work {
  bool has_range = false;
  Range range = {};
  int partition = 0;                    // the next block begins in
  std::unique_ptr<RowFileWriter> file;  // null until the range has rows
  std::vector<uint64_t> keys;           // room for a block; num_rows of them are gathered
  std::vector<float> rows;
  size_t num_rows = 0;
  std::unique_ptr<RowFileWriter> unsynced;  // to be made durable
};

std::shared_ptr<CutWriter> CutWriter::Mark(const Options& options) {
  return std::shared_ptr<CutWriter>(new CutWriter(options));
}

CutWriter::CutWriter(const Options& options)
    : options_(options),
      budget_(std::make_shared<CopyBudget>(options.copy_bytes)),
      begun_us_(options.executor->NowUs()) {
  for (size_t i = 0; i < options_.tables.size(); ++i) {
    EmbeddingTable& table = *options_.tables[i];
    cuts_.push_back(table.BeginCut(budget_));
    // Files end at multiples of kPartitionsPerFile and where the table ends, so that no file holds
    // rows of two PSs.
    for (int first = table.first_partition(); first <= table.last_partition();) {
      const int last =
          std::min(table.last_partition(),
                   first / kPartitionsPerFile * kPartitionsPerFile + kPartitionsPerFile - 1);
      ranges_.push_back({i, first, last});
      first = last + 1;
    }
  }
}

void CutWriter::Start(Done done) {
  const int works = std::max(1, std::min(options_.threads, static_cast<int>(ranges_.size())));
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

// Writes one block, or makes one file durable. Then the work goes to the end of the executor's
// queue, so that other tasks have their turn.
void CutWriter::RunTask(std::shared_ptr<Work> work) {
  const Next next = TakeNext(work.get());
  if (next == Next::kNone) {
    work.reset();  // removes an unfinished file, before the end is told
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
  if (work->has_range) return Next::kBlock;
  const bool all_taken = next_range_ == ranges_.size();
  if (!unsynced_.empty() && (all_taken || unsynced_.size() >= kMaxUnsyncedFiles)) {
    work->unsynced = std::move(unsynced_.front());
    unsynced_.pop_front();
    return Next::kCommit;
  }
  if (all_taken) return Next::kNone;
  work->has_range = true;
  work->range = ranges_[next_range_++];
  work->partition = work->range.first_partition;
  const size_t floats = options_.tables[work->range.table]->layout().num_floats();
  work->keys.resize(kRowsPerBlock);
  work->rows.resize(kRowsPerBlock * floats);
  return Next::kBlock;
}

absl::Status CutWriter::WriteBlock(Work* work) {
  const Range& range = work->range;
  const EmbeddingTable& table = *options_.tables[range.table];
  RETURN_IF_ERROR(GatherBlock(work));
  if (work->num_rows > 0) {
    if (work->file == nullptr) {
      ASSIGN_OR_RETURN(work->file,
                       RowFileWriter::Create(table, range.first_partition, range.last_partition,
                                             options_.directory, options_.file_system));
    }
    const size_t floats = table.layout().num_floats();
    RETURN_IF_ERROR(
        work->file->Append(absl::MakeConstSpan(work->keys).first(work->num_rows),
                           absl::MakeConstSpan(work->rows).first(work->num_rows * floats)));
    if (options_.kill_points != nullptr) options_.kill_points->Reach(KillPoint::PS_WHILE_WRITING);
  }
  if (work->partition > range.last_partition) EndRange(work);
  return absl::OkStatus();
}

void CutWriter::EndRange(Work* work) {
  work->has_range = false;
  {
    MutexLock lock(&mutex_);
    if (work->file != nullptr) unsynced_.push_back(std::move(work->file));
    if (++ranges_read_ < ranges_.size()) return;
  }
  // From here on rows change freely.
  EndCuts();
}

absl::Status CutWriter::CommitFile(Work* work) {
  const std::unique_ptr<RowFileWriter> file = std::move(work->unsynced);
  ASSIGN_OR_RETURN(const SavedFile saved, file->Commit());
  MutexLock lock(&mutex_);
  result_.bytes_written += static_cast<int64_t>(saved.bytes());
  result_.files.push_back(saved);
  return absl::OkStatus();
}

// Fills the block, unless the range ends before.
absl::Status CutWriter::GatherBlock(Work* work) {
  EmbeddingTable& table = *options_.tables[work->range.table];
  const size_t floats = table.layout().num_floats();
  work->num_rows = 0;
  while (work->num_rows < kRowsPerBlock && work->partition <= work->range.last_partition) {
    size_t n = 0;
    const CutRead read = table.ReadCut(
        cuts_[work->range.table], work->partition, kRowsPerBlock - work->num_rows,
        work->keys.data() + work->num_rows, work->rows.data() + work->num_rows * floats, &n);
    work->num_rows += n;
    if (read == CutRead::kEnded) ++work->partition;
    if (read != CutRead::kGone) continue;
    if (budget_->exhausted()) {
      return absl::ResourceExhaustedError(
          absl::StrCat("rows that changed while the cut was written needed more than ",
                       options_.copy_bytes, " bytes (checkpoint.copy_bytes)"));
    }
    return absl::AbortedError("the tables were marked again or loaded");
  }
  return absl::OkStatus();
}

void CutWriter::EndWork() {
  Done done;
  Result result;
  std::deque<std::unique_ptr<RowFileWriter>> unsynced;  // of an abandoned cut
  {
    MutexLock lock(&mutex_);
    if (--works_ > 0) return;
    unsynced.swap(unsynced_);
    result_.status = status_;
    result = std::move(result_);
    done = std::move(done_);
  }
  unsynced.clear();  // removes the files
  EndCuts();
  result.copied_rows = budget_->rows();
  result.copied_bytes = budget_->bytes();
  result.seconds = static_cast<double>(options_.executor->NowUs() - begun_us_) * 1e-6;
  std::sort(result.files.begin(), result.files.end(), [](const SavedFile& a, const SavedFile& b) {
    return std::make_tuple(a.table(), a.first_partition()) <
           std::make_tuple(b.table(), b.first_partition());
  });
  if (!result.status.ok()) result.files.clear();
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

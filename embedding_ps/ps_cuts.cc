#include "embedding_ps/ps_cuts.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"

namespace satrap {
namespace {

AwaitCutAnswer Abandoned(const std::string& why) {
  AwaitCutAnswer answer;
  answer.set_outcome(OUTCOME_DONE);
  answer.set_abandoned(why);
  return answer;
}

AwaitCutAnswer AnswerOf(const CutWriter::Result& result) {
  AwaitCutAnswer answer;
  answer.set_outcome(OUTCOME_DONE);
  // The message of the status names the file and the reason.
  if (!result.status.ok()) answer = Abandoned(std::string(result.status.message()));
  for (const SavedFile& file : result.files) *answer.add_files() = file;
  answer.set_copied_bytes(static_cast<uint64_t>(result.copied_bytes));
  answer.set_copy_limit(result.copy_limit);
  return answer;
}

}  // namespace

absl::StatusOr<bool> PsCuts::IsNew(uint64_t cut) const {
  if (cut == 0) return absl::InvalidArgumentError("cut: numbers begin at 1");
  MutexLock lock(&mutex_);
  if (cut > newest_) return true;
  if (cut == newest_ && begun_) return false;
  return absl::FailedPreconditionError(
      cut == newest_ ? absl::StrCat("cut ", cut, " was abandoned before it began")
                     : absl::StrCat("cut ", cut, " is older than cut ", newest_));
}

std::shared_ptr<CutWriter> PsCuts::Mark(const std::string& directory) {
  CutWriter::Options options = options_;
  options.directory = directory;
  return CutWriter::Mark(options);
}

void PsCuts::Begin(uint64_t cut, const std::string& directory, absl::AnyInvocable<void()> ended) {
  AbandonAll(absl::AbortedError(absl::StrCat("cut ", cut, " was begun")));
  std::shared_ptr<CutWriter> writer;
  {
    MutexLock lock(&mutex_);
    CHECK(cut > newest_) << cut;
    newest_ = cut;
    begun_ = true;
    answer_.reset();
    ++counts_.begun;
    writer = Mark(directory);
    running_[cut] = {writer, std::move(ended), {}, {}};
  }
  if (options_.kill_points != nullptr) options_.kill_points->Reach(KillPoint::PS_AFTER_MARK);
  writer->Start([this, cut](const CutWriter::Result& result) { End(cut, result); });
}

void PsCuts::End(uint64_t cut, const CutWriter::Result& result) {
  const AwaitCutAnswer answer = AnswerOf(result);
  Running ended;
  {
    MutexLock lock(&mutex_);
    const auto at = running_.find(cut);
    ended = std::move(at->second);
    running_.erase(at);
    if (cut == newest_) answer_ = answer;
    counts_.abandoned += result.status.ok() ? 0 : 1;
    counts_.rows_copied += static_cast<uint64_t>(result.copied_rows);
    counts_.bytes_copied += static_cast<uint64_t>(result.copied_bytes);
    counts_.bytes_written += static_cast<uint64_t>(result.bytes_written);
    counts_.seconds += result.seconds;
  }
  ended.ended();
  for (Awaited& awaited : ended.awaited) awaited(answer);
  for (absl::AnyInvocable<void()>& abandoned : ended.abandoned) abandoned();
}

void PsCuts::Await(uint64_t cut, Awaited answer) {
  absl::StatusOr<AwaitCutAnswer> known;
  {
    MutexLock lock(&mutex_);
    const auto running = running_.find(cut);
    if (running != running_.end()) {
      running->second.awaited.push_back(std::move(answer));
      return;
    }
    if (cut > newest_) {
      known = absl::FailedPreconditionError(absl::StrCat("cut ", cut, " was not begun here"));
    } else if (cut == newest_ && answer_.has_value()) {
      known = *answer_;
    } else {
      known = Abandoned(absl::StrCat("the later cut ", newest_,
                                     begun_ ? " was begun" : " was abandoned before it began"));
    }
  }
  answer(std::move(known));
}

void PsCuts::Abandon(uint64_t cut, absl::AnyInvocable<void()> answer) {
  const absl::Status why = absl::AbortedError("rank 0 abandoned it");
  {
    MutexLock lock(&mutex_);
    // The cut has not begun. A BeginCut for it may still arrive, and must be refused.
    if (cut > newest_) {
      newest_ = cut;
      begun_ = false;
    }
    if (cut == newest_) answer_ = Abandoned(std::string(why.message()));
    const auto running = running_.find(cut);
    if (running != running_.end()) {
      running->second.writer->Abandon(why);
      running->second.abandoned.push_back(std::move(answer));
      return;
    }
  }
  answer();
}

void PsCuts::AbandonAll(const absl::Status& why) {
  MutexLock lock(&mutex_);
  for (const auto& [cut, running] : running_) running.writer->Abandon(why);
}

PsCuts::Counts PsCuts::counts() const {
  MutexLock lock(&mutex_);
  return counts_;
}

}  // namespace satrap

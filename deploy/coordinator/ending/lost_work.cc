#include "deploy/coordinator/ending/lost_work.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/count_text.h"
#include "common/checkpoint/entries/job_of_run.h"

namespace satrap {
namespace {

using Entry = std::vector<RunLogEntry>::const_reverse_iterator;

// The first entry, going back from `entry`, that is neither TOPICS nor END. Those say nothing about
// training.
Entry BeforeTopics(Entry entry, Entry end) {
  return std::find_if(
      entry, end, [](const RunLogEntry& each) { return !each.has_topics() && !each.has_end(); });
}

// Goes back from `entry` to the first entry that does not belong to a dropped job. The skipped
// entries show no training: if a generation with a dropped job had trained, the log would have its
// RUNNING entry or a cut that it made. A skipped TOPICS entry shows no training either. It was
// appended before anybody trained on its topics, or else by a generation whose training an older
// entry shows.
Entry BeforeDropped(Entry entry, Entry end) {
  while (entry != end && entry->has_dropped()) {
    entry = BeforeTopics(entry + 1, end);
    // A compacted log lacks the jobs of generations that never ran, so it does not say which of
    // them had the dropped job.
    if (entry == end || !entry->has_generation() || !entry->generation().has_job()) break;
    const JobConfig dropped = entry->generation().job();
    while (entry != end && entry->has_generation() && entry->generation().has_job() &&
           IsSameJob(entry->generation().job(), dropped)) {
      entry = BeforeTopics(entry + 1, end);
    }
  }
  return entry;
}

}  // namespace

bool NothingWasLostBefore(const RunLog& log) {
  const std::vector<RunLogEntry>& entries = log.entries();
  if (entries.size() < 2) return true;
  const std::string& start = entries.back().generation().cut();  // this generation's
  const Entry before =
      BeforeDropped(BeforeTopics(entries.rbegin() + 1, entries.rend()), entries.rend());
  if (before == entries.rend()) return false;
  if (before->has_generation()) {
    return before->generation().began() == BEGAN_SCALE_ANNOUNCED &&
           before->generation().cut() == start;
  }
  return (before->cut().last() || before->cut().leave()) && before->cut().cut() == start;
}

void AddLostWork(const TrainedSince& trained, Ending* how) {
  const bool cut_here = trained.own_cut.has_value();
  const uint64_t step = cut_here ? trained.own_cut->step() : trained.start_step;
  const uint64_t lost = std::max(trained.step, step) - step;
  if (lost > 0) {
    how->set_loss(Ending::STEPS);
    how->set_lost_steps(lost);
  }
  const std::string how_much =
      lost > 0 ? absl::StrCat("about ", Counted(lost, "step")) : "at most the work";
  if (!cut_here && trained.start_cut.empty()) {
    absl::StrAppend(how->mutable_text(),
                    "; no cut was committed, so the run starts again from the beginning, and ",
                    how_much, " since ", lost > 1 ? "are lost" : "is lost");
    return;
  }
  absl::StrAppend(how->mutable_text(), "; the run continues from ",
                  cut_here ? trained.own_cut->cut() : trained.start_cut, " at step ", step,
                  ", and ", how_much, " since ", lost > 1 ? "are lost" : "is lost");
}

}  // namespace satrap

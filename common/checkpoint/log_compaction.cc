#include "common/checkpoint/log_compaction.h"

#include <map>

#include "common/checkpoint/entries/job_of_run.h"

namespace satrap {
namespace {

// The cuts from which the next generation may begin if the user names none.
std::set<std::string> StartsOf(const std::vector<RunLogEntry>& entries) {
  std::set<std::string> starts;
  for (auto entry = entries.rbegin(); entry != entries.rend(); ++entry) {
    // If a user took the run back to an older cut, the last generation began from that cut and not
    // from the newest one.
    if (entry->has_generation() && starts.empty()) starts.insert(entry->generation().cut());
    if (!entry->has_cut()) continue;
    starts.insert(entry->cut().cut());
    break;
  }
  return starts;
}

}  // namespace

CompactedEntry Compacted(const std::vector<RunLogEntry>& entries,
                         const std::set<std::string>& folders, uint64_t left_out_cuts) {
  CompactedEntry compacted;
  const std::set<std::string> starts = StartsOf(entries);
  const auto stays = [&](const CutEntry& cut) {
    return folders.count(cut.cut()) > 0 || starts.count(cut.cut()) > 0;
  };
  std::set<uint64_t> with_job;  // the generations whose job is kept
  const GenerationEntry* const ran = LastThatRan(entries);
  if (ran != nullptr) with_job.insert(ran->generation());
  for (const RunLogEntry& entry : entries) {
    if (entry.has_cut() && stays(entry.cut())) with_job.insert(entry.cut().generation());
  }
  for (auto entry = entries.rbegin(); entry != entries.rend(); ++entry) {
    if (!entry->has_generation()) continue;
    with_job.insert(entry->generation().generation());
    break;
  }
  const RunLogEntry* complete = nullptr;
  for (const RunLogEntry& entry : entries) {
    if (entry.has_complete()) complete = &entry;
  }
  std::map<std::string, uint64_t> step_of_cut;
  for (const RunLogEntry& entry : entries) {
    if (entry.has_cut()) {
      step_of_cut[entry.cut().cut()] = entry.cut().step();
      if (!stays(entry.cut())) {
        ++left_out_cuts;
        continue;
      }
    }
    if (entry.has_running() &&
        (ran == nullptr || entry.running().generation() != ran->generation())) {
      continue;
    }
    if (entry.has_complete() && &entry != complete) continue;
    // A LEFT entry is needed only by the generation that follows it, which must know why it begins.
    if (entry.has_left() && &entry != &entries.back()) continue;
    RunLogEntry* kept = compacted.add_entries();
    *kept = entry;
    if (!entry.has_generation()) continue;
    GenerationEntry* generation = kept->mutable_generation();
    if (with_job.count(generation->generation()) == 0) generation->clear_job();
    const auto step = step_of_cut.find(generation->cut());
    if (step != step_of_cut.end()) generation->set_from_step(step->second);
  }
  compacted.set_left_out_cuts(left_out_cuts);
  return compacted;
}

}  // namespace satrap

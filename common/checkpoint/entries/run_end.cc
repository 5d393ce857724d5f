#include "common/checkpoint/entries/run_end.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace satrap {

RunState StateOf(const EndEntry& end) { return end.has_state() ? end.state() : FINISHED; }

const EndEntry* EndOf(const std::vector<RunLogEntry>& entries) {
  for (auto entry = entries.rbegin(); entry != entries.rend(); ++entry) {
    if (entry->has_end()) return &entry->end();
    if (entry->has_generation()) break;
  }
  return nullptr;
}

bool HasFinished(const std::vector<RunLogEntry>& entries) {
  const EndEntry* end = EndOf(entries);
  return end != nullptr && StateOf(*end) == FINISHED;
}

uint64_t SubmissionOfGeneration(const GenerationEntry& generation) {
  return std::max<uint64_t>(generation.submission(), 1);
}

uint64_t SubmissionOf(const std::vector<RunLogEntry>& entries) {
  for (auto entry = entries.rbegin(); entry != entries.rend(); ++entry) {
    if (entry->has_generation()) return SubmissionOfGeneration(entry->generation());
  }
  return 0;
}

const CutEntry* LeftFor(const std::vector<RunLogEntry>& entries, CutEntry::LeftFor what) {
  if (entries.empty() || !entries.back().has_cut()) return nullptr;
  const CutEntry& cut = entries.back().cut();
  return cut.left_for() == what ? &cut : nullptr;
}

bool HasMoved(const std::vector<RunLogEntry>& entries) {
  return LeftFor(entries, CutEntry::MOVE) != nullptr ||
         (!entries.empty() && entries.back().has_left());
}

Ending StoppedAfter(const CutEntry& cut) {
  Ending stopped;
  stopped.set_why(Ending::ASKED);
  stopped.set_text(absl::StrCat("stopped on request after ", cut.cut(), " at step ", cut.step(),
                                "; nothing is lost"));
  stopped.set_loss(Ending::NOTHING);
  return stopped;
}

std::string CauseText(const GenerationEntry& entry) {
  switch (entry.began()) {
    case BEGAN_START:
      return "start";
    case BEGAN_RESUME:
      return "resume";
    case BEGAN_SCALE_ANNOUNCED:
      return "scale";
    case BEGAN_SCALED:
      return "scaled";
    case BEGAN_MOVED:
      // Any other ending may be that of the coordinator alone, which somebody has just started
      // again.
      return entry.ended().why() == Ending::MOVED ? absl::StrCat("moved: ", entry.ended().text())
                                                  : "moved";
    case BEGAN_RESTART:
      break;
  }
  return entry.ended().text();
}

}  // namespace satrap

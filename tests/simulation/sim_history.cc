#include "tests/simulation/sim_history.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "tests/simulation/sim_ledger.h"

namespace satrap::simulation {

History::History(const WorldShape& shape, ReadCut read_cut,
                 std::function<void(std::string)> violated)
    : shape_(shape), read_cut_(std::move(read_cut)), violated_(std::move(violated)) {
  marked_[""];
}

void History::OnMark(const std::string& cut, SimTraining::State state) {
  if (!marked_.emplace(cut, std::move(state)).second) {
    violated_(absl::StrCat(cut, " was begun twice"));
  }
}

void History::OnAbandoned(const std::string& cut) {
  abandoned_.insert(cut);
  if (IsCommitted(cut)) violated_(absl::StrCat(cut, " is committed and is called abandoned"));
}

const SimTraining::State& History::StateOf(const std::string& cut) const {
  const auto state = marked_.find(cut);
  CHECK(state != marked_.end()) << cut << " was never marked";
  return state->second;
}

void History::OnLog(const std::vector<RunLogEntry>& entries, bool acknowledged) {
  std::vector<std::string> serialised;
  for (const RunLogEntry& entry : entries) serialised.push_back(entry.SerializeAsString());
  for (size_t i = 0; i < acknowledged_.size(); ++i) {
    if (i < serialised.size() && serialised[i] == acknowledged_[i]) continue;
    violated_(absl::StrCat("entry ", i + 1, " of the log was acknowledged and is ",
                           i < serialised.size() ? "another one" : "gone"));
  }
  generation_ = 0;
  newest_cut_.clear();
  finished_ = false;
  cuts_ = 0;
  for (size_t i = 0; i < entries.size(); ++i) Read(i + 1, entries[i]);
  if (acknowledged) acknowledged_ = std::move(serialised);
}

void History::Read(size_t number, const RunLogEntry& entry) {
  if (finished_) violated_(absl::StrCat("entry ", number, " of the log follows the END"));
  if (entry.has_generation()) {
    ReadGeneration(entry.generation());
  } else if (entry.has_cut()) {
    ReadCutEntry(entry.cut());
  } else if (entry.has_end()) {
    finished_ = true;
  } else {
    violated_(absl::StrCat("entry ", number, " of the log is of no kind"));
  }
}

void History::ReadGeneration(const GenerationEntry& entry) {
  if (entry.generation() != generation_ + 1) {
    violated_(absl::StrCat("generation ", entry.generation(), " follows ", generation_));
  }
  generation_ = entry.generation();
  // Whoever resumes a run may take it back to an older cut, and it stays there.
  const bool taken_back = entry.began() == BEGAN_RESUME && marked_.count(entry.cut()) > 0;
  if (entry.cut() != newest_cut_ && !taken_back) {
    violated_(absl::StrCat("generation ", generation_, " begins from '", entry.cut(),
                           "', and the newest cut is '", newest_cut_, "'"));
  }
  newest_cut_ = entry.cut();
}

void History::ReadCutEntry(const CutEntry& entry) {
  ++cuts_;
  newest_cut_ = entry.cut();
  if (entry.generation() != generation_) {
    violated_(absl::StrCat(entry.cut(), " of generation ", entry.generation(),
                           " was committed in generation ", generation_));
  }
  const auto marked = marked_.find(entry.cut());
  if (marked == marked_.end() || entry.cut().empty()) {
    violated_(absl::StrCat("'", entry.cut(), "' was committed and never marked"));
    return;
  }
  if (entry.step() != marked->second.steps) {
    violated_(absl::StrCat(entry.cut(), " is of step ", marked->second.steps, ", the log says ",
                           entry.step()));
  }
  if (abandoned_.count(entry.cut()) > 0) {
    violated_(absl::StrCat(entry.cut(), " was called abandoned, and the log has it"));
  }
  if (std::exchange(checked_[entry.cut()], true)) return;
  if (ended_.count(entry.generation()) > 0) {
    violated_(absl::StrCat(entry.cut(), " was committed after the end of generation ",
                           entry.generation(), " had been told"));
  }
  CheckCut(entry.cut(), marked->second);
}

void History::CheckCut(const std::string& cut, const SimTraining::State& marked) {
  const absl::StatusOr<CutContent> content = read_cut_(cut);
  if (!content.ok()) {
    violated_(absl::StrCat(cut, " does not load: ", content.status().ToString()));
    return;
  }
  const auto violated = [this, &cut](std::string what) {
    violated_(absl::StrCat(cut, ": ", what));
  };
  CheckTables(marked.tables, content->tables, violated);
  CheckLedger(shape_, content->ledger, marked.seen, violated);
  const RunPosition& position = content->position;
  if (position.step() != marked.steps || position.samples() != marked.samples ||
      position.skipped_steps() != marked.non_finite_steps) {
    violated(absl::StrCat("the position is {", position.ShortDebugString(), "} after ",
                          marked.steps, " steps, ", marked.non_finite_steps, " not finite, and ",
                          marked.samples, " samples"));
  }
}

}  // namespace satrap::simulation

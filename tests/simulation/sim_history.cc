#include "tests/simulation/sim_history.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/checkpoint/entries/run_end.h"
#include "tests/simulation/sim_ledger.h"

namespace satrap::simulation {

namespace {

const GenerationEntry* FindGeneration(const std::vector<RunLogEntry>& entries, uint64_t number) {
  for (const RunLogEntry& entry : entries) {
    if (entry.has_generation() && entry.generation().generation() == number) {
      return &entry.generation();
    }
  }
  return nullptr;
}

const CutEntry* FindCut(const std::vector<RunLogEntry>& entries, const std::string& cut) {
  for (const RunLogEntry& entry : entries) {
    if (entry.has_cut() && entry.cut().cut() == cut) return &entry.cut();
  }
  return nullptr;
}

// The generation of the last RUNNING or CUT entry; 0 if there is none.
uint64_t LastThatRan(const std::vector<RunLogEntry>& entries) {
  uint64_t ran = 0;
  for (const RunLogEntry& entry : entries) {
    if (entry.has_running()) ran = entry.running().generation();
    if (entry.has_cut()) ran = entry.cut().generation();
  }
  return ran;
}

bool IsSame(const google::protobuf::Message& a, const google::protobuf::Message& b) {
  return a.SerializeAsString() == b.SerializeAsString();
}
bool IsSame(const SimLogEntry& a, const SimLogEntry& b) { return &a == &b || a.bytes == b.bytes; }

}  // namespace

History::History(const WorldShape& shape, ReadCut read_cut, IsThere is_there,
                 std::function<void(std::string)> violated)
    : shape_(shape),
      read_cut_(std::move(read_cut)),
      is_there_(std::move(is_there)),
      violated_(std::move(violated)),
      ends_(violated_) {
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

void History::OnRuns(uint64_t generation) {
  if (generation < runs_) return;  // its coordinator does not know of a later one yet
  runs_ = generation;
  const auto entry = with_job_.find(generation);
  generation_that_runs_ = entry == with_job_.end() ? nullptr : entry->second;
  CheckRuns();
}

const SimTraining::State& History::StateOf(const std::string& cut) const {
  const auto state = marked_.find(cut);
  CHECK(state != marked_.end()) << cut << " was never marked";
  return state->second;
}

void History::OnLog(const SimLog& read, bool acknowledged) {
  const size_t compacted = read.compacted_number;
  const size_t kept = read.entries.size() - (read.number - compacted);
  std::vector<Known> log;
  for (size_t i = 0; i < read.entries.size(); ++i) {
    log.push_back({i < kept ? compacted : compacted + 1 + i - kept, read.entries[i]});
  }
  CheckAcknowledged(log, compacted);
  generation_ = 0;
  dropped_ = false;
  with_job_.clear();
  ran_ = 0;
  cuts_in_log_.clear();
  newest_cut_.clear();
  finished_ = false;
  cuts_ = static_cast<int>(read.left_out_cuts);
  ends_.Begin();
  for (const Known& known : log) {
    const RunLogEntry& entry = known.entry->message;
    if (entry.has_cut()) cuts_in_log_.insert(entry.cut().cut());
  }
  for (const Known& known : log) {
    is_kept_ = known.number <= compacted;
    Read(known);
  }
  power_was_lost_ = false;
  CheckRuns();
  if (!acknowledged) return;
  acknowledged_ = std::move(log);
  acknowledged_compacted_ = compacted;
}

void History::CheckAcknowledged(const std::vector<Known>& log, size_t compacted) {
  if (compacted < acknowledged_compacted_) {
    return violated_(absl::StrCat("entry ", acknowledged_compacted_,
                                  " of the log, which stands for all before it, is gone"));
  }
  // Numbers ascend, so the entries that the COMPACTED entry holds come first, and so do the
  // acknowledged ones that it stands for.
  const auto is_kept = [compacted](const Known& known) { return known.number <= compacted; };
  const size_t kept = std::count_if(log.begin(), log.end(), is_kept);
  const size_t before = std::count_if(acknowledged_.begin(), acknowledged_.end(), is_kept);
  for (size_t i = before; i < acknowledged_.size(); ++i) {
    const Known& known = acknowledged_[i];
    // The files after the COMPACTED entry are numbered without a gap.
    const size_t at = kept + known.number - compacted - 1;
    if (at < log.size() && IsSame(*log[at].entry, *known.entry)) continue;
    violated_(absl::StrCat("entry ", known.number, " of the log was acknowledged and is ",
                           at < log.size() ? "another one" : "gone"));
  }
  if (compacted > acknowledged_compacted_) {
    return CheckCompacted(MessagesOf(acknowledged_, before), MessagesOf(log, kept));
  }
  for (size_t i = 0; i < before; ++i) {
    if (i < kept && IsSame(*acknowledged_[i].entry, *log[i].entry)) continue;
    return violated_(absl::StrCat("entry ", compacted, " of the log is another one"));
  }
}

std::vector<RunLogEntry> History::MessagesOf(const std::vector<Known>& log, size_t count) {
  std::vector<RunLogEntry> messages;
  for (size_t i = 0; i < count; ++i) messages.push_back(log[i].entry->message);
  return messages;
}

void History::CheckCompacted(const std::vector<RunLogEntry>& before,
                             const std::vector<RunLogEntry>& kept) {
  if (LastThatRan(kept) < LastThatRan(before)) {
    violated_(absl::StrCat("the compacted log does not say that generation ", LastThatRan(before),
                           " has run"));
  }
  const GenerationEntry* newest = nullptr;
  for (const RunLogEntry& entry : before) {
    if (entry.has_generation()) newest = &entry.generation();
  }
  const bool goes_on =
      newest != nullptr && FindGeneration(kept, newest->generation() + 1) != nullptr;
  if (SubmissionOf(before) > SubmissionOf(kept) ||
      (!goes_on && EndOf(before) != nullptr && EndOf(kept) == nullptr)) {
    violated_("the compacted log does not have the end or the submission as it was");
  }
  for (const RunLogEntry& entry : before) {
    if (entry.has_cut()) {
      const CutEntry* cut = FindCut(kept, entry.cut().cut());
      if (cut == nullptr) {
        CheckLeftOut(entry.cut(), before);
      } else if (!IsSame(*cut, entry.cut())) {
        violated_(absl::StrCat("the compacted log has another ", entry.cut().cut()));
      }
    }
    if (!entry.has_generation()) continue;
    const GenerationEntry& old = entry.generation();
    const GenerationEntry* now = FindGeneration(kept, old.generation());
    if (now == nullptr || now->cut() != old.cut() || now->began() != old.began() ||
        !IsSame(now->ended(), old.ended())) {
      violated_(absl::StrCat("the compacted log does not have generation ", old.generation(),
                             " as it was"));
      continue;
    }
    // The job of a generation is needed in three cases: the generation is the newest, it is the
    // last that ran (the next generation has the job of one of these two), or the log keeps a cut
    // of it, to which somebody may take the run back.
    bool needs_job = FindGeneration(kept, old.generation() + 1) == nullptr && &old == newest;
    needs_job |= LastThatRan(kept) == old.generation();
    for (const RunLogEntry& cut : kept) {
      needs_job |= cut.has_cut() && cut.cut().generation() == old.generation();
    }
    if (needs_job && old.has_job() && !IsSame(now->job(), old.job())) {
      violated_(
          absl::StrCat("the compacted log does not have the job of generation ", old.generation()));
    }
  }
}

// Checks that the compaction was right to leave out `cut`.
void History::CheckLeftOut(const CutEntry& cut, const std::vector<RunLogEntry>& before) {
  if (left_out_.count(cut.cut()) > 0) return;
  const CutEntry* newest = nullptr;
  std::string start;
  for (const RunLogEntry& entry : before) {
    if (entry.has_cut()) newest = &entry.cut();
    if (entry.has_cut()) start = entry.cut().cut();
    if (entry.has_generation()) start = entry.generation().cut();
  }
  const bool is_newest = newest != nullptr && newest->cut() == cut.cut();
  const bool is_needed = is_newest || start == cut.cut();
  // After a loss of power the folder of a removed cut may have come back without anybody knowing.
  if (!is_needed && (power_was_lost_ || !is_there_(cut.cut()))) {
    left_out_.insert(cut.cut());
    return;
  }
  violated_(absl::StrCat("the compacted log has no ", cut.cut(), ", which is still asked for"));
}

// If the log did not show that a generation has run, its job could be dropped as one that has not
// trained.
void History::CheckRuns() {
  if (ran_ >= runs_ || generation_that_runs_ == nullptr) return;
  const auto ran = with_job_.find(ran_);
  if (ran != with_job_.end() && ran->second->job == generation_that_runs_->job) return;
  violated_(absl::StrCat("members were told that generation ", runs_,
                         " runs, and the log does not show that its job has run"));
}

void History::Read(const Known& known) {
  const RunLogEntry& entry = known.entry->message;
  if (finished_) {
    violated_(absl::StrCat("entry ", known.number, " of the log follows the END"));
  }
  ends_.Read(entry);
  if (entry.has_generation()) {
    ReadGeneration(known);
  } else if (entry.has_cut()) {
    ReadCutEntry(entry.cut());
  } else if (entry.has_running()) {
    ran_ = entry.running().generation();
  } else if (entry.has_dropped()) {
    dropped_ = true;
    const bool has_reason = disk_fails_ || cannot_begin_.count(generation_) > 0;
    if (entry.dropped().generation() != generation_ || !has_reason) {
      violated_(absl::StrCat("the job of generation ", entry.dropped().generation(),
                             " was dropped without a reason"));
    }
  } else if (entry.has_complete()) {
    if (entry.complete().generation() != generation_) {
      violated_(absl::StrCat("generation ", entry.complete().generation(),
                             " had all its members while generation ", generation_,
                             " was the newest"));
    }
  } else if (entry.has_left()) {
    if (entry.left().generation() != generation_) {
      violated_(absl::StrCat("generation ", entry.left().generation(),
                             " was left while generation ", generation_, " was the newest"));
    }
  } else if (entry.has_end()) {
    finished_ = satrap::StateOf(entry.end()) == FINISHED;
  } else {
    violated_(absl::StrCat("entry ", known.number, " of the log is of no kind"));
  }
}

void History::ReadGeneration(const Known& known) {
  const GenerationEntry& entry = known.entry->message.generation();
  if (entry.generation() != generation_ + 1) {
    violated_(absl::StrCat("generation ", entry.generation(), " follows ", generation_));
  }
  CheckJob(known);
  generation_ = entry.generation();
  dropped_ = false;
  // Somebody who resumes a run may take it back to an older cut. The run then continues from there.
  const bool taken_back = entry.began() == BEGAN_RESUME && marked_.count(entry.cut()) > 0;
  // For a cut that a compaction has left out, the log does not show when it was the newest.
  const bool is_left_out = left_out_.count(entry.cut()) > 0 && cuts_in_log_.count(entry.cut()) == 0;
  if (entry.cut() != newest_cut_ && !taken_back && !is_left_out) {
    violated_(absl::StrCat("generation ", generation_, " begins from '", entry.cut(),
                           "', and the newest cut is '", newest_cut_, "'"));
  }
  newest_cut_ = entry.cut();
}

void History::CheckJob(const Known& known) {
  const GenerationEntry& entry = known.entry->message.generation();
  if (entry.has_job()) with_job_[entry.generation()] = known.entry;
  const bool is_changed = entry.began() == BEGAN_RESUME || entry.began() == BEGAN_SCALE_ANNOUNCED;
  if (generation_ == 0 || is_changed || !entry.has_job()) return;
  // A compacted log records which generation ran last, but not which earlier ones ran.
  if (dropped_ && is_kept_) return;
  const auto expected = with_job_.find(dropped_ ? ran_ : generation_);
  if (expected == with_job_.end() || expected->second->job == known.entry->job) return;
  violated_(absl::StrCat("generation ", entry.generation(), " has another job than generation ",
                         expected->first));
}

void History::ReadCutEntry(const CutEntry& entry) {
  ++cuts_;
  newest_cut_ = entry.cut();
  ran_ = entry.generation();
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
  // The log is read again and again, and by then retention may have removed the cut's folder.
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

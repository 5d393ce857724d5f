#include "tests/simulation/lives/sim_ends.h"

#include "absl/strings/str_cat.h"

namespace satrap::simulation {

void SimEnds::OnMoved(uint64_t generation, bool is_known) {
  may_have_moved_.insert(generation);
  // If another launcher has begun a later generation, that generation did not follow the move.
  if (is_known && generation == generation_) moved_.insert(generation);
}

void SimEnds::OnEndTold(uint64_t generation, RunState state) {
  const auto end = ended_.find(generation);
  if (end != ended_.end() && end->second == state) return;
  violated_(absl::StrCat("members were told ", RunState_Name(state), ", and the log says ",
                         end == ended_.end() ? "nothing of an end" : RunState_Name(end->second)));
}

void SimEnds::Begin() {
  generation_ = 0;
  submission_ = 0;
  end_.reset();
  ended_.clear();
  left_for_stop_ = false;
  left_for_move_ = false;
  just_began_ = false;
}

void SimEnds::Read(const RunLogEntry& entry) {
  if (entry.has_generation()) {
    ReadGeneration(entry.generation());
    end_.reset();
  } else if (entry.has_end()) {
    end_ = entry.end().state();
    ended_[generation_] = entry.end().state();
    if (entry.end().submission() != submission_) {
      violated_(absl::StrCat("submission ", entry.end().submission(), " ends within submission ",
                             submission_));
    }
    if (end_ == STOPPED && !stop_wished_) violated_("the run is stopped, and nobody has asked");
  }
  left_for_stop_ = entry.cut().left_for() == CutEntry::STOP;
  just_began_ = entry.has_generation();
  left_for_move_ = entry.cut().left_for() == CutEntry::MOVE || entry.has_left();
  if (left_for_move_) may_have_moved_.insert(generation_);
}

void SimEnds::ReadGeneration(const GenerationEntry& entry) {
  const bool resumes = entry.began() == BEGAN_RESUME;
  const std::string which =
      absl::StrCat("generation ", entry.generation(), " of submission ", entry.submission());
  if (entry.submission() == 0 && submission_ == 0) {
    generation_ = entry.generation();  // by a build that knew of no submissions
    return;
  }
  if (entry.submission() == submission_) {
    if (end_.has_value()) violated_(absl::StrCat(which, " follows its end"));
    if (left_for_stop_) violated_(absl::StrCat(which, " follows the cut of a stop"));
    if (resumes) violated_(absl::StrCat(which, " resumes it once more"));
  } else if (entry.submission() < submission_ || (submission_ > 0 && !resumes)) {
    violated_(absl::StrCat(which, " follows submission ", submission_));
  } else if (made_ > 0 && entry.submission() > made_) {
    violated_(absl::StrCat(which, ", and nobody has made that submission"));
  }
  const bool moved = moved_.count(generation_) > 0 && entry.began() != BEGAN_MOVED && !resumes;
  if ((moved || (left_for_move_ && entry.began() == BEGAN_RESTART)) &&
      entry.generation() == generation_ + 1) {
    violated_(
        absl::StrCat(which, " follows a move, and the log calls it ", Began_Name(entry.began())));
  }
  // If two coordinators claim at the same time, both may have been told of the same move.
  if (entry.began() == BEGAN_MOVED && may_have_moved_.count(generation_) == 0 && !just_began_) {
    violated_(absl::StrCat(which, " is said to follow a move, and generation ", generation_,
                           " has not moved"));
  }
  generation_ = entry.generation();
  submission_ = entry.submission();
}

}  // namespace satrap::simulation

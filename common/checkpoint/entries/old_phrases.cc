#include "common/checkpoint/entries/old_phrases.h"

#include <string>

#include "absl/strings/match.h"

namespace satrap {
namespace {

struct OldCause {
  const char* cause;
  Began began;
};
constexpr OldCause kOldCauses[] = {{"start", BEGAN_START},
                                   {"resume", BEGAN_RESUME},
                                   {"scale", BEGAN_SCALE_ANNOUNCED},
                                   {"scaled", BEGAN_SCALED}};

// The phrase as old builds wrote it. It stays as it is even if the phrase in start_cut.h changes.
constexpr char kOldChooseAnotherCut[] =
    "go on from another cut with `satrap resume RUN --from CUT`";

}  // namespace

void ReadOldCause(GenerationEntry* entry) {
  if (entry->has_began()) return;
  const std::string cause = entry->cause();
  entry->clear_cause();
  entry->set_began(BEGAN_RESTART);
  for (const OldCause& old : kOldCauses) {
    if (cause == old.cause) entry->set_began(old.began);
  }
  // Any other cause is a sentence that says how the generation before was lost or failed.
  if (entry->began() == BEGAN_RESTART) entry->mutable_ended()->set_text(cause);
}

Ending::Advice AdviceOfOldFailure(absl::string_view failure) {
  return absl::StrContains(failure, kOldChooseAnotherCut) ? Ending::RESUME_FROM_ANOTHER_CUT
                                                          : Ending::RESUME;
}

}  // namespace satrap

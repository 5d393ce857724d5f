#include "common/role/ending.h"

#include <cstdio>
#include <fstream>

#include "common/checkpoint/start_cut.h"
#include "common/config/text_format.h"
#include "common/role/cause_table.h"

namespace satrap {

Ending EndingOf(Ending::Why why, absl::string_view text) {
  Ending ending;
  ending.set_why(why);
  ending.set_text(std::string(text));
  return ending;
}

Ending EndingOf(Ending::Why why, Role role, int index, absl::string_view text) {
  Ending ending = EndingOf(why, text);
  ending.mutable_origin()->set_role(role);
  ending.mutable_origin()->set_index(static_cast<uint32_t>(index));
  return ending;
}

Ending FailureOf(Role role, int index, const absl::Status& error) {
  Ending ending = EndingOf(Ending::MEMBER_FAILED, role, index, error.message());
  ending.set_kind(KindOf(error));
  if (IsStartCutError(error)) ending.set_advice(Ending::RESUME_FROM_ANOTHER_CUT);
  return ending;
}

bool IsOf(const Ending& ending, Role role, int index) {
  return ending.has_origin() && ending.origin().role() == role &&
         ending.origin().index() == static_cast<uint32_t>(index);
}

int ExitCodeOf(RunState state, const Ending& ending, Role role, int index) {
  const bool is_echo = !IsOf(ending, role, index);
  switch (state) {
    case FINISHED:
    case STOPPED:
      return 0;
    case FAILED:
      return is_echo ? kExitEchoFailed : kExitFailed;
    default:
      return is_echo ? kExitEchoStartAgain : kExitStartAgain;
  }
}

void LeaveEnding(const std::string& path, const Ending& ending) {
  if (path.empty()) return;
  const std::string fresh = path + ".new";
  std::ofstream file(fresh, std::ios::binary | std::ios::trunc);
  file << ToText(ending);
  file.close();
  if (!file || rename(fresh.c_str(), path.c_str()) != 0) remove(fresh.c_str());
}

absl::optional<Ending> ReadEnding(const std::string& path) {
  Ending ending;
  if (!ParseTextFile(path, &ending).ok()) return absl::nullopt;
  return ending;
}

}  // namespace satrap
